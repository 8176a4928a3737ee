#include "check/command/options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>

#include "check/scenes/generated.h"
#include "tools/cli.h"

namespace faultpath::check {

using tools::UsageError;

std::vector<PolicyChoice> known_policies() {
  std::vector<PolicyChoice> v;
  for (const Policy p : kAllPolicies)
    v.push_back({std::string(name_of(p)), PolicySpec(p), 0, true});
  PolicyChoice v11{"spf-v11", PolicySpec(Policy::spf), 0, false};
  for (const Guard g : {Guard::fork_marks_parent, Guard::zap_does_not_mark, Guard::spf_access_code,
                        Guard::access_recheck_sequence, Guard::trylock_bounded}) {
    v11.guards_off |= guard_bit(g);
  }
  v.push_back(v11);
  return v;
}

PolicyChoice choose_policy(const std::string& name) {
  std::vector<std::string> names;
  for (const PolicyChoice& p : known_policies()) {
    if (p.name == name) return p;
    names.push_back(p.name);
  }
  const auto spec = parse_policy(name);
  if (spec.has_value()) return {name, spec.value(), 0, true};
  throw UsageError(fmt::format("--policy: unknown policy '{}'{}; there are {}", name,
                               tools::did_you_mean(name, names), fmt::join(names, ", ")));
}

std::uint64_t parse_guards(const std::string& text) {
  std::uint64_t mask = 0;
  std::size_t at = 0;
  while (at < text.size()) {
    std::size_t comma = text.find(',', at);
    if (comma == std::string::npos) comma = text.size();
    const std::string word = text.substr(at, comma - at);
    std::vector<std::string> names;
    bool found = false;
    for (const Guard g : kAllGuards) {
      names.emplace_back(name_of(g));
      if (word == name_of(g)) {
        mask |= guard_bit(g);
        found = true;
      }
    }
    if (!found) {
      throw UsageError(
          fmt::format("--without: unknown guard '{}'{}; 'faultpath check --mutants' "
                      "names them",
                      word, tools::did_you_mean(word, names)));
    }
    at = comma + 1;
  }
  return mask;
}

namespace {

bool is_id(const std::string& word) {
  return word.size() >= 2 && std::isupper(static_cast<unsigned char>(word[0])) != 0 &&
         std::all_of(word.begin() + 1, word.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

bool plays(const Scene& scene, const std::string& id) {
  const std::string ids = " " + std::string(scene.ids) + " ";
  return ids.find(" " + id + " ") != std::string::npos;
}

}  // namespace

std::vector<const Scene*> choose_scenes(const std::vector<std::string>& words, unsigned generated) {
  std::vector<const Scene*> chosen;
  const auto add = [&](const Scene* s) {
    if (std::find(chosen.begin(), chosen.end(), s) == chosen.end()) chosen.push_back(s);
  };
  if (words.empty()) {
    for (const Scene* s : all_scenes()) add(s);
    for (unsigned i = 1; i <= generated; ++i) add(generated_scene(i));
    return chosen;
  }
  for (const std::string& word : words) {
    const std::size_t before = chosen.size();
    std::vector<std::string> names;
    for (const Scene* s : all_scenes()) {
      names.emplace_back(s->name);
      if (s->name == word || (is_id(word) && plays(*s, word))) add(s);
    }
    if (word == "generated") {
      for (unsigned i = 1; i <= generated; ++i) add(generated_scene(i));
    } else if (word.starts_with("generated-")) {
      const std::string digits = word.substr(10);
      if (!digits.empty() && digits.size() < 19 &&
          std::all_of(digits.begin(), digits.end(),
                      [](unsigned char c) { return std::isdigit(c) != 0; })) {
        add(generated_scene(std::stoull(digits)));
      }
    }
    if (chosen.size() == before && std::none_of(chosen.begin(), chosen.end(), [&](const Scene* s) {
          return s->name == word || (is_id(word) && plays(*s, word));
        })) {
      throw UsageError(
          fmt::format("no scene is named '{}', and none plays it{}; 'faultpath check "
                      "--list' names them",
                      word, tools::did_you_mean(word, names)));
    }
  }
  return chosen;
}

bool read_options(int argc, char** argv, Options* out) {
  Options& o = *out;
  o.command = tools::command_line(argc, argv);
  CLI::App app(
      "Explores interleavings of the engine's own code in the simulated world, and judges every "
      "one "
      "of them.",
      "faultpath check");
  std::vector<std::string> words;
  std::vector<std::string> policies;
  std::string schedules;
  std::string seed;
  std::string search;
  std::string generated;
  std::string jobs;
  app.add_option("SCENE", words,
                 "names of scenes, ids of scenarios (B26), generated, or generated-SEED; all, if "
                 "none is given");
  app.add_option(
      "--policy", policies,
      "mmap-lock, spf, or spf-v11 (v11 without its mends); may be given again. The first "
      "two, if not given");
  app.add_option("--schedules", schedules, "random schedules of each scene and policy (2000)");
  app.add_option("--search", search,
                 "most schedules of each scene's exhaustive part; it is cut off there (30000)");
  app.add_option("--generated", generated, "generated scenes beside those written down (40)");
  app.add_option("--seed", seed, "of everything random (1)");
  app.add_option("--jobs", jobs, "processes at work (the CPUs there are)");
  app.add_option("--replay", o.replay, "one schedule of one scene and policy, explained");
  app.add_option("--without", o.without, "guards that are switched off, by name: A,B");
  app.add_flag("--mutants", o.mutants, "each guard switched off alone: who notices?");
  app.add_flag("--list", o.list, "the scenes, and what each plays");
  app.add_option("--json", o.json, "also writes the results to a file");
  if (!tools::parse_arguments(app, argc, argv)) return false;

  const auto number = [](const char* option, const std::string& text, std::uint64_t otherwise) {
    if (text.empty()) return otherwise;
    return static_cast<std::uint64_t>(tools::parse_count(option, text, 0, 2'000'000'000));
  };
  o.schedules = number("--schedules", schedules, o.schedules);
  o.search_runs = number("--search", search, 30'000);
  o.generated = static_cast<unsigned>(number("--generated", generated, o.generated));
  o.seed = number("--seed", seed, o.seed);
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  o.jobs = jobs.empty() ? static_cast<unsigned>(online < 1 ? 1 : online)
                        : static_cast<unsigned>(tools::parse_count("--jobs", jobs, 1, 256));
  for (const std::string& p : policies) o.policies.push_back(choose_policy(p));
  if (o.policies.empty()) {
    for (const Policy p : kAllPolicies)
      o.policies.push_back(choose_policy(std::string(name_of(p))));
  }
  if (!o.without.empty()) {
    const std::uint64_t off = parse_guards(o.without);
    for (PolicyChoice& p : o.policies) {
      p.guards_off |= off;
      p.structural = false;
    }
  }
  o.all_scenes = words.empty();
  o.scenes = choose_scenes(words, o.generated);
  if (!o.replay.empty() && (words.empty() || o.scenes.size() != 1 || policies.size() != 1)) {
    throw UsageError("--replay: name the one scene, and the one policy with --policy");
  }
  return true;
}

int list_scenes(const Options& options) {
  for (const Scene* s : options.scenes) {
    tools::print(fmt::format("{:<40} {}\n", s->name, s->ids));
  }
  return tools::kDone;
}

}  // namespace faultpath::check
