// Runs a whole comparison: every workload under every variant, interleaved, watched for noise and
// verified.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "lab/result.h"
#include "lab/workloads/options.h"
#include "lab/workloads/registry.h"

namespace faultpath::lab {

/// The variant that runs on the host kernel's memory.
inline constexpr const char* kHostVariant = "host";
inline constexpr int kMaxTasks = 256;

struct RunOptions {
  std::vector<std::string> workloads;
  std::vector<std::string> variants;  ///< policies as parse_policy() reads them, or "host"
  std::vector<int> tasks = {1};       ///< -t
  std::vector<Mode> modes = {Mode::threads};
  double seconds = 5;  ///< -s, the measured window
  int repeats = 5;     ///< -r
  /// Short warm-up; a noisy cell is repeated once at most.
  bool quick = false;
  std::string dir = "/tmp";  ///< --dir, for test files
  EbizzyOptions ebizzy;
  std::uint64_t memory_bytes = 0;  ///< of the engine's machines; 0: what each workload needs
  bool verify = true;              ///< the unmeasured pass before the measured ones
  std::function<void(std::string)> progress;  ///< one line a call, without line feed; may be empty
};

/// One measured run, as it is planned.
struct PlannedRun {
  std::string workload;
  Mode mode = Mode::threads;
  int tasks = 1;
  std::size_t variant = 0;  ///< index into RunOptions::variants
  int repeat = 0;
};
/// The measured runs in their order: A B A B over the variants.
std::vector<PlannedRun> plan(const RunOptions& options);

/// What is wrong with the options, in one line; nothing if they can be run. Runs nothing itself.
std::optional<std::string> validate(const RunOptions& options);

/// Runs everything. Fills all of the result but `command`, `base`, `heads` and the machine's
/// `version`. The options are valid; what fails nevertheless is told in its cell's `verify_error`.
ResultSet run(const RunOptions& options);

/// The machine, and the filesystem of `dir`.
MachineBlock read_machine_block(const std::string& dir);

}  // namespace faultpath::lab
