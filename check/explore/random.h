// Random schedules, for scenes that are too large to be searched.
#pragma once

#include "check/explore/explorer.h"
#include "check/explore/rng.h"

namespace faultpath::check {

/// Switches at a visible point with a probability that is drawn for each run; at a polite point,
/// and where the current CPU cannot go on, anybody enabled is as likely.
///
/// Run i of a seed is a function of the two, and of which places are known to be shared.
class RandomWalk final : public Explorer {
 public:
  explicit RandomWalk(std::uint64_t seed) : seed_(seed), rng_(seed) {}

  bool next() override;
  /// Makes `run` the next one.
  void begin(std::uint64_t run);
  sim::Choice choose(const sim::Question& q) override;

 private:
  std::uint64_t seed_;
  std::uint64_t run_ = 0;
  Rng rng_;
  unsigned switch_bits_ = 1;  ///< switches once in 2^this visible points
  unsigned inject_bits_ = 1;  ///< likewise, a nested handler where one may run
};

/// Probabilistic concurrency testing (Burckhardt, Kothari, Musuvathi, Nagarakatti 2010). CPUs get
/// random priorities, and the highest that is enabled runs. At depth - 1 visible points of a run,
/// drawn beforehand, the current CPU's priority falls below the first ones. A bug that needs
/// `depth` orders to be right, among n CPUs and k points, is found by a run with a probability of
/// at least 1 / (n k^(depth-1)).
///
/// A CPU that pauses or waits falls below all others, or else it would starve the one it waits for.
///
/// k is the largest number of visible points of any run so far, so it adapts. Run i of a seed is a
/// function of the two, of k, and of which places are known to be shared; what is to be replayed is
/// a Schedule.
class Pct final : public Explorer {
 public:
  static constexpr unsigned kMostDepth = 8;
  Pct(std::uint64_t seed, unsigned depth, std::uint64_t expected_steps);

  bool next() override;
  /// Makes `run` the next one.
  void begin(std::uint64_t run);
  sim::Choice choose(const sim::Question& q) override;

  std::uint64_t expected_points() const { return expected_visible_; }

 private:
  unsigned highest(std::uint32_t set) const;

  std::uint64_t seed_;
  unsigned changes_;  ///< depth - 1
  std::uint64_t run_ = 0;
  Rng rng_;
  std::uint64_t expected_visible_;
  std::uint64_t expected_asked_;
  std::uint64_t visible_ = 0;    ///< visible points of this run
  std::uint64_t asked_ = 0;      ///< questions of this run
  std::uint64_t inject_at_ = 0;  ///< the question at which a handler is to start
  int floor_ = 0;                ///< the lowest priority so far
  int priority_[sim::kMaxCpus] = {};
  std::uint64_t change_at_[kMostDepth] = {};
};

}  // namespace faultpath::check
