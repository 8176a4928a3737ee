// The lab's measuring half: workloads, runner, noise. Build: no-64k.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lab/noise/noise.h"
#include "lab/run/bench.h"
#include "lab/run/histogram.h"
#include "lab/run/machine_facts.h"
#include "lab/run/roles.h"
#include "lab/run/runner.h"
#include "lab/targets/host_target.h"
#include "lab/workloads/fault_vs_mmap.h"

namespace faultpath::lab {
namespace {

std::string test_dir() {
  const char* dir = std::getenv("TMPDIR");
  return dir && *dir ? dir : "/tmp";
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

bool huge_pages_for_all() { return read_machine_block(test_dir()).thp == "always"; }

// --- histogram -----------------------------------------------------------------------------------

TEST(HistogramTest, PercentilesAgreeWithSortedSamples) {
  std::mt19937_64 random(7);
  for (const double spread : {1.0, 8.0, 20.0, 40.0}) {
    Histogram h;
    std::vector<std::uint64_t> values;
    std::uniform_real_distribution<double> bits(0, spread);
    for (int i = 0; i < 20000; ++i) {
      values.push_back(static_cast<std::uint64_t>(std::exp2(bits(random))));
      h.record(values.back());
    }
    std::sort(values.begin(), values.end());
    for (const double p : {0.0, 0.01, 0.5, 0.9, 0.99, 0.999, 1.0}) {
      const auto rank = std::clamp<std::size_t>(
          static_cast<std::size_t>(std::ceil(p * static_cast<double>(values.size()))), 1,
          values.size());
      const auto wanted = static_cast<double>(values[rank - 1]);
      EXPECT_NEAR(h.percentile(p), wanted, wanted / 64) << "p " << p << " of " << spread << " bits";
    }
  }
}

TEST(HistogramTest, BucketsFollowEachOtherWithoutGaps) {
  std::size_t last = 0;
  for (std::uint64_t v = 0; v < 100000; ++v) {
    const std::size_t b = Histogram::bucket_of(v);
    ASSERT_TRUE(b == last || b == last + 1) << v;
    last = b;
  }
  EXPECT_LT(Histogram::bucket_of(~std::uint64_t{0}), Histogram::kBuckets);
}

TEST(HistogramTest, EmptyAndMerged) {
  Histogram a;
  EXPECT_EQ(a.percentile(0.5), 0);
  a.record(5);
  Histogram b;
  b.record(7);
  b.record(9);
  a.add(b);
  EXPECT_EQ(a.total(), 3u);
  EXPECT_EQ(a.percentile(0.5), 7);
  EXPECT_EQ(a.percentile(1), 9);
}

// --- the counted operations ----------------------------------------------------------------------

struct Given {
  std::string workload;
  std::uint64_t ops = 0;
  int tasks = 1;
  Mode mode = Mode::threads;
  EbizzyOptions ebizzy = {};
  Plant plant = Plant::none;
};

FixedResult on(const std::string& target, const Given& given) {
  BenchSpec spec;
  spec.workload = find_workload(given.workload);
  spec.mode = given.mode;
  spec.tasks = given.tasks;
  spec.ebizzy = given.ebizzy;
  spec.dir = test_dir();
  std::string error;
  const auto bench =
      target == "host" ? make_host_bench(spec, error) : make_engine_bench(spec, error);
  FixedResult result;
  result.error = error;
  if (!bench) return result;
  auto policy = parse_policy(target);
  return bench->run_fixed(policy ? policy.value() : PolicySpec{}, {given.ops, given.plant});
}

class CountedOperation : public testing::TestWithParam<std::string> {
 protected:
  bool host() const { return GetParam() == "host"; }

  /// Runs and expects success and the given number of operations in each task.
  FixedResult run(const Given& given) {
    FixedResult r = on(GetParam(), given);
    EXPECT_EQ(r.error, "");
    EXPECT_EQ(r.ops, std::vector<std::uint64_t>(static_cast<std::size_t>(given.tasks), given.ops));
    r.ops.resize(static_cast<std::size_t>(given.tasks));
    r.calls.resize(r.ops.size());
    r.faults.resize(r.ops.size());
    return r;
  }
  /// `wanted` faults; on the host the task's own code may add some, and a sanitizer's shadow many.
  void expect_faults(std::uint64_t faults, std::uint64_t wanted) const {
    if (host() && huge_pages_for_all()) return;
    EXPECT_GE(faults, wanted);
    if (host() && kSanitized) return;
    EXPECT_LE(faults, wanted + (host() ? 64 : 0));
  }
};

TEST_P(CountedOperation, PageFault1TouchesEachPageAndMapsAnew) {
  const auto whole = run({.workload = "page_fault1", .ops = 32768});
  EXPECT_EQ(whole.calls[0].maps, 1u);
  EXPECT_EQ(whole.calls[0].unmaps, 0u);
  expect_faults(whole.faults[0], 32768);

  const auto more = run({.workload = "page_fault1", .ops = 32768 + 100});
  EXPECT_EQ(more.calls[0].maps, 2u);
  EXPECT_EQ(more.calls[0].unmaps, 1u);
  expect_faults(more.faults[0], 32868);
}

TEST_P(CountedOperation, PageFault2CopiesPagesOfAPrivateFile) {
  const auto r = run({.workload = "page_fault2", .ops = 32768 + 100});
  EXPECT_EQ(r.calls[0].maps, 2u);
  EXPECT_EQ(r.calls[0].unmaps, 1u);
  expect_faults(r.faults[0], 32868);
}

TEST_P(CountedOperation, PageFault3WritesTheFile) {
  const auto r = run({.workload = "page_fault3", .ops = 32768 + 100});
  EXPECT_EQ(r.calls[0].maps, 2u);
  EXPECT_EQ(r.calls[0].unmaps, 1u);
  // The host may map many pages of the file in one fault.
  if (!host()) expect_faults(r.faults[0], 32868);
}

TEST_P(CountedOperation, TasksInBothModes) {
  for (const Mode mode : {Mode::threads, Mode::processes}) {
    for (const char* name : {"page_fault1", "page_fault3", "tlb_flush2", "mmap1"}) {
      SCOPED_TRACE(name);
      const auto r = run({.workload = name, .ops = 300, .tasks = 3, .mode = mode});
      for (const CallCounts& c : r.calls) EXPECT_GE(c.maps, 1u);
    }
  }
}

TEST_P(CountedOperation, Brk1MovesTheBreakUpAndDown) {
  for (const Mode mode : {Mode::threads, Mode::processes}) {
    const auto r = run({.workload = "brk1", .ops = 200, .tasks = 1, .mode = mode});
    EXPECT_EQ(r.calls[0].breaks, 201u);  // one asks where it is
    EXPECT_EQ(r.calls[0].breaks_refused, 0u);
  }
  const auto apart = run({.workload = "brk1", .ops = 200, .tasks = 2, .mode = Mode::processes});
  for (const CallCounts& c : apart.calls) EXPECT_EQ(c.breaks_refused, 0u);
  const auto shared = run({.workload = "brk1", .ops = 2000, .tasks = 2});
  for (const CallCounts& c : shared.calls) EXPECT_EQ(c.breaks, 2001u);
}

TEST_P(CountedOperation, Malloc1MapsTouchesTheHeaderAndUnmaps) {
  const auto r = run({.workload = "malloc1", .ops = 50});
  EXPECT_EQ(r.calls[0].maps, 50u);
  EXPECT_EQ(r.calls[0].unmaps, 50u);
  expect_faults(r.faults[0], 50);
}

TEST_P(CountedOperation, Mmap1And2TouchNothing) {
  for (const char* name : {"mmap1", "mmap2"}) {
    const auto r = run({.workload = name, .ops = 50});
    EXPECT_EQ(r.calls[0].maps, 50u);
    EXPECT_EQ(r.calls[0].unmaps, 50u);
    expect_faults(r.faults[0], 0);
  }
}

TEST_P(CountedOperation, TlbFlushFaultsTwiceAPage) {
  const auto file = run({.workload = "tlb_flush1", .ops = 100});
  EXPECT_EQ(file.calls[0].maps, 1u);
  EXPECT_EQ(file.calls[0].advises, 100u);
  if (!host()) expect_faults(file.faults[0], 200);

  const auto anonymous = run({.workload = "tlb_flush2", .ops = 300});
  EXPECT_EQ(anonymous.calls[0].maps, 2u);  // 256 pages an area
  EXPECT_EQ(anonymous.calls[0].unmaps, 1u);
  EXPECT_EQ(anonymous.calls[0].advises, 300u);
  expect_faults(anonymous.faults[0], 600);

  const auto shared = run({.workload = "tlb_flush3", .ops = 100});
  EXPECT_EQ(shared.calls[0].advises, 100u);
}

TEST_P(CountedOperation, EbizzyAllocatesAsItIsTold) {
  Given given{.workload = "ebizzy", .ops = 7};
  given.ebizzy.always_mmap = true;
  given.ebizzy.touch_only = true;
  const auto mapped = run(given);
  EXPECT_EQ(mapped.calls[0].maps, 10u + 7);  // the chunks, and one a record
  EXPECT_EQ(mapped.calls[0].unmaps, 7u);
  expect_faults(mapped.faults[0], 7 * 128);

  given.ebizzy.always_mmap = false;  // malloc: the header lies in the first page
  const auto allocated = run(given);
  EXPECT_EQ(allocated.calls[0].maps, 10u + 7);
  EXPECT_EQ(allocated.calls[0].breaks, 1u);
  expect_faults(allocated.faults[0], 7 * 128);

  given.ebizzy.touch_only = false;  // a copy reaches sixteen bytes into one more page
  const auto copied = run(given);
  expect_faults(copied.faults[0], 7 * 129);

  given.ebizzy.never_mmap = true;
  const auto heap = run(given);
  EXPECT_EQ(heap.calls[0].maps, 0u);
  EXPECT_EQ(heap.calls[0].breaks, 1u + 10 + 2 * 7);  // growth and trim for each record
  EXPECT_EQ(heap.calls[0].breaks_refused, 0u);

  given.tasks = 3;
  const auto tasks = run(given);
  for (const CallCounts& c : tasks.calls) EXPECT_EQ(c.breaks_refused, 0u);

  given.ebizzy = {};
  given.ebizzy.chunk_bytes = 4096;
  given.ebizzy.chunks = 3;
  const auto small = run(given);
  for (const CallCounts& c : small.calls) EXPECT_EQ(c.maps, 0u);
}

TEST_P(CountedOperation, FaultVsMmapFaultsOnEachOperation) {
  for (const Mode mode : {Mode::threads, Mode::processes}) {
    const auto r = run({.workload = "fault_vs_mmap", .ops = 16384 + 10, .tasks = 2, .mode = mode});
    for (const CallCounts& c : r.calls) EXPECT_EQ(c.advises, 1u);
    for (const std::uint64_t f : r.faults) expect_faults(f, 16394);
  }
}

TEST_P(CountedOperation, APlantedWrongByteIsFound) {
  const std::vector<Given> all = {
      {.workload = "page_fault1", .ops = 100}, {.workload = "page_fault2", .ops = 100},
      {.workload = "page_fault3", .ops = 100}, {.workload = "brk1", .ops = 100},
      {.workload = "malloc1", .ops = 10},      {.workload = "mmap1", .ops = 10},
      {.workload = "mmap2", .ops = 10},        {.workload = "tlb_flush1", .ops = 100},
      {.workload = "tlb_flush2", .ops = 100},  {.workload = "tlb_flush3", .ops = 100},
      {.workload = "ebizzy", .ops = 3},        {.workload = "fault_vs_mmap", .ops = 100},
      {.workload = "lat_sig_prot", .ops = 50}, {.workload = "read2", .ops = 10},
      {.workload = "signal1", .ops = 10},      {.workload = "context_switch1", .ops = 10},
  };
  EXPECT_EQ(all.size(), workloads().size());
  for (Given given : all) {
    SCOPED_TRACE(given.workload);
    given.plant = Plant::memory;
    const std::string error = on(GetParam(), given).error;
    EXPECT_TRUE(error.starts_with("task 0: ")) << error;
    EXPECT_NE(error.find("holds"), std::string::npos) << error;
  }
}

TEST_P(CountedOperation, AFileThatChangedIsFound) {
  for (const char* name : {"page_fault2", "mmap2", "tlb_flush1", "lat_sig_prot"}) {
    SCOPED_TRACE(name);
    const std::string error =
        on(GetParam(), {.workload = name, .ops = 100, .plant = Plant::file}).error;
    EXPECT_NE(error.find("holds"), std::string::npos) << error;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Targets, CountedOperation,
    testing::Values("host", "mmap-lock", "spf", "spf:single-thread-bypass=off"),
    [](const auto& parameter) {
      std::string name = parameter.param;
      std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
      return name;
    });

TEST(FaultVsMmapTest, TurnsVisitEachPageOnce) {
  for (const std::uint64_t pages : {16384u, 1024u, 4096u}) {
    for (const std::uint32_t salt : {0u, 1u, 4093u * 7}) {
      std::set<std::uint64_t> seen;
      for (std::uint64_t i = 0; i < pages; ++i) {
        seen.insert(FaultVsMmap<HostTask>::page_of(i, pages, salt));
      }
      EXPECT_EQ(seen.size(), pages);
      EXPECT_EQ(*seen.rbegin(), pages - 1);
    }
  }
}

// --- registry and roles --------------------------------------------------------------------------

TEST(RegistryTest, EveryWorkloadSaysWhatItIs) {
  std::set<std::string> names;
  for (const WorkloadInfo& w : workloads()) {
    EXPECT_TRUE(names.insert(w.name).second);
    EXPECT_FALSE(w.description.empty());
    EXPECT_FALSE(w.counted.empty());
    EXPECT_GT(w.verify_ops, 0u);
    EXPECT_EQ(find_workload(w.name), &w);
  }
  EXPECT_EQ(find_workload("page_fault4"), nullptr);
}

TEST(RolesTest, AMapperForEachSpace) {
  BenchSpec spec;
  spec.workload = find_workload("fault_vs_mmap");
  spec.tasks = 2;
  auto roles = cast(spec);
  ASSERT_EQ(roles.size(), 3u);
  EXPECT_TRUE(roles[2].mapper);
  EXPECT_EQ(roles[1].tasks, 2u);
  spec.mode = Mode::processes;
  roles = cast(spec);
  ASSERT_EQ(roles.size(), 4u);
  EXPECT_TRUE(roles[3].mapper);
  EXPECT_EQ(roles[3].space, 1u);
  EXPECT_EQ(roles[1].space, 1u);
  EXPECT_EQ(roles[1].index, 0u);
  EXPECT_TRUE(roles[1].first);
}

// --- input ---------------------------------------------------------------------------------------

RunOptions good() {
  RunOptions o;
  o.workloads = {"page_fault1", "page_fault2"};
  o.variants = {"mmap-lock", "spf:single-thread-bypass=off", "host"};
  o.tasks = {1, 2};
  o.dir = test_dir();
  return o;
}

std::string complaint(const RunOptions& o) { return validate(o).value_or("fine"); }

TEST(ValidateTest, NamesWhatIsWrongInOneLine) {
  EXPECT_EQ(complaint(good()), "fine");
  const auto with = [](auto change) {
    RunOptions o = good();
    change(o);
    const std::string line = complaint(o);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    return line;
  };
  EXPECT_TRUE(with([](auto& o) {
                o.workloads = {"page_fault9"};
              }).starts_with("unknown workload 'page_fault9'; there are: page_fault1, "));
  EXPECT_TRUE(with([](auto& o) { o.workloads.clear(); }).starts_with("no workload named"));
  EXPECT_TRUE(with([](auto& o) {
                o.variants = {"fast"};
              }).starts_with("unknown policy 'fast'; there are: mmap-lock, spf, vma-lock, host"));
  EXPECT_TRUE(with([](auto& o) {
                o.variants = {"spf:turbo=on"};
              }).starts_with("unknown policy 'spf:turbo=on'"));
  EXPECT_TRUE(with([](auto& o) { o.variants.clear(); }).starts_with("no policy named"));
  EXPECT_EQ(with([](auto& o) { o.tasks = {1, 0}; }), "number of tasks 0 is not in 1..256");
  EXPECT_EQ(with([](auto& o) { o.tasks = {257}; }), "number of tasks 257 is not in 1..256");
  EXPECT_EQ(with([](auto& o) { o.repeats = 0; }), "number of repeats 0 is not in 1..10000");
  EXPECT_EQ(with([](auto& o) { o.seconds = 0; }), "seconds of a run are not in 0.01..3600");
  EXPECT_EQ(with([](auto& o) { o.seconds = std::nan(""); }),
            "seconds of a run are not in 0.01..3600");
  EXPECT_EQ(with([](auto& o) { o.dir = "/nowhere/at/all"; }),
            "/nowhere/at/all: No such file or directory");
  EXPECT_EQ(with([](auto& o) { o.dir = "/proc/version"; }), "/proc/version: not a directory");
  EXPECT_TRUE(with([](auto& o) { o.dir = "/proc"; }).starts_with("/proc: not writable"));
  EXPECT_EQ(with([](auto& o) {
              o.dir = "/nowhere/at/all";
              o.workloads = {"page_fault1"};  // needs no files
            }),
            "fine");
  EXPECT_EQ(with([](auto& o) { o.ebizzy = {.always_mmap = true, .never_mmap = true}; }),
            "ebizzy: -m and -M exclude each other");
  EXPECT_TRUE(with([](auto& o) { o.ebizzy.chunks = 0; }).starts_with("ebizzy: -n"));
  EXPECT_TRUE(with([](auto& o) { o.ebizzy.chunk_bytes = 12; }).starts_with("ebizzy: -s"));
  EXPECT_TRUE(with([](auto& o) {
                o.memory_bytes = 64 << 20;
              }).starts_with("page_fault1 with 1 task needs "));
  EXPECT_NE(
      with([](auto& o) { o.memory_bytes = std::uint64_t{1} << 50; }).find("this machine has "),
      std::string::npos);
}

// --- runner --------------------------------------------------------------------------------------

TEST(PlanTest, VariantsAreInterleaved) {
  RunOptions o = good();
  o.workloads = {"brk1", "mmap1"};
  o.variants = {"mmap-lock", "spf"};
  o.tasks = {1, 2};
  o.repeats = 3;
  const auto runs = plan(o);
  ASSERT_EQ(runs.size(), 2u * 2 * 2 * 3);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i].variant, i % 2);
    EXPECT_EQ(runs[i].repeat, static_cast<int>(i / 2 % 3));
    EXPECT_EQ(runs[i].tasks, i / 6 % 2 == 0 ? 1 : 2);
    EXPECT_EQ(runs[i].workload, i < 12 ? "brk1" : "mmap1");
  }
}

TEST(RunnerTest, FillsCellsAndKeepsTheOrder) {
  RunOptions o;
  o.workloads = {"tlb_flush2"};
  o.variants = {"host", "host"};
  o.tasks = {2};
  o.modes = {Mode::processes};
  o.seconds = 0.1;
  o.repeats = 2;
  o.quick = true;
  o.dir = test_dir();
  std::vector<std::string> lines;
  o.progress = [&](std::string line) { lines.push_back(std::move(line)); };
  ASSERT_EQ(validate(o), std::nullopt);
  const ResultSet r = run(o);
  ASSERT_EQ(r.cells.size(), 2u);
  EXPECT_EQ(r.workload_version, kWorkloadVersion);
  EXPECT_EQ(r.repeats, 2);
  int rejected = 0;
  for (const Cell& c : r.cells) {
    EXPECT_EQ(c.workload, "tlb_flush2");
    EXPECT_EQ(c.variant, "host");
    EXPECT_EQ(c.mode, Mode::processes);
    EXPECT_EQ(c.tasks, 2);
    EXPECT_TRUE(c.verified) << c.verify_error;
    EXPECT_LE(c.rejected_runs, 1);
    rejected += c.rejected_runs;
    ASSERT_EQ(c.samples.size(), 2u);
    for (const Sample& s : c.samples) {
      EXPECT_GT(s.seconds, 0.09);
      EXPECT_GT(s.ops_per_second, 0);
      ASSERT_EQ(s.task_ops.size(), 2u);
      EXPECT_NEAR(s.task_ops[0] + s.task_ops[1], s.ops_per_second, s.ops_per_second * 1e-6);
      EXPECT_GT(s.faults_per_op, 1.5);
      EXPECT_GT(s.fault_latency.samples, 0u);
      EXPECT_GT(s.fault_latency.p50, 0);
      EXPECT_GE(s.fault_latency.p99, s.fault_latency.p50);
      EXPECT_GT(s.own_cpu, 0);
      EXPECT_FALSE(s.counters.empty());
    }
  }
  EXPECT_EQ(lines.size(), static_cast<std::size_t>(4 + rejected));
  EXPECT_TRUE(lines[0].starts_with("tlb_flush2 processes -t 2 host: 1/2 ")) << lines[0];
}

TEST(RunnerTest, AFailureIsTheCellsError) {
  RunOptions o;
  o.workloads = {"page_fault2"};
  o.variants = {"host"};
  o.seconds = 0.05;
  o.dir = "/nowhere/at/all";  // validate() would have said so
  const ResultSet r = run(o);
  ASSERT_EQ(r.cells.size(), 1u);
  EXPECT_FALSE(r.cells[0].verified);
  EXPECT_TRUE(r.cells[0].samples.empty());
  EXPECT_NE(r.cells[0].verify_error.find("No such file"), std::string::npos);
}

// --- noise and machine ---------------------------------------------------------------------------

TEST(NoiseTest, ReadsPidStat) {
  const auto s = parse_pid_stat(
      "42 (odd) (name) S 7 42 42 0 -1 4194560 1234 99 5 98 250 50 1000 500 20 0 1 0 8842 1 2 "
      "18446744073709551615 1\n");
  ASSERT_TRUE(s.has_value());
  EXPECT_EQ(s->pid, 42);
  EXPECT_EQ(s->parent, 7);
  EXPECT_FALSE(s->kernel_thread);
  EXPECT_EQ(s->minor_faults, 1234u);
  EXPECT_EQ(s->major_faults, 5u);
  const auto hz = static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(s->cpu_seconds, 300 / hz);
  EXPECT_DOUBLE_EQ(s->children_cpu_seconds, 1500 / hz);
  const auto kernel =
      parse_pid_stat("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 1 0 0 20 0 1 0 3 0 0");
  ASSERT_TRUE(kernel.has_value());
  EXPECT_TRUE(kernel->kernel_thread);
  for (const char* bad : {"", "42", "42 (x", "42 (x)", "42 (x) S", "42 (x) S 1 2"}) {
    EXPECT_FALSE(parse_pid_stat(bad).has_value()) << bad;
  }
  EXPECT_EQ(read_pid_stat(getpid())->pid, getpid());
}

TEST(NoiseTest, ReadsBusyTimeWithoutIdleAndIowait) {
  const auto hz = static_cast<double>(sysconf(_SC_CLK_TCK));
  EXPECT_DOUBLE_EQ(parse_busy_seconds("cpu  10 20 30 1000 2000 40 50 60 70 80").value(), 210 / hz);
  EXPECT_FALSE(parse_busy_seconds("cpu0 1 2 3 4").has_value());
  EXPECT_FALSE(parse_busy_seconds("").has_value());
  EXPECT_GE(busy_cpus(0.02), 0);
}

TEST(NoiseTest, NoisyNeedsBothSigns) {
  EXPECT_TRUE(is_noisy(0.5, 0.8));
  EXPECT_FALSE(is_noisy(0.5, 0.99));
  EXPECT_FALSE(is_noisy(0.01, 0.5));  // tasks that sleep are no noise
}

TEST(MachineTest, BlockIsFilled) {
  const MachineBlock b = read_machine_block(test_dir());
  EXPECT_FALSE(b.kernel.empty());
  EXPECT_FALSE(b.cpu_model.empty());
  EXPECT_FALSE(b.thp.empty());
  EXPECT_FALSE(b.aslr.empty());
  EXPECT_NE(b.filesystem.find(" on /"), std::string::npos) << b.filesystem;
  EXPECT_FALSE(b.compiler.empty());
  EXPECT_EQ(b.date.size(), 20u);
  EXPECT_GT(b.cpus, 0);
  EXPECT_GT(b.memory_gib, 0);
  EXPECT_EQ(bracketed("always [madvise] never"), "madvise");
  EXPECT_EQ(bracketed("never"), "");
}

}  // namespace
}  // namespace faultpath::lab
