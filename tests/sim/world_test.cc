// The simulated world itself: points, detectors, restoring.
#include <gtest/gtest.h>

#include "check/explore/random.h"
#include "check/explore/replay.h"
#include "env.h"
#include "sync/spin_guard.h"

namespace faultpath {
namespace {

using check::RandomWalk;
using check::Replay;
using check::Schedule;
using sim::Actor;
using sim::Detector;
using sim::World;

/// What the toy programs share.
struct Shared {
  env::atomic<std::uint64_t> a;
  env::atomic<std::uint64_t> b;
  env::atomic<std::uint32_t> word;
  env::SpinLock one;
  env::SpinLock two;
  env::var<std::uint64_t> plain;
};

class WorldTest : public testing::Test {
 protected:
  WorldTest() {
    World& w = World::get();
    w.reset();
    w.set_structural(true);
    w.set_guards_off(0);
    s = ::new (w.state(sizeof(Shared))) Shared();
    w.freeze();
  }

  template <class F>
  static void call(void* context) {
    (*static_cast<F*>(context))();
  }
  template <class F>
  static Actor actor(F& f, const char* name = "") {
    return {name, call<F>, &f, nullptr};
  }

  /// Random runs until one is no good; what the detector said.
  template <class... F>
  Detector hunt(int runs, F&... scripts) {
    const Actor actors[] = {actor(scripts)...};
    World& w = World::get();
    w.treat_all_as_shared(true);
    RandomWalk walk(3);
    for (int i = 0; i < runs && walk.next(); ++i) {
      if (!w.run(actors, walk, {})) break;
    }
    w.treat_all_as_shared(false);
    return w.violation().detector;
  }

  Shared* s;
};

TEST_F(WorldTest, EachRunStartsFromTheSnapshot) {
  auto script = [this] { s->a.fetch_add(1, env::relaxed); };
  const Actor actors[] = {actor(script)};
  Replay in_turn{Schedule{}};
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(World::get().run(actors, in_turn, {}));
    EXPECT_EQ(s->a.load(env::relaxed), 1u);
    in_turn.rewind();
  }
}

TEST_F(WorldTest, RaceOnAPlainFieldIsFound) {
  auto script = [this] { ++s->plain; };
  EXPECT_EQ(hunt(50, script, script), Detector::race);
}

TEST_F(WorldTest, ALockOrdersAPlainField) {
  auto script = [this] {
    const sync::SpinGuard guard(s->one);
    ++s->plain;
  };
  EXPECT_EQ(hunt(200, script, script), Detector::none);
}

TEST_F(WorldTest, ReleaseAndAcquireOrderAPlainField) {
  auto writer = [this] {
    s->plain = 7;
    s->a.store(1, env::release);
  };
  auto reader = [this] {
    if (s->a.load(env::acquire) == 1 && s->plain != 7) __builtin_trap();
  };
  EXPECT_EQ(hunt(200, writer, reader), Detector::none);
}

// The operations take effect in order in this world; the orders that are written count all the same.
TEST_F(WorldTest, RelaxedPublicationIsARace) {
  auto writer = [this] {
    s->plain = 7;
    s->a.store(1, env::relaxed);
  };
  auto reader = [this] {
    if (s->a.load(env::acquire) == 1) (void)static_cast<std::uint64_t>(s->plain);
  };
  EXPECT_EQ(hunt(200, writer, reader), Detector::race);
}

TEST_F(WorldTest, FencesPublishToo) {
  auto writer = [this] {
    s->plain = 7;
    env::full_fence(s->b);
    s->a.store(1, env::relaxed);
  };
  auto reader = [this] {
    if (s->a.load(env::relaxed) != 1) return;
    env::full_fence(s->b);
    if (s->plain != 7) __builtin_trap();
  };
  EXPECT_EQ(hunt(200, writer, reader), Detector::none);
}

TEST_F(WorldTest, TwoLocksInTwoOrdersDeadlock) {
  auto ab = [this] {
    const sync::SpinGuard first(s->one);
    const sync::SpinGuard second(s->two);
  };
  auto ba = [this] {
    const sync::SpinGuard first(s->two);
    const sync::SpinGuard second(s->one);
  };
  EXPECT_EQ(hunt(200, ab, ba), Detector::deadlock);
  EXPECT_NE(World::get().violation().message.find("held by cpu"), std::string::npos)
      << World::get().violation().message;
}

TEST_F(WorldTest, WaitingForAWordThatNobodyWritesIsADeadlock) {
  auto waiter = [this] {
    while (s->a.load(env::acquire) == 0) env::yield();
  };
  auto other = [this] { s->b.store(1, env::release); };
  EXPECT_EQ(hunt(20, waiter, other), Detector::deadlock);
}

TEST_F(WorldTest, WaitingForAWordThatIsWrittenEnds) {
  auto waiter = [this] {
    while (s->a.load(env::acquire) < 3) env::yield();
  };
  auto other = [this] {
    for (int i = 0; i < 3; ++i) s->a.fetch_add(1, env::release);
  };
  EXPECT_EQ(hunt(200, waiter, other), Detector::none);
}

TEST_F(WorldTest, AParkedCpuSleepsUntilItIsWoken) {
  auto sleeper = [this] {
    while (s->word.load(env::acquire) == 0) env::park(s->word, 0, 0);
  };
  auto waker = [this] {
    s->word.store(1, env::release);
    env::unpark_one(s->word);
  };
  EXPECT_EQ(hunt(200, sleeper, waker), Detector::none);
  auto forgets = [this] { s->word.store(1, env::release); };
  EXPECT_EQ(hunt(200, sleeper, forgets), Detector::deadlock);
}

TEST_F(WorldTest, DeadMemoryIsNotUsed) {
  auto killer = [this] {
    s->a.store(1, env::release);
    env::died(&s->plain, 8);
  };
  auto user = [this] {
    if (s->a.load(env::acquire) == 1) (void)static_cast<std::uint64_t>(s->plain);
  };
  EXPECT_EQ(hunt(200, killer, user), Detector::lifetime);
}

TEST_F(WorldTest, DeathComesOnce) {
  auto script = [this] { env::died(&s->plain, 8); };
  EXPECT_EQ(hunt(20, script, script), Detector::double_release);
}

TEST_F(WorldTest, AWildAddressIsAFindingAndNotTheEnd) {
  auto script = [] {
    volatile std::uintptr_t wild = 8;  // volatile, or the compiler knows it for what it is
    *reinterpret_cast<volatile int*>(wild) = 1;
  };
  EXPECT_EQ(hunt(2, script), Detector::crash);
  EXPECT_EQ(hunt(2, script), Detector::crash) << "a second time";
}

TEST_F(WorldTest, ALoopWithoutEndIsNoProgress) {
  auto script = [this] {
    while (s->a.load(env::relaxed) == 0) {
    }
  };
  EXPECT_EQ(hunt(1, script), Detector::no_progress);
}

TEST_F(WorldTest, AGuardIsInForceUnlessSwitchedOff) {
  enum class G : std::uint8_t { a, b };
  EXPECT_TRUE(env::guard<G::b>());
  World::get().set_guards_off(2);
  EXPECT_TRUE(env::guard<G::a>());
  EXPECT_FALSE(env::guard<G::b>());
  World::get().set_guards_off(0);
}

TEST_F(WorldTest, HandlersRunBetweenTheStepsOfTheirCpu) {
  auto script = [this] {
    s->a.store(1, env::relaxed);
    s->a.store(2, env::relaxed);
  };
  Actor actors[] = {actor(script)};
  actors[0].handler = [](void*) {
    auto* shared = static_cast<Shared*>(const_cast<void*>(World::get().address_of(0)));
    shared->b.store(shared->a.load(env::relaxed) + 10, env::relaxed);
  };
  sim::Limits limits;
  limits.injections = 1;
  std::uint64_t seen = 0;
  RandomWalk walk(1);
  for (int i = 0; i < 200 && walk.next(); ++i) {
    ASSERT_TRUE(World::get().run(actors, walk, limits));
    const std::uint64_t b = s->b.load(env::relaxed);
    if (b >= 10) seen |= std::uint64_t{1} << (b - 10);
  }
  EXPECT_EQ(seen & 3, 3u) << "before the first store, and between the two";
}

}  // namespace
}  // namespace faultpath
