// A scope's hold on a spin lock.
#pragma once

#include "env.h"

namespace faultpath::sync {

class FP_SCOPED_CAPABILITY SpinGuard {
 public:
  FP_ALWAYS_INLINE explicit SpinGuard(env::SpinLock& lock,
                                      env::Site site = env::Site::current()) noexcept
      FP_ACQUIRE(lock)
      : lock_(lock), site_(site) {
    lock.lock(site);
  }
  FP_ALWAYS_INLINE ~SpinGuard() FP_RELEASE() { lock_.unlock(site_); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  env::SpinLock& lock_;
  [[no_unique_address]] env::Site site_;
};

}  // namespace faultpath::sync
