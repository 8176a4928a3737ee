// The locks by themselves: who excludes whom, that everybody gets in, and what a holder sees.
//
// Stages are bare: no space is in play. Each lock protects a Treasure; a section of a writer takes
// several steps, so that whoever is let in beside it finds it half done. (Some scenes let the clock
// run so fast that a queued waiter's patience is over at once: RwLock's handoff.)
#include <memory>

#include "check/scenes/scenes.h"
#include "sync/rw_lock.h"
#include "sync/seq_count.h"
#include "sync/sleep_lock.h"
#include "sync/spin_rw_lock.h"

namespace faultpath::check {

namespace {

/// Both words are equal but within a writer's section. The plain field is for the detector of data
/// races: only the lock orders accesses of it.
struct Treasure {
  env::atomic<std::uint64_t> left;
  env::atomic<std::uint64_t> right;
  env::var<std::uint64_t> plain;

  void write(Script& c) {
    const std::uint64_t was = left.load(env::relaxed);
    c.expect(right.load(env::relaxed) == was, "a writer finds another one's work half done");
    c.expect(plain == was, "a writer's section was lost");
    left.store(was + 1, env::relaxed);
    right.store(was + 1, env::relaxed);
    plain = was + 1;
  }
  std::uint64_t read(Script& c) const {
    const std::uint64_t was = left.load(env::relaxed);
    c.expect(right.load(env::relaxed) == was, "a reader sees a writer's work half done");
    c.expect(plain == was, "a reader sees two versions");
    return was;
  }
};

template <class Lock>
struct Guarded {
  Lock lock;
  Treasure treasure;
  /// At the end nobody holds the lock or waits for it, and every writer has been in.
  std::string at_rest(std::uint64_t writers) FP_NO_THREAD_SAFETY_ANALYSIS {
    if (lock.is_locked()) return "the lock is held by nobody";
    bool free = false;
    if constexpr (requires { lock.try_lock_write(); }) {
      free = lock.try_lock_write();
    } else {
      free = lock.try_lock();
    }
    if (!free) return "the lock is free and cannot be taken";
    const std::uint64_t was = treasure.plain;
    if (was == writers) return {};
    return std::to_string(writers) + " writers were in, and " + std::to_string(was) +
           " are counted";
  }
};

/// Time in which every waiter has waited for long.
struct FastClock {
  FastClock() { sim::World::get().set_step_ns(sync::RwLock::kStealNs); }
  ~FastClock() { sim::World::get().set_step_ns(1000); }
};

/// Makes the object, and has it looked at after each run. A fast clock lives as long as the stage.
template <class Lock>
Guarded<Lock>& guarded(Stage& s, std::uint64_t writers,
                       std::shared_ptr<const FastClock> clock = nullptr) {
  s.bare = true;
  auto& g = s.state<Guarded<Lock>>();
  s.at_rest = [&g, writers, clock = std::move(clock)] { return g.at_rest(writers); };
  return g;
}

template <class Lock>
std::function<void(Script&)> writer(Guarded<Lock>& g, unsigned times = 1) {
  return [&g, times](Script& c) FP_NO_THREAD_SAFETY_ANALYSIS {
    for (unsigned i = 0; i < times; ++i) {
      g.lock.lock_write();
      g.treasure.write(c);
      g.lock.unlock_write();
    }
  };
}
template <class Lock>
std::function<void(Script&)> reader(Guarded<Lock>& g, unsigned times = 1) {
  return [&g, times](Script& c) FP_NO_THREAD_SAFETY_ANALYSIS {
    for (unsigned i = 0; i < times; ++i) {
      g.lock.lock_read();
      g.treasure.read(c);
      g.lock.unlock_read();
    }
  };
}

using sync::RwLock;
using sync::SpinRwLock;

// --- RwLock -------------------------------------------------------------------------------------------

constexpr Scene kRwTwoWriters{
    .name = "rw-lock-two-writers",
    .ids = "B06 I10",
    .story =
        "Two CPUs take the address-space lock for writing. One is in at a time, each sees what the "
        "other one did, and neither sleeps for ever.",
    .build =
        [](Stage& s) {
          auto& g = guarded<RwLock>(s, 2);
          s.cpu("one", writer(g));
          s.cpu("other", writer(g));
        },
    .unbounded = true,
};

constexpr Scene kRwWriterAndReader{
    .name = "rw-lock-writer-and-reader",
    .ids = "B06 I10",
    .story =
        "One CPU takes the address-space lock for writing, one for reading. They exclude each "
        "other, and neither sleeps for ever.",
    .build =
        [](Stage& s) {
          auto& g = guarded<RwLock>(s, 1);
          s.cpu("writer", writer(g));
          s.cpu("reader", reader(g));
        },
    .unbounded = true,
};

constexpr Scene kRwReadersShare{
    .name = "rw-lock-readers-share",
    .ids = "I10",
    .story =
        "Two CPUs hold the address-space lock for reading and wait for each other inside: readers "
        "do not exclude readers.",
    .build =
        [](Stage& s) {
          auto& g = guarded<RwLock>(s, 0);
          Flag& first = s.flag();
          Flag& second = s.flag();
          const auto body = [&g](Flag& mine, Flag& yours) {
            return [&g, &mine, &yours](Script& c) FP_NO_THREAD_SAFETY_ANALYSIS {
              g.lock.lock_read();
              mine.raise();
              yours.await();
              g.treasure.read(c);
              g.lock.unlock_read();
            };
          };
          s.cpu("one", body(first, second));
          s.cpu("other", body(second, first));
        },
    .unbounded = true,
};

constexpr Scene kRwQueue{
    .name = "rw-lock-two-writers-and-a-reader",
    .ids = "B06 I10",
    .story =
        "Two writers and a reader want the address-space lock at once: somebody queues behind "
        "somebody who queues. Whoever leaves wakes who can go on.",
    .build =
        [](Stage& s) {
          auto& g = guarded<RwLock>(s, 2);
          s.cpu("one", writer(g));
          s.cpu("other", writer(g));
          s.cpu("reader", reader(g));
        },
};

constexpr Scene kRwReaders{
    .name = "rw-lock-two-readers-and-a-writer",
    .ids = "B06 I10",
    .story =
        "A writer and two readers want the address-space lock at once. A reader that comes to the "
        "head of the queue takes the reader behind it along.",
    .build =
        [](Stage& s) {
          auto& g = guarded<RwLock>(s, 1);
          s.cpu("writer", writer(g));
          s.cpu("one", reader(g));
          s.cpu("other", reader(g));
        },
};

constexpr Scene kRwHandoff{
    .name = "rw-lock-handed-over-to-a-writer",
    .ids = "B06 I10",
    .story =
        "Two CPUs write, one of them twice. A waiter's patience is over at once: it asks that the "
        "lock be handed over to it, and whoever comes past must leave it alone and still get its "
        "own turn.",
    .build =
        [](Stage& s) {
          auto& g = guarded<RwLock>(s, 3, std::make_shared<const FastClock>());
          s.cpu("twice", writer(g, 2));
          s.cpu("once", writer(g));
        },
    .unbounded = true,
};

constexpr Scene kRwHandoffReader{
    .name = "rw-lock-handed-over-to-a-reader",
    .ids = "B06 I10",
    .story = "The same with a reader that waits for a writer, and a third CPU that reads.",
    .build =
        [](Stage& s) {
          auto& g = guarded<RwLock>(s, 2, std::make_shared<const FastClock>());
          s.cpu("writer", writer(g, 2));
          s.cpu("one", reader(g));
          s.cpu("other", reader(g));
        },
};

constexpr Scene kRwDowngrade{
    .name = "rw-lock-downgrade",
    .ids = "B06 I10",
    .story =
        "A writer becomes a reader without letting go, while another writer and a reader wait. "
        "What "
        "it wrote is what it reads: no writer came in between. The reader may come in beside it.",
    .build =
        [](Stage& s) {
          auto& g = guarded<RwLock>(s, 2);
          s.cpu("downgrader", [&g](Script& c) FP_NO_THREAD_SAFETY_ANALYSIS {
            g.lock.lock_write();
            g.treasure.write(c);
            const std::uint64_t mine = g.treasure.plain;
            g.lock.downgrade();
            c.expect(g.treasure.read(c) == mine, "a writer came in beside a downgraded one");
            g.lock.unlock_read();
          });
          s.cpu("writer", writer(g));
          s.cpu("reader", reader(g));
        },
};

constexpr Scene kRwTry{
    .name = "rw-lock-tried",
    .ids = "B06 I10",
    .story =
        "One CPU tries to take the address-space lock, for writing and for reading, while another "
        "one takes it for writing. A try that succeeds is as good as a lock, one that fails leaves "
        "nothing behind.",
    .build =
        [](Stage& s) {
          s.bare = true;
          auto& g = s.state<Guarded<RwLock>>();
          auto& tried = s.state<env::var<std::uint64_t>>();
          s.cpu("trier", [&g, &tried](Script& c) FP_NO_THREAD_SAFETY_ANALYSIS {
            if (g.lock.try_lock_write()) {
              g.treasure.write(c);
              ++tried;
              g.lock.unlock_write();
            }
            if (g.lock.try_lock_read()) {
              g.treasure.read(c);
              g.lock.unlock_read();
            }
          });
          s.cpu("writer", writer(g));
          s.at_rest = [&g, &tried] { return g.at_rest(1 + tried); };
        },
    .unbounded = true,
};

// --- SpinRwLock -------------------------------------------------------------------------------------------

constexpr Scene kSpinRwTwoWriters{
    .name = "spin-rw-lock-two-writers",
    .ids = "B06 I10",
    .story = "Two CPUs take the tree lock for writing. One is in at a time, and both get in.",
    .build =
        [](Stage& s) {
          auto& g = guarded<SpinRwLock>(s, 2);
          s.cpu("one", writer(g));
          s.cpu("other", writer(g));
        },
    .unbounded = true,
};

constexpr Scene kSpinRwWriterAndReader{
    .name = "spin-rw-lock-writer-and-reader",
    .ids = "B06 I10",
    .story =
        "One CPU takes the tree lock for writing, one for reading, twice each. They exclude each "
        "other, and both get in, by a ticket if need be.",
    .build =
        [](Stage& s) {
          auto& g = guarded<SpinRwLock>(s, 2);
          s.cpu("writer", writer(g, 2));
          s.cpu("reader", reader(g, 2));
        },
    .unbounded = true,
};

constexpr Scene kSpinRwDoor{
    .name = "spin-rw-lock-shuts-its-door",
    .ids = "B06 I10",
    .story =
        "Two writers and a reader want the tree lock. Whoever is served next shuts the door: those "
        "who come later must not get in beside it, nor stay outside for ever.",
    .build =
        [](Stage& s) {
          auto& g = guarded<SpinRwLock>(s, 2);
          s.cpu("one", writer(g));
          s.cpu("other", writer(g));
          s.cpu("reader", reader(g));
        },
    .unbounded = true,
};

constexpr Scene kSpinRwReaders{
    .name = "spin-rw-lock-two-readers-and-a-writer",
    .ids = "B06 I10",
    .story =
        "A writer and two readers want the tree lock. A reader with a ticket counts itself in "
        "while "
        "the writer is still there, and may not begin before it has left.",
    .build =
        [](Stage& s) {
          auto& g = guarded<SpinRwLock>(s, 1);
          s.cpu("writer", writer(g));
          s.cpu("one", reader(g));
          s.cpu("other", reader(g));
        },
    .unbounded = true,
};

constexpr Scene kSpinRwTry{
    .name = "spin-rw-lock-tried",
    .ids = "B06 I10",
    .story =
        "One CPU tries to take the tree lock, for writing and for reading, while another one takes "
        "it for writing. A try that succeeds is as good as a lock, one that fails leaves nothing "
        "behind.",
    .build =
        [](Stage& s) {
          s.bare = true;
          auto& g = s.state<Guarded<SpinRwLock>>();
          auto& tried = s.state<env::var<std::uint64_t>>();
          s.cpu("trier", [&g, &tried](Script& c) FP_NO_THREAD_SAFETY_ANALYSIS {
            if (g.lock.try_lock_write()) {
              g.treasure.write(c);
              ++tried;
              g.lock.unlock_write();
            }
            if (g.lock.try_lock_read()) {
              g.treasure.read(c);
              g.lock.unlock_read();
            }
          });
          s.cpu("writer", writer(g));
          s.at_rest = [&g, &tried] { return g.at_rest(1 + tried); };
        },
    .unbounded = true,
};

// --- SleepLock and SpinLock -----------------------------------------------------------------------------

template <class Lock>
std::function<void(Script&)> holder(Guarded<Lock>& g, unsigned times = 1) {
  return [&g, times](Script& c) FP_NO_THREAD_SAFETY_ANALYSIS {
    for (unsigned i = 0; i < times; ++i) {
      g.lock.lock();
      g.treasure.write(c);
      g.lock.unlock();
    }
  };
}
template <class Lock>
std::function<void(Script&)> trier(Guarded<Lock>& g, env::var<std::uint64_t>& tried) {
  return [&g, &tried](Script& c) FP_NO_THREAD_SAFETY_ANALYSIS {
    if (!g.lock.try_lock()) return;
    g.treasure.write(c);
    ++tried;
    g.lock.unlock();
  };
}

constexpr Scene kSleepTwo{
    .name = "sleep-lock-two-holders",
    .ids = "B06 I10",
    .story =
        "Two CPUs take a page lock, one of them twice. One is in at a time, and a sleeper is "
        "woken.",
    .build =
        [](Stage& s) {
          auto& g = guarded<sync::SleepLock>(s, 3);
          s.cpu("twice", holder(g, 2));
          s.cpu("once", holder(g));
        },
    .unbounded = true,
};

constexpr Scene kSleepThree{
    .name = "sleep-lock-two-sleepers",
    .ids = "B06 I10",
    .story =
        "Three CPUs want a page lock: two may sleep at once. A release wakes one, and that one "
        "must "
        "not forget the other.",
    .build =
        [](Stage& s) {
          auto& g = guarded<sync::SleepLock>(s, 3);
          s.cpu("one", holder(g));
          s.cpu("two", holder(g));
          s.cpu("three", holder(g));
        },
    .unbounded = true,
};

constexpr Scene kSleepTry{
    .name = "sleep-lock-tried",
    .ids = "B06 I10",
    .story = "One CPU tries to take a page lock while two others take it.",
    .build =
        [](Stage& s) {
          s.bare = true;
          auto& g = s.state<Guarded<sync::SleepLock>>();
          auto& tried = s.state<env::var<std::uint64_t>>();
          s.cpu("one", holder(g));
          s.cpu("two", holder(g));
          s.cpu("trier", trier(g, tried));
          s.at_rest = [&g, &tried] { return g.at_rest(2 + tried); };
        },
    .unbounded = true,
};

constexpr Scene kSpin{
    .name = "spin-lock",
    .ids = "B06 I10",
    .story = "Two CPUs take a spin lock, a third one tries to: one is in at a time.",
    .build =
        [](Stage& s) {
          s.bare = true;
          auto& g = s.state<Guarded<env::SpinLock>>();
          auto& tried = s.state<env::var<std::uint64_t>>();
          s.cpu("one", holder(g));
          s.cpu("two", holder(g));
          s.cpu("trier", trier(g, tried));
          s.at_rest = [&g, &tried] { return g.at_rest(2 + tried); };
        },
    .unbounded = true,
};

// --- SeqCount -----------------------------------------------------------------------------------------

/// Fields as a VMA's are: stored with release, loaded with acquire.
struct Counted {
  sync::SeqCount count;
  env::atomic<std::uint64_t> left;
  env::atomic<std::uint64_t> right;

  void write(std::uint64_t v) {
    count.begin_write();
    left.store(v, env::release);
    right.store(v, env::release);
    count.end_write();
  }
  /// True: believed. Then it has to be true.
  bool read(Script& c) const {
    const std::uint64_t seen = count.read_begin();
    const std::uint64_t a = left.load(env::acquire);
    const std::uint64_t b = right.load(env::acquire);
    if (!count.stable_even(seen)) return false;
    c.expect(a == b, "a reader believes a version that never was");
    c.expect(a * 2 == seen, "a reader believes a version that is not the count's");
    return true;
  }
};

constexpr Scene kSeqCount{
    .name = "sequence-count",
    .ids = "B06 I1",
    .story =
        "A writer changes two fields twice, two CPUs read them without a lock. Whoever is told "
        "that "
        "nothing changed has read one version, whole; who is told so at the end sees the last.",
    .build =
        [](Stage& s) {
          s.bare = true;
          auto& fields = s.state<Counted>();
          Flag& done = s.flag();
          s.cpu("writer", [&fields, &done](Script&) {
            fields.write(1);
            fields.write(2);
            done.raise();
          });
          s.cpu("reader", [&fields](Script& c) {
            fields.read(c);
            fields.read(c);
          });
          s.cpu("late", [&fields, &done](Script& c) {
            const bool over = done.raised();
            const bool believed = fields.read(c);
            c.expect(believed || !over, "a reader is turned away though nobody writes");
          });
        },
    .unbounded = true,
};

constexpr const Scene* kScenes[] = {
    &kRwTwoWriters,
    &kRwWriterAndReader,
    &kRwReadersShare,
    &kRwQueue,
    &kRwReaders,
    &kRwHandoff,
    &kRwHandoffReader,
    &kRwDowngrade,
    &kRwTry,
    &kSpinRwTwoWriters,
    &kSpinRwWriterAndReader,
    &kSpinRwDoor,
    &kSpinRwReaders,
    &kSpinRwTry,
    &kSleepTwo,
    &kSleepThree,
    &kSleepTry,
    &kSpin,
    &kSeqCount,
};

}  // namespace

std::span<const Scene* const> lock_scenes() { return kScenes; }

}  // namespace faultpath::check
