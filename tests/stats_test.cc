// no-64k: statistics of the laboratory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "lab/report/json.h"
#include "lab/report/metrics.h"
#include "lab/stats/compare.h"
#include "tests/fixtures/synthetic_results.h"

namespace faultpath::lab {
namespace {

using Samples = std::vector<double>;

Comparison compare(const Samples& base, const Samples& head,
                   Direction direction = Direction::higher_is_better) {
  return compare_samples("m", direction, base, head);
}

nlohmann::json fixture(const std::string& name) {
  std::ifstream in(std::filesystem::path(__FILE__).parent_path() / "fixtures" / name);
  EXPECT_TRUE(in) << name;
  return nlohmann::json::parse(in);
}

TEST(Summary, KnownValues) {
  const auto s = summarize(Samples{2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(s.n, 8u);
  EXPECT_DOUBLE_EQ(s.mean, 5);
  EXPECT_DOUBLE_EQ(s.median, 4.5);
  EXPECT_DOUBLE_EQ(*s.stddev, 2);  // divided by n
  EXPECT_DOUBLE_EQ(*s.stddev_percent, 40);
  EXPECT_EQ(s.min, 2);
  EXPECT_EQ(s.max, 9);
}

TEST(Summary, NothingAndNotFinite) {
  EXPECT_EQ(summarize({}).n, 0u);
  const auto s = summarize(Samples{NAN, 3, std::numeric_limits<double>::infinity()});
  EXPECT_EQ(s.n, 1u);
  EXPECT_EQ(s.mean, 3);
  EXPECT_FALSE(s.stddev);
}

TEST(Summary, EqualSamplesDoNotDeviate) {
  const auto s = summarize(Samples{0.1, 0.1, 0.1, 0.1, 0.1, 0.1});
  EXPECT_EQ(s.mean, 0.1);
  EXPECT_EQ(*s.stddev, 0);
}

TEST(Summary, DeviationOfZeroMeanHasNoPercentage) {
  EXPECT_FALSE(summarize(Samples{-1, 1}).stddev_percent);
  EXPECT_EQ(*summarize(Samples{-1, 1}).stddev, 1);
}

// R: wilcox.test(x, y), the permeability example of its manual (one-sided p 0.1272).
TEST(MannWhitney, ManualExample) {
  const Samples x{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46};
  const Samples y{1.15, 0.88, 0.90, 0.74, 1.21};
  const auto t = mann_whitney(x, y);
  EXPECT_TRUE(t.exact);
  EXPECT_NEAR(t.p, 0.2544, 0.00005);
  EXPECT_DOUBLE_EQ(mann_whitney(y, x).p, t.p);
}

TEST(MannWhitney, DisjointSidesAreTwoOfAllDeals) {
  EXPECT_DOUBLE_EQ(mann_whitney(Samples{1, 2, 3}, Samples{4, 5, 6}).p, 2.0 / 20);
  EXPECT_DOUBLE_EQ(mann_whitney(Samples{4, 3, 2, 1}, Samples{8, 6, 7, 5}).p, 2.0 / 70);
  EXPECT_DOUBLE_EQ(
      mann_whitney(Samples{1, 2, 3, 4, 5, 6, 7, 8, 9}, Samples{10, 11, 12, 13, 14, 15, 16, 17, 18})
          .p,
      2.0 / 48620);
}

// Midranks 1.5 1.5 3.5 3.5 5.5 5.5: of 20 deals 2 have the least sum, 6.5, and 2 the greatest.
TEST(MannWhitney, TiesAreExactToo) {
  const auto t = mann_whitney(Samples{1, 1, 2}, Samples{2, 3, 3});
  EXPECT_TRUE(t.exact);
  EXPECT_DOUBLE_EQ(t.p, 4.0 / 20);
}

TEST(MannWhitney, EqualSidesAndEmptyOnes) {
  EXPECT_EQ(mann_whitney(Samples{5, 5, 5, 5}, Samples{5, 5, 5, 5}).p, 1);
  EXPECT_EQ(mann_whitney({}, Samples{1}).p, 1);
  EXPECT_EQ(mann_whitney(Samples(60, 1.0), Samples(60, 1.0)).p, 1);
}

// Against the whole enumeration of deals, ties included.
TEST(MannWhitney, ExactIsTheEnumeration) {
  const Samples pool{1, 2, 2, 3, 4, 4, 4, 5, 6, 9};
  for (std::size_t na : {3u, 4u, 5u}) {
    const Samples a(pool.end() - static_cast<std::ptrdiff_t>(na), pool.end());
    const Samples b(pool.begin(), pool.end() - static_cast<std::ptrdiff_t>(na));
    const auto midrank = [&](double x) {
      double below = 0, equal = 0;
      for (double y : pool) {
        below += y < x;
        equal += y == x;
      }
      return below + (equal + 1) / 2;
    };
    const double mean = static_cast<double>(na) * (static_cast<double>(pool.size()) + 1) / 2;
    double seen = 0;
    for (double x : a) seen += midrank(x);
    int far = 0, all = 0;
    for (unsigned bits = 0; bits < 1u << pool.size(); ++bits) {
      if (static_cast<std::size_t>(__builtin_popcount(bits)) != na) continue;
      double sum = 0;
      for (std::size_t i = 0; i < pool.size(); ++i) {
        if (bits >> i & 1) sum += midrank(pool[i]);
      }
      ++all;
      far += std::fabs(sum - mean) >= std::fabs(seen - mean) - 1e-9;
    }
    EXPECT_DOUBLE_EQ(mann_whitney(a, b).p, static_cast<double>(far) / all) << na;
  }
}

// One step over the limit of the exact way the approximation must be close to it.
TEST(MannWhitney, ApproximationMeetsTheExactValue) {
  Samples a, b;
  for (int i = 0; i < 25; ++i) {
    a.push_back(i * 2.0);
    b.push_back(i * 2.0 + 13);
  }
  const auto exact = mann_whitney(a, b);
  a.push_back(1000);  // one more on each side, which change little
  b.push_back(-1000);
  const auto normal = mann_whitney(a, b);
  EXPECT_TRUE(exact.exact);
  EXPECT_FALSE(normal.exact);
  EXPECT_LT(exact.p, 0.05);
  EXPECT_NEAR(normal.p, 0.0416, 0.02);
}

TEST(LkpRule, NeedsExtremesBeyondMedians) {
  EXPECT_TRUE(lkp_differs(Samples{1, 2, 3}, Samples{4, 5, 6}));
  EXPECT_TRUE(lkp_differs(Samples{4, 5, 6}, Samples{1, 2, 3}));
  EXPECT_TRUE(lkp_differs(Samples{1, 2, 4}, Samples{3, 5, 6}));   // overlapping, but only so far
  EXPECT_FALSE(lkp_differs(Samples{1, 2, 5}, Samples{3, 5, 6}));  // median not beyond the greatest
  EXPECT_FALSE(lkp_differs(Samples{1, 3, 4}, Samples{3, 5, 6}));  // least not beyond the median
  EXPECT_FALSE(lkp_differs(Samples{1, 1, 1}, Samples{1, 1, 1}));
  EXPECT_FALSE(lkp_differs({}, Samples{1, 1, 1}));
  // An even number: the element n/2, the upper of the two in the middle.
  EXPECT_FALSE(lkp_differs(Samples{1, 5}, Samples{4, 6}));
  EXPECT_TRUE(lkp_differs(Samples{1, 3}, Samples{4, 6}));
}

TEST(LkpRule, CutsOutliersFromThirtyTwoSamplesOn) {
  Samples a(31, 1.0), b(31, 2.0);
  b[0] = 0.5;
  EXPECT_FALSE(lkp_differs(a, b));
  a.push_back(1.0);
  b.push_back(2.0);
  EXPECT_TRUE(lkp_differs(a, b));
}

// Published samples: 10 runs a cell, all four regressions significant (LKP's own verdict).
TEST(LkpRule, SpeculativeFaultsVersion12) {
  const auto data = fixture("spf_v12_samples.json");
  ASSERT_EQ(data.at("cells").size(), 4u);
  for (const auto& cell : data.at("cells")) {
    const auto base = cell.at("base_samples").get<Samples>();
    const auto head = cell.at("head_samples").get<Samples>();
    ASSERT_EQ(base.size(), 10u);
    const auto c = compare(base, head);
    EXPECT_TRUE(c.lkp_differs) << cell;
    ASSERT_TRUE(c.rank_test);
    EXPECT_TRUE(c.rank_test->exact);
    EXPECT_LT(c.rank_test->p, 0.001);
    EXPECT_EQ(c.verdict, Verdict::worse);
    EXPECT_NEAR(*c.change_percent, cell.at("published_percent").get<double>(), 0.15);
    // Every other run of one side against the rest of it is noise.
    Samples even, odd;
    for (std::size_t i = 0; i < base.size(); ++i) (i % 2 == 0 ? even : odd).push_back(base[i]);
    EXPECT_EQ(compare(even, odd).verdict, Verdict::within_noise);
  }
}

TEST(Verdicts, NeedRuleAndRankTest) {
  // Three a side: the rule alone.
  EXPECT_EQ(compare({1, 2, 3}, {4, 5, 6}).verdict, Verdict::better);
  EXPECT_FALSE(compare({1, 2, 3}, {4, 5, 6}).rank_test);
  EXPECT_EQ(compare({1, 2, 3}, {4, 5, 6}, Direction::lower_is_better).verdict, Verdict::worse);
  EXPECT_EQ(compare({1, 2, 3}, {4, 5, 6}, Direction::none).verdict, Verdict::changed);
  // From four a side on also p: here the rule holds with p = 4/70.
  const auto c = compare({1, 2, 3, 5}, {4, 6, 7, 8});
  EXPECT_TRUE(c.lkp_differs);
  ASSERT_TRUE(c.rank_test);
  EXPECT_NEAR(c.rank_test->p, 4.0 / 70, 1e-12);
  EXPECT_EQ(c.verdict, Verdict::within_noise);
  EXPECT_EQ(compare({1, 2, 3, 4}, {5, 6, 7, 8}).verdict, Verdict::better);
}

// Zero as base: never NaN, never a percentage with a hundred digits.
TEST(ZeroBase, HasNoPercentage) {
  auto c = compare({0, 0, 0}, {0, 0, 0});
  EXPECT_EQ(*c.change, 0);
  EXPECT_EQ(*c.change_percent, 0);
  EXPECT_EQ(c.verdict, Verdict::same);

  c = compare({0, 0, 0}, {5, 5, 5}, Direction::none);
  EXPECT_FALSE(c.change_percent);
  EXPECT_EQ(*c.change, 5);
  EXPECT_EQ(c.verdict, Verdict::changed);
  EXPECT_EQ(compare({0, 0, 0}, {5, 5, 5}).verdict, Verdict::better);

  c = compare({5, 5, 5}, {0, 0, 0}, Direction::none);
  EXPECT_DOUBLE_EQ(*c.change_percent, -100);
  EXPECT_EQ(c.verdict, Verdict::changed);

  c = compare({0.0, 0, -0.0}, {1e-9});
  EXPECT_FALSE(c.change_percent);
  EXPECT_DOUBLE_EQ(*c.change, 1e-9);
  EXPECT_NE(c.verdict, Verdict::same);
}

TEST(ZeroBase, JsonSaysNull) {
  ResultSet r;
  r.base = "mmap-lock";
  r.heads = {"spf"};
  r.cells = {testing::make_cell("w", "mmap-lock", Mode::threads, 1, {0, 0, 0}),
             testing::make_cell("w", "spf", Mode::threads, 1, {5, 5, 5})};
  const auto text = results_json(r, true);
  EXPECT_EQ(text.find("NaN"), std::string::npos);
  EXPECT_EQ(text.find("nfinity"), std::string::npos);
  const auto row = nlohmann::json::parse(text).at("comparisons").at(0);
  EXPECT_EQ(row.at("metric"), "w.per_thread_ops");
  EXPECT_TRUE(row.at("change_percent").is_null());
  EXPECT_EQ(row.at("change"), 5);
  EXPECT_EQ(row.at("verdict"), "better");
}

TEST(FewSamples, AreNotADifference) {
  auto c = compare({100}, {100});
  EXPECT_EQ(*c.change_percent, 0);
  EXPECT_FALSE(c.base.stddev);
  EXPECT_FALSE(c.head.stddev_percent);
  EXPECT_EQ(c.verdict, Verdict::same);

  c = compare({100}, {110});
  EXPECT_DOUBLE_EQ(*c.change_percent, 10);
  EXPECT_EQ(c.verdict, Verdict::too_few_runs);

  c = compare({100, 100, 100}, {100, 100, 100});
  EXPECT_EQ(*c.change_percent, 0);
  EXPECT_EQ(*c.base.stddev, 0);
  EXPECT_EQ(c.verdict, Verdict::same);

  c = compare({100, 102, 98}, {110, 112, 108});
  EXPECT_DOUBLE_EQ(*c.change_percent, 10);
  EXPECT_NEAR(*c.base.stddev_percent, 1.633, 0.001);  // divided by n
  EXPECT_NEAR(*c.head.stddev_percent, 1.485, 0.001);
  EXPECT_EQ(c.verdict, Verdict::better);

  c = compare({100, 102, 98}, {100, 102, 98});
  EXPECT_EQ(*c.change_percent, 0);
  EXPECT_EQ(c.verdict, Verdict::same);
}

const Comparison& row(const std::vector<Comparison>& rows, std::string_view name) {
  static const Comparison none;
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const auto& c) { return c.name == name; });
  EXPECT_NE(found, rows.end()) << name;
  return found == rows.end() ? none : *found;
}

TEST(Missing, MetricsAreNotZeros) {
  const auto up = Direction::higher_is_better;
  const std::vector<Metric> base{{"a", up, {1, 1, 1}}, {"b", up, {10, 20, 30}}};
  const std::vector<Metric> head{{"b", up, {10, 30}}, {"c", up, {7, 7, 7}}};
  const auto rows = compare_metrics(base, head);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(row(rows, "a").verdict, Verdict::only_in_base);
  EXPECT_FALSE(row(rows, "a").change);
  EXPECT_FALSE(row(rows, "a").change_percent);
  EXPECT_EQ(row(rows, "c").verdict, Verdict::only_in_head);
  const auto& b = row(rows, "b");
  EXPECT_EQ(b.base.n, 3u);
  EXPECT_EQ(b.head.n, 2u);
  EXPECT_EQ(b.base.mean, 20);
  EXPECT_EQ(b.head.mean, 20);
  EXPECT_EQ(*b.change_percent, 0);
}

TEST(Missing, SamplesOfOneRunAreLeftOut) {
  auto cell = testing::make_cell("w", "spf", Mode::threads, 1, {10, 20, 30});
  cell.samples[1].task_ops.clear();
  cell.samples[1].fault_latency = {};
  const auto metrics = metrics_of(cell);
  ASSERT_EQ(metrics.size(), 4u);
  EXPECT_EQ(metrics[0].samples, (Samples{10, 30}));
  EXPECT_EQ(metrics[2].samples.size(), 2u);
}

TEST(Missing, NoDataFailsTheGate) {
  ResultSet r;
  r.base = "mmap-lock";
  r.heads = {"spf", "host"};
  r.cells = {testing::make_cell("w", "mmap-lock", Mode::threads, 1, {10, 10, 10}),
             testing::make_cell("w", "spf", Mode::threads, 1, {})};
  const auto rows = compare_results(r);
  const auto gate = regression_gate(rows, 5);
  EXPECT_TRUE(gate.regressions.empty());
  EXPECT_EQ(gate.missing,
            (std::vector<std::string>{"w under spf, threads, 1 task: no data",
                                      "w under host, threads, 1 task: only in base"}));
}

TEST(Gate, LooksAtOperationsAlone) {
  ResultSet r;
  r.base = "mmap-lock";
  r.heads = {"spf"};
  r.cells = {testing::make_cell("w", "mmap-lock", Mode::threads, 2, {100, 101, 102, 103}),
             testing::make_cell("w", "spf", Mode::threads, 2, {90, 91, 92, 93})};
  const auto rows = compare_results(r);
  EXPECT_EQ(regression_gate(rows, 5).regressions,
            (std::vector<std::string>{"w under spf, threads, 2 tasks: -9.9%"}));
  EXPECT_TRUE(regression_gate(rows, 10).regressions.empty());
  EXPECT_TRUE(regression_gate(rows, 5).missing.empty());
}

TEST(Pairing, IsByNameNotPosition) {
  const auto up = Direction::higher_is_better;
  const std::vector<Metric> base{{"x", up, {1}}, {"y", up, {10}}, {"z", up, {100}}};
  const std::vector<Metric> head{{"z", up, {100}}, {"x", up, {1}}, {"w", up, {5}}, {"y", up, {10}}};
  const auto rows = compare_metrics(base, head);
  ASSERT_EQ(rows.size(), 4u);
  for (const char* name : {"x", "y", "z"}) {
    EXPECT_EQ(*row(rows, name).change_percent, 0) << name;
    EXPECT_EQ(row(rows, name).verdict, Verdict::same) << name;
  }
  EXPECT_EQ(row(rows, "w").verdict, Verdict::only_in_head);
}

TEST(Pairing, SameNameTwiceIsPooled) {
  const auto up = Direction::higher_is_better;
  const std::vector<Metric> base{{"x", up, {1, 3}}, {"x", up, {5}}};
  const auto rows = compare_metrics(base, std::vector<Metric>{{"x", up, {3, 3, 3}}});
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].base.n, 3u);
  EXPECT_EQ(rows[0].base.mean, 3);

  ResultSet r;
  r.cells = {testing::make_cell("w", "spf", Mode::threads, 1, {1, 2}),
             testing::make_cell("w", "spf", Mode::threads, 1, {3})};
  EXPECT_EQ(find_cell(r, "w", "spf", Mode::threads, 1)->samples.size(), 3u);
}

TEST(Pairing, ParametersMakeAnotherMetric) {
  ResultSet r;
  r.base = "mmap-lock";
  r.heads = {"spf"};
  for (int tasks : {1, 2}) {
    for (Mode mode : {Mode::threads, Mode::processes}) {
      const double rate = 100.0 * tasks + (mode == Mode::threads ? 0 : 10);
      r.cells.push_back(testing::make_cell("w", "mmap-lock", mode, tasks, {rate, rate, rate}));
      r.cells.push_back(testing::make_cell("w", "spf", mode, tasks, {rate, rate, rate}));
    }
  }
  const auto rows = compare_results(r);
  EXPECT_EQ(rows.size(), 16u);  // 4 metrics each
  for (const auto& x : rows) EXPECT_EQ(x.comparison.verdict, Verdict::same);
}

TEST(Pairing, NamesMayHoldAnything) {
  const auto up = Direction::higher_is_better;
  std::vector<Metric> metrics;
  double value = 1;
  for (const char* name : {"ops", "ops_total", "ops.total", "ops total", "ops ", "öps", ""}) {
    metrics.push_back({name, up, {value, value, value}});
    ++value;
  }
  auto reversed = metrics;
  std::reverse(reversed.begin(), reversed.end());
  const auto rows = compare_metrics(metrics, reversed);
  ASSERT_EQ(rows.size(), metrics.size());
  for (const auto& c : rows) EXPECT_EQ(c.verdict, Verdict::same) << c.name;
}

}  // namespace
}  // namespace faultpath::lab
