// powerpc (Book3S-64): the bits of DSISR, and the access rule.
#pragma once

#include <faultpath/arch.h>

#include "arch/rights.h"

namespace faultpath::arch::powerpc {

inline constexpr std::uint32_t kDataStorage = 0x300;
inline constexpr std::uint32_t kInstStorage = 0x400;

inline constexpr std::uint64_t kBadDirectStore = 0x80000000;
inline constexpr std::uint64_t kNoHpte = 0x40000000;
inline constexpr std::uint64_t kAttrConflict = 0x20000000;
inline constexpr std::uint64_t kNoExecOrGuarded = 0x10000000;
inline constexpr std::uint64_t kProtFault = 0x08000000;
inline constexpr std::uint64_t kBadAccess = 0x04000000;
inline constexpr std::uint64_t kIsStore = 0x02000000;
inline constexpr std::uint64_t kDabrMatch = 0x00400000;
inline constexpr std::uint64_t kKeyFault = 0x00200000;
inline constexpr std::uint64_t kBadExtCtrl = 0x00100000;
inline constexpr std::uint64_t kUnsuppMmu = 0x00080000;
inline constexpr std::uint64_t kSetRc = 0x00040000;
inline constexpr std::uint64_t kPrTableFault = 0x00020000;
inline constexpr std::uint64_t kIcswxNoCt = 0x00004000;
inline constexpr std::uint64_t kBadCopyPaste = 0x00000008;
inline constexpr std::uint64_t kBadAmo = 0x00000004;
inline constexpr std::uint64_t kBadCiLdst = 0x00000002;

/// Answered with SIGBUS, BUS_OBJERR.
inline constexpr std::uint64_t kBad = kBadDirectStore | kAttrConflict | kBadAccess | kBadExtCtrl |
                                      kUnsuppMmu | kPrTableFault | kIcswxNoCt | kBadCopyPaste |
                                      kBadAmo | kBadCiLdst;
/// A page that is absent, or whose rights or marks do not do.
inline constexpr std::uint64_t kReason = kNoHpte | kProtFault | kKeyFault | kSetRc;
/// The reasons that SRR1 carries in the same places for an instruction.
inline constexpr std::uint64_t kInSrr1 =
    kNoHpte | kNoExecOrGuarded | kProtFault | kKeyFault | kUnsuppMmu | kSetRc | kPrTableFault;

/// AMR and IAMR: two bits a key from the top down. AMR: 1 no read, 2 no write; IAMR: 1 no fetch.
constexpr bool key_denies(std::uint64_t rights, unsigned key, Access access) {
  const std::uint64_t bits = rights >> (62 - 2 * (key & 31));
  return (bits & (access == Access::write ? 2 : 1)) != 0;
}

/// Keys first, from AMR and IAMR: the KEYFAULT bit does not decide. Exec-only memory is not
/// readable; a CPU without a no-execute right fetches from what is readable or writable.
constexpr Verdict check(const GuestFault& f, const VmaRights& v) {
  if (f.check_keys && key_denies(f.key_rights, v.pkey, f.access)) return Verdict::key_denied;
  switch (f.access) {
    case Access::exec:
      if (has(v.prot, Prot::exec)) return Verdict::allowed;
      return allowed_if(!f.no_execute && has_any(v.prot, Prot::read | Prot::write));
    case Access::write: return allowed_if(has(v.prot, Prot::write));
    case Access::read: break;
  }
  return allowed_if(has_any(v.prot, Prot::read | Prot::write));
}

}  // namespace faultpath::arch::powerpc
