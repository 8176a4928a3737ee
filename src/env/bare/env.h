// The bare world: no operating system. What the engine needs there is the C functions below, and no
// more; scripts/check_freestanding.sh holds it to that. The engine as a guest on bare metal builds
// on this; until then it is compiled, not run.
#pragma once

#include <faultpath/config.h>
#include <faultpath/detail/annotations.h>
#include "../native/atomics.h"

extern "C" {
void faultpath_bare_yield();
unsigned long long faultpath_bare_now_ns();
void faultpath_bare_heavy_fence();
int faultpath_bare_heavy_fence_available();
void faultpath_bare_park(const void* word, unsigned expected, unsigned long long timeout_ns);
void faultpath_bare_unpark(const void* word, int all);
/// Zeroed memory for frames and tables; 0 where there is none.
void* faultpath_bare_map(unsigned long long bytes);
void faultpath_bare_unmap(void* at, unsigned long long bytes);
}

namespace faultpath::env {

template <class T>
using var = T;
template <class T>
using pool_var = var<T>;

template <auto G>
constexpr bool guard() noexcept {
  return true;
}

/// pause() for loops with a bound, yield() for those that wait for another thread's write.
inline void yield(Site = Site::current()) noexcept { faultpath_bare_yield(); }
inline std::uint64_t now_ns() noexcept { return faultpath_bare_now_ns(); }

FP_ALWAYS_INLINE void store_then_light_fence(atomic<std::uint64_t>& word, std::uint64_t value,
                                             Site = Site::current()) noexcept {
  word.store(value, relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
}
FP_ALWAYS_INLINE void signal_fence() noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}
inline void heavy_fence(Site = Site::current()) noexcept { faultpath_bare_heavy_fence(); }
inline bool heavy_fence_available() noexcept { return faultpath_bare_heavy_fence_available() != 0; }
template <class T>
FP_ALWAYS_INLINE void full_fence(atomic<T>&, Site = Site::current()) noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

inline void park(atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t timeout_ns,
                 Site = Site::current()) noexcept {
  faultpath_bare_park(&word, expected, timeout_ns);
}
inline void unpark_one(atomic<std::uint32_t>& word, Site = Site::current()) noexcept {
  faultpath_bare_unpark(&word, 0);
}
inline void unpark_all(atomic<std::uint32_t>& word, Site = Site::current()) noexcept {
  faultpath_bare_unpark(&word, 1);
}

class FP_CAPABILITY("spinlock") SpinLock {
 public:
  constexpr SpinLock() noexcept = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;
  void lock(Site = Site::current()) noexcept FP_ACQUIRE() {
    while (word_.exchange(1, acquire) != 0) {
      while (word_.load(relaxed) != 0) pause();
    }
  }
  bool try_lock(Site = Site::current()) noexcept FP_TRY_ACQUIRE(true) {
    return word_.load(relaxed) == 0 && word_.exchange(1, acquire) == 0;
  }
  void unlock(Site = Site::current()) noexcept FP_RELEASE() { word_.store(0, release); }
  bool is_locked() const noexcept { return word_.load(relaxed) != 0; }

 private:
  atomic<std::uint32_t> word_;
};

struct Region {
  std::byte* payload = nullptr;
  std::byte* objects = nullptr;
  std::byte* tables = nullptr;
  std::uint64_t frames = 0;
  std::uint64_t table_bytes = 0;
  int fd = -1;
};

inline bool map_region(std::uint64_t frames, std::uint64_t table_bytes, bool,
                       Region& out) noexcept {
  void* const payload = faultpath_bare_map(frames * kPageSize);
  void* const tables = payload == nullptr ? nullptr : faultpath_bare_map(table_bytes);
  if (tables == nullptr) {
    if (payload != nullptr) faultpath_bare_unmap(payload, frames * kPageSize);
    return false;
  }
  out.payload = out.objects = static_cast<std::byte*>(payload);
  out.tables = static_cast<std::byte*>(tables);
  out.frames = frames;
  out.table_bytes = table_bytes;
  return true;
}
inline void unmap_region(Region& region) noexcept {
  faultpath_bare_unmap(region.payload, region.frames * kPageSize);
  faultpath_bare_unmap(region.tables, region.table_bytes);
}

}  // namespace faultpath::env
