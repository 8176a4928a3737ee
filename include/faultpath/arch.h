// Page faults as six machines report them: registers in, the question for a VMA out.
#pragma once

#include <faultpath/config.h>
#include <faultpath/outcome.h>
#include <faultpath/result.h>

#include <cstdint>
#include <string_view>

namespace faultpath {

/// The machines whose fault registers are understood. Their access rules are those of Linux.
enum class Arch : std::uint8_t { x86, arm64, arm, powerpc, riscv, s390 };

inline constexpr Arch kAllArchs[] = {Arch::x86,     Arch::arm64, Arch::arm,
                                     Arch::powerpc, Arch::riscv, Arch::s390};

constexpr std::string_view name_of(Arch a) {
  switch (a) {
    case Arch::x86: return "x86";
    case Arch::arm64: return "arm64";
    case Arch::arm: return "arm";
    case Arch::powerpc: return "powerpc";
    case Arch::riscv: return "riscv";
    case Arch::s390: return "s390";
  }
  return "?";
}

/// The Arch of that name; EINVAL for any other text.
inline Result<Arch> parse_arch(std::string_view text) {
  for (Arch a : kAllArchs) {
    if (text == name_of(a)) return a;
  }
  return Errno::einval;
}

/// A page fault as its machine reported it, decoded: what the VMA is asked for. The defaults are
/// those of a machine that has nothing beyond read, write and execute.
struct GuestFault {
  Arch arch = Arch::x86;
  /// `write` for every shadow-stack access too, as Linux handles them.
  Access access = Access::read;
  bool user = true;              ///< from user mode; others never use a VMA lock
  bool present = false;          ///< x86: PROT, the page was there and forbade it
  bool key_denied = false;       ///< x86 PK, powerpc KEYFAULT, arm64 Overlay
  bool check_keys = false;       ///< key_rights are in force and are checked in software
  bool key_read = false;         ///< x86: a shadow-stack read; a key is asked about a read
  bool shadow_stack = false;     ///< x86 SHSTK, arm64 GCS
  bool sgx = false;              ///< x86 SGX: the enclave's own page map forbids it
  bool epan = false;             ///< arm64 EPAN: memory that is only executable cannot be read
  bool no_execute = true;        ///< powerpc: the CPU can forbid execution by page
  std::uint64_t key_rights = 0;  ///< PKRU; AMR, or IAMR for a fetch; POR_EL0
  Addr address = 0;              ///< to look up: without a tag
  Addr reported = 0;             ///< si_addr
};

/// What a decoder makes of the registers.
struct Decoded {
  enum class Kind : std::uint8_t {
    access,      ///< `fault` says what to ask a VMA
    signal,      ///< the kernel sends `signal` without asking one
    impossible,  ///< no machine reports this of a program, or a kernel would stop: `impossible`
  };
  Kind kind = Kind::impossible;
  GuestFault fault;
  Outcome signal;
  const char* impossible = "";  ///< a static text: "x86: PK without PROT"

  static constexpr Decoded of(const GuestFault& f) {
    Decoded d;
    d.kind = Kind::access;
    d.fault = f;
    return d;
  }
  static constexpr Decoded of(const Outcome& o) {
    Decoded d;
    d.kind = Kind::signal;
    d.signal = o;
    return d;
  }
  static constexpr Decoded refused(const char* why) {
    Decoded d;
    d.impossible = why;
    return d;
  }
};

/// One decoder a machine. Pure; callable from any thread and from signal handlers. `user_mode` says
/// where the interrupted program ran; arm64 has it in its syndrome.
namespace arch {

namespace x86 {
struct Registers {
  std::uint64_t error_code = 0;
  Addr cr2 = 0;
  bool user_mode = true;   ///< CS says ring 3
  bool ac = false;         ///< EFLAGS.AC: the kernel has opened user memory
  std::uint32_t pkru = 0;  ///< 0: no key denies anything, also where there are no keys
};
Decoded decode(const Registers& r);
}  // namespace x86

namespace arm64 {
struct Registers {
  std::uint64_t esr = 0;  ///< ESR_EL1, with ISS2 in bits 32 and up
  Addr far = 0;           ///< FAR_EL1, top byte as it is
  bool epan = false;
  bool poe = false;              ///< permission overlays: por_el0 is in force
  std::uint64_t por_el0 = 0;     ///< four bits a key: 1 read, 2 execute, 4 write
  bool expose_tag_bits = false;  ///< the handler has SA_EXPOSE_TAGBITS
};
Decoded decode(const Registers& r);
}  // namespace arm64

namespace arm {
struct Registers {
  std::uint32_t fsr = 0;  ///< DFSR, or IFSR for a prefetch abort
  std::uint32_t far = 0;  ///< DFAR or IFAR
  bool lpae = false;      ///< long descriptors
  bool prefetch = false;
  bool user_mode = true;
};
Decoded decode(const Registers& r);
}  // namespace arm

namespace powerpc {
struct Registers {
  std::uint32_t trap = 0x300;  ///< 0x300 data storage, 0x400 instruction storage
  std::uint64_t dsisr = 0;     ///< of a data storage interrupt
  std::uint64_t srr1 = 0;      ///< of an instruction storage interrupt
  Addr dar = 0;
  Addr nip = 0;
  std::uint64_t amr = 0;   ///< two bits a key, key 0 topmost: 1 no read, 2 no write
  std::uint64_t iamr = 0;  ///< likewise: 1 no fetch
  bool user_mode = true;
  bool no_execute = true;
};
Decoded decode(const Registers& r);
}  // namespace powerpc

namespace riscv {
struct Registers {
  std::uint64_t scause = 0;
  Addr stval = 0;
  Addr sepc = 0;
  bool user_mode = true;  ///< sstatus.SPP clear
  bool sum = false;       ///< sstatus.SUM: the kernel has opened user memory
};
Decoded decode(const Registers& r);
}  // namespace riscv

namespace s390 {
struct Registers {
  std::uint32_t program_code = 0;  ///< the program interruption code
  std::uint64_t teid = 0;          ///< translation-exception identification
  Addr psw_address = 0;            ///< of the interrupted instruction
  bool user_mode = true;           ///< PSW problem state
  bool store_indication = true;    ///< facility 75: the identification tells a store
  bool no_execute = true;          ///< facility 130: pages can forbid execution
};
Decoded decode(const Registers& r);
}  // namespace s390

}  // namespace arch
}  // namespace faultpath
