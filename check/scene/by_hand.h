// Follows cues: a schedule that a person wrote down beside a planted bug.
#pragma once

#include "check/explore/replay.h"
#include "check/scene/scene.h"

namespace faultpath::check {

/// For one run. A cue whose CPU cannot go on is over; after the last one, the default order.
class ByHand final : public sim::Strategy {
 public:
  explicit ByHand(std::span<const Cue> cues) : cues_(cues) {}

  bool wants_every_point() const override { return true; }
  bool wants_forced() const override { return true; }
  sim::Choice choose(const sim::Question& q) override;
  /// Every cue's place was reached.
  bool followed() const {
    // A last cue "to its end" is not looked at again once its CPU has ended.
    return !missed_ &&
           (at_ == cues_.size() || (at_ + 1 == cues_.size() && cues_[at_].until.empty()));
  }

 private:
  std::span<const Cue> cues_;
  std::size_t at_ = 0;
  unsigned seen_ = 0;      ///< times that the cue's place has been met
  bool standing_ = false;  ///< at the place, and not yet past it
  bool missed_ = false;
};

}  // namespace faultpath::check
