// The simulated world's env.h: the same names as the native world's (src/env/native/env.h has what
// each promises), every one of them a point of the scheduler in world.h, or a note to its detectors.
#pragma once

#include <faultpath/config.h>
#include <faultpath/detail/annotations.h>

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "hooks.h"

namespace faultpath::env {

using Site = sim::Site;
using sim::OpKind;
namespace hooks = sim::hooks;

using Order = std::memory_order;
inline constexpr Order relaxed = std::memory_order_relaxed;
inline constexpr Order acquire = std::memory_order_acquire;
inline constexpr Order release = std::memory_order_release;
inline constexpr Order acq_rel = std::memory_order_acq_rel;
inline constexpr Order seq_cst = std::memory_order_seq_cst;

/// A bound or a size that this world has smaller.
template <class T>
constexpr T per_world(T /*real*/, T simulated) noexcept {
  return simulated;
}

template <class T>
std::uint64_t word_of(T v) noexcept {
  if constexpr (std::is_pointer_v<T>) {
    return reinterpret_cast<std::uintptr_t>(v);
  } else {
    return static_cast<std::uint64_t>(v);
  }
}

template <class T>
class atomic {
 public:
  constexpr atomic() noexcept : value_{} { made(); }
  constexpr explicit atomic(T v) noexcept : value_(v) { made(); }
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

  T load(Order o, Site site = Site::current()) const noexcept {
    if (!hooks::active) return value_;
    hooks::turn(OpKind::load, &value_, site);
    hooks::loaded(&value_, o, word_of(value_));
    return value_;
  }
  void store(T v, Order o, Site site = Site::current()) noexcept {
    if (hooks::active) {
      hooks::turn(OpKind::store, &value_, site);
      hooks::stored(&value_, o, word_of(v));
    }
    value_ = v;
  }
  T exchange(T v, Order o, Site site = Site::current()) noexcept {
    return modify([v](T) { return v; }, o, site);
  }
  bool compare_exchange(T& expected, T desired, Order ok, Order fail,
                        Site site = Site::current()) noexcept {
    if (hooks::active) {
      hooks::turn(OpKind::rmw, &value_, site);
      if (value_ == expected) {
        hooks::exchanged(&value_, ok, word_of(value_));
      } else {
        hooks::loaded(&value_, fail, word_of(value_));
      }
    }
    if (value_ == expected) {
      value_ = desired;
      return true;
    }
    expected = value_;
    return false;
  }
  T fetch_add(T v, Order o, Site site = Site::current()) noexcept {
    return modify([v](T old) { return static_cast<T>(old + v); }, o, site);
  }
  T fetch_sub(T v, Order o, Site site = Site::current()) noexcept {
    return modify([v](T old) { return static_cast<T>(old - v); }, o, site);
  }
  T fetch_or(T v, Order o, Site site = Site::current()) noexcept {
    return modify([v](T old) { return static_cast<T>(old | v); }, o, site);
  }
  T fetch_and(T v, Order o, Site site = Site::current()) noexcept {
    return modify([v](T old) { return static_cast<T>(old & v); }, o, site);
  }

 private:
  constexpr void made() noexcept {
    if (!std::is_constant_evaluated() && hooks::active) hooks::made(&value_);
  }
  template <class F>
  T modify(F&& f, Order o, Site site) noexcept {
    if (hooks::active) {
      hooks::turn(OpKind::rmw, &value_, site);
      hooks::exchanged(&value_, o, word_of(value_));
    }
    const T old = value_;
    value_ = f(old);
    return old;
  }

  T value_;
};

/// An atomic that decides nothing (a counter): no point.
template <class T>
class stat {
 public:
  constexpr stat() noexcept : value_{} {}
  stat(const stat&) = delete;
  stat& operator=(const stat&) = delete;
  T load(Order, Site = {}) const noexcept { return value_; }
  void store(T v, Order, Site = {}) noexcept { value_ = v; }
  T fetch_add(T v, Order, Site = {}) noexcept {
    const T old = value_;
    value_ = old + v;
    return old;
  }

 private:
  T value_;
};

/// A shared plain field: each access is judged by happens-before. `kPooled`: the pools' own word.
template <class T, bool kPooled>
class basic_var {
 public:
  basic_var() = default;
  constexpr basic_var(T v) noexcept : value_(v) {}  // NOLINT: implicit, as a T is
  basic_var(const basic_var& other) noexcept : value_(other.get()) {}
  basic_var& operator=(const basic_var& other) noexcept { return set(other.get()); }
  template <class U>
    requires std::convertible_to<U, T>
  basic_var& operator=(U v) noexcept {
    return set(static_cast<T>(v));
  }

  operator T() const noexcept { return get(); }  // NOLINT: implicit
  T operator->() const noexcept
    requires std::is_pointer_v<T>
  {
    return get();
  }

  template <class U>
  basic_var& operator+=(const U& v) noexcept {
    return set(static_cast<T>(get() + v));
  }
  template <class U>
  basic_var& operator-=(const U& v) noexcept {
    return set(static_cast<T>(get() - v));
  }
  basic_var& operator++() noexcept { return set(static_cast<T>(get() + 1)); }
  basic_var& operator--() noexcept { return set(static_cast<T>(get() - 1)); }
  T operator++(int) noexcept {
    const T old = get();
    set(static_cast<T>(old + 1));
    return old;
  }
  T operator--(int) noexcept {
    const T old = get();
    set(static_cast<T>(old - 1));
    return old;
  }

 private:
  T get() const noexcept {
    touch(false);
    return value_;
  }
  basic_var& set(T v) noexcept {
    touch(true);
    value_ = v;
    return *this;
  }
  void touch(bool write) const noexcept {
    if (!hooks::active) return;
    if constexpr (kPooled) {
      hooks::pooled(&value_, write);
    } else {
      hooks::plain(&value_, write);
    }
  }

  T value_;
};

template <class T>
using var = basic_var<T, false>;
template <class T>
using pool_var = basic_var<T, true>;

/// In force, unless the checker has switched it off.
template <auto G>
bool guard() noexcept {
  return hooks::guard_on(static_cast<unsigned>(G));
}

inline void born(const void* at, std::uint64_t bytes) noexcept { hooks::born(at, bytes); }
inline void died(const void* at, std::uint64_t bytes) noexcept { hooks::died(at, bytes); }
inline void lock_born(const void* lock) noexcept { hooks::lock_born(lock); }
inline void lock_died(const void* lock) noexcept { hooks::lock_died(lock); }
inline void assertion_failed(const char* what, const char* file, int line) noexcept {
  hooks::assertion_failed(what, file, line);
}
inline void unmarked_write() noexcept { hooks::unmarked_write(); }

inline std::uint64_t now_ns() noexcept { return hooks::now_ns(); }

/// A pause in a loop that ends by itself.
inline void pause(Site site = Site::current()) noexcept {
  if (hooks::active) hooks::turn(OpKind::pause, nullptr, site);
}
/// Waits until a word that was read since the last yield() has been written by another CPU.
inline void yield(Site site = Site::current()) noexcept {
  if (hooks::active) hooks::turn(OpKind::wait, nullptr, site);
}

// Operations take effect at once here, so the fences order nothing; they count for happens-before.

inline void store_then_light_fence(atomic<std::uint64_t>& word, std::uint64_t value,
                                   Site site = Site::current()) noexcept {
  word.store(value, relaxed, site);
}
inline void signal_fence() noexcept {}
inline void heavy_fence(Site site = Site::current()) noexcept {
  if (!hooks::active) return;
  hooks::turn(OpKind::fence, nullptr, site);
  hooks::fenced_everywhere();
}
inline bool heavy_fence_available() noexcept { return true; }
template <class T>
void full_fence(atomic<T>&, Site site = Site::current()) noexcept {
  if (!hooks::active) return;
  hooks::turn(OpKind::fence, nullptr, site);
  hooks::fenced();
}

inline void park(atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t /*timeout_ns*/,
                 Site site = Site::current()) noexcept {
  if (!hooks::active) return;
  hooks::turn(OpKind::park, &word, site);
  std::uint32_t now = 0;
  std::memcpy(&now, &word, sizeof now);
  hooks::park(&word, now == expected);
}
inline void unpark_one(atomic<std::uint32_t>& word, Site site = Site::current()) noexcept {
  if (hooks::active) hooks::unpark(&word, false, site);
}
inline void unpark_all(atomic<std::uint32_t>& word, Site site = Site::current()) noexcept {
  if (hooks::active) hooks::unpark(&word, true, site);
}

/// Does not spin: a CPU that waits for it cannot be chosen while it is held.
class FP_CAPABILITY("spinlock") SpinLock {
 public:
  constexpr SpinLock() noexcept = default;
  SpinLock(const SpinLock&) = delete;
  SpinLock& operator=(const SpinLock&) = delete;

  void lock(Site site = Site::current()) noexcept FP_ACQUIRE() {
    if (hooks::active) {
      hooks::turn(OpKind::lock, &word_, site);
      hooks::locked(&word_);
    }
    word_ = 1;
  }
  bool try_lock(Site site = Site::current()) noexcept FP_TRY_ACQUIRE(true) {
    if (hooks::active) hooks::turn(OpKind::try_lock, &word_, site);
    if (word_ != 0) return false;
    if (hooks::active) hooks::locked(&word_);
    word_ = 1;
    return true;
  }
  void unlock(Site site = Site::current()) noexcept FP_RELEASE() {
    if (hooks::active) {
      hooks::turn(OpKind::unlock, &word_, site);
      hooks::unlocked(&word_);
    }
    word_ = 0;
  }
  bool is_locked() const noexcept { return word_ != 0; }

 private:
  std::uint32_t word_ = 0;
};

// --- payload ------------------------------------------------------------------------------------
//
// A page's payload is eight words, whatever the size of the page; engine and guests move it word by
// word, a step each. A guest uses the first 64 bytes of a page only.

inline constexpr std::uint64_t kPayloadBytes = 64;

inline void payload_poke(std::byte* at, std::uint64_t v, Site site) noexcept {
  if (hooks::active) {
    hooks::turn(OpKind::poke, at, site);
    hooks::stored(at, relaxed, v);
  }
  std::memcpy(at, &v, sizeof v);
}
inline std::uint64_t payload_peek(const std::byte* at, Site site) noexcept {
  if (hooks::active) hooks::turn(OpKind::peek, at, site);
  std::uint64_t v = 0;
  std::memcpy(&v, at, sizeof v);
  if (hooks::active) hooks::loaded(at, relaxed, v);
  return v;
}
inline void payload_zero_tail(std::byte* frame, std::uint64_t from,
                              Site site = Site::current()) noexcept {
  for (std::uint64_t at = from & ~std::uint64_t{7}; at < kPayloadBytes; at += 8) {
    std::uint64_t kept = 0;
    if (at < from) std::memcpy(&kept, frame + at, from - at);
    payload_poke(frame + at, kept, site);
  }
}
inline void payload_zero(std::byte* frame, Site site = Site::current()) noexcept {
  payload_zero_tail(frame, 0, site);
}
inline void payload_fill(std::byte* frame, int byte) noexcept {
  if (hooks::active) hooks::wrote(frame, kPayloadBytes);
  std::memset(frame, byte, kPayloadBytes);
}
inline void payload_copy(std::byte* to, const std::byte* from,
                         Site site = Site::current()) noexcept {
  for (std::uint64_t at = 0; at < kPayloadBytes; at += 8) {
    const std::uint64_t v = payload_peek(from + at, site);
    // The destination is nobody else's yet: no step of its own.
    if (hooks::active) hooks::wrote(to + at, 8);
    std::memcpy(to + at, &v, sizeof v);
  }
}
/// Parts of words are moved with their whole word's step.
inline void copy_from_payload(void* to, const std::byte* from, std::uint64_t bytes,
                              Site site = Site::current()) noexcept {
  auto* out = static_cast<std::byte*>(to);
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t in = reinterpret_cast<std::uintptr_t>(from + done) & 7;
    const std::uint64_t n = bytes - done < 8 - in ? bytes - done : 8 - in;
    const std::uint64_t v = payload_peek(from + done - in, site);
    std::memcpy(out + done, reinterpret_cast<const std::byte*>(&v) + in, n);
    done += n;
  }
}
inline void copy_to_payload(std::byte* to, const void* from, std::uint64_t bytes,
                            Site site = Site::current()) noexcept {
  const auto* in_bytes = static_cast<const std::byte*>(from);
  for (std::uint64_t done = 0; done < bytes;) {
    const std::uint64_t in = reinterpret_cast<std::uintptr_t>(to + done) & 7;
    const std::uint64_t n = bytes - done < 8 - in ? bytes - done : 8 - in;
    std::byte* const word = to + done - in;
    if (hooks::active) hooks::turn(OpKind::poke, word, site);
    std::uint64_t v = 0;
    std::memcpy(&v, word, sizeof v);
    std::memcpy(reinterpret_cast<std::byte*>(&v) + in, in_bytes + done, n);
    if (hooks::active) hooks::stored(word, relaxed, v);
    std::memcpy(word, &v, sizeof v);
    done += n;
  }
}

// Guest accesses: a step each, at its instant.

template <class T>
T guest_load(const std::byte* at, Site site = Site::current()) noexcept {
  if (hooks::active) hooks::turn(OpKind::peek, at, site);
  T v{};
  std::memcpy(&v, at, sizeof v);
  if (hooks::active) {
    std::uint64_t word = 0;
    std::memcpy(&word, &v, sizeof v < 8 ? sizeof v : 8);
    hooks::loaded(at, acquire, word);
    hooks::accessed();
  }
  return v;
}
template <class T>
void guest_store(std::byte* at, T v, Site site = Site::current()) noexcept {
  if (hooks::active) {
    hooks::turn(OpKind::poke, at, site);
    std::uint64_t word = 0;
    std::memcpy(&word, &v, sizeof v < 8 ? sizeof v : 8);
    hooks::stored(at, release, word);
    hooks::accessed();
  }
  std::memcpy(at, &v, sizeof v);
}
template <class T, class F>
T guest_modify(std::byte* at, F&& f, Site site) noexcept {
  if (hooks::active) hooks::turn(OpKind::poke, at, site);
  T old{};
  std::memcpy(&old, at, sizeof old);
  const T now = f(old);
  if (hooks::active) {
    std::uint64_t word = 0;
    std::memcpy(&word, &old, sizeof old < 8 ? sizeof old : 8);
    hooks::exchanged(at, seq_cst, word);
    hooks::accessed();
  }
  std::memcpy(at, &now, sizeof now);
  return old;
}
template <class T>
T guest_exchange(std::byte* at, T v, Site site = Site::current()) noexcept {
  return guest_modify<T>(at, [v](T) { return v; }, site);
}
template <class T>
T guest_compare_exchange(std::byte* at, T expected, T desired,
                         Site site = Site::current()) noexcept {
  return guest_modify<T>(at, [=](T old) { return old == expected ? desired : old; }, site);
}
template <class T>
T guest_fetch_add(std::byte* at, T v, Site site = Site::current()) noexcept {
  return guest_modify<T>(at, [v](T old) { return static_cast<T>(old + v); }, site);
}
template <class T>
T guest_fetch_and(std::byte* at, T v, Site site = Site::current()) noexcept {
  return guest_modify<T>(at, [v](T old) { return static_cast<T>(old & v); }, site);
}
template <class T>
T guest_fetch_or(std::byte* at, T v, Site site = Site::current()) noexcept {
  return guest_modify<T>(at, [v](T old) { return static_cast<T>(old | v); }, site);
}
template <class T>
T guest_fetch_xor(std::byte* at, T v, Site site = Site::current()) noexcept {
  return guest_modify<T>(at, [v](T old) { return static_cast<T>(old ^ v); }, site);
}
template <class Pair>
Pair guest_compare_exchange_16(std::byte* at, Pair expected, Pair desired,
                               Site site = Site::current()) noexcept {
  return guest_modify<Pair>(
      at,
      [=](Pair old) {
        return old.low == expected.low && old.high == expected.high ? desired : old;
      },
      site);
}

// --- memory ---------------------------------------------------------------------------------------

/// Zeroes memory of engine objects that nobody else can reach.
inline void object_zero(void* at, std::uint64_t bytes) noexcept {
  hooks::wrote(at, bytes);
  std::memset(at, 0, bytes);
}

struct Region {
  std::byte* payload = nullptr;  ///< frame i's payload is at payload + i * kPayloadBytes
  std::byte* objects = nullptr;
  std::byte* tables = nullptr;
  std::uint64_t frames = 0;
  std::uint64_t table_bytes = 0;
  int fd = -1;  ///< there is none
};

inline bool map_region(std::uint64_t frames, std::uint64_t table_bytes, bool /*prefault*/,
                       Region& out) noexcept {
  if (!hooks::map_region(frames, frames * kPageSize, frames * kPayloadBytes, table_bytes,
                         &out.payload, &out.objects, &out.tables)) {
    return false;
  }
  out.frames = frames;
  out.table_bytes = table_bytes;
  return true;
}
/// The arena goes as a whole, with World::reset().
inline void unmap_region(Region& region) noexcept { region = Region{}; }

}  // namespace faultpath::env
