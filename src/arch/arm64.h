// arm64: the fields of ESR_EL1 for aborts, and the access rule.
#pragma once

#include <faultpath/arch.h>

#include "arch/rights.h"

namespace faultpath::arch::arm64 {

inline constexpr unsigned kEcShift = 26;
inline constexpr unsigned kFetchEl0 = 0x20;
inline constexpr unsigned kFetchEl1 = 0x21;
inline constexpr unsigned kDataEl0 = 0x24;
inline constexpr unsigned kDataEl1 = 0x25;

inline constexpr std::uint64_t kFsc = 0x3f;
inline constexpr std::uint64_t kWnr = 1 << 6;
inline constexpr std::uint64_t kS1ptw = 1 << 7;
inline constexpr std::uint64_t kCm = 1 << 8;
inline constexpr std::uint64_t kFnv = 1 << 10;
inline constexpr std::uint64_t kOverlay = std::uint64_t{1} << (32 + 6);
inline constexpr std::uint64_t kGcs = std::uint64_t{1} << (32 + 8);

/// POR_EL0: four bits a key from the bottom up, 1 read, 2 execute, 4 write.
constexpr bool key_denies(std::uint64_t por, unsigned key, Access access) {
  if (key >= 16) return true;
  const std::uint64_t bits = por >> (4 * key);
  return (bits & (access == Access::write ? 4 : access == Access::exec ? 2 : 1)) == 0;
}

/// Rights first, then the guarded control stack, then keys. Whether a key denies is decided by
/// POR_EL0 alone (Linux since 6.14): the Overlay bit may be stale.
constexpr Verdict check(const GuestFault& f, const VmaRights& v) {
  Prot needed = Prot::read | Prot::write;
  if (f.access == Access::exec) {
    needed = Prot::exec;
  } else if (f.access == Access::write || f.shadow_stack) {
    needed = Prot::write;
  } else if (!f.epan) {
    needed = kAnyRight;
  }
  if (!has_any(v.prot, needed)) return Verdict::denied;
  if (f.shadow_stack && !v.shadow_stack) return Verdict::denied;
  if (!f.shadow_stack && v.shadow_stack && f.access == Access::write) return Verdict::denied;
  if (f.check_keys && key_denies(f.key_rights, v.pkey, f.access)) return Verdict::key_denied;
  return Verdict::allowed;
}

}  // namespace faultpath::arch::arm64
