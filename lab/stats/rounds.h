// A time that is a difference: what is timed and what is to be subtracted take turns in short
// blocks, so that drift hits both alike.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/result.h"

namespace faultpath::lab {

/// Ticks of one round; each part is a block of the same number of operations.
struct Round {
  std::uint64_t prot = 0;    ///< refused accesses, each with its handler
  std::uint64_t caught = 0;  ///< the handler without the access
  std::uint64_t plain = 0;   ///< what `caught` has beside the handler; 0 where that is nothing
};

/// The rounds of one run, at most kMost: when it is full every other one is dropped, and from then
/// on only every second, fourth, ... round is taken. Allocates nothing after construction.
class Rounds {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 14;
  Rounds();
  void add(const Round& round);
  const std::vector<Round>& kept() const { return kept_; }

 private:
  std::vector<Round> kept_;
  std::uint64_t seen_ = 0;
  std::uint64_t stride_ = 1;
};

/// Ticks an operation.
struct PartTimes {
  double prot = 0;
  double caught = 0;
  double plain = 0;
  std::uint64_t rounds = 0;  ///< 0: nothing was timed
};

/// Means over the middle half of the rounds by their length; `block` operations a part. What was
/// interrupted is among the long ones. All rounds where there are fewer than four.
PartTimes middle_half(std::vector<Round> rounds, std::uint64_t block);

/// The catch is `caught` less `plain`, the access `prot` less the catch; neither below 0.
AccessTime subtract(const PartTimes& parts, double ns_per_tick);

}  // namespace faultpath::lab
