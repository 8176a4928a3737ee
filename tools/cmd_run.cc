#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "lab/report/table.h"
#include "tools/cli.h"
#include "tools/commands.h"
#include "tools/measure.h"

namespace faultpath::tools {
namespace {

constexpr MeasureDefaults kDefaults{
    .repeats = 5, .quick_repeats = 3, .seconds = 1, .quick_seconds = 0.5};

}  // namespace

int cmd_run(const Invocation& invocation) {
  CLI::App app("Measures workloads under one policy or several, without comparing.",
               "faultpath run");
  MeasureArguments arguments;
  std::vector<std::string> lists;
  add_measure_options(app, arguments, kDefaults);
  app.add_option("--policy", lists, "Policies, separated by commas [mmap-lock]")
      ->type_name("POLICY")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  if (!parse_arguments(app, invocation.argc, invocation.argv)) return kDone;

  if (lists.empty()) lists = {"mmap-lock"};
  auto policies = checked_policies("--policy", lists);
  const auto first = policies.front();
  policies.erase(policies.begin());
  const auto options = checked_options(arguments, kDefaults, first, policies);

  const auto results = measure(options, arguments, invocation.command);
  print(lab::run_table(results, {.color = wants_color(), .all_counters = arguments.verbose}));
  return conclude(results, arguments, false);
}

}  // namespace faultpath::tools
