// Exhaustive search within a number of preemptions.
#pragma once

#include "check/explore/choice_tree.h"
#include "check/explore/explorer.h"

namespace faultpath::check {

/// All schedules with at most so many preemptions, as PlainSearch counts them, but switching only
/// at visible points. First those with none, then one more, and so on: a violation is found with as
/// few as it needs.
///
/// Why this reaches the same states. Call a place shared if two CPUs access it, one of them
/// writing. Take any schedule within the bound, and in it a switch away from CPU c before an
/// operation on a place that is not shared (or on none, as a fence). Move what c does next, up to
/// its next visible point, before the switch: it conflicts with nothing that others do meanwhile,
/// so every operation reads and writes what it did before. c then stops at a visible point, which
/// costs one preemption as before, or at a polite one, or where it cannot go on or has ended, which
/// costs none. If that empties a later turn of c, then two switches become one, away from the CPU
/// that the first of them left. So the schedule stays within the bound.
///
/// Which places are shared is learned from the runs. Whenever another one turns out to be, the
/// search starts again; it is done when a whole search has learned nothing. Nothing is missed then:
/// suppose that some schedule within the bound makes a place shared that is not known as such, and
/// take the first access that does. The accesses before it conflict on known places only, so by the
/// argument above the search has made a run that performs them and that access too (or already one
/// with the same effect among the operations moved forward), and would have learned of the place.
///
/// Nested handlers are begun at every point of their CPU, visible or not, while it runs or when it
/// gets its turn: how a handler meets the code that it interrupts has nothing to do with other
/// CPUs. Beginning one on a CPU is a step of that CPU, so the argument holds for it as well. (But a
/// deadlock ends a run even where a handler could be begun. Then the run without it is the
/// finding.)
///
/// What a step does beside its operation (an object's death, say) is taken to be ordered by shared
/// places. The simulated clock is not a place: code must not branch on it.
class BoundedSearch final : public Explorer {
 public:
  explicit BoundedSearch(unsigned preemptions) : most_(preemptions) {}

  bool next() override;
  bool complete() const override { return complete_; }
  sim::Choice choose(const sim::Question& q) override;

  /// Runs since the search last started again: when complete, the number of different ones.
  std::uint64_t runs_of_pass() const { return runs_of_pass_; }
  /// Complete, and more preemptions would have added nothing.
  bool exhausted() const { return complete_ && !cut_; }
  /// Preemptions that are allowed now.
  unsigned level() const { return level_; }

 private:
  void start_pass();

  unsigned most_;
  unsigned level_ = 0;
  unsigned left_ = 0;  ///< preemptions that this run may still make
  bool cut_ = false;   ///< the bound kept this pass from something
  bool complete_ = false;
  std::uint64_t known_ = 0;  ///< shared places at the start of the pass
  std::uint64_t runs_of_pass_ = 0;
  ChoiceTree tree_;
};

}  // namespace faultpath::check
