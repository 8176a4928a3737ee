// The native world: real threads, real memory.
//
// Engine sources name no std::atomic, mutex, thread, clock or system call; they include "env.h",
// which the include path finds in one of src/env/{native,sim,bare}. What each world provides:
//
//   atomic<T>           atomics with explicit orders only
//   var<T>              a shared plain field or a field of a slab object (a plain T here)
//   SpinLock            a word-sized lock; try_lock; knows nothing of fairness
//   park, unpark_*      sleep on a 32-bit word while it holds a value; wake sleepers
//   light/heavy fence   the asymmetric pair, and full_fence
//   guard<G>()          is the guard G in force? always, here: it folds to `true`
//   payload_*, guest_*  the only ways to touch a frame's payload
//   born, died          lifetimes of frames and objects, noted for the checker
//   per_world           a bound that is smaller in the simulated world
//   Site                where in the sources: the last parameter of all that a report may name
//   map_region          memory for frames and for the engine's tables
//
// This header is installed with the library (public headers inline the TLB hit), so it compiles as
// C++20 and pulls in little.
#pragma once

#include <faultpath/config.h>
#include <faultpath/detail/annotations.h>
#include "atomics.h"

#if defined(__SANITIZE_THREAD__)
#define FP_ENV_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FP_ENV_TSAN 1
#endif
#endif
#ifndef FP_ENV_TSAN
#define FP_ENV_TSAN 0
#endif

namespace faultpath::env {

/// A shared plain field. Plain natively; the simulated world records every access.
template <class T>
using var = T;
/// A word of a pool's objects that the pool may touch while the object is free.
template <class T>
using pool_var = var<T>;

/// In force natively, whatever G; the simulated world can switch guards off one by one.
template <auto G>
constexpr bool guard() noexcept {
  return true;
}

/// Gives the processor away for a moment. For loops that go on until another thread has written a
/// word that this one has read: the simulated world lets it wait for that write. pause() is for
/// loops with a bound, which may go on without.
void yield(Site = Site::current()) noexcept;
/// Nanoseconds of a clock that never goes back.
std::uint64_t now_ns() noexcept;

// --- fences -----------------------------------------------------------------------------------
//
// The asymmetric pair: a thread that does `store X; light_fence; load Y` and one that does `store
// Y; heavy_fence; load X` cannot both miss the other's store. The light half only stops the
// compiler; the heavy half makes every running thread of the process pass a full barrier
// (membarrier(2)). ThreadSanitizer understands neither stand-alone fences nor membarrier: there the
// light half is a read-modify-write of the stored word.

/// `word = value` followed by the light half of the pair.
FP_ALWAYS_INLINE void store_then_light_fence(atomic<std::uint64_t>& word, std::uint64_t value,
                                             Site = Site::current()) noexcept {
#if FP_ENV_TSAN
  word.exchange(value, seq_cst);
#else
  word.store(value, relaxed);
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

/// Orders one thread's accesses against a signal handler on the same thread; nothing for others.
FP_ALWAYS_INLINE void signal_fence() noexcept {
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

/// The heavy half. Costs microseconds when another thread of the process runs.
void heavy_fence(Site = Site::current()) noexcept;
/// False where the host refuses the heavy half; the engine does not start there.
bool heavy_fence_available() noexcept;

/// A stand-alone sequentially consistent fence. `word` is one that the caller has just stored:
/// ThreadSanitizer builds fence by a read-modify-write of it.
template <class T>
FP_ALWAYS_INLINE void full_fence([[maybe_unused]] atomic<T>& word,
                                 Site = Site::current()) noexcept {
#if FP_ENV_TSAN
  word.fetch_add(T{0}, seq_cst);
#elif defined(__x86_64__)
  // Half the price of mfence, and all that ordinary memory needs.
  __asm__ __volatile__("lock; orl $0, -4(%%rsp)" ::: "memory", "cc");
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

// --- waiting ----------------------------------------------------------------------------------

/// Sleeps while `word == expected`; may return early. `timeout_ns` 0 is for ever.
void park(atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t timeout_ns,
          Site = Site::current()) noexcept;
void unpark_one(atomic<std::uint32_t>& word, Site = Site::current()) noexcept;
void unpark_all(atomic<std::uint32_t>& word, Site = Site::current()) noexcept;

/// A lock of one word that spins, and yields when it has spun for long (the holder may have been
/// descheduled). Acquire on lock, release on unlock. Not recursive, not fair.
class FP_CAPABILITY("spinlock") SpinLock {
 public:
  constexpr SpinLock() noexcept = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  FP_ALWAYS_INLINE void lock(Site = Site::current()) noexcept FP_ACQUIRE() {
    if (FP_LIKELY(word_.exchange(1, acquire) == 0)) return;
    lock_slow();
  }
  FP_ALWAYS_INLINE bool try_lock(Site = Site::current()) noexcept FP_TRY_ACQUIRE(true) {
    return word_.load(relaxed) == 0 && word_.exchange(1, acquire) == 0;
  }
  FP_ALWAYS_INLINE void unlock(Site = Site::current()) noexcept FP_RELEASE() {
    word_.store(0, release);
  }
  /// For assertions only: somebody holds it.
  bool is_locked() const noexcept { return word_.load(relaxed) != 0; }

 private:
  void lock_slow() noexcept;
  atomic<std::uint32_t> word_;
};

// --- memory -----------------------------------------------------------------------------------

struct Region {
  std::byte* payload = nullptr;  ///< frame i's payload is at payload + i * kPayloadBytes
  std::byte* objects =
      nullptr;                  ///< frame i, used for engine objects, is at objects + i * kPageSize
  std::byte* tables = nullptr;  ///< zeroed memory for the engine's frame table and Cpus
  std::uint64_t frames = 0;
  std::uint64_t table_bytes = 0;
  int fd = -1;  ///< the memfd behind the frames
};

/// Gets memory for `frames` frames, and `table_bytes` of zeroed memory. False where the host will
/// not: nothing is left behind.
bool map_region(std::uint64_t frames, std::uint64_t table_bytes, bool prefault,
                Region& out) noexcept;
void unmap_region(Region& region) noexcept;

}  // namespace faultpath::env
