// Follows a schedule, and notes what each step left at its place.
#pragma once

#include <cstring>
#include <utility>
#include <vector>

#include "check/explore/replay.h"

namespace faultpath::check {

/// A trace has the old value of a read-modify-write. The new one is in memory when the next step is
/// asked for: what runs between two questions is the rest of one step.
class Witness final : public sim::Strategy {
 public:
  explicit Witness(Schedule schedule) : replay_(std::move(schedule)) {}

  bool wants_every_point() const override { return true; }
  bool wants_forced() const override { return true; }
  sim::Choice choose(const sim::Question& q) override {
    look(q.step);
    return replay_.choose(q);
  }

  /// After the run: the eight bytes at each step's place right after the step.
  std::vector<std::uint64_t> left() {
    look(sim::World::get().steps());
    return std::move(left_);
  }
  bool diverged() const { return replay_.diverged(); }

 private:
  void look(std::uint64_t steps) {
    const sim::World& world = sim::World::get();
    // Between two questions there is one step, but for the first question.
    while (left_.size() < steps) {
      const sim::Place place = world.trace()[left_.size()].place;
      std::uint64_t v = 0;
      if (place != sim::kNoPlace) std::memcpy(&v, world.address_of(place), sizeof v);
      left_.push_back(v);
    }
  }

  Replay replay_;
  std::vector<std::uint64_t> left_;
};

}  // namespace faultpath::check
