#include "check/report/wording.h"

#include <fmt/format.h>

#include "check/report/calls.h"
#include "check/report/text.h"

namespace faultpath::check {

using sim::OpKind;
using sim::Step;

Wording::Wording(const Names& names, std::span<const Step> steps, std::span<const Weighed> weighed,
                 const sim::Violation& violation)
    : names_(names), steps_(steps), weighed_(weighed), violation_(violation) {
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].kind != OpKind::store) continue;
    const About a = names_.about(steps_[i].place);
    if (a.meaning != Meaning::frame_kind) continue;
    const bool dead = steps_[i].value == static_cast<std::uint64_t>(memory::FrameKind::free);
    lives_.push_back({i, a.frame, dead});
  }
}

std::string Wording::place(sim::Place at, const sim::Site& site) const {
  std::string n = names_.name(at);
  if (n.starts_with("0x") && function_of(site).starts_with("Flag::")) n = "flag " + n;
  return n;
}

std::string Wording::step(std::size_t i) const {
  const Step& s = steps_[i];
  const std::string at = place(s.place, s.site) + death(i);
  const auto value = [&](std::uint64_t v) { return names_.value(s.place, v); };
  if (died_of_it(i)) {
    return fmt::format("{:<6} {}", s.kind == OpKind::try_lock ? "trylock" : sim::name_of(s.kind),
                       at);
  }
  switch (s.kind) {
    case OpKind::load: return fmt::format("load   {} = {}", at, value(s.value));
    case OpKind::store: return fmt::format("store  {} = {}", at, value(s.value));
    case OpKind::rmw: {
      const auto left = weighed_[i].left;
      if (!left) return fmt::format("rmw    {}: was {}", at, value(s.value));
      if (*left == s.value) return fmt::format("rmw    {}: stays {}", at, value(s.value));
      return fmt::format("rmw    {}: {} -> {}", at, value(s.value), value(*left));
    }
    case OpKind::try_lock:
      return fmt::format("trylock {}: {}", at, s.value != 0 ? "taken" : "is held");
    case OpKind::lock: return "lock   " + at;
    case OpKind::unlock: return "unlock " + at;
    case OpKind::pause: return "pause";
    case OpKind::wait: return "waited for another CPU";
    case OpKind::fence: return "fence";
    default: return fmt::format("{:<6} {}", sim::name_of(s.kind), at);
  }
}

/// The violation ended the run before the step did anything.
bool Wording::died_of_it(std::size_t i) const {
  return violation_.detector == sim::Detector::lifetime && i + 1 == violation_.step;
}

/// That the frame was freed earlier in the run, and is not in use again.
std::string Wording::death(std::size_t i) const {
  const About a = names_.about(steps_[i].place);
  if (a.frame == memory::kNoPfn) return {};
  std::size_t freed = 0;
  for (const auto& [step, frame, dead] : lives_) {
    if (step < i && frame == a.frame) freed = dead ? step + 1 : 0;
  }
  return freed == 0 ? std::string() : fmt::format(" (freed at step {})", freed);
}

std::string Wording::page(std::size_t from, std::size_t end) const {
  const Step& s = steps_[from];
  const char* const verb = s.kind == OpKind::peek ? "read" : "write";
  if (end - from == 1) {
    const std::string at = names_.name(s.place) + death(from);
    if (died_of_it(from)) return fmt::format("{:<6} {}", verb, at);
    return fmt::format("{:<6} {} = {}", verb, at, number(s.value));
  }
  const About a = names_.about(s.place);
  std::string text =
      fmt::format("{:<6} frame {} words {}-{} =", verb, a.frame, a.word, a.word + (end - from - 1));
  std::vector<std::uint64_t> values;
  for (std::size_t i = from; i < end; ++i) values.push_back(steps_[i].value);
  return text + ' ' + numbers(values) + death(from);
}

std::string Wording::access(const Event& e) const {
  const Step& s = steps_[e.instant - 1];
  const char* const how = file_of(s.site) != "soft_cpu.h"          ? ""
                          : function_of(s.site).ends_with("_slow") ? ""
                                                                   : " (TLB hit)";
  const std::string r = result(e);
  return fmt::format("{}{}{}, in {}{}{}", asked(e), r.empty() ? "" : " ", r, names_.name(s.place),
                     death(e.instant - 1), how);
}

std::string Wording::pending(const sim::Op& op, bool stuck) const {
  if (stuck && op.kind == OpKind::lock) return "waits for " + place(op.place, op.site);
  switch (op.kind) {
    case OpKind::start: return "about to begin";
    case OpKind::wait: return "waits for another CPU";
    case OpKind::sleep: return "asleep";
    case OpKind::pause: return "about to pause";
    case OpKind::fence: return "about to pass a fence";
    case OpKind::peek: return "about to read " + names_.name(op.place);
    case OpKind::poke: return "about to write " + names_.name(op.place);
    case OpKind::rmw: return "about to change " + place(op.place, op.site);
    default: return fmt::format("about to {} {}", sim::name_of(op.kind), place(op.place, op.site));
  }
}

}  // namespace faultpath::check
