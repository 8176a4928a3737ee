// arm: the decoder of data and prefetch aborts, with short and long descriptors (ARMv7).
#include "arch/arm.h"

namespace faultpath::arch::arm {
namespace {

enum class Class : std::uint8_t {
  reserved,
  debug,            // a watchpoint or breakpoint, no memory fault
  vma,              // a VMA's matter
  alignment,        // SIGBUS, BUS_ADRALN; data only
  maintenance,      // a VMA's matter; data only
  access_flag,      // not used by Linux here: SIGSEGV, MAPERR for data, ACCERR for fetches
  section_right,    // SIGSEGV, SEGV_MAPERR
  denied,           // SIGSEGV, SEGV_ACCERR
  external,         // SIGBUS without a code
  imprecise,        // SIGBUS, BUS_OBJERR; data only
  imprecise_other,  // SIGBUS without a code; data only
};

/// FS[4:0] of short descriptors.
Class short_class(unsigned fs) {
  if (fs == 0x01) return Class::alignment;
  if (fs == 0x02) return Class::debug;
  if (fs == 0x03 || fs == 0x06) return Class::access_flag;  // section, page
  if (fs == 0x04) return Class::maintenance;                // of the instruction cache
  if (fs == 0x05 || fs == 0x07) return Class::vma;          // translation
  if (fs == 0x09 || fs == 0x0b) return Class::denied;       // domain
  if (fs == 0x0d) return Class::section_right;
  if (fs == 0x0f) return Class::vma;                                   // page permission
  if (fs == 0x08 || fs == 0x0c || fs == 0x0e) return Class::external;  // and on table walks
  if (fs == 0x10 || fs == 0x14) return Class::external;                // TLB conflict, lockdown
  if (fs == 0x1a) return Class::external;                              // coprocessor
  if (fs == 0x19 || fs == 0x1c || fs == 0x1e) return Class::external;  // parity
  if (fs == 0x16) return Class::imprecise;                             // external
  if (fs == 0x18) return Class::imprecise_other;                       // parity
  return Class::reserved;
}

/// STATUS[5:0] of long descriptors. Level 1 entries are not pages in Linux.
Class long_class(unsigned status) {
  const auto in = [status](unsigned first, unsigned last) {
    return status >= first && status <= last;
  };
  if (in(0x05, 0x07)) return Class::vma;                         // translation
  if (in(0x0a, 0x0b) || in(0x0e, 0x0f)) return Class::vma;       // access flag, permission
  if (status == 0x09 || status == 0x0d) return Class::denied;    // the same, level 1
  if (status == 0x10 || in(0x15, 0x17)) return Class::external;  // and on table walks
  if (status == 0x18 || in(0x1d, 0x1f)) return Class::external;  // parity
  if (status == 0x30 || status == 0x34) return Class::external;  // TLB conflict, lockdown
  if (status == 0x3a) return Class::external;                    // coprocessor
  if (status == 0x11 || status == 0x19) return Class::imprecise_other;
  if (status == 0x21) return Class::alignment;
  if (status == 0x22) return Class::debug;
  return Class::reserved;
}

const char* impossible(const Registers& r, Class kind) {
  const auto on = [&](std::uint32_t bits) { return (r.fsr & bits) != 0; };
  const std::uint32_t status = r.lpae ? kLongStatus : kShortStatus | kDomain;
  if (on(~(status | kLongFormat | kWnr | kExternalType | kCm))) {
    return "arm: reserved bit in the status register";
  }
  if (on(kLongFormat) != r.lpae) return "arm: the status register's format is another one";
  if (r.prefetch && on(kWnr)) return "arm: WnR in a prefetch abort";
  if (r.prefetch && on(kCm)) return "arm: CM in a prefetch abort";
  if (on(kCm) && !on(kWnr)) return "arm: CM without WnR";
  if (kind == Class::reserved) return "arm: reserved fault status";
  if (kind == Class::debug) return "arm: debug event, no memory fault";
  if (r.prefetch && (kind == Class::alignment || kind == Class::maintenance ||
                     kind == Class::imprecise || kind == Class::imprecise_other)) {
    return "arm: a data abort's status in a prefetch abort";
  }
  return nullptr;
}

}  // namespace

Decoded decode(const Registers& r) {
  const Class kind = r.lpae ? long_class(r.fsr & kLongStatus) : short_class(short_status(r.fsr));
  if (const char* why = impossible(r, kind)) return Decoded::refused(why);
  GuestFault f;
  f.arch = Arch::arm;
  f.user = r.user_mode;
  // Cache maintenance reports a write and is none.
  f.access = r.prefetch                         ? Access::exec
             : (r.fsr & kWnr) && !(r.fsr & kCm) ? Access::write
                                                : Access::read;
  f.address = f.reported = r.far;
  if (kind == Class::vma || kind == Class::maintenance) {
    if (r.prefetch && !r.user_mode) return Decoded::refused("arm: kernel-mode prefetch abort");
    return Decoded::of(f);
  }
  if (!r.user_mode) return Decoded::refused("arm: kernel-mode abort that no VMA settles");
  const auto signal = [&](std::uint8_t number, std::uint8_t code) {
    return Decoded::of(Outcome::signal(number, code, f.reported, f.access));
  };
  switch (kind) {
    case Class::alignment: return signal(kSigBus, kBusAdrAln);
    case Class::access_flag: return signal(kSigSegv, r.prefetch ? kSegvAccErr : kSegvMapErr);
    case Class::section_right: return signal(kSigSegv, kSegvMapErr);
    case Class::denied: return signal(kSigSegv, kSegvAccErr);
    case Class::imprecise: return signal(kSigBus, kBusObjErr);
    default: return signal(kSigBus, 0);
  }
}

}  // namespace faultpath::arch::arm
