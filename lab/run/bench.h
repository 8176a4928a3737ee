// A bench runs one workload with one number of tasks in one mode, as often as it is asked to; it
// keeps what is dear to make (machine, files) from run to run.
#pragma once

#include <faultpath/policy.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lab/result.h"
#include "lab/run/control.h"
#include "lab/workloads/options.h"
#include "lab/workloads/registry.h"

namespace faultpath::lab {

struct BenchSpec {
  const WorkloadInfo* workload = nullptr;
  Mode mode = Mode::threads;
  int tasks = 1;
  EbizzyOptions ebizzy;
  std::string dir;                 ///< for files
  std::uint64_t memory_bytes = 0;  ///< of the engine's machine; 0: what the workload needs
};

/// Seconds of a measured run.
struct Window {
  double warm_up = 0.2;
  double seconds = 5;
};

struct Measured {
  Sample sample;
  double own_share = 0;  ///< CPU time got, of the CPUs that the tasks could use
  std::string error;     ///< one line; empty: all went well and the last window was right
};

/// A run of a fixed number of operations a task: for verification and for tests.
struct FixedRun {
  std::uint64_t ops = 0;
  Plant plant = Plant::none;
};

/// Per counting task.
struct FixedResult {
  std::vector<std::uint64_t> ops;
  std::vector<CallCounts> calls;  ///< up to the end of the loop; the space's set-up is its first
                                  ///< task's
  std::vector<std::uint64_t> faults;  ///< of the loop
  std::string error;
};

class Bench {
 public:
  virtual ~Bench() = default;
  /// `policy` is for the engine; the host has its own.
  virtual Measured measure(const PolicySpec& policy, const Window& window) = 0;
  /// Looks at everything that the workload wrote, file contents too.
  virtual FixedResult run_fixed(const PolicySpec& policy, const FixedRun& run) = 0;
};

/// Null, and `error` is one line, where it cannot be set up.
std::unique_ptr<Bench> make_host_bench(const BenchSpec& spec, std::string& error);
std::unique_ptr<Bench> make_engine_bench(const BenchSpec& spec, std::string& error);

}  // namespace faultpath::lab
