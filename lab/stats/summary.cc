#include "lab/stats/summary.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace faultpath::lab {

Summary summarize(std::span<const double> samples) {
  std::vector<double> sorted;
  sorted.reserve(samples.size());
  for (double x : samples) {
    if (std::isfinite(x)) sorted.push_back(x);
  }
  std::sort(sorted.begin(), sorted.end());
  Summary s;
  s.n = sorted.size();
  if (s.n == 0) return s;
  s.min = sorted.front();
  s.max = sorted.back();
  s.median = s.n % 2 == 1 ? sorted[s.n / 2] : (sorted[s.n / 2 - 1] + sorted[s.n / 2]) / 2;
  double sum = 0;
  for (double x : sorted) sum += x;
  // Equal samples have exactly their value as mean, whatever the sum was rounded to.
  s.mean = s.min == s.max ? s.min : sum / static_cast<double>(s.n);
  if (s.n < 2) return s;
  double squares = 0;
  for (double x : sorted) squares += (x - s.mean) * (x - s.mean);
  s.stddev = std::sqrt(squares / static_cast<double>(s.n));
  if (s.mean != 0) s.stddev_percent = 100 * *s.stddev / std::fabs(s.mean);
  return s;
}

}  // namespace faultpath::lab
