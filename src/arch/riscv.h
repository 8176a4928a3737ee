// riscv: the causes of memory faults, and the access rule.
#pragma once

#include <faultpath/arch.h>

#include "arch/rights.h"

namespace faultpath::arch::riscv {

inline constexpr std::uint64_t kInterrupt = std::uint64_t{1} << 63;
inline constexpr std::uint64_t kFetchMisaligned = 0;
inline constexpr std::uint64_t kFetchAccess = 1;
inline constexpr std::uint64_t kLoadMisaligned = 4;
inline constexpr std::uint64_t kLoadAccess = 5;
inline constexpr std::uint64_t kStoreMisaligned = 6;
inline constexpr std::uint64_t kStoreAccess = 7;
inline constexpr std::uint64_t kFetchPage = 12;
inline constexpr std::uint64_t kLoadPage = 13;
inline constexpr std::uint64_t kStorePage = 15;

/// Write implies read; exec-only memory is not readable. There is no present bit.
constexpr Verdict check(const GuestFault& f, const VmaRights& v) {
  switch (f.access) {
    case Access::write: return allowed_if(has(v.prot, Prot::write));
    case Access::exec: return allowed_if(has(v.prot, Prot::exec));
    case Access::read: break;
  }
  return allowed_if(has_any(v.prot, Prot::read | Prot::write));
}

}  // namespace faultpath::arch::riscv
