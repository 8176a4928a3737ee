#include "check/report/interleaving.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "check/report/calls.h"
#include "check/report/fold.h"
#include "check/report/names.h"
#include "check/report/text.h"
#include "check/report/weight.h"
#include "check/report/wording.h"

namespace faultpath::check {

namespace {

using sim::OpKind;
using sim::Step;

constexpr std::size_t kIndent = 6;        ///< for each CPU
constexpr std::size_t kGutter = 7;        ///< for the step's number
constexpr std::size_t kSiteColumn = 64;   ///< where the source line begins, if it can
constexpr std::size_t kMostLines = 150;   ///< of a run that was not shrunk: its end
constexpr std::size_t kEnoughLines = 45;  ///< more is not filled up to
constexpr std::size_t kFar = ~std::size_t{0};

class Telling {
 public:
  Telling(Stage& stage, std::span<const Step> steps, const sim::Violation& violation,
          const Names& names, std::span<const std::uint64_t> left)
      : stage_(stage),
        names_(names),
        steps_(steps),
        violation_(violation),
        weighed_(weigh(steps, left, names_)),
        words_(names, steps, weighed_, violation),
        instant_(steps.size() + 1) {
    for (const Event& e : stage.history().events()) {
      if (e.setup()) continue;
      Event& mine = history_.emplace_back(e);
      if (!e.ok || e.instant == 0 || e.instant > steps.size()) continue;
      // Of an access to a page that nobody else touches, no step was noticed.
      mine.begin = std::min(e.begin, e.instant);
      mine.end = std::max(e.end, e.instant);
    }
    for (const Event& e : history_) {
      events_.push_back(&e);
      if (e.ok && e.instant != 0 && e.instant <= steps.size()) instant_[e.instant] = &e;
    }
    for (std::size_t n = 1; n <= steps.size(); ++n) {
      if (instant_[n] != nullptr) weighed_[n - 1].weight = Weight::essential;
    }
    if (violation.cpu != sim::kNoCpu && !steps.empty() && steps.back().cpu == violation.cpu) {
      weighed_.back().weight = Weight::essential;
    }
  }

  std::string tell() {
    measure();
    find_open_calls();
    // From everything to the least; then, of the next weight, as much as there is room for.
    least_ = Weight::shared;
    near_ = 0;
    for (;;) {
      const std::size_t most = least_ <= Weight::chatter ? kEnoughLines : kInterleavingLines;
      if (render() <= most || least_ == Weight::essential) break;
      least_ = static_cast<Weight>(static_cast<unsigned>(least_) + 1);
    }
    if (least_ != Weight::shared) {
      std::size_t low = 0;
      std::size_t high = steps_.size();
      while (low < high) {
        near_ = (low + high + 1) / 2;
        if (render() <= kEnoughLines) {
          low = near_;
        } else {
          high = near_ - 1;
        }
      }
      near_ = low;
      render();
    }
    std::string out;
    const std::size_t from = lines_.size() > kMostLines ? lines_.size() - kMostLines : 0;
    if (from != 0) out += fmt::format("... {} lines before\n", from);
    for (std::size_t i = from; i < lines_.size(); ++i) out += cut(lines_[i], kWidth) + '\n';
    return out;
  }

 private:
  // --- lines ------------------------------------------------------------------------------------

  static std::string column(unsigned cpu) { return std::string(cpu * kIndent, ' '); }

  void line(unsigned cpu, std::string_view gutter, std::string_view text,
            const sim::Site* site = nullptr) {
    std::string s = fmt::format("{:>{}}", gutter, kGutter - 2);
    s.resize(kGutter, ' ');
    s += column(cpu);
    s += text;
    if (site != nullptr && !file_of(*site).empty()) {
      const std::size_t room = s.size() + 2;
      if (room < kSiteColumn) s.resize(kSiteColumn - 2, ' ');
      s += "  " + line_of(*site);
      std::string function = function_of(*site);
      if (s.size() + 1 + function.size() > kWidth) {
        function = function.substr(function.rfind(':') + 1);
      }
      s += ' ' + function;
    }
    while (s.ends_with(' ')) s.pop_back();
    lines_.push_back(std::move(s));
  }

  const char* cpu_name(unsigned cpu) const {
    return cpu < stage_.scripts().size() ? stage_.scripts()[cpu].name() : "";
  }

  void rule(unsigned cpu) {
    std::string s =
        fmt::format("{}{}cpu{} {} ", std::string(kGutter, ' '), column(cpu), cpu, cpu_name(cpu));
    s.resize(std::max(s.size(), kWidth), '-');
    lines_.push_back(std::move(s));
  }

  // --- what is shown ------------------------------------------------------------------------------

  /// How far each step is from the nearest switch.
  void measure() {
    distance_.assign(steps_.size(), kFar);
    std::size_t d = kFar;
    for (std::size_t i = 1; i < steps_.size(); ++i) {
      d = steps_[i].cpu != steps_[i - 1].cpu ? 0 : d == kFar ? kFar : d + 1;
      distance_[i] = d;
    }
    d = kFar;
    for (std::size_t i = steps_.size(); i-- > 1;) {
      d = steps_[i].cpu != steps_[i - 1].cpu ? 0 : d == kFar ? kFar : d + 1;
      distance_[i - 1] = std::min(distance_[i - 1], d);
    }
  }

  bool shown(std::size_t i) const {
    const auto w = static_cast<unsigned>(weighed_[i].weight);
    const auto least = static_cast<unsigned>(least_);
    return w >= least || (w != 0 && w + 1 == least && distance_[i] < near_);
  }

  // --- the run ----------------------------------------------------------------------------------

  std::size_t render() {
    lines_.clear();
    fold_.clear();
    std::fill(std::begin(in_calls_), std::end(in_calls_), 0u);
    collapse();
    unsigned current = sim::kNoCpu;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Step& s = steps_[i];
      if (s.cpu != current) {
        if (current != sim::kNoCpu) stop(current, i);
        rule(s.cpu);
        current = s.cpu;
      }
      begin_calls(i + 1);
      if (s.kind == OpKind::start) {
        // Nothing is done by it.
      } else if (collapsed_[i] != nullptr) {
        if (collapsed_[i]->instant == i + 1) {
          unfold();
          line(s.cpu, gutter(i), "-- " + words_.access(*collapsed_[i]));
        }
      } else if (!shown(i)) {
        fold_.push_back(i);
      } else {
        unfold();
        i = show(i);
      }
      end_calls(i + 1);
    }
    if (current != sim::kNoCpu) stop(current, steps_.size());
    conclude();
    lines_ = without_repeats(std::move(lines_), kGutter);
    return lines_.size();
  }

  std::string gutter(std::size_t i) const {
    return fmt::format("{}{}", i + 1, steps_[i].injected ? "*" : "");
  }

  bool own(std::size_t i) const { return weighed_[i].weight == Weight::own; }
  bool fold_is_own() const {
    return std::all_of(fold_.begin(), fold_.end(), [this](std::size_t i) { return own(i); });
  }

  /// The steps that were left out since the last line.
  void unfold() {
    if (fold_.empty()) return;
    const std::vector<std::size_t> steps = std::move(fold_);
    fold_.clear();
    const Step& first = steps_[steps.front()];
    if (steps.size() == 1) {
      if (!own(steps.front())) show(steps.front(), steps.front() + 1);
      return;
    }
    const bool all_own =
        std::all_of(steps.begin(), steps.end(), [this](std::size_t i) { return own(i); });
    bool injected = false;
    for (const std::size_t i : steps) injected = injected || steps_[i].injected;
    std::string text = fmt::format("... {} steps{}: ", steps.size(), all_own ? " of its own" : "");
    const std::size_t used = kGutter + first.cpu * kIndent + text.size();
    std::vector<sim::Site> sites;
    sites.reserve(steps.size());
    for (const std::size_t i : steps) sites.push_back(steps_[i].site);
    text += functions_text(sites, kWidth - used);
    line(first.cpu, injected ? "*" : "", text);
  }

  /// A step, and those after it that are of a piece with it; returns the last of them.
  std::size_t show(std::size_t i) { return show(i, steps_.size()); }
  std::size_t show(std::size_t i, std::size_t most) {
    const Step& s = steps_[i];
    std::size_t end = i + 1;
    std::string text;
    const About a = names_.about(s.place);
    if (instant_[i + 1] != nullptr) {
      text = words_.access(*instant_[i + 1]);
    } else if (a.meaning == Meaning::payload) {
      while (end < most && continues(i, end)) ++end;
      text = words_.page(i, end);
    } else {
      text = words_.step(i);
      // A loop that waits does the same again and again.
      while (end < most && repeats(i, end)) ++end;
      if (end - i > 1) text += fmt::format("  ({} times)", end - i);
    }
    // Where a guest's own access stands says nothing.
    line(s.cpu, gutter(i), text, instant_[i + 1] != nullptr ? nullptr : &s.site);
    return end - 1;
  }

  bool quiet(std::size_t i) const {
    return std::none_of(events_.begin(), events_.end(),
                        [i](const Event* e) { return e->begin == i + 1 || e->end == i; });
  }
  bool continues(std::size_t i, std::size_t next) const {
    const Step& a = steps_[i];
    const Step& b = steps_[next];
    const About x = names_.about(a.place);
    const About y = names_.about(b.place);
    return a.cpu == b.cpu && a.kind == b.kind && a.injected == b.injected &&
           a.site.line() == b.site.line() && y.meaning == Meaning::payload && x.frame == y.frame &&
           y.word == x.word + (next - i) && instant_[next + 1] == nullptr && quiet(next);
  }
  bool repeats(std::size_t i, std::size_t next) const {
    const Step& a = steps_[i];
    const Step& b = steps_[next];
    return a.cpu == b.cpu && a.kind == b.kind && a.place == b.place && a.value == b.value &&
           a.injected == b.injected && a.site.line() == b.site.line() && shown(next) && quiet(next);
  }

  // --- calls ------------------------------------------------------------------------------------

  void begin_calls(std::size_t n) {
    for (const Event* e : events_) {
      if (e->begin != n || is_collapsed(*e)) continue;
      // Its steps that only its CPU can notice came first, and are folded below the line.
      if (in_calls_[e->cpu]++ != 0 || !fold_is_own()) unfold();
      const bool nested = e->cpu == steps_[n - 1].cpu && steps_[n - 1].injected;
      line(e->cpu, "", fmt::format("-- {}{}", nested ? "handler: " : "", asked(*e)));
    }
    const unsigned cpu = steps_[n - 1].cpu;
    if (n - 1 == open_from_[cpu] && !open_call_[cpu].empty()) {
      ++in_calls_[cpu];
      unfold();
      line(cpu, "", "-- " + open_call_[cpu] + ", which does not end");
    }
  }
  void end_calls(std::size_t n) {
    for (const Event* e : events_) {
      if (e->end != n || is_collapsed(*e)) continue;
      unfold();
      --in_calls_[e->cpu];
      const std::string r = result(*e);
      line(e->cpu, "", fmt::format("-- {} done{}{}", name_of(e->kind), r.empty() ? "" : " ", r));
    }
  }

  /// An access that nobody's step, and none of its own that is to be shown, stands between: it is one
  /// line.
  bool can_collapse(const Event& e) const {
    if (!e.ok || e.instant == 0 || e.begin == 0 || e.end > steps_.size()) return false;
    if (e.kind != Kind::load && e.kind != Kind::store) return false;
    for (std::size_t n = e.begin; n <= e.end; ++n) {
      if (steps_[n - 1].cpu != e.cpu) return false;
      // That it opens and closes its section goes without saying.
      if (n != e.instant && shown(n - 1) && weighed_[n - 1].weight > Weight::chatter) return false;
    }
    return true;
  }
  void collapse() {
    collapsed_.assign(steps_.size(), nullptr);
    for (const Event* e : events_) {
      if (!can_collapse(*e)) continue;
      for (std::size_t n = e->begin; n <= e->end; ++n) collapsed_[n - 1] = e;
    }
  }
  bool is_collapsed(const Event& e) const {
    return e.instant != 0 && e.instant <= steps_.size() && collapsed_[e.instant - 1] == &e;
  }

  bool unfinished(unsigned cpu) const { return (sim::World::get().unfinished() >> cpu & 1) != 0; }
  void find_open_calls() {
    for (unsigned cpu = 0; cpu < sim::kMaxCpus; ++cpu) {
      if (!unfinished(cpu)) continue;
      std::size_t i = 0;
      for (const Event* e : events_) {
        if (e->cpu == cpu) i = std::max(i, static_cast<std::size_t>(e->end));
      }
      std::vector<sim::Site> sites;
      for (; i < steps_.size(); ++i) {
        if (steps_[i].cpu != cpu || steps_[i].kind == OpKind::start) continue;
        if (sites.empty()) open_from_[cpu] = i;
        sites.push_back(steps_[i].site);
      }
      open_call_[cpu] = asked(sites);
    }
  }

  // --- where a CPU stands when another one goes on ------------------------------------------------

  void stop(unsigned cpu, std::size_t next) {
    // What comes after a call, and nobody can notice, is not worth a line.
    if (in_calls_[cpu] == 0 && fold_is_own()) fold_.clear();
    unfold();
    for (std::size_t i = next; i < steps_.size(); ++i) {
      const Step& s = steps_[i];
      if (s.cpu != cpu) continue;
      line(cpu, "", words_.pending({s.kind, s.place, s.site}), &s.site);
      return;
    }
    if (next < steps_.size()) stands(cpu);
  }
  void stands(unsigned cpu) {
    if (!unfinished(cpu)) return;
    const sim::Op& op = sim::World::get().pending(cpu);
    line(cpu, "", words_.pending(op, violation_.detector == sim::Detector::deadlock), &op.site);
  }

  /// Why the run ended before its CPUs did, and where they are.
  void conclude() {
    const unsigned last = steps_.empty() ? sim::kNoCpu : steps_.back().cpu;
    const bool of_one = violation_.cpu < stage_.scripts().size() && unfinished(violation_.cpu) &&
                        violation_.detector != sim::Detector::deadlock;
    if (of_one) {
      if (violation_.cpu != last) rule(violation_.cpu);
      line(violation_.cpu, ">>>",
           fmt::format("{}: {}", sim::name_of(violation_.detector),
                       violation_.message.substr(0, violation_.message.find('\n'))));
    }
    for (unsigned cpu = 0; cpu < stage_.scripts().size(); ++cpu) {
      if (!unfinished(cpu) || (of_one && cpu == violation_.cpu)) continue;
      if (cpu != last || of_one) rule(cpu);
      stands(cpu);
    }
    if (violation_.detector == sim::Detector::deadlock) line(0, ">>>", "deadlock");
  }

  Stage& stage_;
  const Names& names_;
  std::span<const Step> steps_;
  const sim::Violation& violation_;
  std::vector<Weighed> weighed_;
  const Wording words_;
  std::vector<Event> history_;         ///< of the run
  std::vector<const Event*> instant_;  ///< by step number
  std::vector<const Event*> events_;
  Weight least_ = Weight::shared;
  std::size_t near_ = 0;  ///< of the weight below `least_`, steps that are nearer to a switch
  std::vector<std::size_t> distance_;
  std::vector<const Event*> collapsed_;  ///< by step: the access that it belongs to
  unsigned in_calls_[sim::kMaxCpus] = {};
  /// Of the call that a CPU is in at the end of the run: its first step, and what it is.
  std::size_t open_from_[sim::kMaxCpus] = {};
  std::string open_call_[sim::kMaxCpus];
  std::vector<std::size_t> fold_;
  std::vector<std::string> lines_;
};

}  // namespace

std::string interleaving(Stage& stage, std::span<const Step> steps,
                         const sim::Violation& violation) {
  const Names names(stage);
  return Telling(stage, steps, violation, names, {}).tell();
}

std::string interleaving(Stage& stage, std::span<const Step> steps, const sim::Violation& violation,
                         const Names& names, std::span<const std::uint64_t> left) {
  return Telling(stage, steps, violation, names, left).tell();
}

}  // namespace faultpath::check
