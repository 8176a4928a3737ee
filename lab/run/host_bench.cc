// Runs workloads on the host kernel's memory. Tasks are always in forked processes: one with all
// the threads, or one for each task.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>

#include "lab/noise/noise.h"
#include "lab/run/bench.h"
#include "lab/run/drive.h"
#include "lab/run/play.h"
#include "lab/targets/host_refusals.h"
#include "lab/targets/host_target.h"
#include "lab/workloads/all.h"

namespace faultpath::lab {
namespace {

struct Child {
  pid_t pid = 0;
  clockid_t cpu_clock = 0;
  bool gone = false;
};

/// The children of one run. None outlives it.
class Children {
 public:
  Children() = default;
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() {
    for (Child& c : list_) {
      if (c.gone) continue;
      kill(c.pid, SIGKILL);
      waitpid(c.pid, nullptr, 0);
    }
  }

  /// Forks a child that runs `work` and ends. False, with errno, where the host refuses.
  template <class F>
  bool start(F work) {
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid < 0) return false;
    if (pid == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      work();
      _exit(0);
    }
    Child c;
    c.pid = pid;
    if (clock_getcpuclockid(pid, &c.cpu_clock) != 0) c.cpu_clock = CLOCK_PROCESS_CPUTIME_ID;
    list_.push_back(c);
    return true;
  }

  std::vector<pid_t> pids() const {
    std::vector<pid_t> pids;
    for (const Child& c : list_) pids.push_back(c.pid);
    return pids;
  }
  double cpu_seconds() const {
    std::uint64_t ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    for (const Child& c : list_) {
      if (c.cpu_clock != CLOCK_PROCESS_CPUTIME_ID) ns += clock_ns(c.cpu_clock);
    }
    return static_cast<double>(ns) * 1e-9;
  }
  std::vector<std::uint64_t> faults() const {
    std::uint64_t minor = 0;
    std::uint64_t major = 0;
    for (const Child& c : list_) {
      if (const auto stat = read_pid_stat(c.pid)) {
        minor += stat->minor_faults;
        major += stat->major_faults;
      }
    }
    return {minor + major, minor, major};
  }

  /// One line about a child that ended otherwise than by itself and well.
  std::string trouble() {
    std::string line;
    for (Child& c : list_) {
      int status = 0;
      if (c.gone || waitpid(c.pid, &status, WNOHANG) != c.pid) continue;
      c.gone = true;
      if (line.empty()) line = verdict(status);
    }
    return line;
  }
  /// Waits for all; kills those that do not come.
  std::string reap(double patience) {
    const double deadline = now_seconds() + patience;
    std::string line;
    for (Child& c : list_) {
      while (!c.gone) {
        int status = 0;
        if (waitpid(c.pid, &status, WNOHANG) == c.pid) {
          c.gone = true;
          if (line.empty()) line = verdict(status);
        } else if (now_seconds() > deadline) {
          kill(c.pid, SIGKILL);
          waitpid(c.pid, &status, 0);
          c.gone = true;
          if (line.empty()) line = "a task process did not end and was killed";
        } else {
          usleep(200);
        }
      }
    }
    return line;
  }

 private:
  static std::string verdict(int status) {
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
    if (!WIFSIGNALED(status)) {
      return "a task process ended with status " + std::to_string(WEXITSTATUS(status));
    }
    const char* name = sigabbrev_np(WTERMSIG(status));
    std::string line = std::string("a task process died of SIG") + (name ? name : "?");
    if (WTERMSIG(status) == SIGBUS) line += " (is the filesystem of the test files full?)";
    if (WTERMSIG(status) == SIGKILL) line += " (is the machine out of memory?)";
    return line;
  }

  std::vector<Child> list_;
};

class HostBench final : public Bench {
 public:
  explicit HostBench(const BenchSpec& spec) : spec_(spec), roles_(cast(spec)) {}
  ~HostBench() override {
    for (const HostTask::File& f : files_) close(f.fd);
  }

  bool open_files(std::string& error) {
    for (std::size_t i = 0; i < file_count(spec_); ++i) {
      const int fd = make_task_file(*spec_.workload, spec_.dir);
      if (fd < 0) {
        error = spec_.dir + ": no file can be made there: " + std::strerror(errno);
        return false;
      }
      files_.push_back({fd});
    }
    return true;
  }

  Measured measure(const PolicySpec&, const Window& window) override {
    Measured result;
    warm_files(result.error);
    if (!result.error.empty()) return result;
    PlayOptions options;
    options.run_number = ++run_number_;
    run(
        options, result.error,
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

  FixedResult run_fixed(const PolicySpec&, const FixedRun& fixed) override {
    FixedResult result;
    PlayOptions options;
    options.limit = fixed.ops;
    options.deep = true;
    options.plant = fixed.plant;
    options.run_number = ++run_number_;
    std::string error;
    run(
        options, error,
        [&](Stage& stage, const Troupe& troupe) { return drive_fixed(stage, roles_, troupe); },
        [&](Stage& stage) { result = fixed_result(stage, roles_, {}); });
    if (!error.empty()) result.error = error;
    return result;
  }

 private:
  /// Forks the tasks, lets `drive` lead them, reaps them, hands the stage to `collect`.
  template <class Drive, class Collect>
  void run(const PlayOptions& options, std::string& error, Drive drive, Collect collect) {
    ns_per_tick();
    Stage stage(roles_.size());
    if (!stage.ok()) {
      error = "no memory for the counters";
      return;
    }
    Children children;
    for (unsigned s = 0; s < space_count(spec_); ++s) {
      if (!children.start([&] { be_process(s, stage, options); })) {
        error = std::string("fork failed: ") + std::strerror(errno);
        stage.control().abort.store(1, std::memory_order_release);
        break;
      }
    }
    if (error.empty()) {
      Troupe troupe;
      troupe.counter_names = {"faults", "minor-faults", "major-faults"};
      troupe.counters = [&] { return children.faults(); };
      troupe.cpu_seconds = [&] { return children.cpu_seconds(); };
      troupe.trouble = [&] { return children.trouble(); };
      troupe.pids = children.pids();
      troupe.pids.push_back(getpid());
      error = drive(stage, troupe);
    }
    const std::string end = children.reap(error.empty() ? 30 : 2);
    if (error.empty()) error = end;
    const std::string complaint = complaints(stage, roles_);
    if (!complaint.empty()) error = complaint;
    collect(stage);
  }

  /// Before the first measured run: a pass over each file, as the workload's own first round. The
  /// originals do it in their six seconds of warm-up.
  void warm_files(std::string& error) {
    if (warm_ || !spec_.workload->warm_file) return;
    warm_ = true;
    const bool shared = spec_.workload->shared_file;
    for (std::size_t i = 0; i < files_.size() && error.empty(); ++i) {
      Children child;  // a full filesystem is SIGBUS
      if (!child.start([&] {
            HostTask t;
            const Addr area = t.map(kAreaBytes, {&files_[i], shared, true});
            if (area == 0) _exit(1);
            for (Addr a = area; a < area + kAreaBytes; a += t.page_size()) {
              if (shared) {
                t.write(a, 1);
              } else {
                t.read(a);
              }
            }
          })) {
        error = std::string("fork failed: ") + std::strerror(errno);
      } else {
        error = child.reap(120);
      }
    }
  }

  /// In the child: the roles of space `s`.
  void be_process(unsigned s, Stage& stage, const PlayOptions& options) {
    std::vector<const Role*> mine;
    for (const Role& r : roles_) {
      if (r.space == s) mine.push_back(&r);
    }
    with_workload<HostTask>(spec_.workload->name, [&]<class W>() {
      SpaceShared<W> space;
      const auto be_role = [&](const Role& r) {
        HostTask target;
        const std::size_t i = file_index(*spec_.workload, r);
        const HostTask::File* file = i < files_.size() ? &files_[i] : nullptr;
        play<W>(r, target, file, space, stage.control(), stage.slot(r.id), spec_, options);
      };
      if (spec_.mode == Mode::processes && mine.size() == 1) {
        be_role(*mine[0]);  // a process of one thread
      } else {
        std::vector<std::thread> threads;
        threads.reserve(mine.size());
        for (const Role* r : mine) threads.emplace_back([&be_role, r] { be_role(*r); });
        for (std::thread& t : threads) t.join();
      }
      _exit(0);  // whatever the break is now, nobody allocates any more
    });
  }

  BenchSpec spec_;
  std::vector<Role> roles_;
  std::vector<HostTask::File> files_;
  std::uint32_t run_number_ = 0;
  bool warm_ = false;
};

}  // namespace

std::unique_ptr<Bench> make_host_bench(const BenchSpec& spec, std::string& error) {
  auto bench = std::make_unique<HostBench>(spec);
  if (!bench->open_files(error)) return nullptr;
  return bench;
}

}  // namespace faultpath::lab
