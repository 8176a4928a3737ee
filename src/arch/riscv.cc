// riscv: the decoder of memory faults.
#include "arch/riscv.h"

namespace faultpath::arch::riscv {
namespace {

Decoded page_fault(const Registers& r, Access access) {
  // The user's half is the one with the top bit clear.
  if (!r.user_mode) {
    if (r.stval >> 63) return Decoded::refused("riscv: kernel-mode fault on a kernel address");
    if (!r.sum) return Decoded::refused("riscv: kernel touches user memory with SUM clear");
  }
  GuestFault f;
  f.arch = Arch::riscv;
  f.access = access;
  f.user = r.user_mode;
  f.address = f.reported = r.stval;
  return Decoded::of(f);
}

/// Linux reports these at the instruction, not at the address.
Decoded trap(const Registers& r, std::uint8_t number, std::uint8_t code, Access access) {
  if (!r.user_mode) return Decoded::refused("riscv: kernel-mode trap that no VMA settles");
  return Decoded::of(Outcome::signal(number, code, r.sepc, access));
}

}  // namespace

Decoded decode(const Registers& r) {
  if (r.scause & kInterrupt) return Decoded::refused("riscv: an interrupt, no exception");
  switch (r.scause) {
    case kFetchPage: return page_fault(r, Access::exec);
    case kLoadPage: return page_fault(r, Access::read);
    case kStorePage: return page_fault(r, Access::write);
    case kFetchAccess: return trap(r, kSigSegv, kSegvAccErr, Access::exec);
    case kLoadAccess: return trap(r, kSigSegv, kSegvAccErr, Access::read);
    case kStoreAccess: return trap(r, kSigSegv, kSegvAccErr, Access::write);
    case kFetchMisaligned: return trap(r, kSigBus, kBusAdrAln, Access::exec);
    case kLoadMisaligned: return trap(r, kSigBus, kBusAdrAln, Access::read);
    case kStoreMisaligned: return trap(r, kSigBus, kBusAdrAln, Access::write);
    case 20:
    case 21:
    case 23: return Decoded::refused("riscv: guest page fault, the hypervisor's");
    default: break;
  }
  // Illegal instruction, breakpoint, environment calls, double trap, software check, hardware
  // error, virtual instruction.
  for (std::uint64_t other : {2, 3, 8, 9, 11, 16, 18, 19, 22}) {
    if (r.scause == other) return Decoded::refused("riscv: cause is no memory fault");
  }
  return Decoded::refused("riscv: reserved cause");
}

}  // namespace faultpath::arch::riscv
