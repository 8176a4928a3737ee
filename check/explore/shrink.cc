#include "check/explore/shrink.h"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <unordered_set>
#include <utility>

#include "check/explore/replay.h"

namespace faultpath::check {

namespace {

/// Fewer switches are what a reader wants; then fewer handlers, then fewer steps to the failure. Of
/// schedules that are equal in these, the one that switches late: the order is strict, so that
/// shrinking ends.
class Cost {
 public:
  explicit Cost(const Schedule& s) : switches_(switches(s)), steps_(steps(s)) {
    std::uint64_t from = 0;
    for (const Segment& g : s.segments) {
      injections_ += g.inject ? 1u : 0u;
      earliness_ += steps_ - from;
      from += g.steps;
    }
  }
  auto operator<=>(const Cost&) const = default;

 private:
  unsigned switches_;
  unsigned injections_ = 0;
  std::uint64_t steps_;
  std::uint64_t earliness_ = 0;
};

class Shrinker {
 public:
  Shrinker(const StillFails& still_fails, unsigned tries)
      : still_fails_(still_fails), left_(tries) {}

  Schedule run(const Schedule& failing) {
    best_ = failing;
    Schedule executed;
    if (!fails(failing, &executed)) return failing;
    best_ = std::move(executed);
    // A schedule of few segments is cheap to go through again, so the coarse passes come first and
    // are repeated whenever a finer one has found something.
    while (drop_parts() || drop_injections() || join() || move_ends() || drop_and_move()) {
    }
    return best_;
  }

 private:
  using Segments = std::vector<Segment>;

  bool fails(const Schedule& candidate, Schedule* executed) {
    if (left_ == 0) return false;
    --left_;
    Replay replay(candidate);
    if (!still_fails_(replay, executed)) return false;
    executed->fingerprint = best_.fingerprint;
    return true;
  }

  /// True if it fails at less cost, and then it is the best one.
  bool accept(const Segments& segments) {
    Schedule candidate;
    candidate.fingerprint = best_.fingerprint;
    for (const Segment& s : segments) candidate.append(s.cpu, s.inject, s.steps);
    if (candidate == best_ || !tried_.insert(to_string(candidate)).second) return false;
    Schedule executed;
    if (!fails(candidate, &executed) || !(Cost(executed) < Cost(best_))) return false;
    best_ = std::move(executed);
    return true;
  }

  /// Leaves out runs of segments: half of them, a quarter, ... one. The last of them are left to
  /// the default order.
  bool drop_parts() {
    bool any = false;
    for (std::size_t size = best_.segments.size(); size > 0; size /= 2) {
      for (std::size_t at = 0; at < best_.segments.size() && left_ > 0;) {
        Segments some = best_.segments;
        const std::size_t end = std::min(some.size(), at + size);
        some.erase(some.begin() + static_cast<std::ptrdiff_t>(at),
                   some.begin() + static_cast<std::ptrdiff_t>(end));
        if (accept(some)) {
          any = true;
        } else {
          at += size;
        }
      }
    }
    return any;
  }

  bool drop_injections() {
    bool any = false;
    for (std::size_t i = 0; i < best_.segments.size(); ++i) {
      if (!best_.segments[i].inject) continue;
      Segments some = best_.segments;
      some[i].inject = false;
      any = accept(some) || any;
    }
    return any;
  }

  /// The next segment of the same CPU; the number of segments if there is none.
  std::size_t next_of(std::size_t i) const {
    const Segments& all = best_.segments;
    std::size_t j = i + 1;
    while (j < all.size() && all[j].cpu != all[i].cpu) ++j;
    return j;
  }

  /// Moves a segment past those between it and another of its CPU, either way.
  bool join() {
    bool any = false;
    for (std::size_t i = 0; i < best_.segments.size() && left_ > 0; ++i) {
      const std::size_t j = next_of(i);
      if (j >= best_.segments.size() || j == i + 1) continue;
      Segments later = best_.segments;
      std::rotate(later.begin() + static_cast<std::ptrdiff_t>(i),
                  later.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                  later.begin() + static_cast<std::ptrdiff_t>(j));
      Segments sooner = best_.segments;
      std::rotate(sooner.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                  sooner.begin() + static_cast<std::ptrdiff_t>(j),
                  sooner.begin() + static_cast<std::ptrdiff_t>(j) + 1);
      any = accept(later) || accept(sooner) || any;
    }
    return any;
  }

  /// `segments`, with the end of number i moved: `by` steps are taken from the next segment of its
  /// CPU, or given to it (below 0); where there is none, the default order gives and takes. False
  /// if there are not so many.
  bool move_end(Segments& segments, std::size_t i, std::int64_t by) const {
    std::size_t j = i + 1;
    while (j < segments.size() && segments[j].cpu != segments[i].cpu) ++j;
    const bool has_next = j < segments.size() && !segments[j].inject;
    if (by < 0 ? segments[i].steps < -by : has_next && segments[j].steps < by) return false;
    segments[i].steps = static_cast<std::uint32_t>(segments[i].steps + by);
    if (has_next) segments[j].steps = static_cast<std::uint32_t>(segments[j].steps - by);
    return true;
  }

  bool move_ends() {
    bool any = false;
    for (std::size_t i = 0; i < best_.segments.size(); ++i) {
      const std::size_t j = next_of(i);
      const std::int64_t most = std::max(best_.segments[i].steps,
                                         j < best_.segments.size() ? best_.segments[j].steps : 0u);
      for (std::int64_t by = most; by > 0 && left_ > 0; by /= 2) {
        for (const std::int64_t way : {by, -by}) {
          Segments some = best_.segments;
          if (i < some.size() && move_end(some, i, way)) any = accept(some) || any;
        }
      }
    }
    return any;
  }

  /// Where neither helps alone: leaves out a segment and moves the end of another a little.
  bool drop_and_move() {
    if (best_.segments.size() > 24) return false;
    for (std::size_t gone = 0; gone < best_.segments.size(); ++gone) {
      for (std::size_t i = 0; i + 1 < best_.segments.size(); ++i) {
        for (const std::int64_t by : {1, -1, 2, -2, 4, -4, 8, -8}) {
          if (left_ == 0) return false;
          Segments some = best_.segments;
          some.erase(some.begin() + static_cast<std::ptrdiff_t>(gone));
          if (move_end(some, i, by) && accept(some)) return true;
        }
      }
    }
    return false;
  }

  const StillFails& still_fails_;
  unsigned left_;
  Schedule best_;
  std::unordered_set<std::string> tried_;
};

}  // namespace

Schedule shrink(const Schedule& failing, const StillFails& still_fails, unsigned tries) {
  return Shrinker(still_fails, tries).run(failing);
}

}  // namespace faultpath::check
