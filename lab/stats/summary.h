// What a list of samples says, in numbers.
#pragma once

#include <cstddef>
#include <optional>
#include <span>

namespace faultpath::lab {

struct Summary {
  std::size_t n = 0;
  double mean = 0;
  double median = 0;  ///< of an even number of samples the mean of the middle two
  double min = 0;
  double max = 0;
  /// Population standard deviation (divided by n). Absent for fewer than two samples.
  std::optional<double> stddev;
  /// `stddev` in percent of the mean. Absent with it, and where the mean is 0.
  std::optional<double> stddev_percent;
};

/// Samples that are not finite are left out. Pure.
Summary summarize(std::span<const double> samples);

}  // namespace faultpath::lab
