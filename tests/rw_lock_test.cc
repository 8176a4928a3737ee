// The address-space lock and the spinning reader-writer lock: exclusion, sharing, fairness.
#include "sync/rw_lock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

#include "env.h"
#include "sync/spin_guard.h"
#include "sync/spin_rw_lock.h"

namespace faultpath::sync {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

/// Waits for something another thread does; false after a time in which it surely should have.
template <class Condition>
bool comes_true(Condition condition, std::chrono::nanoseconds limit = 20s) {
  const auto deadline = Clock::now() + limit;
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

class Crew {
 public:
  template <class Work>
  void add(Work work) {
    threads_.emplace_back(std::move(work));
  }
  void join() {
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  ~Crew() { join(); }

 private:
  std::vector<std::thread> threads_;
};

// Ordinary use, as Clang's thread-safety analysis wants it: what compiles here without a warning is
// what the annotations allow.
template <class Lock>
class Guarded {
 public:
  void add(std::uint64_t n) {
    lock_.lock_write();
    value_ += n;
    lock_.unlock_write();
  }
  std::uint64_t get() {
    lock_.lock_read();
    const std::uint64_t value = value_;
    lock_.unlock_read();
    return value;
  }
  std::uint64_t try_add_and_get(std::uint64_t n) {
    if (lock_.try_lock_write()) {
      value_ += n;
      lock_.unlock_write();
    }
    std::uint64_t value = 0;
    if (lock_.try_lock_read()) {
      value = value_;
      lock_.unlock_read();
    }
    return value;
  }
  std::uint64_t add_and_get(std::uint64_t n) {
    lock_.lock_write();
    value_ += n;
    lock_.downgrade();
    const std::uint64_t value = value_;
    lock_.unlock_read();
    return value;
  }

 private:
  Lock lock_;
  std::uint64_t value_ FP_GUARDED_BY(lock_) = 0;
};

TEST(Annotations, AllowOrdinaryUse) {
  Guarded<RwLock> sleeping;
  sleeping.add(1);
  EXPECT_EQ(sleeping.get(), 1u);
  EXPECT_EQ(sleeping.try_add_and_get(1), 2u);
  EXPECT_EQ(sleeping.add_and_get(1), 3u);
  Guarded<SpinRwLock> spinning;
  spinning.add(1);
  EXPECT_EQ(spinning.get(), 1u);
  EXPECT_EQ(spinning.try_add_and_get(1), 2u);
}

// The other tests lock in branches, twice and through assertions: the analysis cannot follow.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wthread-safety-analysis"
#endif

// Most of them hold for both locks.
template <class Lock>
class AnyRwLock : public testing::Test {
 protected:
  Lock lock_;
};
using Locks = testing::Types<RwLock, SpinRwLock>;
TYPED_TEST_SUITE(AnyRwLock, Locks);

TYPED_TEST(AnyRwLock, TryFunctionsTellWhatIsHeld) {
  TypeParam& lock = this->lock_;
  EXPECT_FALSE(lock.is_locked());
  ASSERT_TRUE(lock.try_lock_read());
  ASSERT_TRUE(lock.try_lock_read());
  EXPECT_TRUE(lock.is_locked());
  EXPECT_FALSE(lock.is_write_locked());
  EXPECT_FALSE(lock.try_lock_write());
  lock.unlock_read();
  EXPECT_FALSE(lock.try_lock_write());
  lock.unlock_read();
  ASSERT_TRUE(lock.try_lock_write());
  EXPECT_TRUE(lock.is_write_locked());
  EXPECT_FALSE(lock.try_lock_write());
  EXPECT_FALSE(lock.try_lock_read());
  lock.unlock_write();
  EXPECT_FALSE(lock.is_locked());
  EXPECT_TRUE(lock.try_lock_write());
  lock.unlock_write();
}

TYPED_TEST(AnyRwLock, ReadersAreInTogether) {
  TypeParam& lock = this->lock_;
  constexpr int kReaders = 4;
  std::atomic<int> inside{0};
  std::atomic<int> met{0};
  Crew crew;
  for (int i = 0; i < kReaders; ++i) {
    crew.add([&] {
      lock.lock_read();
      inside.fetch_add(1);
      // Nobody leaves until all are in.
      if (comes_true([&] { return inside.load() == kReaders; })) met.fetch_add(1);
      lock.unlock_read();
    });
  }
  crew.join();
  EXPECT_EQ(met.load(), kReaders);
}

// Plain fields under the lock: a missing order shows under ThreadSanitizer, a missing exclusion in
// the sum or in a reader's view.
TYPED_TEST(AnyRwLock, CountersUnderContention) {
  TypeParam& lock = this->lock_;
  constexpr int kThreads = 4;
  constexpr std::uint64_t kOps = 20'000;
  std::uint64_t left = 0;
  std::uint64_t right = 0;
  std::atomic<std::uint64_t> torn{0};
  Crew crew;
  for (int t = 0; t < kThreads; ++t) {
    crew.add([&, t] {
      const unsigned every = t % 2 == 0 ? 2 : 10;
      for (std::uint64_t i = 0; i < kOps; ++i) {
        if (i % every == 0) {
          lock.lock_write();
          ++left;
          if (i % 100 == 0) std::this_thread::yield();
          ++right;
          lock.unlock_write();
        } else if (i % 7 == 0) {
          if (lock.try_lock_read()) {
            if (left != right) torn.fetch_add(1);
            lock.unlock_read();
          }
        } else {
          lock.lock_read();
          if (left != right) torn.fetch_add(1);
          lock.unlock_read();
        }
      }
    });
  }
  crew.join();
  EXPECT_EQ(torn.load(), 0u);
  EXPECT_EQ(left, 2 * (kOps / 2 + kOps / 10));
  EXPECT_EQ(right, left);
  EXPECT_FALSE(lock.is_locked());
}

TYPED_TEST(AnyRwLock, TryWritersExclude) {
  TypeParam& lock = this->lock_;
  std::uint64_t counter = 0;
  std::atomic<std::uint64_t> taken{0};
  Crew crew;
  for (int t = 0; t < 3; ++t) {
    crew.add([&] {
      std::uint64_t mine = 0;
      for (int i = 0; i < 20'000; ++i) {
        if (!lock.try_lock_write()) continue;
        ++counter;
        ++mine;
        lock.unlock_write();
      }
      taken.fetch_add(mine);
    });
  }
  crew.join();
  EXPECT_EQ(counter, taken.load());
}

// Readers overlap all the time: the lock is never seen without one, but by the fairness rule.
TYPED_TEST(AnyRwLock, StreamOfReadersLetsWritersIn) {
  TypeParam& lock = this->lock_;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> reads{0};
  std::atomic<int> writes{0};
  Crew crew;
  for (int t = 0; t < 3; ++t) {
    crew.add([&] {
      while (!stop.load()) {
        lock.lock_read();
        const auto until = Clock::now() + 20us;
        while (Clock::now() < until) env::pause();
        lock.unlock_read();
        reads.fetch_add(1);
      }
    });
  }
  ASSERT_TRUE(comes_true([&] { return reads.load() > 0; }));
  crew.add([&] {
    for (int i = 0; i < 5; ++i) {
      lock.lock_write();
      lock.unlock_write();
      writes.fetch_add(1);
    }
  });
  EXPECT_TRUE(comes_true([&] { return writes.load() == 5; }));
  stop = true;
  crew.join();
}

TYPED_TEST(AnyRwLock, StreamOfWritersLetsReadersIn) {
  TypeParam& lock = this->lock_;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> writes{0};
  std::atomic<int> reads{0};
  Crew crew;
  for (int t = 0; t < 3; ++t) {
    crew.add([&] {
      while (!stop.load()) {
        lock.lock_write();
        const auto until = Clock::now() + 20us;
        while (Clock::now() < until) env::pause();
        lock.unlock_write();
        writes.fetch_add(1);
      }
    });
  }
  ASSERT_TRUE(comes_true([&] { return writes.load() > 0; }));
  crew.add([&] {
    for (int i = 0; i < 5; ++i) {
      lock.lock_read();
      lock.unlock_read();
      reads.fetch_add(1);
    }
  });
  EXPECT_TRUE(comes_true([&] { return reads.load() == 5; }));
  stop = true;
  crew.join();
}

// ---- RwLock alone ----

TEST(RwLock, UncontendedCostsNoWait) {
  RwLock lock;
  Wait wait = lock.lock_read();
  EXPECT_FALSE(wait.contended);
  EXPECT_EQ(wait.wait_ns, 0u);
  lock.unlock_read();
  wait = lock.lock_write();
  EXPECT_FALSE(wait.contended);
  EXPECT_EQ(wait.wait_ns, 0u);
  lock.unlock_write();
}

TEST(RwLock, StateHasItsLineForItself) {
  EXPECT_EQ(alignof(RwLock), 64u);
  EXPECT_EQ(sizeof(RwLock), 128u);
}

// A waiter that sleeps is woken, and says how long it waited.
TEST(RwLock, SleepersAreWokenAndTellTheirWait) {
  RwLock lock;
  for (const bool held_by_writer : {true, false}) {
    for (const bool waiter_writes : {true, false}) {
      if (!held_by_writer && !waiter_writes) continue;
      Wait wait;
      held_by_writer ? lock.lock_write() : lock.lock_read();
      std::thread waiter([&] {
        wait = waiter_writes ? lock.lock_write() : lock.lock_read();
        waiter_writes ? lock.unlock_write() : lock.unlock_read();
      });
      EXPECT_TRUE(comes_true([&] { return lock.has_waiters(); }));
      std::this_thread::sleep_for(20ms);
      held_by_writer ? lock.unlock_write() : lock.unlock_read();
      waiter.join();
      EXPECT_TRUE(wait.contended);
      EXPECT_GE(wait.wait_ns, 15'000'000u);
      EXPECT_FALSE(lock.is_locked());
      EXPECT_FALSE(lock.has_waiters());
    }
  }
}

TEST(RwLock, TryNeverPassesAQueue) {
  RwLock lock;
  lock.lock_read();
  std::thread writer([&] {
    lock.lock_write();
    lock.unlock_write();
  });
  EXPECT_TRUE(comes_true([&] { return lock.has_waiters(); }));
  EXPECT_FALSE(lock.try_lock_write());
  if (lock.try_lock_read()) {
    ADD_FAILURE() << "a reader passed a queued writer";
    lock.unlock_read();
  }
  lock.unlock_read();
  writer.join();
}

// Writer inside, readers queued: unlocking lets all of them in at once.
TEST(RwLock, QueuedReadersAreGrantedInOneBatch) {
  RwLock lock;
  constexpr int kReaders = 4;
  std::atomic<int> inside{0};
  std::atomic<int> met{0};
  Crew crew;
  lock.lock_write();
  for (int i = 0; i < kReaders; ++i) {
    crew.add([&] {
      lock.lock_read();
      inside.fetch_add(1);
      if (comes_true([&] { return inside.load() == kReaders; })) met.fetch_add(1);
      lock.unlock_read();
    });
  }
  EXPECT_TRUE(comes_true([&] { return lock.has_waiters(); }));
  std::this_thread::sleep_for(20ms);
  EXPECT_EQ(inside.load(), 0);
  lock.unlock_write();
  crew.join();
  EXPECT_EQ(met.load(), kReaders);
}

// Reader in, then queued in order: writer, reader, writer. Each waits for the one before it.
TEST(RwLock, QueueIsFirstInFirstOut) {
  RwLock lock;
  std::vector<int> order;
  env::SpinLock order_lock;
  Crew crew;
  const auto note = [&](int who) {
    const SpinGuard guard(order_lock);
    order.push_back(who);
  };
  lock.lock_read();
  for (int who = 0; who < 3; ++who) {
    crew.add([&, who] {
      if (who == 1) {
        lock.lock_read();
        note(who);
        lock.unlock_read();
      } else {
        lock.lock_write();
        note(who);
        lock.unlock_write();
      }
    });
    // Spinning over and in the queue, on any but a very busy machine.
    EXPECT_TRUE(comes_true([&] { return lock.has_waiters(); }));
    std::this_thread::sleep_for(50ms);
  }
  lock.unlock_read();
  crew.join();
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST(RwLock, DowngradeKeepsWritersOutAndLetsReadersIn) {
  RwLock lock;
  std::uint64_t value = 0;
  std::atomic<bool> reader_done{false};
  std::atomic<bool> writer_done{false};
  std::atomic<std::uint64_t> read{0};
  Crew crew;
  lock.lock_write();
  crew.add([&] {
    lock.lock_read();
    read = value;
    lock.unlock_read();
    reader_done = true;
  });
  EXPECT_TRUE(comes_true([&] { return lock.has_waiters(); }));
  crew.add([&] {
    lock.lock_write();
    value = 2;
    lock.unlock_write();
    writer_done = true;
  });
  std::this_thread::sleep_for(20ms);
  value = 1;
  lock.downgrade();
  EXPECT_FALSE(lock.is_write_locked());
  EXPECT_TRUE(comes_true([&] { return reader_done.load(); }));
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(writer_done.load());
  EXPECT_EQ(value, 1u);
  lock.unlock_read();
  crew.join();
  EXPECT_EQ(read.load(), 1u);
  EXPECT_EQ(value, 2u);
  EXPECT_FALSE(lock.is_locked());
}

TEST(RwLock, DowngradeUnderContention) {
  RwLock lock;
  std::uint64_t counter = 0;
  std::atomic<std::uint64_t> changed{0};
  constexpr std::uint64_t kOps = 5'000;
  Crew crew;
  for (int t = 0; t < 3; ++t) {
    crew.add([&] {
      for (std::uint64_t i = 0; i < kOps; ++i) {
        lock.lock_write();
        const std::uint64_t mine = ++counter;
        lock.downgrade();
        if (i % 64 == 0) std::this_thread::yield();
        if (counter != mine) changed.fetch_add(1);
        lock.unlock_read();
      }
    });
  }
  crew.join();
  EXPECT_EQ(counter, 3 * kOps);
  EXPECT_EQ(changed.load(), 0u);
}

// More threads than processors, sections that outlast the spinning: the queue, its batches and the
// handing over are what runs here. A lost wake-up would hang it.
TEST(RwLock, LongSectionsGoThroughTheQueue) {
  RwLock lock;
  constexpr int kThreads = 8;
  std::uint64_t counter = 0;
  std::atomic<std::uint64_t> contended{0};
  std::atomic<std::uint64_t> longest{0};
  std::atomic<std::uint64_t> written{0};
  std::atomic<bool> stop{false};
  Crew crew;
  for (int t = 0; t < kThreads; ++t) {
    crew.add([&, t] {
      std::uint64_t mine = 0;
      std::uint64_t waits = 0;
      std::uint64_t max_wait = 0;
      for (unsigned i = 0; !stop.load(); ++i) {
        const bool writes = (i + static_cast<unsigned>(t)) % 3 == 0;
        const Wait wait = writes ? lock.lock_write() : lock.lock_read();
        const auto until = Clock::now() + 50us;
        if (writes) ++counter, ++mine;
        while (Clock::now() < until) env::pause();
        writes ? lock.unlock_write() : lock.unlock_read();
        waits += wait.contended ? 1 : 0;
        max_wait = std::max(max_wait, wait.wait_ns);
      }
      written.fetch_add(mine);
      contended.fetch_add(waits);
      std::uint64_t seen = longest.load();
      while (seen < max_wait && !longest.compare_exchange_weak(seen, max_wait)) {
      }
    });
  }
  std::this_thread::sleep_for(500ms);
  stop = true;
  crew.join();
  EXPECT_EQ(counter, written.load());
  EXPECT_GT(contended.load(), 0u);
  EXPECT_LT(longest.load(), 10'000'000'000u);
  EXPECT_FALSE(lock.is_locked());
  EXPECT_FALSE(lock.has_waiters());
}

// One thread takes the lock again and again with hardly a gap; another must still get it every
// time, within the bound on stealing and a generous time for waking up.
TEST(RwLock, StealingIsBounded) {
  for (const bool waiter_writes : {true, false}) {
    RwLock lock;
    std::atomic<bool> stop{false};
    std::atomic<std::uint64_t> taken{0};
    std::uint64_t longest = 0;
    Crew crew;
    crew.add([&] {
      while (!stop.load()) {
        lock.lock_write();
        const auto until = Clock::now() + 200us;
        while (Clock::now() < until) env::pause();
        taken.fetch_add(1);
        lock.unlock_write();
      }
    });
    EXPECT_TRUE(comes_true([&] { return taken.load() > 0; }));
    for (int i = 0; i < 20; ++i) {
      const Wait wait = waiter_writes ? lock.lock_write() : lock.lock_read();
      waiter_writes ? lock.unlock_write() : lock.unlock_read();
      longest = std::max(longest, wait.wait_ns);
    }
    stop = true;
    crew.join();
    EXPECT_LT(longest, RwLock::kStealNs + 5'000'000'000u);
    RecordProperty(waiter_writes ? "writer_longest_ns" : "reader_longest_ns",
                   static_cast<std::int64_t>(longest));
  }
}

TEST(SpinGuard, HoldsForItsScope) {
  env::SpinLock lock;
  std::uint64_t counter = 0;
  {
    const SpinGuard guard(lock);
    EXPECT_TRUE(lock.is_locked());
  }
  EXPECT_FALSE(lock.is_locked());
  Crew crew;
  for (int t = 0; t < 3; ++t) {
    crew.add([&] {
      for (int i = 0; i < 10'000; ++i) {
        const SpinGuard guard(lock);
        ++counter;
      }
    });
  }
  crew.join();
  EXPECT_EQ(counter, 30'000u);
}

}  // namespace
}  // namespace faultpath::sync
