#include "check/explore/plain.h"

namespace faultpath::check {

bool PlainSearch::next() {
  if (complete_) return false;
  if (runs_ > 0 && !tree_.advance()) {
    complete_ = true;
    return false;
  }
  ++runs_;
  left_ = preemptions_;
  tree_.begin_run();
  return true;
}

sim::Choice PlainSearch::choose(const sim::Question& q) {
  const std::uint32_t here = q.current == sim::kNoCpu ? 0 : 1u << q.current;
  const bool costs = (q.enabled & here) != 0 && !q.polite;
  const std::uint32_t able = costs && left_ == 0 ? here : ~0u;
  Options options;
  options.add_all(q.enabled & able & here, false);
  options.add_all(q.enabled & able & ~here, false);
  options.add_all(q.injectable & able, true);
  const sim::Choice choice = tree_.choose(options);
  if (costs && choice.cpu != q.current) --left_;
  return choice;
}

}  // namespace faultpath::check
