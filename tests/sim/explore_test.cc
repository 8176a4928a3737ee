// The strategies of check/explore, on programs small enough to be enumerated.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "check/explore/bounded.h"
#include "check/explore/dpor.h"
#include "check/explore/plain.h"
#include "check/explore/random.h"
#include "check/explore/replay.h"
#include "check/explore/schedule.h"
#include "check/explore/shrink.h"
#include "env.h"

namespace faultpath::check {
namespace {

using env::relaxed;
using env::seq_cst;
using sim::World;

constexpr unsigned kWords = 4;

struct Memory {
  env::atomic<std::uint32_t> word[kWords];
  env::atomic<std::uint32_t> own[sim::kMaxCpus];
  env::SpinLock lock[2];
  env::var<std::uint32_t> plain{0};
  std::uint64_t seen[sim::kMaxCpus] = {};  // what each CPU has read, folded
};
Memory* mem = nullptr;

unsigned self() { return World::get().cpu(); }
void saw(std::uint64_t value) {
  std::uint64_t& seen = mem->seen[self()];
  seen = seen * 31 + value + 1;
}

void lossy_increment(env::atomic<std::uint32_t>& word) {
  const std::uint32_t old = word.load(relaxed);
  word.store(old + 1, relaxed);
}

// --- programs -----------------------------------------------------------------------------------

struct Program {
  std::string name;
  unsigned cpus;
  std::function<void(unsigned cpu)> run;
  std::function<void(unsigned cpu)> handler;

  friend void PrintTo(const Program& p, std::ostream* os) { *os << p.name; }
};

Program increments() {
  return {"increments",
          2,
          [](unsigned) {
            lossy_increment(mem->word[0]);
            lossy_increment(mem->word[0]);
          },
          {}};
}
Program store_buffering() {
  return {"store_buffering",
          2,
          [](unsigned cpu) {
            mem->word[cpu].store(1, relaxed);
            saw(mem->word[1 - cpu].load(relaxed));
          },
          {}};
}
Program locked_counter() {
  return {"locked_counter",
          3,
          [](unsigned cpu) {
            mem->lock[0].lock();
            mem->plain = mem->plain + cpu + 1;
            saw(mem->plain);
            mem->lock[0].unlock();
          },
          {}};
}
Program tried_lock() {
  return {"tried_lock",
          3,
          [](unsigned cpu) {
            if (cpu == 0) {
              mem->lock[0].lock();
              mem->lock[0].unlock();
            } else if (mem->lock[0].try_lock()) {
              saw(mem->word[0].load(relaxed));
              mem->word[0].store(cpu, relaxed);
              mem->lock[0].unlock();
            } else {
              saw(7);
            }
          },
          {}};
}
Program peterson() {
  return {"peterson",
          2,
          [](unsigned cpu) {
            mem->word[cpu].store(1, seq_cst);
            mem->word[2].store(1 - cpu, seq_cst);
            while (mem->word[1 - cpu].load(seq_cst) == 1 && mem->word[2].load(seq_cst) == 1 - cpu) {
              env::yield();
            }
            mem->plain = mem->plain * 2 + cpu + 1;
            mem->word[cpu].store(0, seq_cst);
          },
          {}};
}
Program shared_and_private() {
  return {"shared_and_private",
          3,
          [](unsigned cpu) {
            mem->own[cpu].store(cpu + 5, relaxed);
            if (cpu == 2) {
              saw(mem->word[0].load(relaxed));
            } else {
              mem->word[0].store(cpu + 1, relaxed);
            }
            saw(mem->own[cpu].load(relaxed));
          },
          {}};
}
Program pause_loop() {
  return {"pause_loop",
          2,
          [](unsigned cpu) {
            if (cpu == 0) {
              for (int i = 0; i < 3 && mem->word[0].load(relaxed) == 0; ++i) {
                lossy_increment(mem->own[0]);
                env::pause();
              }
              saw(mem->own[0].load(relaxed));
            } else {
              mem->own[1].store(1, relaxed);
              mem->word[0].store(1, relaxed);
              saw(mem->own[1].load(relaxed));
            }
          },
          {}};
}
/// Either of two words will do, and each is written by another CPU. What is read tells whether
/// there was a wait.
Program either_word() {
  return {"either_word",
          3,
          [](unsigned cpu) {
            if (cpu != 0) {
              mem->word[cpu].store(1, relaxed);
              return;
            }
            if (mem->word[1].load(relaxed) == 0 && mem->word[2].load(relaxed) == 0) {
              env::yield();
              saw(mem->word[1].load(relaxed) * 2 + mem->word[2].load(relaxed));
            }
          },
          {}};
}
/// The same, but it is a third word that tells who ended the wait.
Program either_writer() {
  return {"either_writer",
          3,
          [](unsigned cpu) {
            if (cpu == 0) {
              if (mem->word[1].load(relaxed) == 0 && mem->word[2].load(relaxed) == 0) {
                env::yield();
                saw(mem->word[3].load(relaxed));
              }
            } else if (cpu == 1) {
              mem->word[3].store(1, relaxed);
              mem->word[2].store(1, relaxed);
            } else {
              mem->word[1].store(1, relaxed);
            }
          },
          {}};
}
/// The lock is never released: one of the two waits for ever.
Program kept_lock() {
  return {"kept_lock",
          2,
          [](unsigned) FP_NO_THREAD_SAFETY_ANALYSIS {
            mem->lock[0].lock();
            saw(1);
          },
          {}};
}
/// Where CPU 1 comes in between, there is another shared place, and only there.
Program hidden_place() {
  return {"hidden_place",
          2,
          [](unsigned cpu) {
            if (cpu == 0) {
              mem->word[0].store(1, relaxed);
              lossy_increment(mem->word[1]);
              mem->word[0].store(0, relaxed);
            } else if (mem->word[0].load(relaxed) == 1) {
              saw(1);
              lossy_increment(mem->word[1]);
            }
          },
          {}};
}
/// To reverse a race, a third CPU has to begin.
Program three_on_one_word() {
  return {"three_on_one_word",
          3,
          [](unsigned cpu) {
            if (cpu == 0) {
              mem->word[0].store(2, relaxed);
              saw(mem->word[0].fetch_add(1, relaxed));
            } else {
              saw(mem->word[0].load(relaxed));
              if (cpu == 1) mem->word[0].store(1, relaxed);
              if (cpu == 2) saw(mem->word[0].load(relaxed));
            }
          },
          {}};
}
Program parked() {
  return {"parked",
          3,
          [](unsigned cpu) {
            if (cpu == 0) {
              mem->word[0].store(1, relaxed);
              env::unpark_all(mem->word[0]);
              return;
            }
            while (mem->word[0].load(relaxed) == 0) env::park(mem->word[0], 0, 0);
            saw(mem->word[1].load(relaxed));
            mem->word[1].store(cpu, relaxed);
          },
          {}};
}
Program crossed_locks() {
  return {"crossed_locks",
          2,
          [](unsigned cpu) {
            mem->lock[cpu].lock();
            lossy_increment(mem->word[0]);
            mem->lock[1 - cpu].lock();
            mem->lock[1 - cpu].unlock();
            mem->lock[cpu].unlock();
          },
          {}};
}
Program interrupted() {
  return {"interrupted", 2,
          [](unsigned cpu) {
            lossy_increment(mem->own[cpu]);
            lossy_increment(mem->word[0]);
          },
          [](unsigned cpu) {
            lossy_increment(mem->own[cpu]);
            saw(mem->word[0].load(relaxed));
          }};
}

std::vector<Program> programs() {
  return {increments(),         store_buffering(), locked_counter(), tried_lock(),       peterson(),
          shared_and_private(), pause_loop(),      either_word(),    either_writer(),    parked(),
          crossed_locks(),      kept_lock(),       hidden_place(),   three_on_one_word()};
}

// --- running ------------------------------------------------------------------------------------

/// What a run ended with: memory, what each CPU read, and the detector that struck.
using Final = std::vector<std::uint64_t>;

Final final_state() {
  Final f;
  for (const auto& w : mem->word) f.push_back(w.load(relaxed));
  for (const auto& w : mem->own) f.push_back(w.load(relaxed));
  f.push_back(mem->plain);
  f.insert(f.end(), std::begin(mem->seen), std::end(mem->seen));
  f.push_back(static_cast<std::uint64_t>(World::get().violation().detector));
  return f;
}

class Scene {
 public:
  explicit Scene(Program program) : program_(std::move(program)) {
    World& world = World::get();
    world.reset();
    mem = new (world.state(sizeof(Memory))) Memory();
    world.freeze();
    void (*const body)(void*) = [](void* p) { static_cast<Program*>(p)->run(self()); };
    void (*const handler)(void*) = [](void* p) { static_cast<Program*>(p)->handler(self()); };
    actors_.assign(program_.cpus, {.name = "actor",
                                   .run = body,
                                   .context = &program_,
                                   .handler = program_.handler ? handler : nullptr});
  }

  bool run(sim::Strategy& strategy, unsigned injections = 0) {
    sim::Limits limits;
    limits.injections = injections;
    return World::get().run(actors_, strategy, limits);
  }

  /// All runs of an explorer (at most 1,000,000); what they ended with.
  std::set<Final> all(Explorer& explorer, unsigned injections = 0) {
    std::set<Final> found;
    while (explorer.runs() < 1'000'000 && explorer.next()) {
      run(explorer, injections);
      found.insert(final_state());
    }
    return found;
  }

 private:
  Program program_;
  std::vector<sim::Actor> actors_;
};

unsigned count_if(const std::set<Final>& finals, const std::function<bool(const Final&)>& f) {
  return static_cast<unsigned>(std::count_if(finals.begin(), finals.end(), f));
}
bool ended_by(const Final& f, sim::Detector d) { return f.back() == static_cast<unsigned>(d); }

// --- schedules as text
// ----------------------------------------------------------------------------

TEST(Schedule, PrintsAndParses) {
  const Schedule s{0x7f3a9c02, {{0, false, 14}, {2, false, 30}, {1, true, 5}}};
  EXPECT_EQ(to_string(s), "1.7f3a9c02.0x14-2x30-1i5");
  EXPECT_EQ(parse_schedule(to_string(s)), s);
  EXPECT_EQ(switches(s), 2u);
  EXPECT_EQ(steps(s), 49u);
  const Schedule none{0, {}};
  EXPECT_EQ(to_string(none), "1.00000000.");
  EXPECT_EQ(parse_schedule(to_string(none)), none);
  const Schedule most{0xffffffff, {{sim::kMaxCpus - 1, true, 0xffffffff}}};
  EXPECT_EQ(parse_schedule(to_string(most)), most);
}

TEST(Schedule, RefusesWithThePlace) {
  const auto error = [](std::string_view text) {
    const auto parsed = parse_schedule(text);
    return parsed ? "accepted: " + to_string(*parsed) : parsed.error();
  };
  EXPECT_EQ(error("2.7f3a9c02.0x14"), "schedule of version 2; this program replays version 1");
  EXPECT_EQ(error("17.anything"), "schedule of version 17; this program replays version 1");
  EXPECT_EQ(error(""), "schedule: at character 1: it ends, but a version number should stand here");
  EXPECT_EQ(error("hello"),
            "schedule: at character 1: 'h', but a version number should stand here");
  EXPECT_EQ(error("1.7f3a.0x1"),
            "schedule: at character 7: '.', but a fingerprint of 8 hexadecimal digits should stand "
            "here");
  EXPECT_EQ(error("1.7f3a9c0200.0x1"),
            "schedule: at character 11: '0', but '.' after the fingerprint should stand here");
  EXPECT_EQ(error("1.7f3a9c02.0x14-"),
            "schedule: at character 17: it ends, but a CPU should stand here");
  EXPECT_EQ(error("1.7f3a9c02.0y14"),
            "schedule: at character 13: 'y', but 'x' or 'i' should stand here");
  EXPECT_EQ(error("1.7f3a9c02.0x14,1x2"),
            "schedule: at character 16: ',', but '-' before the next segment should stand here");
  EXPECT_EQ(error("1.7f3a9c02.0x14-9x2"),
            "schedule: at character 17: '9', but a CPU that is at most 4 should stand here");
  EXPECT_EQ(
      error("1.7f3a9c02.0x0-1x2"),
      "schedule: at character 15: '-', but a number of steps above 0 before what should stand "
      "here");
  EXPECT_EQ(
      error("1.7f3a9c02.0x4294967296"),
      "schedule: at character 14: '4', but a number of steps that is at most 4294967295 should "
      "stand here");
  EXPECT_EQ(error("1.7f3a9c02.0x-1"),
            "schedule: at character 14: '-', but a number of steps should stand here");
  EXPECT_EQ(
      error("1.7f3a9c02.0x1\n"),
      "schedule: at character 15: a strange character, but '-' before the next segment should "
      "stand here");
}

TEST(Schedule, FromTrace) {
  std::vector<sim::Step> trace(6);
  const unsigned cpu[] = {0, 0, 1, 1, 1, 0};
  for (unsigned i = 0; i < 6; ++i) trace[i].cpu = static_cast<std::uint8_t>(cpu[i]);
  trace[3].injected = true;
  trace[4].injected = true;
  EXPECT_EQ(to_string(from_trace(trace)), "1.00000000.0x2-1x1-1i2-0x1");
}

// --- exhaustive searches
// --------------------------------------------------------------------------

class EveryProgram : public testing::TestWithParam<Program> {};

TEST_P(EveryProgram, DporReachesWhatPlainEnumerationReaches) {
  Scene scene(GetParam());
  PlainSearch plain;
  const std::set<Final> all = scene.all(plain);
  ASSERT_TRUE(plain.complete());
  DporSearch dpor;
  EXPECT_EQ(scene.all(dpor), all);
  EXPECT_TRUE(dpor.complete());
  EXPECT_FALSE(dpor.next());
  EXPECT_LT(dpor.runs() + dpor.pruned(), plain.runs());
}

TEST_P(EveryProgram, BoundedReachesWhatPlainEnumerationReaches) {
  for (unsigned bound = 0; bound <= 2; ++bound) {
    Scene scene(GetParam());
    PlainSearch plain(bound);
    const std::set<Final> all = scene.all(plain);
    ASSERT_TRUE(plain.complete());
    Scene fresh(GetParam());  // nothing is known to be shared
    BoundedSearch bounded(bound);
    EXPECT_EQ(fresh.all(bounded), all) << "with " << bound << " preemptions";
    EXPECT_TRUE(bounded.complete());
    EXPECT_FALSE(bounded.next());
    EXPECT_LE(bounded.runs_of_pass(), plain.runs());
  }
}

INSTANTIATE_TEST_SUITE_P(Explore, EveryProgram, testing::ValuesIn(programs()),
                         [](const auto& p) { return p.param.name; });

/// The happens-before of the last run, by conflicts: each CPU's clocks.
std::vector<std::uint32_t> conflicts() {
  using Clock = std::array<std::uint32_t, sim::kMaxCpus>;
  struct Access {
    sim::Place place;
    bool write;
    Clock clock;
  };
  std::vector<Access> before;
  Clock clocks[sim::kMaxCpus] = {};
  std::vector<std::uint32_t> of_cpu[sim::kMaxCpus];
  for (const sim::Step& s : World::get().trace()) {
    Clock& c = clocks[s.cpu];
    const bool write = sim::writes(s.kind);
    for (const Access& a : before) {
      if (a.place != s.place || (!a.write && !write)) continue;
      for (unsigned i = 0; i < sim::kMaxCpus; ++i) c[i] = std::max(c[i], a.clock[i]);
    }
    ++c[s.cpu];
    if (s.place != sim::kNoPlace) before.push_back({s.place, write, c});
    of_cpu[s.cpu].insert(of_cpu[s.cpu].end(), c.begin(), c.end());
  }
  std::vector<std::uint32_t> all;
  for (const auto& one : of_cpu) {
    all.push_back(~0u);
    all.insert(all.end(), one.begin(), one.end());
  }
  return all;
}

TEST(Dpor, OneRunForEachClass) {
  for (const Program& p : {increments(), locked_counter(), tried_lock(), shared_and_private(),
                           crossed_locks(), three_on_one_word(), pause_loop()}) {
    Scene scene(p);
    std::set<std::vector<std::uint32_t>> classes;
    PlainSearch plain;
    while (plain.next()) {
      scene.run(plain);
      classes.insert(conflicts());
    }
    std::set<std::vector<std::uint32_t>> reached;
    DporSearch dpor;
    while (dpor.next()) {
      scene.run(dpor);
      reached.insert(conflicts());
    }
    EXPECT_EQ(reached, classes) << p.name;
    EXPECT_EQ(dpor.runs(), classes.size()) << p.name;
    EXPECT_LT(dpor.pruned() * 2, dpor.runs()) << p.name;
  }
}

TEST(Bounded, WithHandlers) {
  for (unsigned injections = 1; injections <= 2; ++injections) {
    for (unsigned bound = 0; bound <= 2; ++bound) {
      Scene scene(interrupted());
      PlainSearch plain(bound);
      const std::set<Final> all = scene.all(plain, injections);
      ASSERT_TRUE(plain.complete());
      Scene fresh(interrupted());
      BoundedSearch bounded(bound);
      EXPECT_EQ(fresh.all(bounded, injections), all) << bound << " preemptions";
      EXPECT_TRUE(bounded.complete());
      EXPECT_LE(bounded.runs_of_pass(), plain.runs());
    }
  }
}

TEST(Bounded, FindsAHandlerBetweenTwoOperations) {
  // No other CPU: the handler's increment of the same word is what can be lost.
  Program p{"alone", 1, [](unsigned) { lossy_increment(mem->word[0]); },
            [](unsigned) { lossy_increment(mem->word[0]); }};
  Scene scene(p);
  BoundedSearch search(0);
  std::set<std::uint64_t> ends;
  for (const Final& f : scene.all(search, 1)) ends.insert(f[0]);
  EXPECT_EQ(ends, (std::set<std::uint64_t>{1, 2}));
}

TEST(Bounded, SwitchesOnlyWherePlacesAreShared) {
  // Each CPU stays with its own word: one run says it all, whatever the bound.
  Program p{"own",
            3,
            [](unsigned cpu) {
              for (int i = 0; i < 4; ++i) lossy_increment(mem->own[cpu]);
            },
            {}};
  Scene scene(p);
  BoundedSearch search(0);
  scene.all(search);
  const std::uint64_t orders = search.runs_of_pass();
  EXPECT_EQ(orders, 6u);  // 3! orders of whole turns
  Scene again(p);
  BoundedSearch more(3);
  again.all(more);
  EXPECT_EQ(more.runs(), orders);
  EXPECT_TRUE(more.exhausted());
}

TEST(Bounded, StopsWhereMorePreemptionsAddNothing) {
  Scene scene(store_buffering());
  BoundedSearch search(50);
  EXPECT_EQ(scene.all(search).size(), 3u);
  EXPECT_TRUE(search.exhausted());
  EXPECT_LT(search.level(), 5u);
}

TEST(Exhaustive, StoreBufferingUnderSequentialConsistency) {
  Scene scene(store_buffering());
  DporSearch search;
  std::set<std::pair<std::uint64_t, std::uint64_t>> outcomes;
  while (search.next()) {
    ASSERT_TRUE(scene.run(search));
    outcomes.insert({mem->seen[0], mem->seen[1]});
  }
  // saw(v) is v + 1 here. Both reading 0 would need a store buffer.
  EXPECT_EQ(outcomes, (std::set<std::pair<std::uint64_t, std::uint64_t>>{{1, 2}, {2, 1}, {2, 2}}));
}

TEST(Exhaustive, LostUpdate) {
  const auto ends = [](Explorer& search) {
    Scene scene(increments());
    std::set<std::uint64_t> counters;
    for (const Final& f : scene.all(search)) counters.insert(f[0]);
    return counters;
  };
  BoundedSearch none(0);
  EXPECT_EQ(ends(none), (std::set<std::uint64_t>{4}));
  BoundedSearch one(1);
  EXPECT_EQ(ends(one), (std::set<std::uint64_t>{2, 4}));
  // To lose one of four, each CPU must be interrupted.
  BoundedSearch two(2);
  EXPECT_EQ(ends(two), (std::set<std::uint64_t>{2, 3, 4}));
  DporSearch all;
  EXPECT_EQ(ends(all), (std::set<std::uint64_t>{2, 3, 4}));
}

TEST(Exhaustive, LocksExclude) {
  for (const Program& p : {locked_counter(), peterson()}) {
    Scene scene(p);
    DporSearch search;
    const std::set<Final> all = scene.all(search);
    EXPECT_TRUE(search.complete());
    // One for each order of the critical sections, and no data race in them.
    EXPECT_EQ(all.size(), p.cpus == 3 ? 6u : 2u);
    EXPECT_EQ(count_if(all, [](const Final& f) { return ended_by(f, sim::Detector::none); }),
              all.size());
  }
}

TEST(Exhaustive, CrossedLocksDeadlock) {
  const auto deadlocks = [](Explorer& search) {
    Scene scene(crossed_locks());
    return count_if(scene.all(search),
                    [](const Final& f) { return ended_by(f, sim::Detector::deadlock); });
  };
  BoundedSearch none(0);
  EXPECT_EQ(deadlocks(none), 0u);
  BoundedSearch one(1);
  EXPECT_GT(deadlocks(one), 0u);
  DporSearch all;
  EXPECT_GT(deadlocks(all), 0u);
}

// Programs that nobody chose: every kind of operation, on few words.
Program made_up(std::uint64_t number) {
  Rng rng(0x5eed, number);
  struct Instruction {
    std::uint32_t what;
    std::uint32_t word;
  };
  const unsigned cpus = 2 + rng.below(2);
  const unsigned words = 1 + rng.below(2);
  std::vector<std::vector<Instruction>> code(cpus);
  for (auto& c : code) {
    const unsigned length = 1 + rng.below(cpus == 2 ? 4 : 2);
    for (unsigned i = 0; i < length; ++i) c.push_back({rng.below(11), rng.below(words)});
  }
  return {"made_up",
          cpus,
          [code](unsigned cpu) {
            for (const Instruction& i : code[cpu]) {
              auto& word = mem->word[i.word];
              switch (i.what) {
                case 0: saw(word.load(relaxed)); break;
                case 1: word.store(cpu + 1, relaxed); break;
                case 2: saw(word.fetch_add(1, relaxed)); break;
                case 3: {
                  std::uint32_t expected = 1;
                  saw(word.compare_exchange(expected, 2, relaxed, relaxed));
                  break;
                }
                case 4: {
                  mem->lock[i.word].lock();
                  lossy_increment(word);
                  mem->lock[i.word].unlock();
                  break;
                }
                case 5:
                  if (mem->lock[0].try_lock()) {
                    saw(word.load(relaxed));
                    mem->lock[0].unlock();
                  }
                  break;
                case 6: env::pause(); break;
                case 7:
                  while (word.load(relaxed) == 0) env::yield();
                  break;
                case 8:
                  while (word.load(relaxed) == 0 && mem->word[i.word + 1].load(relaxed) == 0) {
                    env::yield();
                  }
                  break;
                case 9: env::park(word, 0, 0); break;
                case 10: env::unpark_one(word); break;
                default: break;
              }
            }
          },
          {}};
}

TEST(Exhaustive, MadeUpPrograms) {
  std::uint64_t plain_runs = 0;
  std::uint64_t dpor_runs = 0;
  for (std::uint64_t n = 0; n < 150; ++n) {
    const Program p = made_up(n);
    for (unsigned bound = 0; bound <= 2; ++bound) {
      Scene scene(p);
      PlainSearch plain(bound);
      const std::set<Final> all = scene.all(plain);
      Scene fresh(p);
      BoundedSearch bounded(bound);
      ASSERT_EQ(fresh.all(bounded), all) << "program " << n << ", " << bound << " preemptions";
    }
    Scene scene(p);
    PlainSearch plain;
    std::set<Final> all;
    while (plain.runs() < 20'000 && plain.next()) {
      scene.run(plain);
      all.insert(final_state());
    }
    if (!plain.complete()) continue;
    DporSearch dpor;
    ASSERT_EQ(scene.all(dpor), all) << "program " << n;
    plain_runs += plain.runs();
    dpor_runs += dpor.runs() + dpor.pruned();
  }
  EXPECT_LT(dpor_runs * 50, plain_runs);
}

// --- random
// ---------------------------------------------------------------------------------------

/// Runs until the counter is short of `right`; how many it took, or 0.
std::uint64_t runs_to_lose(Explorer& explorer, std::uint32_t right, std::uint64_t most) {
  Scene scene(increments());
  while (explorer.runs() < most && explorer.next()) {
    EXPECT_TRUE(scene.run(explorer));
    if (mem->word[0].load(relaxed) != right) return explorer.runs();
  }
  return 0;
}

TEST(Random, FindsTheLostUpdate) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    RandomWalk walk(seed);
    EXPECT_NE(runs_to_lose(walk, 4, 100), 0u) << "seed " << seed;
    Pct pct(seed, 2, 100);
    EXPECT_NE(runs_to_lose(pct, 4, 100), 0u) << "seed " << seed;
  }
}

TEST(Random, PctWithoutChangesRunsInTurns) {
  Scene scene(increments());
  Pct pct(1, 1, 100);
  std::set<std::string> schedules;
  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(pct.next());
    ASSERT_TRUE(scene.run(pct));
    EXPECT_EQ(mem->word[0].load(relaxed), 4u);
    schedules.insert(to_string(from_trace(World::get().trace())));
  }
  EXPECT_EQ(schedules.size(), 2u);  // who is first
}

TEST(Random, PctDoesNotStarve) {
  // The loop pauses more often than a run may have steps, unless the other CPU gets its turn.
  Program p{"spin",
            2,
            [](unsigned cpu) {
              if (cpu == 0) {
                mem->word[0].store(1, relaxed);
              } else {
                for (int i = 0; i < 100'000 && mem->word[0].load(relaxed) == 0; ++i) env::pause();
              }
            },
            {}};
  Scene scene(p);
  Pct pct(7, 3, 100);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(pct.next());
    ASSERT_TRUE(scene.run(pct)) << World::get().violation().message;
  }
}

std::vector<std::uint64_t> hashes(Explorer& explorer, unsigned runs) {
  Scene scene(interrupted());
  std::vector<std::uint64_t> out;
  while (out.size() < runs && explorer.next()) {
    scene.run(explorer, 2);
    out.push_back(World::get().trace_hash());
  }
  return out;
}

TEST(Random, OneSeedOneSequence) {
  RandomWalk a(5), b(5), c(6);
  const auto first = hashes(a, 50);
  EXPECT_EQ(hashes(b, 50), first);
  EXPECT_NE(hashes(c, 50), first);
  Pct d(5, 3, 20), e(5, 3, 20), f(6, 3, 20);
  const auto second = hashes(d, 50);
  EXPECT_EQ(hashes(e, 50), second);
  EXPECT_NE(hashes(f, 50), second);
  EXPECT_NE(first, second);
}

TEST(Random, ARunIsAFunctionOfSeedAndNumber) {
  Scene scene(interrupted());
  BoundedSearch learn(2);  // which places are shared
  scene.all(learn);
  RandomWalk sequence(5);
  std::vector<std::uint64_t> in_turn;
  for (int i = 0; i < 60; ++i) {
    sequence.next();
    scene.run(sequence, 2);
    in_turn.push_back(World::get().trace_hash());
  }
  for (const std::uint64_t run : {37u, 0u, 59u}) {
    RandomWalk alone(5);
    alone.begin(run);
    scene.run(alone, 2);
    EXPECT_EQ(World::get().trace_hash(), in_turn[run]) << run;
  }
}

TEST(Random, HandlersAreBegun) {
  for (const bool pct : {false, true}) {
    RandomWalk walk(3);
    Pct priorities(3, 2, 20);
    Explorer& explorer = pct ? static_cast<Explorer&>(priorities) : walk;
    Scene scene(interrupted());
    unsigned runs_with = 0;
    std::set<std::uint64_t> moments;
    for (int i = 0; i < 200; ++i) {
      explorer.next();
      scene.run(explorer, 1);
      const auto& trace = World::get().trace();
      const auto at =
          std::find_if(trace.begin(), trace.end(), [](const sim::Step& s) { return s.injected; });
      if (at == trace.end()) continue;
      ++runs_with;
      moments.insert(static_cast<std::uint64_t>(at - trace.begin()));
    }
    EXPECT_GT(runs_with, 30u) << "pct " << pct;
    EXPECT_GT(moments.size(), 4u) << "pct " << pct;
  }
}

// --- replay
// ---------------------------------------------------------------------------------------

TEST(Replay, RepeatsEveryTrace) {
  for (const Program& p : {increments(), peterson(), parked(), crossed_locks(), interrupted()}) {
    Scene scene(p);
    RandomWalk walk(11);
    for (int i = 0; i < 300; ++i) {
      ASSERT_TRUE(walk.next());
      scene.run(walk, 1);
      const std::uint64_t hash = World::get().trace_hash();
      const Final end = final_state();
      const Schedule schedule = from_trace(World::get().trace());
      const auto parsed = parse_schedule(to_string(schedule));
      ASSERT_TRUE(parsed);
      Replay replay(*parsed);
      scene.run(replay, 1);
      ASSERT_EQ(World::get().trace_hash(), hash) << p.name << " " << to_string(schedule);
      ASSERT_EQ(final_state(), end);
      ASSERT_FALSE(replay.diverged()) << p.name << " " << to_string(schedule);
      ASSERT_TRUE(replay.used_up());
    }
  }
}

TEST(Replay, GoesOnInTheDefaultOrder) {
  Scene scene(increments());
  Replay nothing{Schedule{}};
  ASSERT_TRUE(scene.run(nothing));
  EXPECT_EQ(to_string(from_trace(World::get().trace())), "1.00000000.0x5-1x5");
  EXPECT_FALSE(nothing.diverged());

  Replay start(*parse_schedule("1.00000000.1x2-0x1"));
  ASSERT_TRUE(scene.run(start));
  EXPECT_EQ(to_string(from_trace(World::get().trace())), "1.00000000.1x2-0x5-1x3");
  EXPECT_FALSE(start.diverged());

  // CPU 0 has ended after 5 steps.
  Replay too_long(*parse_schedule("1.00000000.0x6-1x1"));
  ASSERT_TRUE(scene.run(too_long));
  EXPECT_EQ(to_string(from_trace(World::get().trace())), "1.00000000.0x5-1x5");
  EXPECT_TRUE(too_long.diverged());

  // No such CPU, and no handler.
  Replay nobody(*parse_schedule("1.00000000.4x1-1i2"));
  ASSERT_TRUE(scene.run(nobody));
  EXPECT_EQ(to_string(from_trace(World::get().trace())), "1.00000000.1x5-0x5");
  EXPECT_TRUE(nobody.diverged());
  nobody.rewind();
  EXPECT_FALSE(nobody.diverged());
}

// --- shrinking
// ------------------------------------------------------------------------------------

/// Three CPUs that count for a long time; the shared counter is the one that can lose.
Program long_counting() {
  return {"long_counting", 3,
          [](unsigned cpu) {
            for (int i = 0; i < 20; ++i) mem->own[cpu].fetch_add(1, relaxed);
            lossy_increment(mem->word[0]);
            for (int i = 0; i < 20; ++i) mem->word[1].fetch_add(1, relaxed);
          },
          [](unsigned) { mem->word[2].fetch_add(1, relaxed); }};
}

TEST(Shrink, LostUpdate) {
  Scene scene(long_counting());
  RandomWalk walk(1);
  unsigned shrunk = 0;
  for (int i = 0; i < 400 && shrunk < 8; ++i) {
    ASSERT_TRUE(walk.next());
    ASSERT_TRUE(scene.run(walk, 1));
    Schedule failing = from_trace(World::get().trace());
    failing.fingerprint = 77;
    if (mem->word[0].load(relaxed) == 3 || switches(failing) < 20) continue;
    ++shrunk;
    unsigned tries = 0;
    const Schedule best = shrink(failing, [&](sim::Strategy& s, Schedule* executed) {
      ++tries;
      scene.run(s, 1);
      *executed = from_trace(World::get().trace());
      return mem->word[0].load(relaxed) != 3;
    });
    // One CPU's load, then another's store, then the first one's: two switches; and one to the
    // third.
    EXPECT_LE(switches(best), 3u + 2u) << to_string(failing) << " to " << to_string(best);
    EXPECT_LE(tries, kShrinkTries);
    EXPECT_EQ(to_string(best).find('i'), std::string::npos);
    EXPECT_EQ(best.fingerprint, 77u);
    Replay replay(best);
    scene.run(replay, 1);
    EXPECT_NE(mem->word[0].load(relaxed), 3u);
    EXPECT_FALSE(replay.diverged());
  }
  EXPECT_EQ(shrunk, 8u);
}

TEST(Shrink, WhatDoesNotFailStays) {
  const Schedule s{1, {{0, false, 3}, {1, false, 4}}};
  EXPECT_EQ(shrink(s, [](sim::Strategy&, Schedule*) { return false; }), s);
}

}  // namespace
}  // namespace faultpath::check
