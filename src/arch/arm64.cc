// arm64: the decoder of data and instruction aborts.
#include "arch/arm64.h"

namespace faultpath::arch::arm64 {
namespace {

enum class Class : std::uint8_t {
  reserved,
  translation,  // a VMA's matter below the kernel's half, SEGV_MAPERR in it
  page,         // access flag and permission: a VMA's matter
  alignment,    // SIGBUS, BUS_ADRALN
  tag,          // SIGSEGV, SEGV_MTESERR
  external,     // SIGBUS, BUS_OBJERR
  kill,         // SIGKILL: tables or caches are broken
  exclusive,    // SIGBUS, BUS_OBJERR: unsupported exclusive
  data_kill,    // SIGKILL, of data aborts only
};

Class class_of(unsigned fsc) {
  const auto in = [fsc](unsigned first, unsigned last) { return fsc >= first && fsc <= last; };
  if (in(0x00, 0x03) || fsc == 0x29) return Class::kill;         // address size
  if (in(0x04, 0x07) || fsc == 0x2b) return Class::translation;  // levels 0 to 3, and -1
  if (in(0x08, 0x0b)) return Class::page;                        // access flag
  if (in(0x0c, 0x0f)) return Class::page;                        // permission
  if (fsc == 0x10 || fsc == 0x18) return Class::external;        // external abort, parity
  if (fsc == 0x11) return Class::tag;
  if (in(0x13, 0x17)) return Class::kill;  // external abort on a table walk
  if (in(0x1b, 0x1f)) return Class::kill;  // parity on a table walk
  if (fsc == 0x21) return Class::alignment;
  if (fsc == 0x30) return Class::kill;       // TLB conflict
  if (fsc == 0x31) return Class::data_kill;  // unsupported atomic update
  if (fsc == 0x34) return Class::data_kill;  // lockdown
  if (fsc == 0x35) return Class::exclusive;
  return Class::reserved;
}

/// Bit 55 chooses the half of the address space; above it may be a tag.
bool kernel_half(Addr a) { return (a >> 55) & 1; }
Addr untagged(Addr a) {
  constexpr Addr kTag = Addr{0xff} << 56;
  return kernel_half(a) ? a | kTag : a & ~kTag;
}

const char* impossible(std::uint64_t esr, bool fetch, Class kind, bool poe) {
  const auto on = [esr](std::uint64_t bits) { return (esr & bits) != 0; };
  const unsigned fsc = esr & kFsc;
  if (fsc == 0x3d || fsc == 0x3e) return "arm64: domain fault in a 64-bit table";
  if (kind == Class::reserved) return "arm64: reserved fault status";
  if (fetch && on(kWnr)) return "arm64: WnR in an instruction abort";
  if (fetch && on(kCm)) return "arm64: CM in an instruction abort";
  if (fetch && on(kGcs)) return "arm64: GCS in an instruction abort";
  if (fetch && (kind == Class::tag || kind == Class::alignment || kind == Class::exclusive ||
                kind == Class::data_kill)) {
    return "arm64: a data abort's status in an instruction abort";
  }
  if (on(kS1ptw)) return "arm64: S1PTW without a second stage";
  if (on(kCm) && !on(kWnr)) return "arm64: CM without WnR";
  if (on(kCm) && on(kGcs)) return "arm64: CM with GCS";
  if (on(kFnv) && fsc != 0x10) return "arm64: FnV without an external abort";
  if (on(kOverlay) && !poe) return "arm64: Overlay without permission overlays";
  if (on(kOverlay) && !(fsc >= 0x0c && fsc <= 0x0f)) {
    return "arm64: Overlay without a permission fault";
  }
  return nullptr;
}

}  // namespace

Decoded decode(const Registers& r) {
  const std::uint64_t esr = r.esr;
  const unsigned ec = (esr >> kEcShift) & 0x3f;
  const bool fetch = ec == kFetchEl0 || ec == kFetchEl1;
  if (!fetch && ec != kDataEl0 && ec != kDataEl1) {
    return Decoded::refused("arm64: exception class is no abort");
  }
  const bool user = ec == kFetchEl0 || ec == kDataEl0;
  const Class kind = class_of(esr & kFsc);
  if (const char* why = impossible(esr, fetch, kind, r.poe)) return Decoded::refused(why);

  GuestFault f;
  f.arch = Arch::arm64;
  f.user = user;
  f.shadow_stack = (esr & kGcs) != 0;
  // Cache maintenance reports a write and is none. A control-stack access is handled as a write.
  const bool write = f.shadow_stack || ((esr & kWnr) && !(esr & kCm));
  f.access = fetch ? Access::exec : write ? Access::write : Access::read;
  f.key_denied = (esr & kOverlay) != 0;
  f.check_keys = r.poe;
  f.key_rights = r.por_el0;
  f.epan = r.epan;
  f.address = untagged(r.far);
  f.reported = r.expose_tag_bits ? r.far : f.address;

  if (!user) {
    if (fetch) return Decoded::refused("arm64: kernel-mode instruction abort");
    if (kind != Class::translation && kind != Class::page) {
      return Decoded::refused("arm64: kernel-mode abort that no VMA settles");
    }
    if (kernel_half(r.far)) return Decoded::refused("arm64: kernel-mode fault on a kernel address");
  }
  const auto signal = [&](std::uint8_t number, std::uint8_t code, Addr at) {
    return Decoded::of(Outcome::signal(number, code, at, f.access));
  };
  switch (kind) {
    case Class::translation:
      if (kernel_half(r.far)) return signal(kSigSegv, kSegvMapErr, f.reported);
      return Decoded::of(f);
    case Class::page: return Decoded::of(f);
    case Class::alignment: return signal(kSigBus, kBusAdrAln, f.reported);
    case Class::tag: {
      // Bits 63:60 of FAR are unknown here; Linux gives the half's.
      constexpr Addr kLogicalTag = Addr{0xf} << 56;
      const Addr tagged = (f.address & ~kLogicalTag) | (r.far & kLogicalTag);
      return signal(kSigSegv, kSegvMteSErr, r.expose_tag_bits ? tagged : f.address);
    }
    case Class::external: return signal(kSigBus, kBusObjErr, (esr & kFnv) ? 0 : f.address);
    case Class::exclusive: return signal(kSigBus, kBusObjErr, f.address);
    case Class::kill:
    case Class::data_kill: return signal(kSigKill, kSiKernel, f.address);
    case Class::reserved: break;
  }
  return Decoded::refused("arm64: reserved fault status");
}

}  // namespace faultpath::arch::arm64
