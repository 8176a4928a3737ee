#include "lab/run/drive.h"

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <new>

#include "lab/noise/noise.h"
#include "lab/workloads/workload.h"

namespace faultpath::lab {
namespace {

/// How long tasks may take to get ready, and to stop and check.
constexpr double kPatience = 120;
/// How often the driver looks after the tasks.
constexpr double kLookEvery = 0.05;

void sleep_until(double when) {
  timespec t{};
  t.tv_sec = static_cast<time_t>(when);
  t.tv_nsec = static_cast<long>((when - static_cast<double>(t.tv_sec)) * 1e9);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, nullptr) == EINTR) {
  }
}

bool any_failed(const Stage& stage, const std::vector<Role>& roles) {
  return std::any_of(roles.begin(), roles.end(), [&](const Role& r) {
    return stage.slot(r.id).failed.load(std::memory_order_acquire) != 0;
  });
}

/// Sleeps until `condition()`; looks after the tasks. Returns what went wrong.
template <class F>
std::string await(const Troupe& troupe, const char* what, F condition) {
  const double begin = now_seconds();
  double nap = 50e-6;
  while (!condition()) {
    std::string trouble = troupe.trouble();
    if (!trouble.empty()) return trouble;
    if (now_seconds() - begin > kPatience) return std::string("tasks did not ") + what;
    sleep_until(now_seconds() + nap);
    nap = std::min(nap * 1.5, 2e-3);
  }
  return {};
}

/// Sleeps until `when`, or until a task fails or dies.
std::string rest(const Stage& stage, const std::vector<Role>& roles, const Troupe& troupe,
                 double when, bool& failed) {
  for (;;) {
    const double now = now_seconds();
    if (now >= when) return {};
    sleep_until(std::min(when, now + kLookEvery));
    failed = any_failed(stage, roles);
    if (failed) return {};
    std::string trouble = troupe.trouble();
    if (!trouble.empty()) return trouble;
  }
}

void give_up(Stage& stage) {
  stage.control().abort.store(1, std::memory_order_release);
  stage.control().phase.store(Phase::stop, std::memory_order_release);
}

std::string stop_and_check(Stage& stage, const std::vector<Role>& roles, const Troupe& troupe) {
  Control& control = stage.control();
  const auto n = static_cast<std::uint32_t>(roles.size());
  std::string error =
      await(troupe, "end", [&] { return control.ended.load(std::memory_order_acquire) == n; });
  if (!error.empty()) give_up(stage);
  return error;
}

/// Each piece of kReadBytes gets its own byte throughout. False with errno.
bool fill(int fd, std::uint64_t bytes) {
  std::array<std::uint8_t, kReadBytes> piece;
  for (std::uint64_t at = 0; at < bytes; at += piece.size()) {
    piece.fill(page_byte(at / piece.size(), 0));
    const ssize_t n = pwrite(fd, piece.data(), piece.size(), static_cast<off_t>(at));
    if (n == static_cast<ssize_t>(piece.size())) continue;
    if (n >= 0) errno = ENOSPC;
    return false;
  }
  return true;
}

std::vector<std::uint64_t> ops_of(const Stage& stage, const std::vector<Role>& roles) {
  std::vector<std::uint64_t> ops;
  for (const Role& r : roles) ops.push_back(stage.slot(r.id).ops.load(std::memory_order_relaxed));
  return ops;
}

}  // namespace

std::vector<int> usable_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i) {
      if (CPU_ISSET(static_cast<unsigned>(i), &set)) cpus.push_back(i);
    }
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

void pin_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  sched_setaffinity(0, sizeof set, &set);
}

unsigned space_count(const BenchSpec& spec) {
  return spec.mode == Mode::threads ? 1u : static_cast<unsigned>(spec.tasks);
}

std::vector<Role> cast(const BenchSpec& spec) {
  const std::vector<int> cpus = usable_cpus();
  const auto n = static_cast<unsigned>(spec.tasks);
  const bool threads = spec.mode == Mode::threads;
  std::vector<Role> roles;
  const auto add = [&](unsigned space, unsigned index, bool mapper) {
    Role r;
    r.id = static_cast<unsigned>(roles.size());
    r.space = space;
    r.index = index;
    r.tasks = threads ? n : 1;
    r.mapper = mapper;
    r.first = !mapper && index == 0;
    r.cpu = cpus[r.id % cpus.size()];
    roles.push_back(r);
  };
  for (unsigned i = 0; i < n; ++i) add(threads ? 0 : i, threads ? i : 0, false);
  if (spec.workload->mapper) {
    for (unsigned s = 0; s < space_count(spec); ++s) add(s, 0, true);
  }
  return roles;
}

Stage::Stage(std::size_t slots) {
  bytes_ = sizeof(Control) + slots * sizeof(TaskSlot);
  void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return;
  memory_ = at;
  control_ = new (at) Control();
  static_assert(sizeof(Control) % alignof(TaskSlot) == 0);
  auto* bytes = static_cast<std::byte*>(at) + sizeof(Control);
  for (std::size_t i = 0; i < slots; ++i) new (bytes + i * sizeof(TaskSlot)) TaskSlot();
  slots_ = reinterpret_cast<TaskSlot*>(bytes);
}

Stage::~Stage() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

Measured drive_window(Stage& stage, const std::vector<Role>& roles, const Troupe& troupe,
                      const Window& window) {
  Measured result;
  Control& control = stage.control();
  const auto n = static_cast<std::uint32_t>(roles.size());
  result.error =
      await(troupe, "start", [&] { return control.ready.load(std::memory_order_acquire) == n; });
  if (!result.error.empty()) return give_up(stage), result;

  const double start = now_seconds();
  control.phase.store(Phase::warm_up, std::memory_order_release);
  bool failed = false;
  // The look at other processes takes milliseconds: it is part of the warm-up.
  ForeignCpu foreign(troupe.pids);
  result.error = rest(stage, roles, troupe, start + window.warm_up * 0.8, failed);
  if (!result.error.empty()) return give_up(stage), result;
  if (!failed) {
    foreign.begin();
    result.error = rest(stage, roles, troupe, start + window.warm_up, failed);
    if (!result.error.empty()) return give_up(stage), result;
  }

  Sample& s = result.sample;
  if (!failed) {
    const double cpu_before = troupe.cpu_seconds();
    const auto counters_before = troupe.counters();
    const double begin = now_seconds();
    const auto ops_before = ops_of(stage, roles);
    control.phase.store(Phase::measured, std::memory_order_release);
    result.error = rest(stage, roles, troupe, begin + window.seconds, failed);
    const auto ops_after = ops_of(stage, roles);
    const double end = now_seconds();
    const auto counters_after = troupe.counters();
    const double cpu_after = troupe.cpu_seconds();
    control.phase.store(Phase::stop, std::memory_order_release);
    if (!result.error.empty()) return give_up(stage), result;
    s.foreign_cpus = foreign.end();

    s.seconds = end - begin;
    s.own_cpu = cpu_after - cpu_before;
    std::uint64_t counted = 0;
    std::uint64_t mapper_ops = 0;
    for (std::size_t i = 0; i < roles.size(); ++i) {
      const std::uint64_t ops = ops_after[i] - ops_before[i];
      if (roles[i].mapper) {
        mapper_ops += ops;
        continue;
      }
      counted += ops;
      s.task_ops.push_back(static_cast<double>(ops) / s.seconds);
    }
    s.ops_per_second = static_cast<double>(counted) / s.seconds;
    for (std::size_t i = 0; i < troupe.counter_names.size(); ++i) {
      // Racing snapshots may be a moment old, never more.
      const double delta = counters_after[i] > counters_before[i]
                               ? static_cast<double>(counters_after[i] - counters_before[i])
                               : 0;
      s.counters.emplace_back(troupe.counter_names[i], delta);
      if (troupe.counter_names[i] == "faults" && counted > 0) {
        s.faults_per_op = delta / static_cast<double>(counted);
      }
    }
    if (roles.back().mapper) {
      s.counters.emplace_back("mapper.ops", static_cast<double>(mapper_ops));
    }
    const double usable =
        static_cast<double>(std::min<std::size_t>(roles.size(), usable_cpus().size()));
    result.own_share = s.own_cpu / (s.seconds * usable);
  }
  control.phase.store(Phase::stop, std::memory_order_release);
  result.error = stop_and_check(stage, roles, troupe);
  return result;
}

std::string drive_fixed(Stage& stage, const std::vector<Role>& roles, const Troupe& troupe) {
  Control& control = stage.control();
  const auto n = static_cast<std::uint32_t>(roles.size());
  const auto counting = static_cast<std::uint32_t>(
      std::count_if(roles.begin(), roles.end(), [](const Role& r) { return !r.mapper; }));
  std::string error =
      await(troupe, "start", [&] { return control.ready.load(std::memory_order_acquire) == n; });
  if (!error.empty()) return give_up(stage), error;
  control.phase.store(Phase::measured, std::memory_order_release);
  error = await(troupe, "end their loops",
                [&] { return control.counted_done.load(std::memory_order_acquire) == counting; });
  if (!error.empty()) return give_up(stage), error;
  control.phase.store(Phase::stop, std::memory_order_release);
  return stop_and_check(stage, roles, troupe);
}

std::string complaints(const Stage& stage, const std::vector<Role>& roles) {
  for (const Role& r : roles) {
    const TaskSlot& slot = stage.slot(r.id);
    if (slot.failed.load(std::memory_order_acquire) == 0) continue;
    return (r.mapper ? "mapper" : "task " + std::to_string(r.id)) + ": " + slot.error;
  }
  return {};
}

Latency latency_of(const Stage& stage, const std::vector<Role>& roles) {
  Histogram all;
  for (const Role& r : roles) {
    if (!r.mapper) all.add(stage.slot(r.id).latency);
  }
  Latency latency;
  latency.samples = all.total();
  latency.p50 = all.percentile(0.50) * ns_per_tick();
  latency.p99 = all.percentile(0.99) * ns_per_tick();
  return latency;
}

AccessTime access_time_of(const Stage& stage, const std::vector<Role>& roles) {
  PartTimes mean;
  double tasks = 0;
  for (const Role& r : roles) {
    const PartTimes& parts = stage.slot(r.id).parts;
    if (r.mapper || parts.rounds == 0) continue;
    mean.prot += parts.prot;
    mean.caught += parts.caught;
    mean.plain += parts.plain;
    mean.rounds += parts.rounds;
    tasks += 1;
  }
  if (tasks == 0) return {};
  mean.prot /= tasks;
  mean.caught /= tasks;
  mean.plain /= tasks;
  return subtract(mean, ns_per_tick());
}

FixedResult fixed_result(const Stage& stage, const std::vector<Role>& roles, std::string error) {
  FixedResult result;
  result.error = std::move(error);
  if (result.error.empty()) result.error = complaints(stage, roles);
  for (const Role& r : roles) {
    if (r.mapper) continue;
    const TaskSlot& slot = stage.slot(r.id);
    result.ops.push_back(slot.ops.load(std::memory_order_relaxed));
    result.calls.push_back(slot.calls);
    result.faults.push_back(slot.loop_faults);
  }
  return result;
}

std::size_t file_index(const WorkloadInfo& workload, const Role& role) {
  return workload.one_file_bytes != 0 ? 0 : role.id;
}

std::size_t file_count(const BenchSpec& spec) {
  if (!spec.workload->file) return 0;
  return spec.workload->one_file_bytes != 0 ? 1 : static_cast<std::size_t>(spec.tasks);
}

int make_task_file(const WorkloadInfo& workload, const std::string& dir) {
  std::string path = (dir.empty() ? "." : dir) + "/faultpath-lab-XXXXXX";
  const int fd = mkostemp(path.data(), O_CLOEXEC);
  if (fd < 0) return -1;
  unlink(path.c_str());
  const bool made = workload.one_file_bytes != 0
                        ? fill(fd, workload.one_file_bytes)
                        : ftruncate(fd, static_cast<off_t>(kAreaBytes)) == 0;
  if (!made) {
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

}  // namespace faultpath::lab
