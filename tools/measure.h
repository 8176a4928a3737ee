// What run and compare share: their options, the checks before anything runs, and the way out.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/result.h"
#include "lab/run/runner.h"

namespace CLI {
class App;
}

namespace faultpath::tools {

struct KnownPolicy {
  std::string name;
  std::string description;
};
/// The engine's policies, their variants, and `host`.
const std::vector<KnownPolicy>& known_policies();

/// The options as they were typed; empty: not given.
struct MeasureArguments {
  std::vector<std::string> workloads;
  std::string tasks, seconds, repeats, mode, dir, memory, json, ebizzy;
  bool quick = false;
  bool verbose = false;
};

/// What a command does where nothing is said; the quick ones with --quick.
struct MeasureDefaults {
  int repeats, quick_repeats;
  double seconds, quick_seconds;
};

void add_measure_options(CLI::App& app, MeasureArguments& arguments,
                         const MeasureDefaults& defaults);

/// Checks policy names given with `option` and splits their lists. Throws UsageError.
std::vector<std::string> checked_policies(std::string_view option,
                                          const std::vector<std::string>& lists);

/// Everything that can be checked before anything runs; throws UsageError.
lab::RunOptions checked_options(const MeasureArguments& arguments, const MeasureDefaults& defaults,
                                std::string base, std::vector<std::string> heads);

/// Runs, with progress on standard error.
lab::ResultSet measure(const lab::RunOptions& options, const MeasureArguments& arguments,
                       const std::string& command);

/// Writes the JSON document if one is wanted and complains about wrong results; the exit status.
int conclude(const lab::ResultSet& results, const MeasureArguments& arguments, bool compared);

}  // namespace faultpath::tools
