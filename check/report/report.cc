#include "check/report/report.h"

#include <faultpath/format.h>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "check/report/interleaving.h"
#include "check/report/picture.h"
#include "check/report/text.h"
#include "check/report/witness.h"

namespace faultpath::check {

namespace {

std::string guards_text(std::uint64_t off) {
  std::string s;
  for (const Guard g : kAllGuards) {
    if ((off & guard_bit(g)) != 0) s += fmt::format(" {}", name_of(g));
  }
  return s.empty() ? s : ", without" + s;
}

std::string capitals(std::string s) {
  std::transform(s.begin(), s.end(), s.begin(), [](unsigned char c) { return std::toupper(c); });
  return s;
}

/// The engine numbers its Cpus with those of the set-up; a reader knows the scene's.
std::string with_cpu_names(std::string text, const Survey& survey) {
  for (std::size_t at = 0; (at = text.find("Cpu ", at)) != std::string::npos;) {
    std::size_t end = at + 4;
    std::uint32_t id = 0;
    while (end < text.size() && text[end] >= '0' && text[end] <= '9' && id < 1000) {
      id = id * 10 + static_cast<std::uint32_t>(text[end++] - '0');
    }
    if (end != at + 4) text.replace(at, end - at, survey.cpu_name(id));
    at += 4;
  }
  return text;
}

/// With who and where, if that is not in the message.
std::string wrong_text(Stage& stage, const sim::Violation& v, const sim::Step* last,
                       const Names& names) {
  if (v.cpu >= stage.scripts().size() || v.message.starts_with("cpu ") ||
      v.detector == sim::Detector::deadlock) {
    return v.message;
  }
  std::string s =
      fmt::format("cpu{} {}, step {}: {}", v.cpu, stage.scripts()[v.cpu].name(), v.step, v.message);
  if (last != nullptr && last->cpu == v.cpu && v.detector == sim::Detector::lifetime) {
    s += fmt::format(": {}, at {} {}", names.name(last->place), line_of(last->site),
                     function_of(last->site));
  }
  return s;
}

void section(std::string& out, std::string_view title, std::string_view text) {
  out += fmt::format("\n{}\n\n{}", title, text);
  if (!out.ends_with('\n')) out += '\n';
}

}  // namespace

std::string report(Play& play, const Schedule& schedule, std::string_view replay_command) {
  sim::World& world = sim::World::get();
  Witness witness(schedule);
  play.run(witness);
  const std::vector<std::uint64_t> left = witness.left();
  const sim::Violation violation = world.violation();
  const std::vector<sim::Step> steps = world.trace();
  const Schedule executed = from_trace(steps);
  const Scene& scene = *play.variant().scene;

  std::string out =
      fmt::format("scene {}, policy {}{}: {} after {} steps, {} switches\n", scene.name,
                  to_string(play.variant().policy), guards_text(play.variant().guards_off),
                  violation ? capitals(sim::name_of(violation.detector)) : "nothing found",
                  steps.size(), switches(executed));
  if (witness.diverged()) out += "(the run did not follow the schedule to its end)\n";
  const Survey at_end(play.stage());
  Names names(at_end);
  const std::string after = picture(at_end);
  world.restore();
  const Survey at_begin(play.stage());
  names.look_back(Names(at_begin));
  const std::string before = picture(at_begin);
  const std::string run = interleaving(play.stage(), steps, violation, names, left);

  section(out, fmt::format("The scene ({})", scene.ids), wrap(scene.story, "  "));
  if (violation) {
    const sim::Step* const last = steps.empty() ? nullptr : &steps.back();
    section(out, "What is wrong",
            wrap(with_cpu_names(wrong_text(play.stage(), violation, last, names), at_begin), "  "));
  }
  section(out, "Before the run", before);
  section(out, "The run", run);
  section(out, world.unfinished() != 0 ? "At the violation" : "After the run", after);
  section(out, "Replay", fmt::format("{}\n", replay_command));
  return out;
}

}  // namespace faultpath::check
