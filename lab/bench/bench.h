// Small benchmarks of one thing each: what `faultpath bench NAME` runs.
#pragma once

#include <string>

namespace faultpath::lab {

struct BenchOptions {
  std::string name;    ///< "fault-cost"; "tlb-hit-loop" is what callgrind is run on
  std::string json;    ///< where to write the rows as JSON; empty: nowhere
  bool quick = false;  ///< fewer rounds
  bool verbose = false;
  std::string command;  ///< the command line, for the JSON document
};

/// Runs one benchmark; the process's exit status. Targets are printed, and missed ones said so, but
/// they decide nothing here: `make bench-check` does that.
int bench_main(const BenchOptions& options);

}  // namespace faultpath::lab
