#include "lab/bench/bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "lab/bench/fault_cost.h"
#include "lab/bench/line_transfer.h"
#include "lab/bench/lock_honesty.h"
#include "lab/bench/rows.h"
#include "lab/bench/tlb_hit.h"
#include "lab/report/json.h"
#include "lab/report/output_file.h"
#include "lab/run/runner.h"

namespace faultpath::lab {

double BenchRow::median() const {
  std::vector<double> s = samples;
  std::sort(s.begin(), s.end());
  const std::size_t n = s.size();
  if (n == 0) return 0;
  return n % 2 == 1 ? s[n / 2] : (s[n / 2 - 1] + s[n / 2]) / 2;
}
double BenchRow::lowest() const {
  return samples.empty() ? 0 : *std::min_element(samples.begin(), samples.end());
}
double BenchRow::highest() const {
  return samples.empty() ? 0 : *std::max_element(samples.begin(), samples.end());
}
bool BenchRow::met() const {
  return (!at_most || median() <= *at_most) && (!at_least || median() >= *at_least);
}

namespace {

std::string target_text(const BenchRow& row) {
  if (row.at_most) return fmt::format("at most {:g}", *row.at_most);
  if (row.at_least) return fmt::format("at least {:g}", *row.at_least);
  return "";
}

void print(const std::vector<BenchRow>& rows) {
  fmt::print("  {:<52} {:>9}  {:>17}  {:>3}  {}\n", "", "median", "min..max", "n", "target");
  std::string last;
  for (const BenchRow& row : rows) {
    if (row.variant != last) fmt::print("{}\n", row.variant);
    const std::string target = target_text(row);
    const std::string spread = fmt::format("{:.2f}..{:.2f}", row.lowest(), row.highest());
    const std::string name =
        row.unit == "ratio" ? row.name : fmt::format("{}, {}", row.name, row.unit);
    fmt::print("  {:<52} {:>9.2f}  {:>17}  {:>3}  {}\n", name, row.median(), spread,
               row.samples.size(),
               target.empty() ? "" : target + (row.met() ? ": met" : ": MISSED"));
    last = row.variant;
  }
}

int write_json(const BenchOptions& options, const std::vector<BenchRow>& rows,
               const std::vector<std::string>& notes) {
  ResultSet facts;
  facts.machine = read_machine_block(".");
  const auto machine = nlohmann::json::parse(results_json(facts, false)).at("machine");
  nlohmann::json doc;
  doc["schema"] = "faultpath-bench/1";
  doc["bench"] = options.name;
  doc["command"] = options.command;
  doc["version"] = FAULTPATH_VERSION;
  doc["machine"] = machine;
  doc["notes"] = notes;
  doc["rows"] = nlohmann::json::array();
  for (const BenchRow& row : rows) {
    nlohmann::json r = {{"name", row.name},       {"variant", row.variant}, {"unit", row.unit},
                        {"median", row.median()}, {"samples", row.samples}, {"at_most", nullptr},
                        {"at_least", nullptr},    {"met", row.met()}};
    if (row.at_most) r["at_most"] = *row.at_most;
    if (row.at_least) r["at_least"] = *row.at_least;
    doc["rows"].push_back(std::move(r));
  }
  const std::string error = write_output_file(options.json, doc.dump(2) + "\n");
  if (error.empty()) return 0;
  fmt::print(stderr, "faultpath: --json '{}': {}\n", options.json, error);
  return 2;
}

int fault_cost(const BenchOptions& options) {
  const int rounds = options.quick ? 5 : 15;
  FaultCostOptions cost;
  cost.policies = {"mmap-lock", "spf", "spf:single-thread-bypass=off"};
  cost.rounds = rounds;
  std::vector<BenchRow> rows = measure_fault_cost(cost);
  rows.push_back(measure_line_transfer(rounds));
  for (BenchRow& row : measure_tlb_hit(rounds)) {
    row.variant = "SoftCpu";
    rows.push_back(std::move(row));
  }
  std::vector<std::string> notes;
  std::string why;
  for (BenchRow& row : count_tlb_hit_instructions(&why)) {
    row.variant = "SoftCpu";
    rows.push_back(std::move(row));
  }
  if (!why.empty()) notes.push_back("no instruction count: " + why);
  for (const LockRow& lock : measure_lock_honesty(rounds, options.quick ? 0.03 : 0.05)) {
    BenchRow row{fmt::format("{}, {} thread{} / pthread_rwlock_t", lock.name, lock.threads,
                             lock.threads == 1 ? "" : "s"),
                 "mmap lock",
                 "ratio",
                 {},
                 1.1,
                 {}};
    for (std::size_t i = 0; i < lock.ours_ns_per_op.size(); ++i) {
      row.samples.push_back(lock.ours_ns_per_op[i] / lock.pthread_ns_per_op[i]);
    }
    rows.push_back(std::move(row));
  }
  notes.push_back("ratios are of one interleaved run; no hardware trap is in any engine figure");
  print(rows);
  for (const std::string& note : notes) fmt::print("note: {}\n", note);
  if (!options.json.empty()) {
    if (const int status = write_json(options, rows, notes); status != 0) return status;
  }
  const bool missed =
      std::any_of(rows.begin(), rows.end(), [](const BenchRow& row) { return !row.met(); });
  return options.check && missed ? 3 : 0;
}

}  // namespace

int bench_main(const BenchOptions& options) {
  if (options.name == "tlb-hit-loop") {
    const char* steps = std::getenv("FAULTPATH_TLB_HIT_STEPS");
    fmt::print("{:#x}\n",
               run_tlb_hit_loop(steps == nullptr ? 1000 : std::strtoull(steps, nullptr, 10)));
    return 0;
  }
  return fault_cost(options);
}

}  // namespace faultpath::lab
