#include "check/explore/replay.h"

namespace faultpath::check {

sim::Choice Replay::choose(const sim::Question& q) {
  while (!used_up()) {
    const Segment s = schedule_.segments[at_];
    const std::uint32_t bit = 1u << s.cpu;
    // To begin a handler is no step: the next question is for its first operation.
    if (s.inject && !begun_) {
      begun_ = true;
      if ((q.injectable & bit) != 0) return {s.cpu, true};
      diverged_ = true;
    }
    const bool can = (q.enabled & bit) != 0;
    if (s.steps != 0 && !can) diverged_ = true;
    if (s.steps == 0 || !can || ++done_ == s.steps) {
      ++at_;
      done_ = 0;
      begun_ = false;
    }
    if (s.steps != 0 && can) return {s.cpu, false};
  }
  return {static_cast<std::uint8_t>(default_cpu(q)), false};
}

void Replay::rewind() {
  at_ = 0;
  done_ = 0;
  begun_ = false;
  diverged_ = false;
}

}  // namespace faultpath::check
