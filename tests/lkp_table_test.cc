// no-64k: tables of the laboratory.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/report/lkp.h"
#include "lab/report/metrics.h"
#include "lab/report/table.h"
#include "lab/stats/compare.h"
#include "tests/fixtures/synthetic_results.h"

namespace faultpath::lab {
namespace {

using Figure = std::optional<LkpFigure>;

std::filesystem::path fixtures() {
  return std::filesystem::path(__FILE__).parent_path() / "fixtures";
}

std::string row(std::string_view metric, const Figure& base, const Figure& head) {
  return lkp_row(metric, base, std::vector<Figure>{head});
}

// The published table, from its own figures.
TEST(LkpTable, IsByteForByteThePublishedOne) {
  std::ifstream in(fixtures() / "lkp_4ed4379881.txt");
  ASSERT_TRUE(in);
  std::vector<std::string> published;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with('#')) published.push_back(line);
  }
  ASSERT_EQ(published.size(), 17u);

  const auto h = lkp_heading("164b06f238b98631b2d1",
                             std::vector<std::string>{"4ed4379881aa62588aba6442a9f362a8cf7624e6"});
  EXPECT_EQ(published[0], lkp_rule_line());
  EXPECT_EQ(published[8], h.names);
  EXPECT_EQ(published[9], h.dashes);
  EXPECT_EQ(published[10], h.labels);
  EXPECT_EQ(published[11], h.marks);
  EXPECT_EQ(published[12], row("vmstat.system.cs", LkpFigure{6748, 2.4}, LkpFigure{2730, 1.2}));
  EXPECT_EQ(published[13],
            row("will-it-scale.16.threads_idle", LkpFigure{84.29, 0.1}, LkpFigure{83.34, 0.1}));
  EXPECT_EQ(published[14],
            row("will-it-scale.per_thread_ops", LkpFigure{206340, 1.0}, LkpFigure{458520, 0.5}));
  EXPECT_EQ(published[15],
            row("proc-vmstat.pgfault", LkpFigure{9.943e8, 1.0}, LkpFigure{2.208e9, 0.5}));
  EXPECT_EQ(published[16], row("mpstat.cpu.all.usr%", LkpFigure{1.86, 3.9}, LkpFigure{4.14, 2.0}));
}

// The rows that LKP makes of the published raw samples.
TEST(LkpTable, RowsOfPublishedSamples) {
  std::ifstream in(fixtures() / "spf_v12_samples.json");
  ASSERT_TRUE(in);
  const auto cells = nlohmann::json::parse(in).at("cells");
  const char* expected[] = {
      "   2664190 ±  2%     -11.7%    2353637 ±  5%  will-it-scale.72.threads",
      "   2653260           -10.1%    2385165 ±  3%  will-it-scale.72.threads",
      "   4480027 ±  4%     -14.7%    3819331 ±  3%  will-it-scale.72.threads",
      "   4436330 ±  4%     -12.4%    3886734 ±  3%  will-it-scale.72.threads",
  };
  ASSERT_EQ(cells.size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto base = summarize(cells[i].at("base_samples").get<std::vector<double>>());
    const auto head = summarize(cells[i].at("head_samples").get<std::vector<double>>());
    EXPECT_EQ(expected[i],
              row("will-it-scale.72.threads", LkpFigure{base.mean, base.stddev_percent},
                  LkpFigure{head.mean, head.stddev_percent}));
  }
}

TEST(LkpTable, FiguresChangeTheirFormWithTheirSize) {
  EXPECT_EQ(lkp_figure(LkpFigure{999.994, {}}), "    999.99      ");
  EXPECT_EQ(lkp_figure(LkpFigure{1000.9, {}}), "      1000      ");  // cut, not rounded
  EXPECT_EQ(lkp_figure(LkpFigure{1e8, {}}), " 100000000      ");
  EXPECT_EQ(lkp_figure(LkpFigure{1.5e8, 12.9}), "   1.5e+08 ± 12%");
  EXPECT_EQ(lkp_figure(LkpFigure{-5, 2.0}), "     -5.00      ");  // 2% is not over 2%
  EXPECT_EQ(lkp_figure(LkpFigure{0, {}}), "      0.00      ");
  EXPECT_EQ(lkp_figure({}), "         -      ");
}

TEST(LkpTable, ZeroAndMissingBases) {
  EXPECT_EQ(lkp_change("y", LkpFigure{0, {}}, LkpFigure{5, {}}), "        new ");
  EXPECT_EQ(lkp_change("y", LkpFigure{0, {}}, LkpFigure{0, {}}), "      +0.0% ");
  EXPECT_EQ(lkp_change("y", LkpFigure{-0.0, {}}, LkpFigure{0, {}}), "      +0.0% ");
  EXPECT_EQ(lkp_change("y", LkpFigure{5, {}}, LkpFigure{0, {}}), "    -100.0% ");
  EXPECT_EQ(lkp_change("y", {}, LkpFigure{5, {}}), "        n/a ");
  EXPECT_EQ(lkp_change("y", LkpFigure{5, {}}, {}), "        n/a ");
  EXPECT_EQ(lkp_change("y", LkpFigure{5, {}}, LkpFigure{5, {}}), "      +0.0% ");
  EXPECT_EQ(lkp_change("y", LkpFigure{1, {}}, LkpFigure{5001, {}}), "    +5e+05% ");
  EXPECT_EQ(lkp_change("usr%", LkpFigure{0, {}}, LkpFigure{5, {}}), "      +5.0  ");
}

TEST(LkpTable, SeveralHeadsRepeatTheirColumns) {
  const std::vector<std::string> heads{"spf", "spf:single-thread-bypass=off"};
  const auto h = lkp_heading("mmap-lock", heads);
  EXPECT_EQ(h.names, "mmap-lock        spf                         spf:single-thread-bypass=of ");
  EXPECT_EQ(h.labels, "         %stddev     %change         %stddev     %change         %stddev");
  EXPECT_EQ(h.marks, "             \\          |                \\          |                \\  ");
  EXPECT_EQ(lkp_row("x", LkpFigure{2, {}}, std::vector<Figure>{LkpFigure{3, {}}, LkpFigure{1, {}}}),
            "      2.00           +50.0%       3.00           -50.0%       1.00        x");
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// The line that has all the parts.
std::string line_with(const std::string& text, const std::vector<std::string>& parts) {
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto line = text.substr(at, end - at);
    bool all = true;
    for (const auto& part : parts) all = all && holds(line, part);
    if (all) return line;
    at = end + 1;
  }
  return "";
}

TEST(CompareTable, SaysWhatAReaderMustKnow) {
  const auto text = compare_table(testing::make_results());
  for (const char* part : {"Faultpath: mmap-lock against spf, host",
                           "Linux 6.18.44",
                           "Example CPU, 2 CPUs",
                           "page size 4096, THP madvise, ASLR off, test files on ext4",
                           "g++ 12.2.0",
                           "workloads version 1",
                           "5 runs of 2 s for each figure",
                           "3 noisy runs thrown away",
                           "more is better",
                           "less is better",
                           "standard deviation",
                           "Mann-Whitney",
                           "host (includes the hardware trap)",
                           "\n=====",
                           "%change",
                           "ext4/threads/5/2/1/madvise",
                           "ext4/processes/5/2/2/madvise",
                           "Noisy rows",
                           "page_fault1: spf 1 of 5",
                           "Why",
                           "In short"}) {
    EXPECT_TRUE(holds(text, part)) << part << "\n" << text;
  }
  EXPECT_FALSE(holds(text, "nan ") || holds(text, "nan%"));
  EXPECT_FALSE(holds(text, "\033"));
  EXPECT_FALSE(holds(text, "WRONG"));
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; ++at) {
    EXPECT_TRUE(at == 0 || text[at - 1] != ' ') << text.substr(at > 60 ? at - 60 : 0, 60);
  }
}

TEST(CompareTable, RowsCarryVerdictsForEachHead) {
  const auto text = compare_table(testing::make_results());
  const auto row = line_with(text, {"page_fault1.per_thread_ops", "%"});
  EXPECT_TRUE(row.starts_with("    504400           +22.3%     616800 ±  2%      +0.0%     504600"))
      << row;
  EXPECT_TRUE(holds(row, "page_fault1.per_thread_ops !  "));
  EXPECT_TRUE(holds(row, "  more  better p=0.0079  within noise p=1")) << row;
  const auto latency = line_with(text, {"page_fault1.fault_latency.p99_ns"});
  EXPECT_TRUE(holds(latency, "less  better")) << latency;
  const auto same = line_with(text, {"page_fault1.faults_per_op"});
  EXPECT_TRUE(holds(same, "-     same")) << same;
  // brk1 was not run on the host, and nothing faulted there.
  const auto brk = line_with(text, {"brk1.per_thread_ops"});
  EXPECT_TRUE(holds(brk, "worse p=0.0079")) << brk;
  EXPECT_TRUE(holds(brk, "n/a          -")) << brk;
  EXPECT_TRUE(holds(brk, "only in base")) << brk;
  EXPECT_FALSE(holds(text, "brk1.fault_latency"));
}

TEST(CompareTable, CountersStandBesideEachOther) {
  auto results = testing::make_results();
  auto text = compare_table(results);
  EXPECT_TRUE(holds(text, "pagefault:spf_entered"));
  EXPECT_TRUE(holds(text, "mmap_lock.read.acquired"));
  EXPECT_FALSE(holds(text, "pagefault:spf_vma_access"));  // zero everywhere
  EXPECT_FALSE(holds(text, "pgalloc"));                   // explains nothing
  const auto faults = line_with(text, {"    faults  "});
  EXPECT_EQ(faults, "    faults                                     1             1             1");
  const auto lock = line_with(text, {"mmap_lock.read.acquired", "0.01"});
  EXPECT_TRUE(lock.ends_with("1          0.01             -")) << lock;
  TableStyle style;
  style.all_counters = true;
  EXPECT_TRUE(holds(compare_table(results, style), "pgalloc"));
}

TEST(CompareTable, WrongResultsAreShoutedNotRated) {
  auto results = testing::make_results();
  results.cells[1].verified = false;
  results.cells[1].verify_error = "page 7 held 0x00, not 0x41";
  const auto text = compare_table(results);
  EXPECT_TRUE(holds(text, "WRONG page_fault1 under spf, threads, 1 task: page 7 held 0x00"));
  EXPECT_TRUE(
      holds(line_with(text, {"page_fault1.per_thread_ops", "WRONG RESULT"}), "within noise"))
      << "the other head keeps its verdict";
  ASSERT_EQ(wrong_results(results).size(), 1u);
}

TEST(CompareTable, ColorsWhenAsked) {
  TableStyle style;
  style.color = true;
  const auto text = compare_table(testing::make_results(), style);
  EXPECT_TRUE(holds(text, "\033[32mbetter"));
  EXPECT_TRUE(holds(text, "\033[31mworse"));
}

TEST(CompareTable, NoCellsIsNoCrash) {
  ResultSet empty;
  EXPECT_TRUE(holds(compare_table(empty), "0 runs"));
  EXPECT_TRUE(holds(run_table(empty), "0 runs"));
}

TEST(RunTable, HasNoVerdicts) {
  auto results = testing::make_results();
  const auto text = run_table(results);
  EXPECT_TRUE(holds(text, "page_fault1.per_thread_ops"));
  EXPECT_TRUE(holds(text, "host (includes the hardware trap)"));
  EXPECT_TRUE(holds(text, "pagefault:spf_entered"));
  EXPECT_FALSE(holds(text, "better p"));
  EXPECT_FALSE(holds(text, "%change"));
}

}  // namespace
}  // namespace faultpath::lab
