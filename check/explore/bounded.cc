#include "check/explore/bounded.h"

namespace faultpath::check {

void BoundedSearch::start_pass() {
  tree_.clear();
  cut_ = false;
  runs_of_pass_ = 0;
  known_ = sim::World::get().shared_places();
}

bool BoundedSearch::next() {
  if (complete_) return false;
  if (runs_ == 0 || sim::World::get().shared_places() != known_) {
    start_pass();
  } else if (!tree_.advance()) {
    if (!cut_ || level_ == most_) {
      complete_ = true;
      return false;
    }
    ++level_;
    start_pass();
  }
  ++runs_;
  ++runs_of_pass_;
  left_ = level_;
  tree_.begin_run();
  return true;
}

sim::Choice BoundedSearch::choose(const sim::Question& q) {
  const std::uint32_t here = q.current == sim::kNoCpu ? 0 : 1u << q.current;
  const bool stays = (q.enabled & here) != 0;
  const bool costs = stays && !q.polite;
  std::uint32_t able = ~0u;
  if (costs) {
    const sim::OpKind next = q.pending[q.current].kind;
    // Fences and starts are visible only in that they are no accesses of a place.
    const bool conflicts = q.visible && next != sim::OpKind::fence && next != sim::OpKind::start;
    if (!conflicts || left_ == 0) able = here;
    if (conflicts && left_ == 0 && ((q.enabled | q.injectable) & ~here) != 0) cut_ = true;
  }
  Options options;
  options.add_all(q.enabled & able & here, false);
  options.add_all(q.enabled & able & ~here, false);
  options.add_all(q.injectable & able, true);
  const sim::Choice choice = tree_.choose(options);
  if (costs && choice.cpu != q.current) --left_;
  return choice;
}

}  // namespace faultpath::check
