#include "check/explore/choice_tree.h"

#include <cstdio>
#include <cstdlib>

namespace faultpath::check {

void ChoiceTree::clear() {
  points_.clear();
  depth_ = 0;
}

sim::Choice ChoiceTree::choose(const Options& options) {
  if (options.count() == 1) return options[0];
  if (depth_ == points_.size()) {
    points_.push_back({options, 0});
  } else if (points_[depth_].options != options) {
    // The whole search rests on it, so there is no going on. A scene has kept something outside the
    // arena.
    std::fputs("a run did not repeat its beginning\n", stderr);
    std::abort();
  }
  const Point& at = points_[depth_++];
  return at.options[at.taken];
}

bool ChoiceTree::advance() {
  // The run may have ended early, at a violation: what it did not reach is gone with it.
  points_.resize(depth_);
  while (!points_.empty()) {
    Point& last = points_.back();
    if (++last.taken < last.options.count()) return true;
    points_.pop_back();
  }
  return false;
}

}  // namespace faultpath::check
