// arm: the bits of the fault status registers, and the access rule.
#pragma once

#include <faultpath/arch.h>

#include "arch/rights.h"

namespace faultpath::arch::arm {

inline constexpr std::uint32_t kShortStatus = 0x40f;  // FS[4] is bit 10
inline constexpr std::uint32_t kLongStatus = 0x3f;
inline constexpr std::uint32_t kDomain = 0xf0;  // short descriptors
inline constexpr std::uint32_t kLongFormat = 1 << 9;
inline constexpr std::uint32_t kWnr = 1 << 11;
inline constexpr std::uint32_t kExternalType = 1 << 12;
inline constexpr std::uint32_t kCm = 1 << 13;

constexpr unsigned short_status(std::uint32_t fsr) { return (fsr & 0xf) | ((fsr >> 6) & 0x10); }
constexpr std::uint32_t from_short_status(unsigned status) {
  return (status & 0xf) | ((status & 0x10) << 6);
}

/// A read needs any right.
constexpr Verdict check(const GuestFault& f, const VmaRights& v) {
  switch (f.access) {
    case Access::write: return allowed_if(has(v.prot, Prot::write));
    case Access::exec: return allowed_if(has(v.prot, Prot::exec));
    case Access::read: break;
  }
  return allowed_if(has_any(v.prot, kAnyRight));
}

}  // namespace faultpath::arch::arm
