// SoftCpu: an execution context with a TLB and a walker. Guest memory is touched through it.
#pragma once

#include <faultpath/counters.h>
#include <faultpath/detail/cpu_block.h>
#include <faultpath/machine.h>
#include <faultpath/outcome.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace faultpath {

class AddressSpace;
class SoftCpu;

/// A guest word: trivially copyable, 1, 2, 4 or 8 bytes.
template <class T>
concept GuestWord = std::is_trivially_copyable_v<T> &&
                    (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);

/// A guest integer, for fetch-and-op.
template <class T>
concept GuestInteger = std::integral<T> && GuestWord<T>;

/// The 16-byte word of a double compare-exchange.
struct alignas(16) GuestPair {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend constexpr bool operator==(const GuestPair&, const GuestPair&) = default;
};

namespace detail {

/// Up to two stretches of host memory that a guest range translates to.
struct Translated {
  std::byte* first = nullptr;
  std::uint64_t first_bytes = 0;
  std::byte* second = nullptr;  ///< where the range crosses into the next page
  std::uint64_t section = 0;    ///< for close_section
  Outcome failure;              ///< set where `first` is null
};

/// Translates [a, a + bytes), bytes at most one page, faulting as often as needed. On success an
/// access section is open and the caller closes it; on failure none is.
Translated translate(CpuBlock& cpu, Addr a, std::uint64_t bytes, Access access);
/// 16-byte compare-exchange on aligned host memory; returns what was there.
GuestPair compare_exchange_16(std::byte* at, GuestPair expected, GuestPair desired);

}  // namespace detail

/// One per thread at a time: a thread may own several and is inside one. Not thread-safe, except
/// where a method says so. A signal handler may use the SoftCpu that it interrupted: hits are
/// served, a fault that comes while the engine is interrupted is `Refused{nested}`.
///
/// Aligned accesses of up to 8 bytes are single ones with x86's order (on x86 hosts); accesses that
/// cross an eight-byte boundary may be seen in parts; those that cross a page are split, and write
/// nothing unless both pages can be written.
class SoftCpu {
 public:
  /// Attaches to the machine, which must outlive it. Where no slot is left every access is
  /// `Refused{not_entered}` and every call given it EMFILE; attached() tells.
  explicit SoftCpu(Machine& machine);
  SoftCpu(const SoftCpu&) = delete;
  SoftCpu& operator=(const SoftCpu&) = delete;
  ~SoftCpu();

  bool attached() const { return block_ != nullptr; }

  /// Context switch: guest accesses go to `space` from now on, which must stay alive until this
  /// SoftCpu leaves it, and be of the same Machine. Drops the TLB. Like leave(): not from a signal
  /// handler.
  void enter(AddressSpace& space);
  /// Leaves the space it is inside, if any.
  void leave();

  template <GuestWord T>
  FP_ALWAYS_INLINE Loaded<T> load(Addr a) {
    if (FP_LIKELY(block_ != nullptr)) {
      detail::CpuBlock& b = *block_;
      const std::uint64_t s = detail::open_section(b);
      const detail::TlbEntry& e = detail::tlb_slot(b, a);
      if (detail::inline_allowed(b, s) && detail::tag_hits<sizeof(T)>(e.read_tag, a)) {
        const T v = env::guest_load<T>(host(a, e));
        detail::close_section(b, s);
        return v;
      }
      detail::close_section(b, s);
    }
    return load_slow<T>(a);
  }

  template <GuestWord T>
  FP_ALWAYS_INLINE Outcome store(Addr a, std::type_identity_t<T> v) {
    if (FP_LIKELY(block_ != nullptr)) {
      detail::CpuBlock& b = *block_;
      const std::uint64_t s = detail::open_section(b);
      const detail::TlbEntry& e = detail::tlb_slot(b, a);
      if (detail::inline_allowed(b, s) && detail::tag_hits<sizeof(T)>(e.write_tag, a)) {
        env::guest_store<T>(host(a, e), v);
        detail::close_section(b, s);
        return {};
      }
      detail::close_section(b, s);
    }
    return store_slow<T>(a, v);
  }

  /// Returns what was there; it was replaced if that equals `expected`. Like every
  /// read-modify-write here: sequentially consistent, needs the right to write, SIGBUS (BUS_ADRALN)
  /// where the word crosses a page.
  template <GuestInteger T>
  Loaded<T> compare_exchange(Addr a, std::type_identity_t<T> expected,
                             std::type_identity_t<T> desired) {
    return modify<T>(
        a, [=](std::byte* p) { return env::guest_compare_exchange<T>(p, expected, desired); });
  }
  template <GuestInteger T>
  Loaded<T> exchange(Addr a, std::type_identity_t<T> v) {
    return modify<T>(a, [=](std::byte* p) { return env::guest_exchange<T>(p, v); });
  }
  template <GuestInteger T>
  Loaded<T> fetch_add(Addr a, std::type_identity_t<T> v) {
    return modify<T>(a, [=](std::byte* p) { return env::guest_fetch_add<T>(p, v); });
  }
  template <GuestInteger T>
  Loaded<T> fetch_and(Addr a, std::type_identity_t<T> v) {
    return modify<T>(a, [=](std::byte* p) { return env::guest_fetch_and<T>(p, v); });
  }
  template <GuestInteger T>
  Loaded<T> fetch_or(Addr a, std::type_identity_t<T> v) {
    return modify<T>(a, [=](std::byte* p) { return env::guest_fetch_or<T>(p, v); });
  }
  template <GuestInteger T>
  Loaded<T> fetch_xor(Addr a, std::type_identity_t<T> v) {
    return modify<T>(a, [=](std::byte* p) { return env::guest_fetch_xor<T>(p, v); });
  }
  /// Sixteen bytes at a multiple of sixteen (else SIGSEGV, as cmpxchg16b gives a general fault).
  Loaded<GuestPair> compare_exchange(Addr a, GuestPair expected, GuestPair desired);

  /// Guest to host. Stops at the first byte that cannot be read; the count is exact.
  Copied copy_in(void* to, Addr from, std::uint64_t bytes);
  /// Host to guest. Stops at the first byte that cannot be written; the count is exact.
  Copied copy_out(Addr to, const void* from, std::uint64_t bytes);

  /// Whether an instruction may be fetched from `a`: faults as a fetch does, reads nothing.
  Outcome fetch(Addr a);

  /// A fault that an emulator's own guest has reported, through one of the decoders of
  /// <faultpath/arch.h>, whatever the space's own machine: the space settles it as the kernel of
  /// that machine would. `done`: the page allows the access now, and the guest repeats the
  /// instruction. A signal: what the guest's program gets, also where no VMA was asked. Codes that
  /// no machine reports are `Refused{impossible}`: Decoded::impossible names them.
  Outcome fault(const Decoded& what);

  /// x86's PKRU, 0 at first: which protection keys deny this SoftCpu what, in spaces of that
  /// machine. Drops the TLB. Like leave(): not from a signal handler.
  void set_pkru(std::uint32_t rights);

  /// What this SoftCpu did since it was made. Any thread may ask; a racing answer is a moment old.
  Counters counters() const;

  /// Engine use.
  detail::CpuBlock* block() const { return block_; }

 private:
  static FP_ALWAYS_INLINE std::byte* host(Addr a, const detail::TlbEntry& e) {
    return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(a + e.addend));
  }
  Outcome not_entered(Addr a) const { return Outcome::refused(RefusedReason::not_entered, a); }

  template <GuestWord T>
  FP_NOINLINE Loaded<T> load_slow(Addr a) {
    if (block_ == nullptr) return not_entered(a);
    const detail::Translated t = detail::translate(*block_, a, sizeof(T), Access::read);
    if (t.first == nullptr) return t.failure;
    T v{};
    if (t.second == nullptr && (a & (sizeof(T) - 1)) == 0) {
      v = env::guest_load<T>(t.first);
    } else {
      auto* bytes = reinterpret_cast<std::byte*>(&v);
      env::copy_from_payload(bytes, t.first, t.first_bytes);
      if (t.second) {
        env::copy_from_payload(bytes + t.first_bytes, t.second, sizeof(T) - t.first_bytes);
      }
    }
    detail::close_section(*block_, t.section);
    return v;
  }

  template <GuestWord T>
  FP_NOINLINE Outcome store_slow(Addr a, T v) {
    if (block_ == nullptr) return not_entered(a);
    const detail::Translated t = detail::translate(*block_, a, sizeof(T), Access::write);
    if (t.first == nullptr) return t.failure;
    if (t.second == nullptr && (a & (sizeof(T) - 1)) == 0) {
      env::guest_store<T>(t.first, v);
    } else {
      const auto* bytes = reinterpret_cast<const std::byte*>(&v);
      env::copy_to_payload(t.first, bytes, t.first_bytes);
      if (t.second) {
        env::copy_to_payload(t.second, bytes + t.first_bytes, sizeof(T) - t.first_bytes);
      }
    }
    detail::close_section(*block_, t.section);
    return {};
  }

  template <GuestInteger T, class Op>
  Loaded<T> modify(Addr a, Op op) {
    if (block_ == nullptr) return not_entered(a);
    if ((a & ~kPageMask) + sizeof(T) > kPageSize) {
      return Outcome::signal(kSigBus, kBusAdrAln, a, Access::write);
    }
    const detail::Translated t = detail::translate(*block_, a, sizeof(T), Access::write);
    if (t.first == nullptr) return t.failure;
    const T old = op(t.first);
    detail::close_section(*block_, t.section);
    return old;
  }

  detail::CpuBlock* block_ = nullptr;
};

}  // namespace faultpath
