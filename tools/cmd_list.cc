#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "lab/workloads/registry.h"
#include "tools/cli.h"
#include "tools/commands.h"
#include "tools/measure.h"

namespace faultpath::tools {
namespace {

// Without `verbose` the bare names, for scripts.
void print_workloads(bool verbose) {
  if (!verbose) {
    for (const auto& w : lab::workloads()) print(w.name + "\n");
    return;
  }
  print("Workloads:\n");
  std::size_t width = 0;
  for (const auto& w : lab::workloads()) width = std::max(width, w.name.size());
  for (const auto& w : lab::workloads()) {
    print(fmt::format("  {:<{}}  {}\n", w.name, width, w.description));
    print(fmt::format("  {:<{}}  counts {}\n", "", width, w.counted));
    std::vector<std::string> more;
    if (w.null_control) more.emplace_back(lab::kNullControlText);
    if (w.one_file_bytes != 0) {
      more.push_back(fmt::format("a file of {} MiB in --dir", w.one_file_bytes >> 20));
    } else if (w.file) {
      more.emplace_back("files of 128 MiB in --dir");
    }
    if (w.mapper) more.emplace_back("one more thread");
    if (!w.host) more.emplace_back("not on the host");
    if (!w.options.empty()) {
      std::string options = "options";
      for (const auto& o : w.options) options += " " + o;
      more.push_back(std::move(options));
    }
    if (more.empty()) continue;
    print(fmt::format("  {:<{}}  ({})\n", "", width, fmt::join(more, "; ")));
  }
}

void print_policies(bool verbose) {
  if (verbose) print("Policies:\n");
  for (const auto& p : known_policies()) {
    print(verbose ? fmt::format("  {:<30}  {}\n", p.name, p.description) : p.name + "\n");
  }
}

}  // namespace

int cmd_list(const Invocation& invocation) {
  CLI::App app(
      "Names the workloads, one per line, then after an empty line the policies; or one of the "
      "two.",
      "faultpath list");
  std::string what;
  bool verbose = false;
  app.add_option("WHAT", what, "workloads or policies; both if left out");
  app.add_flag("-v,--verbose", verbose, "With descriptions")->disable_flag_override();
  if (!parse_arguments(app, invocation.argc, invocation.argv)) return kDone;
  if (!what.empty() && what != "workloads" && what != "policies") {
    const std::vector<std::string> names{"workloads", "policies"};
    const auto hint = did_you_mean(what, names);
    throw UsageError(fmt::format("'{}' is no list{} give workloads or policies", what,
                                 hint.empty() ? ";" : hint));
  }
  if (what != "policies") print_workloads(verbose);
  if (what.empty()) print("\n");
  if (what != "workloads") print_policies(verbose);
  return kDone;
}

}  // namespace faultpath::tools
