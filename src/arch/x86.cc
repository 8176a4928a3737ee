// x86: the decoder of page faults.
#include "arch/x86.h"

namespace faultpath::arch::x86 {
namespace {

constexpr std::uint64_t kKnown =
    kProt | kWrite | kUser | kRsvd | kInstr | kPk | kShstk | kSgx | kRmp;

/// Why the hardware cannot report this combination; null where it can.
const char* impossible(std::uint64_t e, bool user_mode) {
  const auto on = [e](std::uint64_t bits) { return (e & bits) != 0; };
  if (on(~kKnown)) return "x86: reserved bit in the error code";
  if (on(kInstr) && on(kWrite)) return "x86: INSTR with WRITE";
  if (on(kInstr) && on(kPk)) return "x86: INSTR with PK";
  if (on(kInstr) && on(kShstk)) return "x86: INSTR with SHSTK";
  if (on(kPk) && !on(kProt)) return "x86: PK without PROT";
  if (on(kRsvd) && !on(kProt)) return "x86: RSVD without PROT";
  if (on(kSgx) && !on(kProt)) return "x86: SGX without PROT";
  if (on(kSgx) && on(kPk)) return "x86: SGX with PK";
  if (on(kSgx) && on(kRsvd)) return "x86: SGX with RSVD";
  // A kernel that writes a user's shadow stack (WRUSS) is the one that faults as a user.
  if (on(kUser) && !user_mode && !(on(kShstk) && on(kWrite))) return "x86: USER in kernel mode";
  if (on(kRmp)) return "x86: RMP violation, not a VMA's matter";
  if (on(kRsvd)) return "x86: RSVD, the page table is corrupt";
  return nullptr;
}

}  // namespace

Decoded decode(const Registers& r) {
  const std::uint64_t e = r.error_code;
  if (const char* why = impossible(e, r.user_mode)) return Decoded::refused(why);
  GuestFault f;
  f.arch = Arch::x86;
  f.access = (e & (kWrite | kShstk)) ? Access::write : (e & kInstr) ? Access::exec : Access::read;
  f.user = r.user_mode;
  f.present = (e & kProt) != 0;
  f.key_denied = (e & kPk) != 0;
  f.shadow_stack = (e & kShstk) != 0;
  f.key_read = f.shadow_stack && !(e & kWrite);
  f.sgx = (e & kSgx) != 0;
  f.check_keys = true;
  f.key_rights = r.pkru;
  f.address = f.reported = r.cr2;
  if (r.cr2 >= kUserEnd) {
    if (!r.user_mode) return Decoded::refused("x86: kernel-mode fault on a kernel address");
    return Decoded::of(Outcome::signal(kSigSegv, kSegvMapErr, r.cr2, f.access));
  }
  if (!(e & kUser)) {
    if (e & kInstr) return Decoded::refused("x86: kernel fetches from user memory (SMEP)");
    if (!r.ac) return Decoded::refused("x86: kernel touches user memory with AC clear (SMAP)");
  }
  return Decoded::of(f);
}

}  // namespace faultpath::arch::x86
