// Whether a VMA allows what a machine's fault asks for: one rule an architecture.
#pragma once

#include <faultpath/arch.h>
#include <faultpath/types.h>

#include "arch/arm.h"
#include "arch/arm64.h"
#include "arch/powerpc.h"
#include "arch/rights.h"
#include "arch/riscv.h"
#include "arch/s390.h"
#include "arch/x86.h"

namespace faultpath::arch {

constexpr Verdict check_access(const GuestFault& f, const VmaRights& v) {
  switch (f.arch) {
    case Arch::x86: return x86::check(f, v);
    case Arch::arm64: return arm64::check(f, v);
    case Arch::arm: return arm::check(f, v);
    case Arch::powerpc: return powerpc::check(f, v);
    case Arch::riscv: return riscv::check(f, v);
    case Arch::s390: return s390::check(f, v);
  }
  return Verdict::denied;
}

/// Whether a page that is there can be read under these rights. Every machine reads what it may
/// write; exec-only memory is unreadable on arm64 (with EPAN), powerpc and riscv.
constexpr bool readable_when_present(Arch arch, Prot prot) {
  switch (arch) {
    case Arch::arm64:
    case Arch::powerpc:
    case Arch::riscv: return has_any(prot, Prot::read | Prot::write);
    case Arch::x86:
    case Arch::arm:
    case Arch::s390: break;
  }
  return has_any(prot, kAnyRight);
}

/// Whether a page that is there can be executed under these rights.
constexpr bool executable_when_present(Arch, Prot prot) { return has(prot, Prot::exec); }

}  // namespace faultpath::arch
