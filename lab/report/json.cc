#include "lab/report/json.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "lab/report/metrics.h"

namespace faultpath::lab {
namespace {

using Json = nlohmann::ordered_json;

Json number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json number(std::optional<double> value) { return value ? number(*value) : Json(nullptr); }

// Counts are whole numbers and look like it.
Json count(double value) {
  constexpr double kWhole = 9007199254740992.0;  // 2^53
  if (std::isfinite(value) && value >= 0 && value < kWhole && value == std::floor(value)) {
    return Json(static_cast<std::uint64_t>(value));
  }
  return number(value);
}

Json machine_json(const MachineBlock& m) {
  return {{"kernel", m.kernel},       {"cpu_model", m.cpu_model},
          {"cpus", m.cpus},           {"memory_gib", number(m.memory_gib)},
          {"page_size", m.page_size}, {"thp", m.thp},
          {"aslr", m.aslr},           {"filesystem", m.filesystem}};
}

Json sample_json(const Sample& s) {
  Json tasks = Json::array();
  for (double ops : s.task_ops) tasks.push_back(number(ops));
  Json counters = Json::object();
  for (const auto& [name, value] : s.counters) counters[name] = count(value);
  Json latency = nullptr;
  if (s.fault_latency.samples > 0) {
    latency = {{"p50_ns", number(s.fault_latency.p50)},
               {"p99_ns", number(s.fault_latency.p99)},
               {"samples", s.fault_latency.samples}};
  }
  Json access = nullptr;
  if (s.access_time.rounds > 0) {
    access = {{"access_ns", number(s.access_time.access_ns)},
              {"prot_ns", number(s.access_time.prot_ns)},
              {"catch_ns", number(s.access_time.catch_ns)},
              {"rounds", s.access_time.rounds}};
  }
  const auto own = s.seconds > 0 ? number(s.own_cpu / s.seconds) : Json(nullptr);
  return {{"seconds", number(s.seconds)},
          {"ops_per_second", number(s.ops_per_second)},
          {"task_ops_per_second", std::move(tasks)},
          {"faults_per_op", number(s.faults_per_op)},
          {"fault_latency", std::move(latency)},
          {"access_time", std::move(access)},
          {"own_cpus", own},
          {"foreign_cpus", number(s.foreign_cpus)},
          {"noisy", s.noisy},
          {"counters", std::move(counters)}};
}

Json run_json(const Cell& cell) {
  Json ops = Json::array();
  Json per_task = Json::array();
  Json faults = Json::array();
  Json samples = Json::array();
  CounterList totals;
  for (const auto& s : cell.samples) {
    ops.push_back(number(s.ops_per_second));
    per_task.push_back(number(per_task_ops(s)));
    faults.push_back(number(s.faults_per_op));
    samples.push_back(sample_json(s));
    for (const auto& [name, value] : s.counters) {
      bool found = false;
      for (auto& [known, total] : totals) {
        if (known != name) continue;
        total += value;
        found = true;
      }
      if (!found) totals.emplace_back(name, value);
    }
  }
  Json counters = Json::object();
  for (const auto& [name, total] : totals) counters[name] = count(total);
  return {{"workload", cell.workload},
          {"null_control", is_null_control(cell.workload)},
          {"policy", cell.variant},
          {"mode", name_of(cell.mode)},
          {"tasks", cell.tasks},
          {"verified", cell.verified},
          {"verify_error", cell.verify_error.empty() ? Json(nullptr) : Json(cell.verify_error)},
          {"rejected_runs", cell.rejected_runs},
          {"ops_per_second", std::move(ops)},
          {std::string(per_task_metric(cell.mode)), std::move(per_task)},
          {"faults_per_op", std::move(faults)},
          {"counters", std::move(counters)},
          {"samples", std::move(samples)}};
}

Json summary_json(const Summary& s) {
  const auto some = [&](double value) { return s.n > 0 ? number(value) : Json(nullptr); };
  return {
      {"n", s.n},           {"mean", some(s.mean)}, {"median", some(s.median)},
      {"min", some(s.min)}, {"max", some(s.max)},   {"stddev_percent", number(s.stddev_percent)}};
}

Json better_json(Direction direction) {
  switch (direction) {
    case Direction::higher_is_better: return "higher";
    case Direction::lower_is_better: return "lower";
    case Direction::none: break;
  }
  return nullptr;
}

Json comparison_json(const ResultComparison& row) {
  const auto& c = row.comparison;
  Json p = nullptr;
  Json method = nullptr;
  if (c.rank_test) {
    p = number(c.rank_test->p);
    method = c.rank_test->exact ? "exact" : "normal";
  }
  return {{"workload", row.workload},
          {"policy", row.head},
          {"mode", name_of(row.mode)},
          {"tasks", row.tasks},
          {"metric", c.name},
          {"better", better_json(c.direction)},
          {"base", summary_json(c.base)},
          {"head", summary_json(c.head)},
          {"change", number(c.change)},
          {"change_percent", number(c.change_percent)},
          {"lkp_rule", c.lkp_differs},
          {"p", std::move(p)},
          {"p_method", std::move(method)},
          {"verified", row.verified},
          {"verdict", name_of(c.verdict)}};
}

}  // namespace

std::string results_json(const ResultSet& results, bool compared) {
  Json runs = Json::array();
  for (const auto& cell : results.cells) runs.push_back(run_json(cell));
  Json document = {{"format", "faultpath-results"},
                   {"format_version", kResultsFormatVersion},
                   {"command", results.command},
                   {"date", results.machine.date},
                   {"version", results.machine.version},
                   {"compiler", results.machine.compiler},
                   {"workload_version", results.workload_version},
                   {"machine", machine_json(results.machine)},
                   {"seconds", number(results.seconds)},
                   {"repeats", results.repeats},
                   {"notes", results.notes},
                   {"runs", std::move(runs)}};
  if (compared) {
    document["base"] = results.base;
    document["heads"] = results.heads;
    Json comparisons = Json::array();
    for (const auto& row : compare_results(results)) comparisons.push_back(comparison_json(row));
    document["comparisons"] = std::move(comparisons);
  }
  // Text that is not UTF-8 (a path, say) must not stop the document.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace faultpath::lab
