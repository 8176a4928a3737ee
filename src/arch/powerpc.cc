// powerpc (Book3S-64): the decoder of data and instruction storage interrupts.
#include "arch/powerpc.h"

namespace faultpath::arch::powerpc {

Decoded decode(const Registers& r) {
  const bool fetch = r.trap == kInstStorage;
  if (!fetch && r.trap != kDataStorage) return Decoded::refused("powerpc: no storage interrupt");
  // SRR1 holds much of the machine state too: only the reasons are looked at.
  const std::uint64_t e = fetch ? r.srr1 & kInSrr1 : r.dsisr;
  const auto on = [e](std::uint64_t bits) { return (e & bits) != 0; };
  if (on(~(kBad | kReason | kNoExecOrGuarded | kIsStore | kDabrMatch))) {
    return Decoded::refused("powerpc: reserved bit in DSISR");
  }
  if (!fetch && on(kNoExecOrGuarded)) return Decoded::refused("powerpc: NOEXEC_OR_G of data");
  if (on(kDabrMatch)) return Decoded::refused("powerpc: DABRMATCH, a watchpoint");
  if (!on(kBad | kReason | kNoExecOrGuarded)) return Decoded::refused("powerpc: no reason given");

  GuestFault f;
  f.arch = Arch::powerpc;
  f.access = fetch ? Access::exec : on(kIsStore) ? Access::write : Access::read;
  f.user = r.user_mode;
  f.key_denied = on(kKeyFault);
  f.check_keys = true;
  f.key_rights = fetch ? r.iamr : r.amr;
  f.no_execute = r.no_execute;
  f.address = f.reported = fetch ? r.nip : r.dar;
  if (!r.user_mode) {
    if (on(kBad)) return Decoded::refused("powerpc: kernel-mode fault that no VMA settles");
    if (fetch) return Decoded::refused("powerpc: kernel-mode instruction storage interrupt");
    if (f.address >> 63) return Decoded::refused("powerpc: kernel-mode fault on a kernel address");
  }
  if (on(kBad)) return Decoded::of(Outcome::signal(kSigBus, kBusObjErr, f.reported, f.access));
  return Decoded::of(f);
}

}  // namespace faultpath::arch::powerpc
