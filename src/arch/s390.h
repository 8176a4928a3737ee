// s390: program interruption codes, the translation-exception identification, the access rule.
#pragma once

#include <faultpath/arch.h>

#include "arch/rights.h"

namespace faultpath::arch::s390 {

inline constexpr std::uint32_t kProtection = 0x04;
inline constexpr std::uint32_t kSegment = 0x10;
inline constexpr std::uint32_t kPage = 0x11;
inline constexpr std::uint32_t kAsceType = 0x38;
inline constexpr std::uint32_t kRegionFirst = 0x39;
inline constexpr std::uint32_t kRegionSecond = 0x3a;
inline constexpr std::uint32_t kRegionThird = 0x3b;
/// Program event recording and aborted transactions come along with a code.
inline constexpr std::uint32_t kEventBits = 0x280;

// IBM counts bits from the top: bit 52 is 0x800, bit 63 is 1.
inline constexpr std::uint64_t kAddress = ~std::uint64_t{0xfff};
inline constexpr std::uint64_t kFsi = 0xc00;
inline constexpr std::uint64_t kFsiStore = 0x400;
inline constexpr std::uint64_t kFsiFetch = 0x800;
inline constexpr std::uint64_t kExecProtection = 0x80;  // bit 56
inline constexpr std::uint64_t kDatProtection = 0x4;    // bit 61
inline constexpr std::uint64_t kSpace = 0x3;
inline constexpr std::uint64_t kSecondary = 2;
inline constexpr std::uint64_t kHome = 3;

/// The machine tells a store from the rest, and nothing else: other accesses need any right. A fetch
/// of a page that is there and forbids it comes from a SoftCpu alone; the registers say so with a code
/// of their own, which needs no VMA (decode).
constexpr Verdict check(const GuestFault& f, const VmaRights& v) {
  if (f.access == Access::exec && f.present) return allowed_if(has(v.prot, Prot::exec));
  if (f.access == Access::write) return allowed_if(has(v.prot, Prot::write));
  return allowed_if(has_any(v.prot, kAnyRight));
}

}  // namespace faultpath::arch::s390
