#include "check/explore/random.h"

#include <algorithm>
#include <utility>

#include "check/explore/replay.h"

namespace faultpath::check {

namespace {

bool stays_possible(const sim::Question& q) {
  return q.current != sim::kNoCpu && (q.enabled >> q.current & 1) != 0;
}

sim::Choice run_on(unsigned cpu, bool inject = false) {
  return {static_cast<std::uint8_t>(cpu), inject};
}

}  // namespace

// --- RandomWalk ---------------------------------------------------------------------------------

bool RandomWalk::next() {
  begin(run_);
  return true;
}

void RandomWalk::begin(std::uint64_t run) {
  rng_ = Rng(seed_, run);
  run_ = run + 1;
  ++runs_;
  static constexpr unsigned kSwitch[] = {1, 2, 4};
  static constexpr unsigned kInject[] = {2, 4, 6, 8};
  switch_bits_ = kSwitch[rng_.below(3)];
  inject_bits_ = kInject[rng_.below(4)];
}

sim::Choice RandomWalk::choose(const sim::Question& q) {
  if (q.injectable != 0 && rng_.one_in_power(inject_bits_)) {
    // Half of them interrupt who is running, so that handlers do not only come with a switch.
    const bool here = q.current != sim::kNoCpu && (q.injectable >> q.current & 1) != 0;
    if (here && rng_.one_in_power(1)) return run_on(q.current, true);
    return run_on(pick(rng_, q.injectable), true);
  }
  if (!stays_possible(q) || q.polite) return run_on(pick(rng_, q.enabled));
  const std::uint32_t others = q.enabled & ~(1u << q.current);
  if (q.visible && others != 0 && rng_.one_in_power(switch_bits_))
    return run_on(pick(rng_, others));
  return run_on(q.current);
}

// --- Pct ----------------------------------------------------------------------------------------

Pct::Pct(std::uint64_t seed, unsigned depth, std::uint64_t expected_steps)
    : seed_(seed),
      changes_(std::clamp(depth, 1u, kMostDepth) - 1),
      rng_(seed),
      expected_visible_(std::max<std::uint64_t>(expected_steps, 1)),
      expected_asked_(expected_visible_) {}

bool Pct::next() {
  // The first guess counts only until it can be replaced by what was seen.
  if (runs_ == 1) {
    expected_visible_ = std::max<std::uint64_t>(visible_, 1);
    expected_asked_ = std::max<std::uint64_t>(asked_, 1);
  }
  expected_visible_ = std::max(expected_visible_, visible_);
  expected_asked_ = std::max(expected_asked_, asked_);
  begin(run_);
  return true;
}

void Pct::begin(std::uint64_t run) {
  rng_ = Rng(seed_, run);
  run_ = run + 1;
  ++runs_;
  visible_ = asked_ = 0;
  floor_ = 0;
  for (unsigned i = 0; i < sim::kMaxCpus; ++i) {
    priority_[i] = static_cast<int>(kMostDepth + i);
    std::swap(priority_[i], priority_[rng_.below(i + 1)]);
  }
  const auto points = static_cast<std::uint32_t>(std::min<std::uint64_t>(expected_visible_, ~0u));
  for (unsigned i = 0; i < changes_; ++i) change_at_[i] = 1 + rng_.below(points);
  inject_at_ =
      rng_.below(static_cast<std::uint32_t>(std::min<std::uint64_t>(expected_asked_, ~0u)));
}

unsigned Pct::highest(std::uint32_t set) const {
  unsigned best = static_cast<unsigned>(__builtin_ctz(set));
  for (set &= set - 1; set != 0; set &= set - 1) {
    const auto cpu = static_cast<unsigned>(__builtin_ctz(set));
    if (priority_[cpu] > priority_[best]) best = cpu;
  }
  return best;
}

sim::Choice Pct::choose(const sim::Question& q) {
  ++asked_;
  if (q.current != sim::kNoCpu) {
    if (q.polite) {
      priority_[q.current] = --floor_;
    } else if (q.visible && stays_possible(q)) {
      ++visible_;
      // Several changes at one point do no harm: the last one counts.
      for (unsigned i = 0; i < changes_; ++i) {
        if (change_at_[i] == visible_) priority_[q.current] = static_cast<int>(changes_ - i);
      }
    }
  }
  const unsigned cpu = highest(q.enabled);
  if (q.injectable != 0 && asked_ > inject_at_) {
    const bool here = (q.injectable >> cpu & 1) != 0;
    // At once where the one that is to run can take it, or else at a moment drawn again: the CPU
    // may be waiting for a lock, and that is the case wanted.
    if (here || rng_.one_in_power(2)) {
      inject_at_ = asked_ + rng_.below(static_cast<std::uint32_t>(expected_asked_));
      return run_on(here ? cpu : highest(q.injectable), true);
    }
  }
  const bool must = !stays_possible(q) || q.polite || q.visible;
  return run_on(must ? cpu : q.current);
}

}  // namespace faultpath::check
