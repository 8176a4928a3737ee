// Each guard switched off alone: the checker has to notice. The table is docs/CHECKING.md's.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "check/command/job.h"
#include "check/mutants/reasons.h"
#include "check/search/jobs.h"
#include "tools/cli.h"

namespace faultpath::check {

using nlohmann::json;

namespace {

bool plants(const Scene& scene, Guard guard) {
  return std::any_of(scene.planted.begin(), scene.planted.end(),
                     [guard](const Planted& p) { return p.guard == guard; });
}

/// Scenes that say they notice come first; the others are tried for guards that no scene names.
std::vector<const Scene*> scenes_for(const Options& options, Guard guard) {
  std::vector<const Scene*> v;
  for (const Scene* s : options.scenes) {
    if (plants(*s, guard)) v.push_back(s);
  }
  if (v.empty()) v = options.scenes;
  return v;
}

/// Tries to kill one mutant; {"guard", "state", ...}.
json try_guard(const Options& options, Guard guard) {
  json out{{"guard", name_of(guard)}};
  if (const char* reason = awaits_weak_memory(guard)) {
    out["state"] = "awaits weak memory";
    out["reason"] = reason;
    return out;
  }
  const char* const reason = why_it_survives(guard);
  Options mine = options;
  mine.without = name_of(guard);
  Budget budget;
  budget.seed = options.seed;
  budget.random_runs = options.schedules;
  budget.search_runs = options.search_runs;
  const std::vector<const Scene*> scenes = scenes_for(options, guard);
  const bool named = plants(*scenes.front(), guard);
  if (!named) {
    // Nobody claims to notice: a look at every scene, not a search of each.
    budget.random_runs = std::min<std::uint64_t>(budget.random_runs, 1000);
    budget.exhaustive = false;
  }
  std::uint64_t tried = 0;
  json missed = json::array();
  for (const Scene* scene : scenes) {
    // spf first: many guards are its, and what is tried in vain elsewhere would count.
    std::vector<PolicyChoice> policies = options.policies;
    std::partition(policies.begin(), policies.end(),
                   [](const PolicyChoice& p) { return p.spec.policy == Policy::spf; });
    for (const PolicyChoice& p : policies) {
      if (!plays_under(*scene, p.spec.policy)) continue;
      PolicyChoice mutated = p;
      mutated.guards_off |= guard_bit(guard);
      mutated.structural = false;
      json r = search_job(mine, *scene, mutated, budget);
      if (r.contains("finding")) {
        if (out.contains("finding")) continue;
        out["scene"] = scene->name;
        out["ids"] = scene->ids;
        out["policy"] = p.name;
        out["schedules"] = tried + r["finding"]["schedules_until"].get<std::uint64_t>();
        out["finding"] = r["finding"];
      } else if (!out.contains("finding")) {
        tried += r["schedules"].get<std::uint64_t>();
      }
      if (out.contains("finding")) break;
    }
    if (out.contains("finding")) break;
  }
  out["tried"] = tried;
  if (out.contains("finding")) {
    out["state"] = "killed";
    if (reason != nullptr) out["stale_reason"] = true;
  } else {
    out["state"] = reason != nullptr ? "explained" : "survived";
    if (reason != nullptr) out["reason"] = reason;
  }
  return out;
}

std::string line(const json& r) {
  const std::string state = r.at("state").get<std::string>();
  const std::string guard = "`" + r.at("guard").get<std::string>() + "`";
  if (state == "killed") {
    const json& f = r.at("finding");
    std::string switches = std::to_string(f.at("switches").get<unsigned>());
    if (f.contains("switches_by_hand")) {
      switches += fmt::format(" ({})", f.at("switches_by_hand").get<unsigned>());
    }
    return fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n", guard,
                       r.at("ids").get<std::string>(), r.at("scene").get<std::string>(),
                       r.at("policy").get<std::string>(), f.at("detector").get<std::string>(),
                       grouped(r.at("schedules").get<std::uint64_t>()), switches);
  }
  const std::string why = r.contains("reason") ? r.at("reason").get<std::string>() : "";
  const std::string tried =
      r.contains("tried") ? grouped(r.at("tried").get<std::uint64_t>()) + " tried" : "";
  return fmt::format("| {} | {}: {} | | | | {} | |\n", guard, state, why, tried);
}

}  // namespace

int run_mutants(const Options& options) {
  if (!options.json.empty()) write_json(options.json, json::object());
  std::vector<json> results(kGuardCount);
  unsigned ended = 0;
  const auto began = std::chrono::steady_clock::now();
  {
    tools::Progress progress(false);
    run_jobs(
        kGuardCount, options.jobs,
        [&](unsigned i) { return try_guard(options, kAllGuards[i]).dump(); },
        [&](unsigned i, const std::string& text) {
          results[i] = text.empty() ? json{{"guard", name_of(kAllGuards[i])}, {"state", "died"}}
                                    : json::parse(text);
          progress.show(fmt::format("[{}/{}] {}", ++ended, kGuardCount, name_of(kAllGuards[i])));
        });
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();

  unsigned killed = 0;
  unsigned explained = 0;
  unsigned awaiting = 0;
  unsigned wrong = 0;
  tools::print(
      "| guard | answers | noticed by | under | as | schedules until then | switches (by "
      "hand) |\n|---|---|---|---|---|---|---|\n");
  for (const json& r : results) {
    tools::print(line(r));
    const std::string state = r.at("state").get<std::string>();
    if (state == "killed") {
      ++killed;
      if (r.contains("stale_reason")) ++wrong;
    } else if (state == "explained") {
      ++explained;
    } else if (state == "awaits weak memory") {
      ++awaiting;
    } else {
      ++wrong;
    }
  }
  if (!options.json.empty()) {
    write_json(options.json, {{"schema", "faultpath-mutants-1"},
                              {"version", FAULTPATH_VERSION},
                              {"command", options.command},
                              {"seed", options.seed},
                              {"seconds", seconds},
                              {"results", results}});
  }
  for (const json& r : results) {
    if (r.contains("stale_reason")) {
      tools::print(fmt::format("{} has a reason to survive, and was killed: take the reason out\n",
                               r.at("guard").get<std::string>()));
    }
  }
  tools::print(fmt::format(
      "\nmutants: {} guards: {} killed, {} explained, {} await weak memory, {} unexplained; {:.0f} "
      "s, seed {}\n",
      kGuardCount, killed, explained, awaiting, wrong, seconds, options.seed));
  return wrong == 0 ? tools::kDone : tools::kWrong;
}

}  // namespace faultpath::check
