// The part of a Cpu that the inlined TLB hit touches. Layout and protocol of the access section.
//
// An access section brackets one guest access: TLB lookup, walk, accessed and dirty update, insert,
// the access itself. A flush waits for the sections that were open when it cleared the entries, and
// so does a grace period, because the walker reads tables inside one. Nothing inside takes a lock
// or parks.
//
//   open:  section = odd; light fence; look at `attention`, answer a flush if asked
//          (bit 63, set while the owner is parked: not by the inlined path)
//   close: section = even (release)
//
// A flusher posts its request, raises `attention`, and waits for the answer; if none comes for a
// while it issues the heavy fence and then reads `section`: even means that the owner was outside,
// and whatever it opens later sees `attention` (the fence pair); odd means wait for it to change.
// `parked` is true while the owner is outside guest code (inside the engine, idle, blocked; a fault
// parks only before it waits for anything): then
// the request counts as answered at once, and the owner pays a full fence when it unparks.
#pragma once

#include <faultpath/config.h>
#include <faultpath/detail/annotations.h>

#include <cstddef>
#include <cstdint>

#include "env.h"

namespace faultpath::detail {

/// One translation. Direct mapped. A tag is the page's address where that access may proceed
/// without the engine, else kNoTag. Written by the owning thread alone.
struct TlbEntry {
  env::var<Addr> read_tag;
  env::var<Addr> write_tag;
  env::var<std::uint64_t> addend;  ///< host address = guest address + addend
  env::var<std::uint64_t> reserved;
};

inline constexpr Addr kNoTag = ~Addr{0};
inline constexpr std::size_t kTlbEntries = env::per_world<std::size_t>(256, 16);

/// Bit of `section`: the owner is parked, in the engine or in no space. Then flushers do not wait for it,
/// so a signal handler's access must not take the inlined path: it opens its section with a full
/// fence and looks whether a flush is owed (translate()). Set and cleared by the owner alone.
inline constexpr std::uint64_t kInEngine = std::uint64_t{1} << 63;

struct CpuBlock {
  // Hot line: written by the owner, `attention` by flushers.
  alignas(64) env::atomic<std::uint64_t> section;  ///< odd: an access section is open
  env::atomic<std::uint32_t> attention;            ///< a flush request waits to be answered
  env::atomic<std::uint32_t> parked;               ///< the owner is outside guest code
  env::atomic<std::uint32_t> depth;                ///< engine entries not yet left
  alignas(64) TlbEntry tlb[kTlbEntries];
};

FP_ALWAYS_INLINE TlbEntry& tlb_slot(CpuBlock& b, Addr a) {
  // The index as a byte offset: one shift and one mask on the way to the entry, not three steps.
  constexpr unsigned kEntryShift = 5;
  static_assert(sizeof(TlbEntry) == std::size_t{1} << kEntryShift);
  const std::uint64_t offset =
      (a >> (kPageShift - kEntryShift)) & ((kTlbEntries - 1) << kEntryShift);
  return *reinterpret_cast<TlbEntry*>(reinterpret_cast<std::byte*>(b.tlb) + offset);
}

/// Opens an access section; the result goes to close_section. A nested open (a signal handler
/// inside an open section) leaves the counter odd, and its close leaves it odd too.
FP_ALWAYS_INLINE std::uint64_t open_section(CpuBlock& b, env::Site site = env::Site::current()) {
  const std::uint64_t before = b.section.load(env::relaxed, site);
  env::store_then_light_fence(b.section, before | 1, site);
  return before;
}
/// May the inlined path go on in a section opened on `before`?
FP_ALWAYS_INLINE bool inline_allowed(const CpuBlock& b, std::uint64_t before) {
  return FP_LIKELY((before & kInEngine) == 0 && b.attention.load(env::acquire) == 0);
}
FP_ALWAYS_INLINE void close_section(CpuBlock& b, std::uint64_t before,
                                    env::Site site = env::Site::current()) {
  b.section.store(before + ((~before & 1) << 1), env::release, site);
}

/// Does the access need nothing but the TLB entry? Aligned, same page, right granted.
template <std::size_t Bytes>
FP_ALWAYS_INLINE bool tag_hits(Addr tag, Addr a) {
  return FP_LIKELY(tag == (a & (kPageMask | (Bytes - 1))));
}

}  // namespace faultpath::detail
