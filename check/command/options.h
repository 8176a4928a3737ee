// What `faultpath check` was asked for.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/scene/play.h"

namespace faultpath::check {

/// A policy as it is named on the command line. `spf-v11` is spf with the guards off that mend v11's
/// defects; it exists in this world only.
struct PolicyChoice {
  std::string name;
  PolicySpec spec{};
  std::uint64_t guards_off = 0;
  bool structural = true;
};

struct Options {
  std::vector<const Scene*> scenes;
  std::vector<PolicyChoice> policies;
  std::uint64_t schedules = 2000;
  std::uint64_t search_runs = 0;  ///< 0: the default
  std::uint64_t seed = 1;
  unsigned generated = 40;
  unsigned jobs = 0;
  bool mutants = false;
  bool list = false;
  std::string replay;
  std::string json;
  std::string without;
  std::string command;  ///< the command line, for the JSON document
  bool all_scenes = false;

  Variant variant(const Scene& scene, const PolicyChoice& policy) const {
    return {&scene, policy.spec, policy.guards_off, policy.structural};
  }
};

/// Every policy that `--policy` takes.
std::vector<PolicyChoice> known_policies();
/// Throws tools::UsageError.
PolicyChoice choose_policy(const std::string& name);
std::uint64_t parse_guards(const std::string& names);

/// Scenes by name, by a scenario's id (`B26`), `generated`, or `generated-SEED`. All, if there are
/// no words. Throws tools::UsageError.
std::vector<const Scene*> choose_scenes(const std::vector<std::string>& words, unsigned generated);

/// False: help was printed. Throws tools::UsageError.
bool read_options(int argc, char** argv, Options* out);

// Each returns an exit status.
int list_scenes(const Options& options);
int run_scenes(const Options& options);
int run_mutants(const Options& options);
int replay(const Options& options);

}  // namespace faultpath::check
