// Follows a schedule.
#pragma once

#include <utility>

#include "check/explore/schedule.h"

namespace faultpath::check {

/// Who goes on where nothing else is said: the current CPU, or else the lowest that can.
inline unsigned default_cpu(const sim::Question& q) {
  if (q.current != sim::kNoCpu && (q.enabled >> q.current & 1) != 0) return q.current;
  return static_cast<unsigned>(__builtin_ctz(q.enabled));
}

/// For one run (or more, with rewind() between them).
///
/// It is asked before every step, so that a segment's steps are counted whether or not there was a
/// choice. A segment whose CPU cannot go on ends there, and the next one begins; after the last one
/// the run goes on in the default order. An exact replay never comes to either.
class Replay final : public sim::Strategy {
 public:
  explicit Replay(Schedule schedule) : schedule_(std::move(schedule)) {}

  bool wants_every_point() const override { return true; }
  bool wants_forced() const override { return true; }
  sim::Choice choose(const sim::Question& q) override;

  void rewind();
  /// A segment could not be followed to its end.
  bool diverged() const { return diverged_; }
  /// Every segment has been gone through.
  bool used_up() const { return at_ == schedule_.segments.size(); }

 private:
  Schedule schedule_;
  std::size_t at_ = 0;
  std::uint32_t done_ = 0;  ///< steps of the segment at_
  bool begun_ = false;      ///< the handler of the segment at_
  bool diverged_ = false;
};

}  // namespace faultpath::check
