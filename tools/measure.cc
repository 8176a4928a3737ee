#include "tools/measure.h"

#include <faultpath/format.h>
#include <faultpath/policy.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <utility>

#include "lab/report/json.h"
#include "lab/report/output_file.h"
#include "lab/report/table.h"
#include "lab/run/machine_facts.h"
#include "tools/cli.h"

namespace faultpath::tools {
namespace {

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const auto& p : known_policies()) names.push_back(p.name);
  return names;
}

// One policy may be written in two ways; empty for none.
std::string canonical(const std::string& policy) {
  if (policy == lab::kHostVariant) return policy;
  const auto spec = parse_policy(policy);
  if (!spec) return "";
  return to_string(spec.value());
}

void check_workloads(const std::vector<std::string>& given) {
  std::vector<std::string> names;
  for (const auto& w : lab::workloads()) names.push_back(w.name);
  if (given.empty()) throw UsageError("no workload given; 'faultpath list' names them");
  for (const auto& name : given) {
    if (lab::find_workload(name) != nullptr) continue;
    const auto hint = did_you_mean(name, names);
    throw UsageError(fmt::format("unknown workload '{}'{} 'faultpath list' names them", name,
                                 hint.empty() ? ";" : hint));
  }
}

std::vector<lab::Mode> parse_mode(const std::string& text) {
  if (text == "threads") return {lab::Mode::threads};
  if (text == "processes") return {lab::Mode::processes};
  if (text == "both") return {lab::Mode::threads, lab::Mode::processes};
  throw UsageError(fmt::format("--mode '{}': give threads, processes or both", text));
}

// ebizzy's own flags, as its command line takes them.
lab::EbizzyOptions parse_ebizzy(const std::string& text) {
  lab::EbizzyOptions options;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    const auto bad = [&](std::string_view what) {
      return UsageError(fmt::format("--ebizzy '{}': {} in '{}'", text, what, word));
    };
    if (word.size() < 2 || word[0] != '-') {
      throw bad("-m, -M, -T, -n COUNT and -s BYTES are known; an unknown word");
    }
    for (std::size_t i = 1; i < word.size(); ++i) {
      const char flag = word[i];
      if (flag == 'm') {
        options.always_mmap = true;
      } else if (flag == 'M') {
        options.never_mmap = true;
      } else if (flag == 'T') {
        options.touch_only = true;
      } else if (flag == 'n' || flag == 's') {
        std::string value = word.substr(i + 1);
        if (value.empty() && !(in >> value)) throw bad("give a value; none");
        const auto where = fmt::format("--ebizzy -{}", flag);
        if (flag == 'n') {
          options.chunks = static_cast<std::uint32_t>(parse_count(where, value, 1, 1'000'000));
        } else {
          options.chunk_bytes = parse_size(where, value);
        }
        break;
      } else if (flag == 't') {
        throw bad("give tasks with the command's own -t, not");
      } else {
        throw bad("-m, -M, -T, -n COUNT and -s BYTES are known; an unknown flag");
      }
    }
  }
  if (options.always_mmap && options.never_mmap) {
    throw UsageError(fmt::format("--ebizzy '{}': -m and -M exclude each other; give one", text));
  }
  return options;
}

void check_json(const std::string& path) {
  if (path.empty()) return;
  if (path == "-") throw UsageError("--json '-': give a file; /dev/stdout is standard output");
  if (const auto error = lab::probe_output_file(path); !error.empty()) {
    throw UsageError(fmt::format("--json '{}': {}; give a file that can be written", path, error));
  }
}

void check_dir(const std::string& path) {
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) {
    throw UsageError(fmt::format("--dir '{}': {}; give a directory", path, std::strerror(errno)));
  }
  if (!S_ISDIR(st.st_mode)) throw UsageError(fmt::format("--dir '{}': give a directory", path));
}

std::uint64_t checked_memory(const std::string& text) {
  const auto bytes = parse_size("--memory", text);
  const auto available = lab::available_memory();
  if (available != 0 && bytes > available) {
    throw UsageError(fmt::format("--memory '{}': only {} MiB are free on this machine; give less",
                                 text, available >> 20));
  }
  return bytes;
}

}  // namespace

const std::vector<KnownPolicy>& known_policies() {
  static const std::vector<KnownPolicy> list = [] {
    std::vector<KnownPolicy> policies;
    for (const Policy p : kAllPolicies) {
      const std::string name(name_of(p));
      switch (p) {
        case Policy::mmap_lock:
          policies.push_back({name, "every fault holds the address-space lock for reading"});
          break;
        case Policy::spf:
          policies.push_back({name, "speculative faults as posted in May 2018 (v11)"});
          policies.push_back(
              {name + ":single-thread-bypass=off", "the same, tried with a single task too"});
          break;
        case Policy::vma_lock:
          policies.push_back({name, "a fault locks its VMA alone (Linux 6.4 to 6.15+)"});
          policies.push_back({name + ":bad-access=slow",
                              "forbidden accesses as before 6.10: under the mmap lock"});
          break;
      }
    }
    policies.push_back(
        {lab::kHostVariant, "this machine's kernel, the hardware trap included; not the engine"});
    return policies;
  }();
  return list;
}

void add_measure_options(CLI::App& app, MeasureArguments& a, const MeasureDefaults& defaults) {
  app.option_defaults()->multi_option_policy(CLI::MultiOptionPolicy::TakeLast);
  app.add_option("WORKLOAD", a.workloads, "What to run; 'faultpath list' names them")
      ->type_name("")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("-t,--tasks", a.tasks,
                 fmt::format("Numbers of tasks, 1 to {}, separated by commas [1]", lab::kMaxTasks))
      ->type_name("N,...");
  app.add_option("-s,--seconds", a.seconds,
                 fmt::format("Measured seconds of a run [{}; with --quick {}]", defaults.seconds,
                             defaults.quick_seconds))
      ->type_name("SEC");
  app.add_option("-r,--repeats", a.repeats,
                 fmt::format("Runs of each workload, policy, mode and number of tasks [{}; with "
                             "--quick {}]",
                             defaults.repeats, defaults.quick_repeats))
      ->type_name("N");
  app.add_option("--mode", a.mode,
                 "threads (of one address space), processes (one each), or both [threads]")
      ->type_name("MODE");
  app.add_option("--dir", a.dir, "Where test files go; its filesystem matters [/tmp]")
      ->type_name("DIR");
  app.add_option("--memory", a.memory,
                 "Memory of the engine's machine, such as 512M [what each workload needs]")
      ->type_name("SIZE");
  app.add_option("--ebizzy", a.ebizzy,
                 "ebizzy's own flags, quoted: -m -M -T -n COUNT -s BYTES [-mT]")
      ->type_name("'FLAGS'");
  app.add_flag("--quick", a.quick,
               "Short: less warm-up, less waiting for a quiet machine, fewer repeats")
      ->disable_flag_override();
  app.add_option("--json", a.json, "Also write everything, raw samples too, as one JSON document")
      ->type_name("FILE");
  app.add_flag("-v,--verbose", a.verbose,
               "Each run in a line on standard error; all counters in the table")
      ->disable_flag_override();
}

std::vector<std::string> checked_policies(std::string_view option,
                                          const std::vector<std::string>& lists) {
  std::vector<std::string> policies;
  std::vector<std::string> seen;
  for (const auto& list : lists) {
    for (auto& policy : split_policies(list)) {
      auto key = canonical(policy);
      if (key.empty()) {
        const auto hint = did_you_mean(policy, policy_names());
        throw UsageError(
            fmt::format("{} '{}': unknown policy{} 'faultpath list policies' names them", option,
                        policy, hint.empty() ? ";" : hint));
      }
      if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
        throw UsageError(
            fmt::format("{} '{}': named twice; name each policy once", option, policy));
      }
      seen.push_back(std::move(key));
      policies.push_back(std::move(policy));
    }
  }
  return policies;
}

lab::RunOptions checked_options(const MeasureArguments& a, const MeasureDefaults& defaults,
                                std::string base, std::vector<std::string> heads) {
  lab::RunOptions o;
  check_workloads(a.workloads);
  for (const auto& name : a.workloads) {
    if (std::find(o.workloads.begin(), o.workloads.end(), name) == o.workloads.end()) {
      o.workloads.push_back(name);
    }
  }
  for (const auto& head : heads) {
    if (canonical(head) == canonical(base)) {
      throw UsageError(
          fmt::format("policies '{}' and '{}' are the same; name different ones", base, head));
    }
  }
  o.variants.push_back(std::move(base));
  o.variants.insert(o.variants.end(), heads.begin(), heads.end());
  if (!a.tasks.empty()) o.tasks = parse_tasks("-t", a.tasks, lab::kMaxTasks);
  if (!a.mode.empty()) o.modes = parse_mode(a.mode);
  o.seconds = a.quick ? defaults.quick_seconds : defaults.seconds;
  if (!a.seconds.empty()) o.seconds = parse_seconds("-s", a.seconds);
  o.repeats = a.quick ? defaults.quick_repeats : defaults.repeats;
  if (!a.repeats.empty()) o.repeats = parse_count("-r", a.repeats, 1, 10000);
  o.quick = a.quick;
  if (!a.dir.empty()) {
    check_dir(a.dir);
    o.dir = a.dir;
  }
  if (!a.memory.empty()) o.memory_bytes = checked_memory(a.memory);
  if (a.ebizzy.empty()) {
    o.ebizzy.always_mmap = true;
    o.ebizzy.touch_only = true;
  } else {
    o.ebizzy = parse_ebizzy(a.ebizzy);
    if (std::find(o.workloads.begin(), o.workloads.end(), "ebizzy") == o.workloads.end()) {
      throw UsageError(
          "--ebizzy: ebizzy is not among the workloads; add it or leave the flags out");
    }
  }
  check_json(a.json);
  if (const auto error = lab::validate(o)) throw UsageError(*error);
  return o;
}

lab::ResultSet measure(const lab::RunOptions& checked, const MeasureArguments& a,
                       const std::string& command) {
  lab::RunOptions options = checked;
  lab::ResultSet results;
  {
    Progress progress(a.verbose);
    options.progress = [&progress](const std::string& line) { progress.show(line); };
    results = lab::run(options);
  }
  results.command = command;
  results.machine.version = FAULTPATH_VERSION;
  return results;
}

int conclude(const lab::ResultSet& results, const MeasureArguments& a, bool compared) {
  int status = kDone;
  for (const auto& line : lab::wrong_results(results)) {
    complain("wrong result: " + line);
    status = kWrong;
  }
  if (a.json.empty()) return status;
  std::fflush(stdout);  // the document may go there, and comes after the table
  const auto error = lab::write_output_file(a.json, lab::results_json(results, compared));
  if (!error.empty()) {
    complain(fmt::format("--json '{}': {}; nothing was written", a.json, error));
    if (status == kDone) status = kBadUsage;
  }
  return status;
}

}  // namespace faultpath::tools
