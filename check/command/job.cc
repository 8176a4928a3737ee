#include "check/command/job.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "check/report/report.h"
#include "tools/cli.h"

namespace faultpath::check {

using nlohmann::json;

std::string grouped(std::uint64_t n) {
  std::string s = std::to_string(n);
  for (std::size_t at = s.size(); at > 3;) {
    at -= 3;
    s.insert(at, ",");
  }
  return s;
}

std::string short_count(double n) {
  if (n >= 1e9) return fmt::format("{:.1f} G", n / 1e9);
  if (n >= 1e6) return fmt::format("{:.1f} M", n / 1e6);
  if (n >= 1e4) return fmt::format("{:.0f} k", n / 1e3);
  return fmt::format("{:.0f}", n);
}

std::string replay_command(const Scene& scene, const PolicyChoice& policy,
                           const std::string& without, const std::string& schedule) {
  std::string s = fmt::format("faultpath check {} --policy {}", scene.name, policy.name);
  if (!without.empty()) s += fmt::format(" --without {}", without);
  return s + " --replay " + schedule;
}

json search_job(const Options& options, const Scene& scene, const PolicyChoice& policy,
                const Budget& budget) {
  Play play(options.variant(scene, policy));
  const SearchResult r = search(play, budget);
  json claims = json::array();
  for (const Claim& c : r.claims) {
    claims.push_back({{"preemptions", c.preemptions ? json(*c.preemptions) : json(nullptr)},
                      {"schedules", c.runs},
                      {"pruned", c.pruned},
                      {"complete", c.complete}});
  }
  json out{{"scene", scene.name},
           {"ids", scene.ids},
           {"policy", policy.name},
           {"claims", std::move(claims)},
           {"schedules", r.runs},
           {"random_schedules", r.random_runs},
           {"steps", r.steps},
           {"longest", r.longest},
           {"trace_hash", fmt::format("{:016x}", r.hash)},
           {"seconds", r.seconds}};
  if (r.finding) {
    const Finding& f = *r.finding;
    const std::string schedule = to_string(f.schedule);
    const std::string command = replay_command(scene, policy, options.without, schedule);
    json finding{{"detector", sim::name_of(f.detector)},
                 {"message", f.message},
                 {"how", f.how},
                 {"schedules_until", f.runs},
                 {"steps", f.steps},
                 {"switches", f.switches},
                 {"schedule", schedule},
                 {"replay", command},
                 {"report", report(play, f.schedule, command)}};
    if (f.switches_by_hand) finding["switches_by_hand"] = *f.switches_by_hand;
    out["finding"] = std::move(finding);
  }
  return out;
}

void write_json(const std::string& path, const json& document) {
  const std::string temporary = path + ".part";
  const std::string text = document.dump(2) + "\n";
  std::FILE* const file = std::fopen(temporary.c_str(), "w");
  bool fine = file != nullptr;
  if (fine) fine = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) fine = std::fclose(file) == 0 && fine;
  if (fine) fine = std::rename(temporary.c_str(), path.c_str()) == 0;
  if (fine) return;
  const int error = errno;
  std::remove(temporary.c_str());
  throw tools::UsageError(fmt::format("--json: '{}' cannot be written: {}", path, strerror(error)));
}

}  // namespace faultpath::check
