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
/// write; exec-only memory is unreadable on arm64 (with EPAN), powerpc and riscv. The same rights
/// as check_access asks for a read of a page that is not there.
constexpr bool readable_when_present(Arch arch, Prot prot, bool epan = true) {
  const bool exec_reads = arch == Arch::x86 || arch == Arch::arm || arch == Arch::s390 ||
                          (arch == Arch::arm64 && !epan);
  return has_any(prot, exec_reads ? kAnyRight : Prot::read | Prot::write);
}

/// Whether a page that is there can be executed under these rights. x86 and s390 fetch an absent
/// page for any right, and find out then.
constexpr bool executable_when_present(Arch arch, Prot prot, bool no_execute = true) {
  if (arch == Arch::powerpc && !no_execute) return has_any(prot, kAnyRight);
  return has(prot, Prot::exec);
}

}  // namespace faultpath::arch
