// Two sets of metrics against each other: paired by name, nothing invented where one is missing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lab/stats/significance.h"
#include "lab/stats/summary.h"

namespace faultpath::lab {

enum class Direction { higher_is_better, lower_is_better, none };

enum class Verdict {
  same,          ///< means and medians are equal
  within_noise,  ///< they differ, but not by more than chance makes them
  better,
  worse,
  changed,       ///< differs beyond noise; the metric has no better and worse
  too_few_runs,  ///< fewer than 3 samples on a side, and not equal
  only_in_base,  ///< the head does not have this metric
  only_in_head,
  no_data,  ///< a side has the metric, but no sample of it
};

std::string_view name_of(Verdict verdict);

/// Fewest samples a side for a verdict at all, and for the rank test to have a say: below 4 on both
/// sides not even disjoint samples give p < 0.05.
inline constexpr int kFewestSamples = 3;
inline constexpr int kRankTestSamples = 4;
inline constexpr double kAlpha = 0.05;

struct Metric {
  std::string name;  ///< the whole key: parameters that make it another metric are part of it
  Direction direction = Direction::none;
  std::vector<double> samples;  ///< of the runs that have one
};

struct Comparison {
  std::string name;
  Direction direction = Direction::none;
  Summary base, head;
  std::optional<double> change;  ///< head's mean less base's; absent if a side has no sample
  std::optional<double> change_percent;  ///< of base's mean; absent where that is 0 and head's not
  bool lkp_differs = false;
  std::optional<RankTest> rank_test;  ///< from 4 samples a side on
  Verdict verdict = Verdict::no_data;
};

/// Compares one metric. A difference stands out if LKP's rule says so and, where both sides have 4
/// samples or more, p < 0.05. Samples that are not finite are left out.
Comparison compare_samples(std::string_view name, Direction direction, std::span<const double> base,
                           std::span<const double> head);

/// Compares whole lists by name: base's order, then what only head has. A name that stands twice in
/// one list is one metric with the samples of both.
std::vector<Comparison> compare_metrics(std::span<const Metric> base, std::span<const Metric> head);

/// Adds a metric to a list; samples of one that is there already are pooled with it.
void add_metric(std::vector<Metric>& metrics, Metric metric);

}  // namespace faultpath::lab
