// Depth-first search over the choices of a run, without a memory of states: every run repeats the
// choices of the one before it up to a place, takes the next one there, and from then on the first.
#pragma once

#include <cstdint>
#include <vector>

#include "env/sim/world.h"

namespace faultpath::check {

/// What may be chosen at one point, the default first.
class Options {
 public:
  static constexpr unsigned kMost = 2 * sim::kMaxCpus;
  void add(unsigned cpu, bool inject) {
    choices_[count_++] = {static_cast<std::uint8_t>(cpu), inject};
  }
  /// Every CPU of a set.
  void add_all(std::uint32_t set, bool inject) {
    for (; set != 0; set &= set - 1) add(static_cast<unsigned>(__builtin_ctz(set)), inject);
  }
  unsigned count() const { return count_; }
  sim::Choice operator[](unsigned i) const { return choices_[i]; }
  friend bool operator==(const Options&, const Options&) = default;

 private:
  std::uint8_t count_ = 0;
  sim::Choice choices_[kMost] = {};
};

class ChoiceTree {
 public:
  void clear();
  /// Before each run.
  void begin_run() { depth_ = 0; }
  sim::Choice choose(const Options& options);
  /// Goes to the next branch; false when there is none left.
  bool advance();

 private:
  struct Point {
    Options options;
    std::uint8_t taken = 0;
  };
  std::vector<Point> points_;
  std::size_t depth_ = 0;  ///< points that the run has passed
};

}  // namespace faultpath::check
