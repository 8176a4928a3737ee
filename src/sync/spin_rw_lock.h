// A small reader-writer lock that spins: for sections of a few hundred nanoseconds.
//
// One word: bit 0 a writer holds it, bit 1 a writer at the head of the line waits for the readers
// to leave, above them the readers. A reader is in from the moment its fetch_add returns a value
// with both bits clear; a writer from its successful compare-exchange, which needs a word without
// readers and writer.
//
// Who does not get in at once tries for a bounded number of rounds, in no order: sections are
// short, and an order would make everybody wait for whoever the host has descheduled. After that it
// draws a ticket. Tickets are served one at a time, in order, and the one being served shuts the
// door: a writer by setting bit 1, which turns new readers and writers away; a reader by counting
// itself in, which turns writers away. So a thread waits at most for its rounds, and then for the
// sections in progress plus those of the tickets before its own. Neither a stream of readers nor
// one of writers starves anybody.
//
// All changes of the word are read-modify-writes, so every release of it reaches every later
// acquire.
#pragma once

#include <cstdint>

#include "env.h"

namespace faultpath::sync {

class FP_CAPABILITY("spinrwlock") SpinRwLock {
 public:
  constexpr SpinRwLock() noexcept = default;
  SpinRwLock(const SpinRwLock&) = delete;
  SpinRwLock& operator=(const SpinRwLock&) = delete;

  FP_ALWAYS_INLINE void lock_read(env::Site site = env::Site::current()) noexcept
      FP_ACQUIRE_SHARED() {
    if (FP_LIKELY((word_.fetch_add(kReader, env::acquire, site) & kShut) == 0)) return;
    word_.fetch_sub(kReader, env::relaxed, site);
    lock_read_slow();
  }
  FP_ALWAYS_INLINE bool try_lock_read(env::Site site = env::Site::current()) noexcept
      FP_TSA(try_acquire_shared_capability(true)) {
    std::uint32_t seen = word_.load(env::relaxed, site);
    while ((seen & kShut) == 0) {
      if (word_.compare_exchange(seen, seen + kReader, env::acquire, env::relaxed, site)) {
        return true;
      }
    }
    return false;
  }
  FP_ALWAYS_INLINE void unlock_read(env::Site site = env::Site::current()) noexcept
      FP_RELEASE_SHARED() {
    word_.fetch_sub(kReader, env::release, site);
  }

  FP_ALWAYS_INLINE void lock_write(env::Site site = env::Site::current()) noexcept FP_ACQUIRE() {
    std::uint32_t free = 0;
    if (FP_LIKELY(word_.compare_exchange(free, kWriter, env::acquire, env::relaxed, site))) return;
    lock_write_slow();
  }
  FP_ALWAYS_INLINE bool try_lock_write(env::Site site = env::Site::current()) noexcept
      FP_TRY_ACQUIRE(true) {
    std::uint32_t free = 0;
    return word_.load(env::relaxed, site) == 0 &&
           word_.compare_exchange(free, kWriter, env::acquire, env::relaxed, site);
  }
  FP_ALWAYS_INLINE void unlock_write(env::Site site = env::Site::current()) noexcept FP_RELEASE() {
    word_.fetch_sub(kWriter, env::release, site);
  }

  /// For assertions only: somebody holds it, or is just trying to.
  bool is_locked() const noexcept { return (word_.load(env::relaxed) & ~kDoor) != 0; }
  bool is_write_locked() const noexcept { return (word_.load(env::relaxed) & kWriter) != 0; }

 private:
  static constexpr std::uint32_t kWriter = 1;
  static constexpr std::uint32_t kDoor = 2;
  static constexpr std::uint32_t kReader = 4;
  static constexpr std::uint32_t kShut = kWriter | kDoor;
  static constexpr unsigned kRoundsBeforeTicket = env::per_world(100, 1);
  // The holder may have been descheduled. Only another thread's write ends a wait here, so in the
  // simulated world every round yields.
  static constexpr unsigned kRoundsBeforeYield = env::per_world(200, 1);

  static void relax(unsigned round) noexcept {
    if (round % kRoundsBeforeYield != kRoundsBeforeYield - 1) {
      env::pause();
    } else {
      env::yield();
    }
  }

  FP_NOINLINE void lock_read_slow() noexcept FP_NO_THREAD_SAFETY_ANALYSIS {
    for (unsigned round = 0; round < kRoundsBeforeTicket; ++round) {
      env::pause();
      if (try_lock_read()) return;
    }
    wait_for_turn();
    // The door is open, since only the served ticket shuts it. This count keeps new writers out;
    // the lock is ours when the one inside leaves.
    if ((word_.fetch_add(kReader, env::acquire) & kWriter) != 0) {
      for (unsigned round = 0; (word_.load(env::acquire) & kWriter) != 0; ++round) relax(round);
    }
    end_turn();
  }

  FP_NOINLINE void lock_write_slow() noexcept FP_NO_THREAD_SAFETY_ANALYSIS {
    for (unsigned round = 0; round < kRoundsBeforeTicket; ++round) {
      env::pause();
      if (try_lock_write()) return;
    }
    wait_for_turn();
    word_.fetch_or(kDoor, env::relaxed);
    for (unsigned round = 0;; ++round) {
      std::uint32_t empty = kDoor;
      if (word_.load(env::relaxed) == kDoor &&
          word_.compare_exchange(empty, kWriter, env::acquire, env::relaxed)) {
        break;
      }
      relax(round);
    }
    end_turn();
  }

  void wait_for_turn() noexcept {
    const std::uint32_t ticket = next_ticket_.fetch_add(1, env::relaxed);
    for (unsigned round = 0; served_.load(env::acquire) != ticket; ++round) relax(round);
  }
  // The next ticket holder must find the door as this one left it: acquire above, release here.
  void end_turn() noexcept { served_.store(served_.load(env::relaxed) + 1, env::release); }

  env::atomic<std::uint32_t> word_;
  env::atomic<std::uint32_t> next_ticket_;
  env::atomic<std::uint32_t> served_;
};

}  // namespace faultpath::sync
