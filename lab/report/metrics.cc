#include "lab/report/metrics.h"

#include <fmt/format.h>

#include <algorithm>

#include "lab/workloads/registry.h"

namespace faultpath::lab {

std::string_view name_of(Mode mode) { return mode == Mode::threads ? "threads" : "processes"; }

std::string_view per_task_metric(Mode mode) {
  return mode == Mode::threads ? "per_thread_ops" : "per_process_ops";
}

std::optional<double> per_task_ops(const Sample& sample) {
  if (sample.task_ops.empty()) return std::nullopt;
  double sum = 0;
  for (double ops : sample.task_ops) sum += ops;
  return sum / static_cast<double>(sample.task_ops.size());
}

double operations(const Sample& sample) { return sample.ops_per_second * sample.seconds; }

namespace {

// Of a timed workload: no rate, since its rounds hold what is subtracted too.
std::vector<Metric> timed_metrics_of(const Cell& cell) {
  const auto key = [&](std::string_view name) { return fmt::format("{}.{}", cell.workload, name); };
  Metric access{key(kAccessMetric), Direction::lower_is_better, {}};
  Metric prot{key("prot_ns"), Direction::lower_is_better, {}};
  Metric caught{key("catch_ns"), Direction::lower_is_better, {}};
  Metric faults{key("faults_per_op"), Direction::none, {}};
  for (const auto& s : cell.samples) {
    faults.samples.push_back(s.faults_per_op);
    if (s.access_time.rounds == 0) continue;
    access.samples.push_back(s.access_time.access_ns);
    prot.samples.push_back(s.access_time.prot_ns);
    caught.samples.push_back(s.access_time.catch_ns);
  }
  return {std::move(access), std::move(prot), std::move(caught), std::move(faults)};
}

}  // namespace

bool is_timed(std::string_view workload) {
  const auto* w = find_workload(workload);
  return w != nullptr && w->timed;
}

bool is_null_control(std::string_view workload) {
  const auto* w = find_workload(workload);
  return w != nullptr && w->null_control;
}

std::string headline_metric(std::string_view workload, Mode mode) {
  return fmt::format("{}.{}", workload, is_timed(workload) ? kAccessMetric : per_task_metric(mode));
}

std::string lmbench_line(const Cell& cell) {
  double sum = 0;
  int runs = 0;
  for (const auto& s : cell.samples) {
    if (s.access_time.rounds == 0) continue;
    sum += s.access_time.access_ns;
    ++runs;
  }
  return runs == 0 ? "" : fmt::format("Protection fault: {:.4f} microseconds", sum / runs / 1000);
}

std::vector<Metric> metrics_of(const Cell& cell) {
  if (is_timed(cell.workload)) return timed_metrics_of(cell);
  const auto key = [&](std::string_view name) { return fmt::format("{}.{}", cell.workload, name); };
  Metric ops{key(per_task_metric(cell.mode)), Direction::higher_is_better, {}};
  Metric faults{key("faults_per_op"), Direction::none, {}};
  Metric p50{key("fault_latency.p50_ns"), Direction::lower_is_better, {}};
  Metric p99{key("fault_latency.p99_ns"), Direction::lower_is_better, {}};
  for (const auto& s : cell.samples) {
    if (const auto rate = per_task_ops(s)) ops.samples.push_back(*rate);
    faults.samples.push_back(s.faults_per_op);
    if (s.fault_latency.samples == 0) continue;
    p50.samples.push_back(s.fault_latency.p50);
    p99.samples.push_back(s.fault_latency.p99);
  }
  std::vector<Metric> metrics{std::move(ops), std::move(faults)};
  if (!p50.samples.empty()) {
    metrics.push_back(std::move(p50));
    metrics.push_back(std::move(p99));
  }
  return metrics;
}

std::vector<Group> groups_of(const ResultSet& results) {
  std::vector<Group> groups;
  for (const auto& cell : results.cells) {
    auto g = std::find_if(groups.begin(), groups.end(), [&](const Group& group) {
      return group.mode == cell.mode && group.tasks == cell.tasks;
    });
    if (g == groups.end()) g = groups.insert(groups.end(), Group{cell.mode, cell.tasks, {}});
    if (std::find(g->workloads.begin(), g->workloads.end(), cell.workload) == g->workloads.end()) {
      g->workloads.push_back(cell.workload);
    }
  }
  return groups;
}

std::vector<std::string> variants_of(const ResultSet& results) {
  std::vector<std::string> variants;
  const auto add = [&](const std::string& name) {
    if (!name.empty() && std::find(variants.begin(), variants.end(), name) == variants.end()) {
      variants.push_back(name);
    }
  };
  add(results.base);
  for (const auto& head : results.heads) add(head);
  for (const auto& cell : results.cells) add(cell.variant);
  return variants;
}

std::optional<Cell> find_cell(const ResultSet& results, std::string_view workload,
                              std::string_view variant, Mode mode, int tasks) {
  std::optional<Cell> found;
  for (const auto& cell : results.cells) {
    if (cell.workload != workload || cell.variant != variant || cell.mode != mode ||
        cell.tasks != tasks) {
      continue;
    }
    if (!found) {
      found = cell;
      continue;
    }
    found->samples.insert(found->samples.end(), cell.samples.begin(), cell.samples.end());
    found->rejected_runs += cell.rejected_runs;
    found->verified = found->verified && cell.verified;
    if (found->verify_error.empty()) found->verify_error = cell.verify_error;
  }
  return found;
}

std::vector<ResultComparison> compare_results(const ResultSet& results) {
  std::vector<ResultComparison> rows;
  for (const auto& group : groups_of(results)) {
    for (const auto& workload : group.workloads) {
      const auto base = find_cell(results, workload, results.base, group.mode, group.tasks);
      const auto base_metrics = base ? metrics_of(*base) : std::vector<Metric>();
      for (const auto& variant : results.heads) {
        const auto head = find_cell(results, workload, variant, group.mode, group.tasks);
        const auto head_metrics = head ? metrics_of(*head) : std::vector<Metric>();
        for (auto& c : compare_metrics(base_metrics, head_metrics)) {
          ResultComparison row;
          row.workload = workload;
          row.head = variant;
          row.mode = group.mode;
          row.tasks = group.tasks;
          row.gated = c.name == headline_metric(workload, group.mode) && !is_null_control(workload);
          row.verified = (!base || base->verified) && (!head || head->verified);
          row.comparison = std::move(c);
          rows.push_back(std::move(row));
        }
      }
    }
  }
  return rows;
}

std::optional<double> counter_per_operation(const Cell& cell, std::string_view counter) {
  double count = 0;
  double done = 0;
  bool counted = false;
  for (const auto& s : cell.samples) {
    for (const auto& [name, value] : s.counters) {
      if (name != counter) continue;
      counted = true;
      count += value;
      done += operations(s);
    }
  }
  if (!counted) return std::nullopt;
  if (done <= 0) return count == 0 ? std::optional<double>(0) : std::nullopt;
  return count / done;
}

bool explains_policy(std::string_view counter) {
  return counter == "faults" || counter == "spf" || counter.starts_with("pagefault:") ||
         counter.starts_with("vma_lock_") || counter.starts_with("mmap_lock.") ||
         counter.starts_with("tlb.flush");
}

Gate regression_gate(const std::vector<ResultComparison>& comparisons, double percent) {
  Gate gate;
  for (const auto& row : comparisons) {
    if (!row.gated) continue;
    const auto where = describe(row.workload, row.head, row.mode, row.tasks);
    const auto& c = row.comparison;
    if (c.base.n == 0 || c.head.n == 0) {
      gate.missing.push_back(fmt::format("{}: {}", where, name_of(c.verdict)));
    } else if (c.verdict == Verdict::worse) {
      // A time whose base is 0 has no percentage.
      const bool lower = c.direction == Direction::lower_is_better;
      if (!c.change_percent) {
        gate.missing.push_back(fmt::format("{}: worse than a base of 0", where));
      } else if ((lower ? *c.change_percent : -*c.change_percent) >= percent) {
        gate.regressions.push_back(fmt::format("{}: {:+.1f}%", where, *c.change_percent));
      }
    }
  }
  return gate;
}

std::string describe(std::string_view workload, std::string_view variant, Mode mode, int tasks) {
  return fmt::format("{} under {}, {}, {} task{}", workload, variant, name_of(mode), tasks,
                     tasks == 1 ? "" : "s");
}

}  // namespace faultpath::lab
