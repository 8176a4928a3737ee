// The usual check: every scene under every policy.
#include <fmt/format.h>

#include <chrono>
#include <cstdint>

#include "check/command/job.h"
#include "check/search/jobs.h"
#include "tools/cli.h"

namespace faultpath::check {

using nlohmann::json;

namespace {

constexpr unsigned kReportsInFull = 3;

std::string claims_text(const json& claims) {
  std::string all;
  std::string cut;
  for (const json& c : claims) {
    const bool complete = c.at("complete").get<bool>();
    const json& bound = c.at("preemptions");
    std::string what = bound.is_null() ? "all"
                                       : fmt::format("<={} preemption{}", bound.get<unsigned>(),
                                                     bound.get<unsigned>() == 1 ? "" : "s");
    (complete ? all : cut) = std::move(what);
  }
  if (all.empty()) return "none";
  return all;
}

std::string row(const json& r) {
  std::string result = "ok";
  if (r.contains("finding")) {
    result = r.at("finding").at("detector").get<std::string>();
  } else if (r.contains("error")) {
    result = "the checker died";
  }
  return fmt::format("{:<42} {:<9} {:<15} {:>10} {:>8}  {}\n", r.at("scene").get<std::string>(),
                     r.at("policy").get<std::string>(),
                     r.contains("claims") ? claims_text(r.at("claims")) : "",
                     r.contains("schedules") ? grouped(r.at("schedules").get<std::uint64_t>()) : "",
                     r.contains("steps") ? short_count(r.at("steps").get<double>()) : "", result);
}

}  // namespace

int run_scenes(const Options& options) {
  struct Job {
    const Scene* scene;
    const PolicyChoice* policy;
  };
  std::vector<Job> jobs;
  for (const Scene* s : options.scenes) {
    for (const PolicyChoice& p : options.policies) {
      if (!plays_under(*s, p.spec.policy)) continue;
      jobs.push_back({s, &p});
    }
  }
  Budget budget;
  budget.seed = options.seed;
  budget.random_runs = options.schedules;
  budget.search_runs = options.search_runs;
  budget.exhaustive = options.search_runs != 0;

  // No place where a file that cannot be written should be noticed after minutes of work.
  if (!options.json.empty()) write_json(options.json, json::object());

  tools::print(fmt::format("{:<42} {:<9} {:<15} {:>10} {:>8}  {}\n", "scene", "policy",
                           "every schedule", "schedules", "steps", "result"));
  std::vector<json> results(jobs.size());
  std::uint64_t schedules = 0;
  std::uint64_t random = 0;
  std::uint64_t steps = 0;
  double busy = 0;
  unsigned findings = 0;
  unsigned ended = 0;
  std::uint64_t hash = 0;
  std::size_t printed = 0;
  const auto began = std::chrono::steady_clock::now();
  {
    tools::Progress progress(false);
    run_jobs(
        static_cast<unsigned>(jobs.size()), options.jobs,
        [&](unsigned i) {
          return search_job(options, *jobs[i].scene, *jobs[i].policy, budget).dump();
        },
        [&](unsigned i, const std::string& text) {
          json& r = results[i];
          if (text.empty()) {
            r = {{"scene", jobs[i].scene->name},
                 {"policy", jobs[i].policy->name},
                 {"error", "died"}};
            ++findings;
          } else {
            r = json::parse(text);
            schedules += r.at("schedules").get<std::uint64_t>();
            random += r.at("random_schedules").get<std::uint64_t>();
            steps += r.at("steps").get<std::uint64_t>();
            busy += r.at("seconds").get<double>();
            if (r.contains("finding")) ++findings;
          }
          ++ended;
          // In order, as far as they are there.
          for (; printed < results.size() && !results[printed].is_null(); ++printed) {
            progress.show("");
            tools::print(row(results[printed]));
          }
          progress.show(fmt::format("[{}/{}] {} schedules, {} steps", ended, jobs.size(),
                                    grouped(schedules), short_count(static_cast<double>(steps))));
        });
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();

  unsigned shown = 0;
  for (const json& r : results) {
    if (r.contains("trace_hash")) {
      hash =
          (hash ^ std::stoull(r.at("trace_hash").get<std::string>(), nullptr, 16)) * 0x100000001b3;
    }
    if (!r.contains("finding")) continue;
    const json& f = r.at("finding");
    if (shown++ < kReportsInFull) {
      tools::print("\n" + f.at("report").get<std::string>());
    } else {
      tools::print(fmt::format("\n{} under {}: {}\n  {}\n", r.at("scene").get<std::string>(),
                               r.at("policy").get<std::string>(),
                               f.at("detector").get<std::string>(),
                               f.at("replay").get<std::string>()));
    }
  }

  json document{{"schema", "faultpath-check-1"},
                {"version", FAULTPATH_VERSION},
                {"command", options.command},
                {"seed", options.seed},
                {"schedules", schedules},
                {"random_schedules", random},
                {"steps", steps},
                {"seconds", seconds},
                {"busy_seconds", busy},
                {"trace_hash", fmt::format("{:016x}", hash)},
                {"violations", findings},
                {"results", results}};
  if (!options.json.empty()) write_json(options.json, document);

  std::string policies;
  for (const PolicyChoice& p : options.policies) {
    policies += (policies.empty() ? "" : ", ") + p.name;
  }
  tools::print(fmt::format(
      "\ncheck: {} scenes under {}: {} schedules ({} random), {} steps in {:.0f} s "
      "({} steps/s a process), seed {}, trace hash {:016x}: {}\n",
      options.scenes.size(), policies, grouped(schedules), grouped(random),
      short_count(static_cast<double>(steps)), seconds,
      short_count(busy > 0 ? static_cast<double>(steps) / busy : 0), options.seed, hash,
      findings == 0 ? std::string("no violation")
                    : fmt::format("{} violation{}", findings, findings == 1 ? "" : "s")));
  return findings == 0 ? tools::kDone : tools::kWrong;
}

}  // namespace faultpath::check
