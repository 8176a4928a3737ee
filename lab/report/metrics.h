// From measured cells to comparable metrics.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/result.h"
#include "lab/stats/compare.h"

namespace faultpath::lab {

std::string_view name_of(Mode mode);

/// "per_thread_ops" or "per_process_ops": operations a second of one counting task.
std::string_view per_task_metric(Mode mode);

/// The mean over a sample's counting tasks; without tasks, nothing.
std::optional<double> per_task_ops(const Sample& sample);

/// Operations done in the window, or 0.
double operations(const Sample& sample);

/// The figure of a timed workload: nanoseconds an access, less is better.
inline constexpr std::string_view kAccessMetric = "time_per_access_ns";
bool is_timed(std::string_view workload);
bool is_null_control(std::string_view workload);
/// The metric that a reader takes home: an operations rate, or the time of a timed workload.
std::string headline_metric(std::string_view workload, Mode mode);

/// The mean time per access as lmbench prints it; empty where nothing was timed.
std::string lmbench_line(const Cell& cell);

/// The metrics of one cell, e.g. "page_fault1.per_thread_ops". Latencies only where sampled.
std::vector<Metric> metrics_of(const Cell& cell);

/// The cells of one mode and task count: what one table shows.
struct Group {
  Mode mode = Mode::threads;
  int tasks = 1;
  std::vector<std::string> workloads;  ///< in the order measured
};
std::vector<Group> groups_of(const ResultSet& results);

/// Base first, then heads, each once; then whatever else was measured.
std::vector<std::string> variants_of(const ResultSet& results);

/// The cell with this key, samples of several pooled. Empty if there is none.
std::optional<Cell> find_cell(const ResultSet& results, std::string_view workload,
                              std::string_view variant, Mode mode, int tasks);

/// One metric of one workload, mode and task count: a head against the base.
struct ResultComparison {
  std::string workload;
  std::string head;
  Mode mode = Mode::threads;
  int tasks = 1;
  bool gated = false;    ///< the headline, not of a null control: what a threshold looks at
  bool verified = true;  ///< both sides' results were right
  Comparison comparison;
};
std::vector<ResultComparison> compare_results(const ResultSet& results);

/// Per operation, mean over the samples that count it; nothing if none does.
std::optional<double> counter_per_operation(const Cell& cell, std::string_view counter);

/// Whether the counter belongs to the explanation of a fault policy's speed: faults, speculation,
/// the address-space lock, flushes.
bool explains_policy(std::string_view counter);

/// What `--fail-on-regression` makes of it: `regressions` names each headline that got worse by
/// `percent` or more, `missing` each that has no data on one side.
struct Gate {
  std::vector<std::string> regressions;
  std::vector<std::string> missing;
};
Gate regression_gate(const std::vector<ResultComparison>& comparisons, double percent);

/// "page_fault1 under spf, threads, 2 tasks".
std::string describe(std::string_view workload, std::string_view variant, Mode mode, int tasks);

}  // namespace faultpath::lab
