// What the worlds that run on real processors share: atomics with explicit orders, guest accesses.
//
// Part of env.h of the native and the bare world; include that. Compiles as C++20, freestanding.
#pragma once

#include <faultpath/config.h>
#include <faultpath/detail/annotations.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace faultpath::env {

/// Where in the sources. Empty here; the simulated world's is std::source_location. Every operation
/// that the simulated world reports takes one as its last parameter, and wrappers hand their
/// caller's on: `env::Site site = env::Site::current()`.
struct Site {
  static constexpr Site current() noexcept { return {}; }
};

/// A bound or a size that the simulated world has smaller.
template <class T>
constexpr T per_world(T real, T /*simulated*/) noexcept {
  return real;
}

using Order = std::memory_order;
inline constexpr Order relaxed = std::memory_order_relaxed;
inline constexpr Order acquire = std::memory_order_acquire;
inline constexpr Order release = std::memory_order_release;
inline constexpr Order acq_rel = std::memory_order_acq_rel;
inline constexpr Order seq_cst = std::memory_order_seq_cst;

/// An atomic whose every access names its order: there is no default to hide behind.
template <class T>
class atomic {
 public:
  constexpr atomic() noexcept : value_{} {}
  constexpr explicit atomic(T v) noexcept : value_(v) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  FP_ALWAYS_INLINE T load(Order o, Site = Site::current()) const noexcept { return value_.load(o); }
  FP_ALWAYS_INLINE void store(T v, Order o, Site = Site::current()) noexcept { value_.store(v, o); }
  FP_ALWAYS_INLINE T exchange(T v, Order o, Site = Site::current()) noexcept {
    return value_.exchange(v, o);
  }
  FP_ALWAYS_INLINE bool compare_exchange(T& expected, T desired, Order ok, Order fail,
                                         Site = Site::current()) noexcept {
    return value_.compare_exchange_strong(expected, desired, ok, fail);
  }
  FP_ALWAYS_INLINE T fetch_add(T v, Order o, Site = Site::current()) noexcept {
    return value_.fetch_add(v, o);
  }
  FP_ALWAYS_INLINE T fetch_sub(T v, Order o, Site = Site::current()) noexcept {
    return value_.fetch_sub(v, o);
  }
  FP_ALWAYS_INLINE T fetch_or(T v, Order o, Site = Site::current()) noexcept {
    return value_.fetch_or(v, o);
  }
  FP_ALWAYS_INLINE T fetch_and(T v, Order o, Site = Site::current()) noexcept {
    return value_.fetch_and(v, o);
  }

 private:
  std::atomic<T> value_;
};

/// An atomic that decides nothing: a counter.
template <class T>
using stat = atomic<T>;

/// Gives an inner loop of a spin a rest. For loops with a bound; yield() is for the others.
FP_ALWAYS_INLINE void pause(Site = Site::current()) noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::atomic_signal_fence(std::memory_order_seq_cst);
#endif
}

/// Bytes of payload of a frame: the page itself. The simulated world's payloads are shorter than its
/// pages; what lies beyond does not exist there.
inline constexpr std::uint64_t kPayloadBytes = kPageSize;

// --- notes for the checker: nothing here ------------------------------------------------------

/// The memory may be used from here on; it has been handed out.
inline void born(const void*, std::uint64_t) noexcept {}
/// Nobody may use it until it is born again. A second death in a row is a double release, with one
/// exception: a death of a page covers the objects in it, dead or not.
inline void died(const void*, std::uint64_t) noexcept {}
/// The same for a lock whose word is never freed, but which nobody may take after its death.
inline void lock_born(const void*) noexcept {}
inline void lock_died(const void*) noexcept {}

/// An assertion does not hold; a field of a VMA is written while the VMA is unmarked.
inline void assertion_failed(const char* /*what*/, const char* /*file*/, int /*line*/) {
  __builtin_trap();
}
inline void unmarked_write() { __builtin_trap(); }

/// Zeroes memory of engine objects that only the caller knows.
FP_ALWAYS_INLINE void object_zero(void* at, std::uint64_t bytes) noexcept {
  std::memset(at, 0, bytes);
}

// Racing copies move aligned words by relaxed atomics: a guest that stores a word meanwhile is seen
// whole or not at all, as by a CPU. The compiler cannot merge or tear them.

namespace copying {

inline void copy_words(std::byte* to, const std::byte* from, std::uint64_t words) noexcept {
  auto* d = reinterpret_cast<std::uint64_t*>(to);
  auto* s = reinterpret_cast<const std::uint64_t*>(from);
  for (std::uint64_t i = 0; i < words; ++i) {
    __atomic_store_n(d + i, __atomic_load_n(s + i, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
  }
}
inline void copy_byte(std::byte* to, const std::byte* from) noexcept {
  auto* d = reinterpret_cast<unsigned char*>(to);
  auto* s = reinterpret_cast<const unsigned char*>(from);
  __atomic_store_n(d, __atomic_load_n(s, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}
inline void copy(std::byte* to, const std::byte* from, std::uint64_t bytes) noexcept {
  const bool word_wise =
      ((reinterpret_cast<std::uintptr_t>(to) ^ reinterpret_cast<std::uintptr_t>(from)) & 7) == 0;
  std::uint64_t i = 0;
  if (word_wise) {
    while (i < bytes && (reinterpret_cast<std::uintptr_t>(from + i) & 7) != 0) {
      copy_byte(to + i, from + i);
      ++i;
    }
    const std::uint64_t words = (bytes - i) / 8;
    copy_words(to + i, from + i, words);
    i += words * 8;
  }
  for (; i < bytes; ++i) copy_byte(to + i, from + i);
}

}  // namespace copying

// Payload access. A frame that only its owner can reach may be zeroed or filled plainly; a frame
// that guests may be writing to is read by relaxed words.

FP_ALWAYS_INLINE void payload_zero(std::byte* frame, Site = Site::current()) noexcept {
  std::memset(frame, 0, kPayloadBytes);
}
/// From byte `from` to the end.
FP_ALWAYS_INLINE void payload_zero_tail(std::byte* frame, std::uint64_t from,
                                        Site = Site::current()) noexcept {
  std::memset(frame + from, 0, kPayloadBytes - from);
}
FP_ALWAYS_INLINE void payload_fill(std::byte* frame, int byte, Site = Site::current()) noexcept {
  std::memset(frame, byte, kPayloadBytes);
}
/// Copies a whole frame; `from` may be written to by guests meanwhile.
inline void payload_copy(std::byte* to, const std::byte* from, Site = Site::current()) noexcept {
  copying::copy_words(to, from, kPayloadBytes / 8);
}
/// Copies part of a payload that guests may be writing to into private memory, and back. Words of
/// eight aligned bytes are moved whole.
inline void copy_from_payload(void* to, const std::byte* from, std::uint64_t bytes,
                              Site = Site::current()) noexcept {
  copying::copy(static_cast<std::byte*>(to), from, bytes);
}
inline void copy_to_payload(std::byte* to, const void* from, std::uint64_t bytes,
                            Site = Site::current()) noexcept {
  copying::copy(to, static_cast<const std::byte*>(from), bytes);
}

// Guest accesses: single instructions on x86, with its order (loads acquire, stores release).
// A guest word may be any type of 1, 2, 4 or 8 bytes, whatever its own alignment: it is moved as the
// unsigned number of that size, which is aligned where the caller says the word is.
template <std::size_t Bytes>
using WordOf = std::conditional_t<
    Bytes == 1, std::uint8_t,
    std::conditional_t<Bytes == 2, std::uint16_t,
                       std::conditional_t<Bytes == 4, std::uint32_t, std::uint64_t>>>;

template <class T>
FP_ALWAYS_INLINE T guest_load(const std::byte* at, Site = Site::current()) noexcept {
  using Word = WordOf<sizeof(T)>;
  return __builtin_bit_cast(T,
                            __atomic_load_n(reinterpret_cast<const Word*>(at), __ATOMIC_ACQUIRE));
}
template <class T>
FP_ALWAYS_INLINE void guest_store(std::byte* at, T v, Site = Site::current()) noexcept {
  using Word = WordOf<sizeof(T)>;
  __atomic_store_n(reinterpret_cast<Word*>(at), __builtin_bit_cast(Word, v), __ATOMIC_RELEASE);
}
template <class T>
FP_ALWAYS_INLINE T guest_exchange(std::byte* at, T v, Site = Site::current()) noexcept {
  return __atomic_exchange_n(reinterpret_cast<T*>(at), v, __ATOMIC_SEQ_CST);
}
/// Returns what was there; the exchange happened if that equals `expected`.
template <class T>
FP_ALWAYS_INLINE T guest_compare_exchange(std::byte* at, T expected, T desired,
                                          Site = Site::current()) noexcept {
  __atomic_compare_exchange_n(reinterpret_cast<T*>(at), &expected, desired, false, __ATOMIC_SEQ_CST,
                              __ATOMIC_SEQ_CST);
  return expected;
}
template <class T>
FP_ALWAYS_INLINE T guest_fetch_add(std::byte* at, T v, Site = Site::current()) noexcept {
  return __atomic_fetch_add(reinterpret_cast<T*>(at), v, __ATOMIC_SEQ_CST);
}
template <class T>
FP_ALWAYS_INLINE T guest_fetch_and(std::byte* at, T v, Site = Site::current()) noexcept {
  return __atomic_fetch_and(reinterpret_cast<T*>(at), v, __ATOMIC_SEQ_CST);
}
template <class T>
FP_ALWAYS_INLINE T guest_fetch_or(std::byte* at, T v, Site = Site::current()) noexcept {
  return __atomic_fetch_or(reinterpret_cast<T*>(at), v, __ATOMIC_SEQ_CST);
}
template <class T>
FP_ALWAYS_INLINE T guest_fetch_xor(std::byte* at, T v, Site = Site::current()) noexcept {
  return __atomic_fetch_xor(reinterpret_cast<T*>(at), v, __ATOMIC_SEQ_CST);
}

/// Sixteen aligned bytes (cmpxchg16b; asm, so that users need no compiler flag). `Pair` is two
/// 64-bit words, low and high. Where the processor has no such instruction a global lock stands in,
/// which plain stores do not respect.
template <class Pair>
inline Pair guest_compare_exchange_16(std::byte* at, Pair expected, Pair desired,
                                      Site = Site::current()) noexcept {
#if defined(__x86_64__)
  __asm__ __volatile__("lock; cmpxchg16b %0"
                       : "+m"(*reinterpret_cast<volatile char(*)[16]>(at)), "+a"(expected.low),
                         "+d"(expected.high)
                       : "b"(desired.low), "c"(desired.high)
                       : "memory", "cc");
  return expected;
#else
  static std::atomic_flag lock;
  while (lock.test_and_set(std::memory_order_acquire)) pause();
  Pair old;
  std::memcpy(&old, at, sizeof old);
  if (old.low == expected.low && old.high == expected.high) std::memcpy(at, &desired, sizeof old);
  lock.clear(std::memory_order_release);
  return old;
#endif
}

}  // namespace faultpath::env
