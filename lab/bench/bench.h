// Small benchmarks of one thing each: what `faultpath bench NAME` runs.
#pragma once

#include <string>

namespace faultpath::lab {

struct BenchOptions {
  std::string name;    ///< "fault-cost"; "tlb-hit-loop" is what callgrind is run on
  std::string json;    ///< where to write the rows as JSON; empty: nowhere
  bool quick = false;  ///< fewer rounds
  bool verbose = false;
  bool check = false;   ///< exit status 3 if a target is missed
  std::string command;  ///< the command line, for the JSON document
};

/// Runs one benchmark; the process's exit status. Targets are printed, and missed ones said so; they
/// decide the exit status only where `check` asks for it.
int bench_main(const BenchOptions& options);

}  // namespace faultpath::lab
