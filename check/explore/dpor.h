// Exhaustive search without a bound, one run for each order of the operations that conflict.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "check/explore/explorer.h"
#include "check/explore/place_table.h"

namespace faultpath::check {

/// Dynamic partial-order reduction (Flanagan and Godefroid 2005) with source sets (Abdulla, Aronis,
/// Jonsson and Sagonas 2014) and sleep sets (Godefroid 1996).
///
/// Two operations are *dependent* if they are on one place and one of them writes. (A lock's are
/// all on its place.) *Happens-before* is the order of dependent operations, and of each CPU's own;
/// it is not that of the memory model. Two runs with the same happens-before are equivalent: one is
/// got from the other by exchanging neighbours that commute. Of each class one run is made to its
/// end.
///
/// *Races.* When CPU p performs an operation, it is compared with the dependent ones before it that
/// happen before nothing of p's yet, nor before another of them. Let e be one, taken in state s.
/// Then there are runs in which p's operation comes before e: what must be done for them is what
/// has been done since s and happens before p's operation, and that itself. Some CPU that can begin
/// this has to be tried in s, unless one is among those to be tried there already.
///
/// The original algorithm tries p itself in s, or else all that can go on. That does not go with
/// sleep sets: p may be asleep in s, while the runs wanted begin with another CPU.
///
/// *Locks.* A CPU that takes a lock is compared with the last acquisition, not with the release. A
/// release and an acquisition are never enabled together, so they cannot change places; but both
/// acquisitions can. One that waits for ever (at a deadlock) is compared at the end of the run.
///
/// *Sleepers.* One that has been woken conflicts with nothing. The unpark that woke it happens
/// before it: all unparks of a word are dependent, so in each equivalent run it is the same one
/// that wakes.
///
/// *Waits.* A CPU at `wait` can go on after a write to any of the words that it has read. If that
/// is one word, then the write that enabled it happens before it, and no later one matters, as with
/// sleepers. Else independent writes may do it, each without the other: so the wait counts as a
/// read of all the words.
///
/// *Sleep sets.* A CPU whose operation was tried in a state sleeps below that state's later
/// branches, until a dependent operation is taken: before that, its operation would only repeat a
/// class. If all that are enabled sleep, the run is *pruned*: all that could follow has been seen.
/// It goes on to its end in the default order, since a run cannot be left otherwise, and is not
/// counted.
///
/// Limits. Pauses, fences and starts are independent of everything, and so is the real-time order
/// of calls that conflict nowhere. A run that ends at a violation is a class of its own; what would
/// have come after it is not searched. Nested handlers are not begun. What a step does beside its
/// operation (an object's death, say) is taken to be ordered by places; code must not branch on the
/// clock.
class DporSearch final : public Explorer {
 public:
  bool wants_every_point() const override { return true; }
  bool wants_forced() const override { return true; }
  bool next() override;
  bool complete() const override { return complete_; }
  sim::Choice choose(const sim::Question& q) override;

  /// Runs that were cut off. Those that runs() counts are of different classes.
  std::uint64_t pruned() const { return pruned_; }

 private:
  using Clock = std::array<std::uint32_t, sim::kMaxCpus>;

  struct Operation {
    sim::OpKind kind;
    sim::Place place;
  };

  /// A state on the way of this run, and the step that is taken from it. Sets are of CPUs.
  struct State {
    std::uint8_t enabled;
    std::uint8_t sleep;
    std::uint8_t backtrack;  ///< to be tried
    std::uint8_t done;       ///< tried, or being tried
    std::uint8_t chosen;
    Operation next[sim::kMaxCpus];  ///< of each CPU that has not ended
    Clock clock;                    ///< of the step: what happens before it, itself included
  };

  /// What a pending wait waits for.
  struct Wait {
    std::vector<sim::Place> places;
    bool woken = false;  ///< by the only place that it waits for
  };

  /// Step `step` happens before what `cpu` does next.
  bool before(std::uint32_t step, unsigned cpu) const;
  bool dependent(const State& s, unsigned a, unsigned b) const;
  bool waits_for(unsigned cpu, sim::Place place) const;

  bool begin_state(const sim::Question& q);
  void arrive(unsigned cpu);
  void wake(const State& from, const State& to);
  void find_races(unsigned cpu, const Operation& op);
  void reverse(std::uint32_t step, unsigned cpu, const Clock& past);
  void take(State& s);
  void end_of_run();

  std::vector<State> states_;
  std::uint32_t depth_ = 0;    ///< steps of this run
  std::uint32_t changed_ = 0;  ///< the state in which this run takes another way than the last one
  bool cut_ = false;
  bool complete_ = false;
  std::uint64_t pruned_ = 0;

  // Of this run. Steps count from 1 in clocks and in the table.
  Clock clock_[sim::kMaxCpus] = {};
  Wait wait_[sim::kMaxCpus];
  std::uint32_t waited_[sim::kMaxCpus] = {};  ///< when the last wait ended
  PlaceTable places_;
};

}  // namespace faultpath::check
