#include "lab/run/runner.h"

#include <algorithm>
#include <cstdio>
#include <memory>

#include "lab/noise/noise.h"
#include "lab/run/bench.h"
#include "lab/run/roles.h"
#include "lab/run/ticks.h"

namespace faultpath::lab {
namespace {

/// How patient the runner is with a busy machine.
struct Patience {
  double warm_up;          ///< seconds
  double look;             ///< seconds of /proc/stat before each run
  double busy_cpus;        ///< more than this is busy
  double wait_a_run;       ///< seconds
  double wait_altogether;  ///< seconds
  int retries_a_run;
  int retries_a_cell;
};
constexpr Patience kPatient{0.2, 0.7, 0.08, 20, 600, 3, 1000};
constexpr Patience kQuick{0.1, 0.2, 0.2, 0.6, 10, 1, 1};

PolicySpec policy_of(const std::string& variant) {
  auto spec = parse_policy(variant);
  return spec ? spec.value() : PolicySpec{};
}

const char* mode_name(Mode mode) { return mode == Mode::threads ? "threads" : "processes"; }

/// Runs the cells of one workload, mode and number of tasks.
class Group {
 public:
  Group(const RunOptions& options, const WorkloadInfo& workload, Mode mode, int tasks,
        double& waited)
      : options_(options), patience_(options.quick ? kQuick : kPatient), waited_(waited) {
    spec_.workload = &workload;
    spec_.mode = mode;
    spec_.tasks = tasks;
    spec_.ebizzy = options.ebizzy;
    spec_.dir = options.dir;
    spec_.memory_bytes = options.memory_bytes;
    for (const std::string& variant : options.variants) {
      Cell& c = cells_.emplace_back();
      c.workload = workload.name;
      c.variant = variant;
      c.mode = mode;
      c.tasks = tasks;
    }
  }

  std::vector<Cell> run() {
    for (std::size_t v = 0; v < cells_.size(); ++v) verify(v);
    for (int repeat = 0; repeat < options_.repeats; ++repeat) {
      for (std::size_t v = 0; v < cells_.size(); ++v) {
        if (cells_[v].verify_error.empty()) measure(v, repeat);
      }
    }
    for (Cell& c : cells_) c.verified = options_.verify && c.verify_error.empty();
    return std::move(cells_);
  }

 private:
  /// The bench of a variant, made at its first use; null with the cell's error set.
  Bench* bench(std::size_t v) {
    const bool host = cells_[v].variant == kHostVariant;
    std::unique_ptr<Bench>& bench = host ? host_ : engine_;
    std::string error;
    if (!bench) bench = host ? make_host_bench(spec_, error) : make_engine_bench(spec_, error);
    if (!bench) cells_[v].verify_error = error;
    return bench.get();
  }

  void verify(std::size_t v) {
    Bench* b = bench(v);
    if (b == nullptr || !options_.verify) return;
    const FixedResult r = b->run_fixed(policy_of(cells_[v].variant),
                                       {.ops = spec_.workload->verify_ops, .plant = Plant::none});
    cells_[v].verify_error = r.error;
    if (!r.error.empty()) say(v, "verification: " + r.error);
  }

  void measure(std::size_t v, int repeat) {
    Cell& cell = cells_[v];
    Bench* b = bench(v);
    if (b == nullptr) return;
    for (int attempt = 0;; ++attempt) {
      wait_for_quiet();
      Measured m = b->measure(policy_of(cell.variant), {patience_.warm_up, options_.seconds});
      if (!m.error.empty()) {
        cell.verify_error = m.error;
        say(v, m.error);
        return;
      }
      m.sample.noisy = is_noisy(m.sample.foreign_cpus, m.own_share);
      const bool again = m.sample.noisy && attempt < patience_.retries_a_run &&
                         cell.rejected_runs < patience_.retries_a_cell;
      const bool timed = spec_.workload->timed;
      char figures[128];
      std::snprintf(figures, sizeof figures, "%d/%d %.*f %s%s", repeat + 1, options_.repeats,
                    timed ? 2 : 0, timed ? m.sample.access_time.access_ns : m.sample.ops_per_second,
                    timed ? "ns an access" : "ops/s",
                    again            ? ", noisy: repeated"
                    : m.sample.noisy ? ", noisy"
                                     : "");
      say(v, figures);
      if (again) {
        ++cell.rejected_runs;
        continue;
      }
      cell.samples.push_back(std::move(m.sample));
      return;
    }
  }

  /// Looks no more once the patience of the whole job is used up: the runs are flagged instead.
  void wait_for_quiet() {
    double waited = 0;
    while (waited_ < patience_.wait_altogether) {
      const double begin = now_seconds();
      if (busy_cpus(patience_.look) <= patience_.busy_cpus) return;
      const double passed = now_seconds() - begin;
      waited += passed;
      waited_ += passed;
      if (waited >= patience_.wait_a_run) return;
    }
  }

  void say(std::size_t v, const std::string& what) const {
    if (!options_.progress) return;
    const Cell& c = cells_[v];
    options_.progress(c.workload + " " + mode_name(c.mode) + " -t " + std::to_string(c.tasks) +
                      " " + c.variant + ": " + what);
  }

  const RunOptions& options_;
  const Patience& patience_;
  double& waited_;
  BenchSpec spec_;
  std::vector<Cell> cells_;
  std::unique_ptr<Bench> engine_;
  std::unique_ptr<Bench> host_;
};

/// Calls f(workload, mode, tasks) in the order of the groups.
template <class F>
void for_each_group(const RunOptions& options, F f) {
  for (const std::string& workload : options.workloads) {
    for (const Mode mode : options.modes) {
      for (const int tasks : options.tasks) f(workload, mode, tasks);
    }
  }
}

std::vector<std::string> notes_of(const RunOptions& options, const MachineBlock& machine) {
  std::vector<std::string> notes;
  const bool host = std::find(options.variants.begin(), options.variants.end(), kHostVariant) !=
                    options.variants.end();
  if (host) {
    notes.push_back(
        "host is this machine's kernel and includes the hardware trap; the engine's "
        "faults are calls and do not");
    if (machine.thp == "always") {
      notes.push_back(
          "transparent huge pages are on for all: one fault of host may serve many "
          "operations");
    }
  }
  std::string controls;
  for (const std::string& name : options.workloads) {
    const WorkloadInfo* w = find_workload(name);
    if (w == nullptr) continue;
    if (w->null_control) controls += (controls.empty() ? "" : ", ") + name;
    if (w->timed) {
      notes.push_back(name +
                      ": time_per_access_ns is prot_ns (refused store and handler) less catch_ns "
                      "(the handler alone), blocks of both taking turns; less is better");
    }
  }
  if (!controls.empty()) notes.push_back(controls + ": " + std::string(kNullControlText));
  const int cpus = static_cast<int>(usable_cpus().size());
  const int most = *std::max_element(options.tasks.begin(), options.tasks.end());
  if (most > cpus) {
    notes.push_back("up to " + std::to_string(most) + " tasks share " + std::to_string(cpus) +
                    " CPUs");
  }
  return notes;
}

}  // namespace

std::vector<PlannedRun> plan(const RunOptions& options) {
  std::vector<PlannedRun> runs;
  for_each_group(options, [&](const std::string& workload, Mode mode, int tasks) {
    for (int repeat = 0; repeat < options.repeats; ++repeat) {
      for (std::size_t v = 0; v < options.variants.size(); ++v) {
        runs.push_back({workload, mode, tasks, v, repeat});
      }
    }
  });
  return runs;
}

ResultSet run(const RunOptions& options) {
  ResultSet result;
  result.machine = read_machine_block(options.dir);
  result.workload_version = kWorkloadVersion;
  result.seconds = options.seconds;
  result.repeats = options.repeats;
  result.notes = notes_of(options, result.machine);
  double waited = 0;
  for_each_group(options, [&](const std::string& name, Mode mode, int tasks) {
    const WorkloadInfo* workload = find_workload(name);
    if (workload == nullptr) return;
    for (Cell& c : Group(options, *workload, mode, tasks, waited).run()) {
      result.cells.push_back(std::move(c));
    }
  });
  return result;
}

}  // namespace faultpath::lab
