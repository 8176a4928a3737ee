// s390: the decoder of protection and translation exceptions.
#include "arch/s390.h"

namespace faultpath::arch::s390 {
namespace {

bool is_translation(std::uint32_t code) {
  return code == kSegment || code == kPage || (code >= kAsceType && code <= kRegionThird);
}

}  // namespace

Decoded decode(const Registers& r) {
  const std::uint32_t code = r.program_code & ~kEventBits;
  const bool protection = code == kProtection;
  if (!protection && !is_translation(code)) {
    return Decoded::refused("s390: program code is no page fault");
  }
  const auto on = [&](std::uint64_t bits) { return (r.teid & bits) != 0; };
  const std::uint64_t space = r.teid & kSpace;
  // Without bit 61 the identification is not valid at all.
  if (protection && !on(kDatProtection)) {
    return Decoded::refused(r.user_mode ? "s390: low-address protection in user mode"
                                        : "s390: kernel-mode low-address or key protection");
  }
  const std::uint64_t fsi = r.store_indication ? r.teid & kFsi : 0;
  const bool exec = protection && r.no_execute && on(kExecProtection);
  if (fsi == kFsi) return Decoded::refused("s390: both store and fetch indicated");
  if (exec && fsi == kFsiStore) return Decoded::refused("s390: execution protection of a store");
  if (protection && !exec && fsi == kFsiFetch) {
    return Decoded::refused("s390: page protection of a fetch");
  }
  if (r.user_mode && space == kHome) return Decoded::refused("s390: home space in user mode");
  if (!r.user_mode && space != kSecondary) {
    return Decoded::refused("s390: kernel-mode fault in the kernel's space");
  }

  GuestFault f;
  f.arch = Arch::s390;
  f.user = r.user_mode;
  f.access = protection || fsi == kFsiStore ? Access::write : Access::read;
  f.address = f.reported = r.teid & kAddress;
  if (exec) {
    if (!r.user_mode) return Decoded::refused("s390: kernel-mode execution protection");
    // The page is the one of the instruction; no VMA is asked.
    return Decoded::of(
        Outcome::signal(kSigSegv, kSegvAccErr, r.psw_address & kAddress, Access::exec));
  }
  return Decoded::of(f);
}

}  // namespace faultpath::arch::s390
