// SleepLock: a lock to hold across I/O. The page lock.
#pragma once

#include "env.h"

namespace faultpath::sync {

/// Word: 0 free, 1 held, 2 held and somebody may sleep. A release that finds 2 wakes one sleeper; a
/// sleeper that gets the lock leaves 2 behind, so that no wake-up is lost (the classic futex
/// mutex). Acquire on lock, release on unlock. Not recursive, not fair.
class FP_CAPABILITY("sleeplock") SleepLock {
 public:
  void lock(env::Site site = env::Site::current()) FP_ACQUIRE() {
    std::uint32_t seen = 0;
    if (word_.compare_exchange(seen, 1, env::acquire, env::relaxed, site)) return;
    for (int spins = 0; spins < env::per_world(100, 1); ++spins) {
      env::pause(site);
      seen = 0;
      if (word_.compare_exchange(seen, 1, env::acquire, env::relaxed, site)) return;
    }
    while (word_.exchange(2, env::acquire, site) != 0) env::park(word_, 2, 0, site);
  }
  bool try_lock(env::Site site = env::Site::current()) FP_TRY_ACQUIRE(true) {
    std::uint32_t seen = 0;
    return word_.compare_exchange(seen, 1, env::acquire, env::relaxed, site);
  }
  void unlock(env::Site site = env::Site::current()) FP_RELEASE() {
    if (word_.exchange(0, env::release, site) == 2) env::unpark_one(word_, site);
  }
  bool is_locked(env::Site site = env::Site::current()) const {
    return word_.load(env::relaxed, site) != 0;
  }

 private:
  env::atomic<std::uint32_t> word_;
};

/// A scope's hold on one.
class FP_SCOPED_CAPABILITY SleepGuard {
 public:
  explicit SleepGuard(SleepLock& lock, env::Site site = env::Site::current()) FP_ACQUIRE(lock)
      : lock_(lock), site_(site) {
    lock.lock(site);
  }
  ~SleepGuard() FP_RELEASE() { lock_.unlock(site_); }
  SleepGuard(const SleepGuard&) = delete;
  SleepGuard& operator=(const SleepGuard&) = delete;

 private:
  SleepLock& lock_;
  [[no_unique_address]] env::Site site_;
};

}  // namespace faultpath::sync
