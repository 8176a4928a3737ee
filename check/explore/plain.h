// Plain enumeration: what the reductions are compared with. For tests.
#pragma once

#include <limits>

#include "check/explore/choice_tree.h"
#include "check/explore/explorer.h"

namespace faultpath::check {

/// Every CPU at every point, within a number of preemptions. A preemption is a switch away from a
/// CPU that could go on and is at no polite point.
class PlainSearch final : public Explorer {
 public:
  static constexpr unsigned kUnbounded = std::numeric_limits<unsigned>::max();
  explicit PlainSearch(unsigned preemptions = kUnbounded) : preemptions_(preemptions) {}

  bool wants_every_point() const override { return true; }
  bool next() override;
  bool complete() const override { return complete_; }
  sim::Choice choose(const sim::Question& q) override;

 private:
  unsigned preemptions_;
  unsigned left_ = 0;  ///< preemptions that this run may still make
  bool complete_ = false;
  ChoiceTree tree_;
};

}  // namespace faultpath::check
