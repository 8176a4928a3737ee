// Runs workloads on the engine: one machine for all runs of a bench, new spaces for each.
#include <faultpath/faultpath.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <thread>

#include "lab/run/bench.h"
#include "lab/run/drive.h"
#include "lab/run/play.h"
#include "lab/targets/engine_refusals.h"
#include "lab/targets/engine_target.h"
#include "lab/workloads/all.h"

namespace faultpath::lab {
namespace {

class EngineBench final : public Bench {
 public:
  EngineBench(const BenchSpec& spec, Machine machine)
      : spec_(spec), roles_(cast(spec)), machine_(std::move(machine)) {}
  ~EngineBench() override {
    files_.clear();
    for (const int fd : fds_) close(fd);
  }

  bool open_files(std::string& error) {
    for (std::size_t i = 0; i < file_count(spec_); ++i) {
      const int fd = make_task_file(*spec_.workload, spec_.dir);
      if (fd < 0) {
        error = spec_.dir + ": no file can be made there: " + std::strerror(errno);
        return false;
      }
      fds_.push_back(fd);
      auto file = file_from_fd(machine_, fd, {.readable = true, .writable = true});
      if (!file) {
        error = std::string("the engine refuses the file: ") + to_string(file.error());
        return false;
      }
      files_.push_back(std::move(file).value());
    }
    return true;
  }

  Measured measure(const PolicySpec& policy, const Window& window) override {
    Measured result;
    warm_files(result.error);
    if (!result.error.empty()) return result;
    PlayOptions options;
    options.run_number = ++run_number_;
    run(
        policy, options, result.error,
        [&](Stage& stage, const Troupe& troupe) {
          result = drive_window(stage, roles_, troupe, window);
          return result.error;
        },
        [&](Stage& stage) {
          result.sample.fault_latency = latency_of(stage, roles_);
          result.sample.access_time = access_time_of(stage, roles_);
        });
    return result;
  }

  FixedResult run_fixed(const PolicySpec& policy, const FixedRun& fixed) override {
    FixedResult result;
    PlayOptions options;
    options.limit = fixed.ops;
    options.deep = true;
    options.plant = fixed.plant;
    options.run_number = ++run_number_;
    std::string error;
    run(
        policy, options, error,
        [&](Stage& stage, const Troupe& troupe) { return drive_fixed(stage, roles_, troupe); },
        [&](Stage& stage) { result = fixed_result(stage, roles_, {}); });
    if (!error.empty()) result.error = error;
    return result;
  }

 private:
  /// Before the first measured run: the pages of the files come into the engine's cache. The
  /// originals do it in their six seconds of warm-up.
  void warm_files(std::string& error) {
    if (warm_ || !spec_.workload->warm_file) return;
    warm_ = true;
    std::vector<std::byte> buffer(1 << 20);
    for (File& file : files_) {
      for (std::uint64_t at = 0; at < kAreaBytes; at += buffer.size()) {
        auto got = file.read_at(at, buffer.data(), buffer.size());
        if (got) continue;
        error = std::string("reading a file into the engine failed: ") + to_string(got.error());
        return;
      }
    }
  }

  template <class Drive, class Collect>
  void run(const PolicySpec& policy, const PlayOptions& options, std::string& error, Drive drive,
           Collect collect) {
    ns_per_tick();
    Stage stage(roles_.size());
    if (!stage.ok()) {
      error = "no memory for the counters";
      return;
    }
    with_workload<EngineTask>(spec_.workload->name,
                              [&]<class W>() { run_as<W>(policy, options, stage, error, drive); });
    const std::string complaint = complaints(stage, roles_);
    if (!complaint.empty()) error = complaint;
    collect(stage);
    machine_.quiesce();
  }

  template <class W, class Drive>
  void run_as(const PolicySpec& policy, const PlayOptions& options, Stage& stage,
              std::string& error, Drive drive) {
    // Destroyed in the opposite order: first the SoftCpus, then the spaces.
    std::vector<AddressSpace> spaces;
    std::deque<SpaceShared<W>> shared(space_count(spec_));
    std::deque<EngineTask> tasks;
    for (unsigned s = 0; s < space_count(spec_); ++s) {
      auto space = machine_.new_space({.policy = policy});
      if (!space) {
        error = std::string("the engine has no room for a space: ") + to_string(space.error());
        return;
      }
      spaces.push_back(std::move(space).value());
    }
    for (const Role& r : roles_) {
      if (!tasks.emplace_back(machine_, spaces[r.space]).attached()) {
        error = "the engine has no SoftCpu for a task";
        return;
      }
    }
    std::vector<EngineTask::File> files;
    for (std::size_t i = 0; i < files_.size(); ++i) files.push_back({fds_[i], &files_[i]});

    std::vector<std::thread> threads;
    threads.reserve(roles_.size());
    for (const Role& r : roles_) {
      threads.emplace_back([&, &role = r] {
        const std::size_t i = file_index(*spec_.workload, role);
        const EngineTask::File* file = i < files.size() ? &files[i] : nullptr;
        play<W>(role, tasks[role.id], file, shared[role.space], stage.control(),
                stage.slot(role.id), spec_, options);
      });
    }
    Troupe troupe;
    Counters{}.for_each([&](std::string_view name, const std::uint64_t&) {
      troupe.counter_names.emplace_back(name);
    });
    troupe.counters = [&] {
      Counters sum;
      for (const EngineTask& t : tasks) sum += t.counters();
      std::vector<std::uint64_t> values;
      values.reserve(kCounterCount);
      sum.for_each([&](std::string_view, std::uint64_t& v) { values.push_back(v); });
      return values;
    };
    troupe.cpu_seconds = [] {
      return static_cast<double>(clock_ns(CLOCK_PROCESS_CPUTIME_ID)) * 1e-9;
    };
    troupe.trouble = [] { return std::string(); };
    troupe.pids = {getpid()};
    error = drive(stage, troupe);
    for (std::thread& t : threads) t.join();
  }

  BenchSpec spec_;
  std::vector<Role> roles_;
  Machine machine_;
  std::vector<int> fds_;
  std::vector<File> files_;
  std::uint32_t run_number_ = 0;
  bool warm_ = false;
};

}  // namespace

std::unique_ptr<Bench> make_engine_bench(const BenchSpec& spec, std::string& error) {
  MachineOptions options;
  options.memory_bytes =
      spec.memory_bytes != 0
          ? spec.memory_bytes
          : machine_bytes(*spec.workload, spec.tasks, spec.mode == Mode::threads, spec.ebizzy);
  options.prefault = true;
  options.max_cpus = static_cast<std::uint32_t>(cast(spec).size()) + 2;
  auto machine = Machine::create(options);
  if (!machine) {
    error = "the engine got no memory of " + std::to_string(options.memory_bytes >> 20) +
            " MiB: " + to_string(machine.error());
    return nullptr;
  }
  auto bench = std::make_unique<EngineBench>(spec, std::move(machine).value());
  if (!bench->open_files(error)) return nullptr;
  return bench;
}

}  // namespace faultpath::lab
