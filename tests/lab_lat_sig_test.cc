// lat_sig_prot and the null controls, and what is made of their figures. Build: no-64k.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "lab/noise/noise.h"
#include "lab/report/json.h"
#include "lab/report/metrics.h"
#include "lab/report/table.h"
#include "lab/run/bench.h"
#include "lab/run/runner.h"
#include "lab/stats/rounds.h"
#include "lab/targets/host_refusals.h"
#include "lab/targets/signals.h"
#include "lab/workloads/lat_sig.h"

namespace faultpath::lab {
namespace {

std::string test_dir() {
  const char* dir = std::getenv("TMPDIR");
  return dir && *dir ? dir : "/tmp";
}

// --- the subtraction, on made-up samples ---------------------------------------------------------

TEST(RoundsTest, TheMiddleHalfLeavesOutWhatWasInterrupted) {
  std::vector<Round> rounds;
  for (std::uint64_t i = 0; i < 8; ++i) rounds.push_back({1000 + i, 300 + i, 100});
  rounds[2].prot = 900'000;   // a timer tick
  rounds[5].caught = 70'000;  // another
  const PartTimes t = middle_half(rounds, 10);
  EXPECT_EQ(t.rounds, 4u);
  // Rounds 3, 4, 6, 7.
  EXPECT_DOUBLE_EQ(t.prot, (4000 + 20) / 40.0);
  EXPECT_DOUBLE_EQ(t.caught, (1200 + 20) / 40.0);
  EXPECT_DOUBLE_EQ(t.plain, 10.0);
  std::reverse(rounds.begin(), rounds.end());
  EXPECT_DOUBLE_EQ(middle_half(rounds, 10).prot, t.prot);
}

TEST(RoundsTest, FewRoundsAreAllTaken) {
  EXPECT_EQ(middle_half({}, 10).rounds, 0u);
  EXPECT_EQ(middle_half({{1, 1, 1}}, 0).rounds, 0u);
  const PartTimes t = middle_half({{100, 40, 0}, {200, 50, 0}, {600, 60, 0}}, 10);
  EXPECT_EQ(t.rounds, 3u);
  EXPECT_DOUBLE_EQ(t.prot, 30);
  EXPECT_DOUBLE_EQ(t.caught, 5);
}

TEST(RoundsTest, AFullListIsThinnedEvenly) {
  Rounds rounds;
  const std::uint64_t many = 5 * Rounds::kMost;
  for (std::uint64_t i = 0; i < many; ++i) rounds.add({i, 0, 0});
  const auto& kept = rounds.kept();
  EXPECT_LE(kept.size(), Rounds::kMost);
  EXPECT_GE(kept.size(), Rounds::kMost / 2);
  for (std::size_t i = 0; i < kept.size(); ++i) ASSERT_EQ(kept[i].prot, 8 * i);
}

TEST(SubtractTest, ProtLessCatchNeverBelowZero) {
  const AccessTime t = subtract({.prot = 500, .caught = 300, .plain = 100, .rounds = 7}, 0.5);
  EXPECT_DOUBLE_EQ(t.prot_ns, 250);
  EXPECT_DOUBLE_EQ(t.catch_ns, 100);
  EXPECT_DOUBLE_EQ(t.access_ns, 150);
  EXPECT_EQ(t.rounds, 7u);
  const AccessTime none = subtract({.prot = 100, .caught = 300, .plain = 0, .rounds = 1}, 1);
  EXPECT_EQ(none.access_ns, 0);
  const AccessTime odd = subtract({.prot = 100, .caught = 20, .plain = 30, .rounds = 1}, 1);
  EXPECT_EQ(odd.catch_ns, 0);
  EXPECT_EQ(odd.access_ns, 100);
  const AccessTime nothing = subtract({.prot = 5, .caught = 1, .plain = 0, .rounds = 0}, 1);
  EXPECT_EQ(nothing.prot_ns, 0);
}

// --- tables, on made-up samples ------------------------------------------------------------------

Cell timed_cell(const std::string& variant, double access_us) {
  Cell cell;
  cell.workload = "lat_sig_prot";
  cell.variant = variant;
  cell.verified = true;
  for (const double off : {-0.00002, -0.00001, 0.0, 0.00001, 0.00002}) {
    Sample s;
    s.seconds = 2;
    s.ops_per_second = 1e6;
    s.task_ops = {1e6};
    s.faults_per_op = 1;
    s.access_time = {(access_us + off) * 1000, (access_us + off) * 1000 + 700, 700, 50};
    cell.samples.push_back(s);
  }
  return cell;
}

/// The published arm64 figures.
ResultSet published() {
  ResultSet r;
  r.base = "mmap-lock";
  r.heads = {"spf"};
  r.cells = {timed_cell("mmap-lock", 0.29194), timed_cell("spf", 0.19198)};
  return r;
}

TEST(AccessReport, LmbenchsLine) {
  EXPECT_EQ(lmbench_line(timed_cell("spf", 0.19198)), "Protection fault: 0.1920 microseconds");
  EXPECT_EQ(lmbench_line({}), "");
  ResultSet r = published();
  r.base.clear();
  r.heads.clear();
  const std::string text = run_table(r);
  EXPECT_NE(text.find("\nlat_sig_prot of mmap-lock, as lmbench prints it:\n"
                      "Protection fault: 0.2919 microseconds\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("\nProtection fault: 0.1920 microseconds\n"), std::string::npos);
}

TEST(AccessReport, TheChangeIsThatOfTheSubtractedTime) {
  for (const auto& row : compare_results(published())) {
    if (row.comparison.name != "lat_sig_prot.time_per_access_ns") continue;
    EXPECT_EQ(row.comparison.direction, Direction::lower_is_better);
    EXPECT_EQ(row.comparison.verdict, Verdict::better);
    EXPECT_TRUE(row.gated);
    EXPECT_NEAR(row.comparison.change_percent.value(), -34.24, 0.01);
  }
  const std::string text = compare_table(published());
  EXPECT_NE(text.find("    291.94           -34.2%     191.98"), std::string::npos) << text;
  EXPECT_NE(text.find("lat_sig_prot.time_per_access_ns  less  better"), std::string::npos) << text;
  EXPECT_NE(text.find("lat_sig_prot (time per access)"), std::string::npos);
  EXPECT_EQ(text.find("lat_sig_prot.per_thread_ops"), std::string::npos);
}

TEST(AccessReport, SlowerIsARegressionAndFasterIsNot) {
  ResultSet r = published();
  EXPECT_TRUE(regression_gate(compare_results(r), 5).regressions.empty());
  std::swap(r.cells[0].variant, r.cells[1].variant);
  EXPECT_EQ(regression_gate(compare_results(r), 5).regressions,
            std::vector<std::string>{"lat_sig_prot under spf, threads, 1 task: +52.1%"});
  EXPECT_TRUE(regression_gate(compare_results(r), 60).regressions.empty());
}

TEST(NullControls, AreMarkedAndNeverARegression) {
  ResultSet r = published();
  for (Cell& c : r.cells) {
    c.workload = "signal1";
    const double rate = c.variant == "spf" ? 1e5 : 2e5;
    for (Sample& s : c.samples) {
      s.access_time = {};
      s.task_ops = {rate + s.seconds};
    }
  }
  const std::string text = compare_table(r);
  EXPECT_NE(text.find("signal1.per_thread_ops (null control)"), std::string::npos) << text;
  EXPECT_NE(text.find("  signal1 (null control)"), std::string::npos) << text;
  EXPECT_NE(run_table(r).find("signal1.per_thread_ops (null control)\n"), std::string::npos);
  const Gate gate = regression_gate(compare_results(r), 5);
  EXPECT_TRUE(gate.regressions.empty());
  EXPECT_TRUE(gate.missing.empty());
  EXPECT_NE(results_json(r, true).find("\"null_control\": true"), std::string::npos);
}

// --- the workloads on every target ---------------------------------------------------------------

std::vector<std::string> targets() {
  std::vector<std::string> names{"host"};
  for (const Policy p : kAllPolicies) names.emplace_back(name_of(p));
  return names;
}

class OnTarget : public testing::TestWithParam<std::string> {
 protected:
  static std::unique_ptr<Bench> bench(const char* workload, int tasks, Mode mode) {
    BenchSpec spec;
    spec.workload = find_workload(workload);
    spec.mode = mode;
    spec.tasks = tasks;
    spec.dir = test_dir();
    std::string error;
    auto b = GetParam() == "host" ? make_host_bench(spec, error) : make_engine_bench(spec, error);
    EXPECT_EQ(error, "");
    return b;
  }
  static PolicySpec policy() {
    auto p = parse_policy(GetParam());
    return p ? p.value() : PolicySpec{};
  }
};

TEST_P(OnTarget, LatSigProtIsRefusedEachTime) {
  for (const Mode mode : {Mode::threads, Mode::processes}) {
    const std::uint64_t ops = 2 * LatSigProt<HostTask>::kBlock + 100;
    const FixedResult r = bench("lat_sig_prot", 2, mode)->run_fixed(policy(), {.ops = ops});
    EXPECT_EQ(r.error, "");
    EXPECT_EQ(r.ops, std::vector<std::uint64_t>(2, ops));
    ASSERT_EQ(r.calls.size(), 2u);
    EXPECT_EQ(r.calls[0].maps, 1u);
    // The host counts none for an access that it refuses; its own code may take a few.
    for (const std::uint64_t f : r.faults) {
      if (GetParam() != "host") {
        EXPECT_EQ(f, ops);
      }
    }
  }
}

TEST_P(OnTarget, LatSigProtTimesBothParts) {
  const auto b = bench("lat_sig_prot", 1, Mode::threads);
  Measured m;
  // A sanitizer makes a round long, and a round has to fit into the window.
  for (double seconds = 0.2; seconds < 10 && m.sample.access_time.rounds == 0; seconds *= 4) {
    m = b->measure(policy(), {0.02, seconds});
    ASSERT_EQ(m.error, "");
  }
  const AccessTime& t = m.sample.access_time;
  EXPECT_GT(t.rounds, 0u);
  EXPECT_GT(t.prot_ns, 0);
  EXPECT_GT(t.catch_ns, 0);
  EXPECT_GE(t.access_ns, 0);
  EXPECT_NEAR(t.access_ns, std::max(0.0, t.prot_ns - t.catch_ns), 1e-6);
  if (GetParam() != "host") {
    EXPECT_GT(t.access_ns, 0);
    EXPECT_GT(m.sample.faults_per_op, 0);  // operations are counted by blocks
    for (const auto& [name, value] : m.sample.counters) {
      if (name == "minor-faults" || name == "major-faults") {
        EXPECT_EQ(value, 0) << name;
      }
    }
  }
}

TEST_P(OnTarget, NullControlsRunInBothModes) {
  for (const Mode mode : {Mode::threads, Mode::processes}) {
    for (const char* name : {"read2", "signal1", "context_switch1"}) {
      SCOPED_TRACE(name);
      EXPECT_TRUE(is_null_control(name));
      const auto b = bench(name, 2, mode);
      const FixedResult r = b->run_fixed(policy(), {.ops = 600});
      EXPECT_EQ(r.error, "");
      EXPECT_EQ(r.ops, std::vector<std::uint64_t>(2, 600));
      // Nothing is left for a policy to do.
      for (const std::uint64_t f : r.faults) {
        if (GetParam() != "host") {
          EXPECT_EQ(f, 0u);
        }
      }
      const Measured m = b->measure(policy(), {0.01, 0.05});
      EXPECT_EQ(m.error, "");
      EXPECT_GT(m.sample.ops_per_second, 0);
      EXPECT_EQ(m.sample.fault_latency.samples, 0u);
      EXPECT_EQ(m.sample.access_time.rounds, 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Targets, OnTarget, testing::ValuesIn(targets()), [](const auto& parameter) {
      std::string name = parameter.param;
      std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
      return name;
    });

// --- what is left behind -------------------------------------------------------------------------

std::size_t count_in(const char* dir) {
  namespace fs = std::filesystem;
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(dir), {}));
}

TEST(LeftBehind, NoThreadNoDescriptorNoHandler) {
  std::thread([] {}).join();  // brings ThreadSanitizer's own thread
  const std::size_t threads = count_in("/proc/self/task");
  const std::size_t descriptors = count_in("/proc/self/fd");
  for (const char* name : {"read2", "signal1", "context_switch1", "lat_sig_prot"}) {
    SCOPED_TRACE(name);
    BenchSpec spec;
    spec.workload = find_workload(name);
    spec.tasks = 2;
    spec.dir = test_dir();
    std::string error;
    EXPECT_EQ(make_engine_bench(spec, error)->measure({}, {0.01, 0.02}).error, "");
    EXPECT_EQ(make_host_bench(spec, error)->measure({}, {0.01, 0.02}).error, "");
  }
  EXPECT_EQ(count_in("/proc/self/task"), threads);
  EXPECT_EQ(count_in("/proc/self/fd"), descriptors);
  struct sigaction now{};
  for (const int signal : {SIGUSR1, SIGSEGV, SIGBUS}) {
    ASSERT_EQ(sigaction(signal, nullptr, &now), 0);
    EXPECT_NE(now.sa_sigaction, &count_signal);
    EXPECT_NE(now.sa_sigaction, &host_refused);
  }
}

TEST(RunnerNotes, SayWhatTheWorkloadsAre) {
  RunOptions o;
  o.workloads = {"read2", "signal1", "context_switch1", "lat_sig_prot"};
  o.variants = {"mmap-lock"};
  o.seconds = 0.02;
  o.repeats = 1;
  o.quick = true;
  o.verify = false;
  o.dir = test_dir();
  ASSERT_EQ(validate(o), std::nullopt);
  const ResultSet r = run(o);
  for (const Cell& c : r.cells) EXPECT_EQ(c.verify_error, "") << c.workload;
  const auto noted = [&](std::string_view text) {
    return std::any_of(r.notes.begin(), r.notes.end(), [&](const std::string& note) {
      return note.find(text) != std::string::npos;
    });
  };
  EXPECT_TRUE(noted("read2, signal1, context_switch1: null control"));
  EXPECT_TRUE(noted("lat_sig_prot: time_per_access_ns is prot_ns"));
}

}  // namespace
}  // namespace faultpath::lab
