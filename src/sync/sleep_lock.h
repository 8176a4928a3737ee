// SleepLock: a lock to hold across I/O. The page lock.
#pragma once

#include "env.h"

namespace faultpath::sync {

/// Word: 0 free, 1 held, 2 held and somebody may sleep. A release that finds 2 wakes one sleeper; a
/// sleeper that gets the lock leaves 2 behind, so that no wake-up is lost (the classic futex
/// mutex). Acquire on lock, release on unlock. Not recursive, not fair.
class FP_CAPABILITY("sleeplock") SleepLock {
 public:
  void lock() FP_ACQUIRE() {
    std::uint32_t seen = 0;
    if (word_.compare_exchange(seen, 1, env::acquire, env::relaxed)) return;
    for (int spins = 0; spins < 100; ++spins) {
      env::pause();
      seen = 0;
      if (word_.compare_exchange(seen, 1, env::acquire, env::relaxed)) return;
    }
    while (word_.exchange(2, env::acquire) != 0) env::park(word_, 2, 0);
  }
  bool try_lock() FP_TRY_ACQUIRE(true) {
    std::uint32_t seen = 0;
    return word_.compare_exchange(seen, 1, env::acquire, env::relaxed);
  }
  void unlock() FP_RELEASE() {
    if (word_.exchange(0, env::release) == 2) env::unpark_one(word_);
  }
  bool is_locked() const { return word_.load(env::relaxed) != 0; }

 private:
  env::atomic<std::uint32_t> word_;
};

/// A scope's hold on one.
class FP_SCOPED_CAPABILITY SleepGuard {
 public:
  explicit SleepGuard(SleepLock& lock) FP_ACQUIRE(lock) : lock_(lock) { lock.lock(); }
  ~SleepGuard() FP_RELEASE() { lock_.unlock(); }
  SleepGuard(const SleepGuard&) = delete;
  SleepGuard& operator=(const SleepGuard&) = delete;

 private:
  SleepLock& lock_;
};

}  // namespace faultpath::sync
