// A scope's hold on a spin lock.
#pragma once

#include "env.h"

namespace faultpath::sync {

class FP_SCOPED_CAPABILITY SpinGuard {
 public:
  FP_ALWAYS_INLINE explicit SpinGuard(env::SpinLock& lock) noexcept FP_ACQUIRE(lock) : lock_(lock) {
    lock.lock();
  }
  FP_ALWAYS_INLINE ~SpinGuard() FP_RELEASE() { lock_.unlock(); }
  SpinGuard(const SpinGuard&) = delete;
  SpinGuard& operator=(const SpinGuard&) = delete;

 private:
  env::SpinLock& lock_;
};

}  // namespace faultpath::sync
