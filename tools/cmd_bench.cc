// The benchmarks themselves are the laboratory's; this reads the command line for them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

#include "lab/report/output_file.h"
#include "tools/cli.h"
#include "tools/commands.h"

#if __has_include("lab/bench/bench.h")
#include "lab/bench/bench.h"
#define FAULTPATH_HAS_BENCH 1
#else
#define FAULTPATH_HAS_BENCH 0
#endif

namespace faultpath::tools {

int cmd_bench(const Invocation& invocation) {
  CLI::App app("Runs a small benchmark of one thing.", "faultpath bench");
  std::string name;
  std::string json;
  bool quick = false;
  bool check = false;
  bool verbose = false;
  app.add_option("NAME", name, "fault-cost: what one page fault costs")->required();
  app.add_option("--json", json, "Also write the results there, as JSON")->type_name("FILE");
  app.add_flag("--check", check, "Exit status 3 if a target is missed")->disable_flag_override();
  app.add_flag("--quick", quick, "Fewer repeats")->disable_flag_override();
  app.add_flag("-v,--verbose", verbose, "More about the way there, on standard error")
      ->disable_flag_override();
  if (!parse_arguments(app, invocation.argc, invocation.argv)) return kDone;
  // The second is no benchmark to read: it is what fault-cost counts the instructions of.
  if (name != "fault-cost" && name != "tlb-hit-loop") {
    throw UsageError(fmt::format("unknown benchmark '{}'; give fault-cost", name));
  }
  if (!json.empty()) {
    if (const auto error = lab::probe_output_file(json); !error.empty()) {
      throw UsageError(
          fmt::format("--json '{}': {}; give a file that can be written", json, error));
    }
  }
#if FAULTPATH_HAS_BENCH
  lab::BenchOptions options;
  options.name = name;
  options.json = json;
  options.quick = quick;
  options.check = check;
  options.verbose = verbose;
  options.command = invocation.command;
  return lab::bench_main(options);
#else
  complain("bench: this build has no benchmarks");
  return kSkipped;
#endif
}

}  // namespace faultpath::tools
