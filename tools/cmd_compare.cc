#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lab/report/metrics.h"
#include "lab/report/table.h"
#include "tools/cli.h"
#include "tools/commands.h"
#include "tools/measure.h"

namespace faultpath::tools {
namespace {

constexpr MeasureDefaults kDefaults{
    .repeats = 9, .quick_repeats = 5, .seconds = 2, .quick_seconds = 0.5};

}  // namespace

int cmd_compare(const Invocation& invocation) {
  CLI::App app(
      "Measures workloads under a base policy and under others, taking turns, and says for each\n"
      "metric whether a difference stands out of the noise.",
      "faultpath compare");
  MeasureArguments arguments;
  std::string base = "mmap-lock";
  std::vector<std::string> head_lists;
  std::string threshold;
  add_measure_options(app, arguments, kDefaults);
  app.add_option("--base", base, "Policy to compare with [mmap-lock]")->type_name("POLICY");
  app.add_option("--head", head_lists, "Policies to compare, separated by commas [spf]")
      ->type_name("POLICY")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--fail-on-regression", threshold,
                 "Exit status 3 if a head's operations (or its time per access) are worse by PCT "
                 "percent or more, beyond the noise")
      ->type_name("PCT");
  if (!parse_arguments(app, invocation.argc, invocation.argv)) return kDone;

  const auto bases = checked_policies("--base", {base});
  if (bases.size() != 1) throw UsageError(fmt::format("--base '{}': give one policy", base));
  if (head_lists.empty()) head_lists = {"spf"};
  const auto heads = checked_policies("--head", head_lists);
  std::optional<double> gate_percent;
  if (!threshold.empty()) gate_percent = parse_percent("--fail-on-regression", threshold);
  const auto options = checked_options(arguments, kDefaults, bases[0], heads);

  auto results = measure(options, arguments, invocation.command);
  results.base = bases[0];
  results.heads = heads;
  print(lab::compare_table(results, {.color = wants_color(), .all_counters = arguments.verbose}));
  int status = conclude(results, arguments, true);
  if (!gate_percent || status != kDone) return status;
  const auto gate = lab::regression_gate(lab::compare_results(results), *gate_percent);
  for (const auto& line : gate.regressions) complain("regression: " + line);
  for (const auto& line : gate.missing) complain("cannot be judged: " + line);
  if (!gate.missing.empty()) return kWrong;
  return gate.regressions.empty() ? kDone : kThreshold;
}

}  // namespace faultpath::tools
