#include "lab/stats/compare.h"

#include <algorithm>
#include <cmath>

namespace faultpath::lab {
namespace {

std::vector<double> finite(std::span<const double> samples) {
  std::vector<double> kept;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(kept),
               [](double x) { return std::isfinite(x); });
  return kept;
}

const Metric* find(std::span<const Metric> metrics, std::string_view name) {
  for (const auto& m : metrics) {
    if (m.name == name) return &m;
  }
  return nullptr;
}

Verdict judge(const Comparison& c) {
  if (c.base.n == 0 || c.head.n == 0) return Verdict::no_data;
  if (c.base.mean == c.head.mean && c.base.median == c.head.median) return Verdict::same;
  if (c.base.n < kFewestSamples || c.head.n < kFewestSamples) return Verdict::too_few_runs;
  if (!c.lkp_differs) return Verdict::within_noise;
  if (c.rank_test && c.rank_test->p >= kAlpha) return Verdict::within_noise;
  if (c.direction == Direction::none) return Verdict::changed;
  const bool up = c.head.median > c.base.median;
  return up == (c.direction == Direction::higher_is_better) ? Verdict::better : Verdict::worse;
}

}  // namespace

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::same: return "same";
    case Verdict::within_noise: return "within noise";
    case Verdict::better: return "better";
    case Verdict::worse: return "worse";
    case Verdict::changed: return "changed";
    case Verdict::too_few_runs: return "too few runs";
    case Verdict::only_in_base: return "only in base";
    case Verdict::only_in_head: return "only in head";
    case Verdict::no_data: return "no data";
  }
  return "?";
}

Comparison compare_samples(std::string_view name, Direction direction, std::span<const double> base,
                           std::span<const double> head) {
  const auto a = finite(base);
  const auto b = finite(head);
  Comparison c;
  c.name = name;
  c.direction = direction;
  c.base = summarize(a);
  c.head = summarize(b);
  if (!a.empty() && !b.empty()) {
    c.change = c.head.mean - c.base.mean;
    if (c.base.mean != 0) {
      c.change_percent = 100 * *c.change / std::fabs(c.base.mean);
    } else if (c.head.mean == 0) {
      c.change_percent = 0;
    }
    c.lkp_differs = lkp_differs(a, b);
    if (a.size() >= kRankTestSamples && b.size() >= kRankTestSamples) {
      c.rank_test = mann_whitney(a, b);
    }
  }
  c.verdict = judge(c);
  return c;
}

void add_metric(std::vector<Metric>& metrics, Metric metric) {
  for (auto& m : metrics) {
    if (m.name == metric.name) {
      m.samples.insert(m.samples.end(), metric.samples.begin(), metric.samples.end());
      return;
    }
  }
  metrics.push_back(std::move(metric));
}

std::vector<Comparison> compare_metrics(std::span<const Metric> base,
                                        std::span<const Metric> head) {
  std::vector<Metric> left;
  std::vector<Metric> right;
  for (const auto& m : base) add_metric(left, m);
  for (const auto& m : head) add_metric(right, m);
  std::vector<Comparison> rows;
  for (const auto& m : left) {
    const auto* other = find(right, m.name);
    rows.push_back(compare_samples(
        m.name, m.direction, m.samples,
        other ? std::span<const double>(other->samples) : std::span<const double>()));
    if (!other) rows.back().verdict = Verdict::only_in_base;
  }
  for (const auto& m : right) {
    if (find(left, m.name)) continue;
    rows.push_back(compare_samples(m.name, m.direction, {}, m.samples));
    rows.back().verdict = Verdict::only_in_head;
  }
  return rows;
}

}  // namespace faultpath::lab
