// x86: the bits of a page fault's error code, and the access rule.
#pragma once

#include <faultpath/arch.h>

#include "arch/rights.h"

namespace faultpath::arch::x86 {

inline constexpr std::uint64_t kProt = 1 << 0;  // 0: not present
inline constexpr std::uint64_t kWrite = 1 << 1;
inline constexpr std::uint64_t kUser = 1 << 2;
inline constexpr std::uint64_t kRsvd = 1 << 3;
inline constexpr std::uint64_t kInstr = 1 << 4;
inline constexpr std::uint64_t kPk = 1 << 5;
inline constexpr std::uint64_t kShstk = 1 << 6;
inline constexpr std::uint64_t kSgx = 1 << 15;
inline constexpr std::uint64_t kRmp = std::uint64_t{1} << 31;

/// PKRU: two bits a key from the bottom up, 1 no access, 2 no write. Fetches have no keys.
constexpr bool key_denies(std::uint64_t pkru, unsigned key, Access access) {
  if (access == Access::exec) return false;
  const std::uint64_t bits = pkru >> (2 * (key & 15));
  return (bits & (access == Access::write ? 3 : 1)) != 0;
}

/// A key is asked first, whatever else forbids the access: Linux reports PKUERR whenever one does.
/// Not-present reads and fetches need any right, as the hardware tells them apart only once the
/// page is there; so memory that is write-only or exec-only is readable.
constexpr Verdict check(const GuestFault& f, const VmaRights& v) {
  if (f.key_denied) return Verdict::key_denied;
  const Access asked = f.key_read ? Access::read : f.access;
  if (f.check_keys && key_denies(f.key_rights, v.pkey, asked)) return Verdict::key_denied;
  if (f.sgx) return Verdict::denied;
  if (f.shadow_stack) return allowed_if(v.shadow_stack && has(v.prot, Prot::write));
  if (f.access == Access::write) return allowed_if(!v.shadow_stack && has(v.prot, Prot::write));
  if (f.present) return Verdict::denied;
  return allowed_if(has_any(v.prot, kAnyRight));
}

}  // namespace faultpath::arch::x86
