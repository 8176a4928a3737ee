// Whether two lists of samples differ by more than their own scatter.
#pragma once

#include <span>

namespace faultpath::lab {

/// The rule of LKP's comparison: one side's least sample beats the other's median, and that side's
/// median beats the other's greatest sample. "Median" is element n/2 of the sorted samples. From 32
/// samples a side on, n/32 (at most 3) are first cut from each end of it. False if a side is empty.
bool lkp_differs(std::span<const double> a, std::span<const double> b);

struct RankTest {
  double p = 1;        ///< two-sided; 1 if a side is empty
  bool exact = false;  ///< by the permutation distribution, else by the normal approximation
};

/// Wilcoxon, Mann and Whitney's rank sum test. Up to `kExactSamples` samples on both sides together
/// the p-value is exact, ties or none: the share of all ways to deal the pooled (mid)ranks to the
/// two sides whose rank sum is at least as far from its mean. Beyond that the normal approximation,
/// corrected for ties and continuity. The exact value takes a few million additions at most.
RankTest mann_whitney(std::span<const double> a, std::span<const double> b);

inline constexpr int kExactSamples = 50;

}  // namespace faultpath::lab
