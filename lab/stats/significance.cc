#include "lab/stats/significance.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

namespace faultpath::lab {
namespace {

struct Trimmed {
  double min, median, max;
};

Trimmed trim(std::span<const double> samples) {
  std::vector<double> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end());
  const auto cut = std::min<std::size_t>(3, sorted.size() / 32);
  return {sorted[cut], sorted[sorted.size() / 2], sorted[sorted.size() - 1 - cut]};
}

/// Share of the ways to choose `chosen` of the doubled ranks whose sum is `distance` or more away
/// from the mean. Doubled, so that midranks are whole numbers.
double exact_p(const std::vector<std::int64_t>& doubled_ranks, std::size_t chosen,
               std::int64_t doubled_distance) {
  std::int64_t total = 0;
  for (auto rank : doubled_ranks) total += rank;
  const auto sums = static_cast<std::size_t>(total) + 1;
  // ways[k * sums + s]: how many choices of k ranks have the sum s. Doubles hold them exactly up to
  // 2^53, which is more than 50 choose 25.
  std::vector<double> ways((chosen + 1) * sums, 0.0);
  ways[0] = 1;
  for (auto rank : doubled_ranks) {
    const auto r = static_cast<std::size_t>(rank);
    for (std::size_t k = chosen; k-- > 0;) {
      for (std::size_t s = 0; s + r < sums; ++s) ways[(k + 1) * sums + s + r] += ways[k * sums + s];
    }
  }
  // The mean of the doubled sum is chosen * total / N, so compare after multiplying by N.
  const auto n = static_cast<std::int64_t>(doubled_ranks.size());
  double far = 0;
  double all = 0;
  for (std::size_t s = 0; s < sums; ++s) {
    const double w = ways[chosen * sums + s];
    all += w;
    const auto off =
        std::llabs(n * static_cast<std::int64_t>(s) - static_cast<std::int64_t>(chosen) * total);
    if (off >= doubled_distance) far += w;
  }
  return std::min(1.0, far / all);
}

}  // namespace

bool lkp_differs(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty()) return false;
  const auto x = trim(a);
  const auto y = trim(b);
  return (x.min > y.median && x.median > y.max) || (y.min > x.median && y.median > x.max);
}

RankTest mann_whitney(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty()) return {};
  struct Item {
    double value;
    bool from_a;
  };
  std::vector<Item> items;
  items.reserve(a.size() + b.size());
  for (double x : a) items.push_back({x, true});
  for (double x : b) items.push_back({x, false});
  std::sort(items.begin(), items.end(),
            [](const Item& x, const Item& y) { return x.value < y.value; });

  const auto n = items.size();
  std::vector<std::int64_t> doubled_ranks(n);
  std::int64_t doubled_sum_a = 0;
  double ties = 0;  // sum of t^3 - t over the groups of equal values
  for (std::size_t i = 0; i < n;) {
    auto end = i + 1;
    while (end < n && items[end].value == items[i].value) ++end;
    const auto t = static_cast<double>(end - i);
    ties += t * t * t - t;
    // Ranks i+1 .. end share their mean, (i + 1 + end) / 2.
    for (auto k = i; k < end; ++k) {
      doubled_ranks[k] = static_cast<std::int64_t>(i + 1 + end);
      if (items[k].from_a) doubled_sum_a += doubled_ranks[k];
    }
    i = end;
  }

  const auto total = static_cast<std::int64_t>(n * (n + 1));  // of the doubled ranks
  const auto distance = std::llabs(static_cast<std::int64_t>(n) * doubled_sum_a -
                                   static_cast<std::int64_t>(a.size()) * total);
  if (n <= kExactSamples) return {exact_p(doubled_ranks, a.size(), distance), true};

  const auto na = static_cast<double>(a.size());
  const auto nb = static_cast<double>(b.size());
  const auto nn = static_cast<double>(n);
  const double variance = na * nb / 12 * (nn + 1 - ties / (nn * (nn - 1)));
  if (variance <= 0) return {1, false};
  const double off = std::max(0.0, static_cast<double>(distance) / (2 * nn) - 0.5);
  return {std::erfc(off / std::sqrt(variance) / std::sqrt(2.0)), false};
}

}  // namespace faultpath::lab
