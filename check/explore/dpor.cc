#include "check/explore/dpor.h"

#include <cstdio>
#include <cstdlib>

#include "check/explore/replay.h"

namespace faultpath::check {

namespace {

using sim::OpKind;

constexpr std::uint8_t bit(unsigned cpu) { return static_cast<std::uint8_t>(1u << cpu); }
constexpr unsigned lowest(std::uint32_t set) { return static_cast<unsigned>(__builtin_ctz(set)); }

template <class Clock>
void join(Clock& a, const Clock& b) {
  for (unsigned i = 0; i < sim::kMaxCpus; ++i) {
    if (a[i] < b[i]) a[i] = b[i];
  }
}

/// A sleeper conflicts with nothing, so its word counts for none.
sim::Place place_of(const sim::Op& op) {
  return op.kind == OpKind::sleep ? sim::kNoPlace : op.place;
}

}  // namespace

bool DporSearch::before(std::uint32_t step, unsigned cpu) const {
  return clock_[cpu][states_[step].chosen] > step;
}

bool DporSearch::waits_for(unsigned cpu, sim::Place place) const {
  if (wait_[cpu].woken) return false;
  for (const sim::Place p : wait_[cpu].places) {
    if (p == place) return true;
  }
  return false;
}

/// The next operations of two CPUs.
bool DporSearch::dependent(const State& s, unsigned a, unsigned b) const {
  const Operation& x = s.next[a];
  const Operation& y = s.next[b];
  if (x.kind == OpKind::wait) return sim::writes(y.kind) && waits_for(a, y.place);
  if (y.kind == OpKind::wait) return sim::writes(x.kind) && waits_for(b, x.place);
  return x.place == y.place && x.place != sim::kNoPlace &&
         (sim::writes(x.kind) || sim::writes(y.kind));
}

bool DporSearch::next() {
  if (complete_) return false;
  if (runs_ + pruned_ > 0) {
    end_of_run();
    std::uint32_t todo = 0;
    while (!states_.empty()) {
      const State& s = states_.back();
      todo = s.backtrack & ~s.done & ~s.sleep;
      if (todo != 0) break;
      states_.pop_back();
    }
    if (todo == 0) {
      complete_ = true;
      return false;
    }
    State& s = states_.back();
    s.chosen = static_cast<std::uint8_t>(lowest(todo));
    s.done |= bit(s.chosen);
    changed_ = static_cast<std::uint32_t>(states_.size() - 1);
  }
  ++runs_;
  depth_ = 0;
  cut_ = false;
  for (unsigned c = 0; c < sim::kMaxCpus; ++c) {
    clock_[c] = {};
    wait_[c].places.clear();
    wait_[c].woken = false;
    waited_[c] = 0;
  }
  places_.clear();
  return true;
}

/// What the CPUs would have done next, had they been able to, or had there been no violation.
void DporSearch::end_of_run() {
  if (cut_) return;
  const sim::World& world = sim::World::get();
  for (std::uint32_t set = world.unfinished(); set != 0; set &= set - 1) {
    const unsigned c = lowest(set);
    const sim::Op& op = world.pending(c);
    if (op.kind != OpKind::wait) find_races(c, {op.kind, place_of(op)});
  }
}

sim::Choice DporSearch::choose(const sim::Question& q) {
  if (cut_ || !begin_state(q)) return {static_cast<std::uint8_t>(default_cpu(q)), false};
  State& s = states_[depth_];
  if (depth_ >= changed_) find_races(s.chosen, s.next[s.chosen]);
  take(s);
  ++depth_;
  return {s.chosen, false};
}

/// Comes to the next state, a known or a new one. False if nothing needs to be tried there.
bool DporSearch::begin_state(const sim::Question& q) {
  const bool is_new = depth_ == states_.size();
  if (!is_new && states_[depth_].enabled != q.enabled) {
    // The whole search rests on it, so there is no going on. A scene has kept something outside the
    // arena.
    std::fputs("a run did not repeat its beginning\n", stderr);
    std::abort();
  }
  if (is_new) {
    State& s = states_.emplace_back();
    s.enabled = static_cast<std::uint8_t>(q.enabled);
    for (unsigned c = 0; c < sim::kMaxCpus; ++c) {
      s.next[c] = {q.pending[c].kind, place_of(q.pending[c])};
    }
    if (depth_ > 0) {
      const State& from = states_[depth_ - 1];
      std::uint32_t tried = (from.sleep | from.done) & ~bit(from.chosen);
      for (; tried != 0; tried &= tried - 1) {
        const unsigned c = lowest(tried);
        if (!dependent(from, c, from.chosen)) s.sleep |= bit(c);
      }
    }
  }
  if (depth_ > 0) {
    const State& from = states_[depth_ - 1];
    wake(from, states_[depth_]);
    if (states_[depth_].next[from.chosen].kind == OpKind::wait) arrive(from.chosen);
  }
  if (!is_new) return true;
  State& s = states_[depth_];
  const std::uint32_t awake = s.enabled & ~s.sleep;
  if (awake == 0) {
    states_.pop_back();
    cut_ = true;
    ++pruned_;
    --runs_;
    return false;
  }
  const bool stays = q.current != sim::kNoCpu && (awake & bit(q.current)) != 0;
  s.chosen = static_cast<std::uint8_t>(stays ? q.current : lowest(awake));
  s.done = s.backtrack = bit(s.chosen);
  return true;
}

/// A CPU has come to a wait: for what it has read since its last one.
void DporSearch::arrive(unsigned cpu) {
  Wait& w = wait_[cpu];
  w.places.clear();
  w.woken = false;
  for (std::uint32_t i = depth_; i > waited_[cpu]; --i) {
    const State& s = states_[i - 1];
    const Operation& op = s.next[cpu];
    if (s.chosen == cpu && op.place != sim::kNoPlace && !waits_for(cpu, op.place)) {
      w.places.push_back(op.place);
    }
  }
}

/// Sees whom the step from one state to the other has enabled, where nothing else could have.
void DporSearch::wake(const State& from, const State& to) {
  const Operation& taken = from.next[from.chosen];
  std::uint32_t woken = to.enabled & ~from.enabled & ~bit(from.chosen);
  for (; woken != 0; woken &= woken - 1) {
    const unsigned c = lowest(woken);
    Wait& w = wait_[c];
    if (from.next[c].kind == OpKind::wait && w.places.size() == 1) {
      w.woken = w.places[0] == taken.place && sim::writes(taken.kind);
      if (w.woken) join(clock_[c], from.clock);
    } else if (from.next[c].kind == OpKind::sleep && taken.kind == OpKind::unpark) {
      join(clock_[c], from.clock);
    }
  }
}

/// `cpu` performs `op` in the state that the run is in.
void DporSearch::find_races(unsigned cpu, const Operation& op) {
  std::uint32_t steps[sim::kMaxCpus];
  unsigned count = 0;
  const auto add = [&](std::uint32_t number) {
    if (number == 0 || states_[number - 1].chosen == cpu || before(number - 1, cpu)) return;
    const unsigned by = states_[number - 1].chosen;
    // A later operation of the same CPU comes after the earlier one.
    for (unsigned i = 0; i < count; ++i) {
      if (states_[steps[i]].chosen != by) continue;
      if (steps[i] < number - 1) steps[i] = number - 1;
      return;
    }
    steps[count++] = number - 1;
  };
  if (op.kind == OpKind::wait) {
    if (wait_[cpu].woken) return;
    for (const sim::Place place : wait_[cpu].places) add(places_.at(place).write);
  } else if (op.place != sim::kNoPlace) {
    const PlaceUse& use = places_.at(op.place);
    if (op.kind == OpKind::lock) {
      add(use.acquired);
    } else if (sim::writes(op.kind)) {
      for (const std::uint32_t number : use.last) add(number);
    } else {
      add(use.write);
    }
  }
  for (unsigned i = 0; i < count; ++i) {
    bool last = true;
    for (unsigned j = 0; j < count; ++j) {
      if (j != i && states_[steps[j]].clock[states_[steps[i]].chosen] > steps[i]) last = false;
    }
    if (!last) continue;
    // What happens before the operation if the step comes after it: the others still do.
    Clock past = clock_[cpu];
    for (unsigned j = 0; j < count; ++j) {
      if (j != i) join(past, states_[steps[j]].clock);
    }
    reverse(steps[i], cpu, past);
  }
}

/// Sees to it that what `cpu` does next will also be done before the step. `past`: what happens
/// before it then.
void DporSearch::reverse(std::uint32_t step, unsigned cpu, const Clock& past) {
  State& s = states_[step];
  // Who has done something since that belongs to that past; of them, those who can begin: whose
  // first step since then has no other's before it.
  std::uint32_t busy = 0;
  for (unsigned c = 0; c < sim::kMaxCpus; ++c) {
    if (past[c] > step + 1) busy |= bit(c);
  }
  std::uint32_t first = busy == 0 ? bit(cpu) : 0;
  for (std::uint32_t i = step + 1; busy != 0; ++i) {
    const State& later = states_[i];
    if ((busy & bit(later.chosen)) == 0) continue;
    busy &= ~bit(later.chosen);
    bool alone = true;
    for (unsigned c = 0; c < sim::kMaxCpus; ++c) {
      if (c != later.chosen && later.clock[c] > step + 1) alone = false;
    }
    if (alone) first |= bit(later.chosen);
  }
  // All runs that begin with one that sleeps have been made.
  if ((first & (s.backtrack | s.sleep)) != 0) return;
  first &= s.enabled;
  // None: a wait that only this step has enabled. It cannot come before.
  if (first != 0) s.backtrack |= bit(lowest(first));
}

/// Notes what a step does to its place, and what happens before it.
void DporSearch::take(State& s) {
  const unsigned cpu = s.chosen;
  const Operation& op = s.next[cpu];
  const std::uint32_t number = depth_ + 1;
  Clock& clock = clock_[cpu];
  const auto follow = [&](std::uint32_t other) {
    if (other != 0) join(clock, states_[other - 1].clock);
  };
  if (op.kind == OpKind::wait) {
    waited_[cpu] = number;
    for (const sim::Place place : wait_[cpu].places) {
      if (wait_[cpu].woken) break;
      PlaceUse& use = places_.at(place);
      follow(use.write);
      use.last[cpu] = number;
    }
  } else if (op.place != sim::kNoPlace) {
    PlaceUse& use = places_.at(op.place);
    if (sim::writes(op.kind)) {
      for (const std::uint32_t other : use.last) follow(other);
      use.write = number;
    } else {
      follow(use.write);
    }
    use.last[cpu] = number;
    const bool takes = op.kind == OpKind::lock || (op.kind == OpKind::try_lock && !use.held);
    if (takes) use.acquired = number;
    use.held = takes || (use.held && op.kind != OpKind::unlock);
  }
  clock[cpu] = number;
  s.clock = clock;
}

}  // namespace faultpath::check
