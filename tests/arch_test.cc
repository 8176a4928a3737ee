// The six machines' decoders, code by code, and their access rules as tables. no-64k
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <faultpath/faultpath.h>
#include <gtest/gtest.h>

#include "arch/access.h"
#include "check/tables/fault_codes.h"

namespace faultpath {
namespace {

using arch::Verdict;
using arch::VmaRights;

constexpr Addr kAt = 0x12345678;

/// "write", "exec kernel", "SIGBUS BUS_ADRALN", "refused".
std::string shown(const Decoded& d) {
  switch (d.kind) {
    case Decoded::Kind::access:
      return std::string(to_string(d.fault.access)) + (d.fault.user ? "" : " kernel");
    case Decoded::Kind::signal: {
      const std::string text = to_string(d.signal);  // "Signal: SIGBUS, BUS_ADRALN, read at ..."
      const auto comma = text.find(',');
      return text.substr(8, comma - 8) + text.substr(comma + 1, text.rfind(',') - comma - 1);
    }
    case Decoded::Kind::impossible: return "refused";
  }
  return "?";
}

std::string why(const Decoded& d) {
  return d.kind == Decoded::Kind::impossible ? d.impossible : "not refused";
}

/// Every refusal has a text that begins with its machine's name.
void expect_named(Arch a, const Decoded& d) {
  if (d.kind != Decoded::Kind::impossible) return;
  const std::string start = std::string(name_of(a)) + ": ";
  EXPECT_EQ(std::string_view(d.impossible).substr(0, start.size()), start);
}

// ---- names --------------------------------------------------------------------------------------

TEST(ArchText, NamesAreReadBack) {
  for (Arch a : kAllArchs) {
    const Result<Arch> read = parse_arch(name_of(a));
    ASSERT_TRUE(read);
    EXPECT_EQ(read.value(), a);
  }
  for (std::string_view text : {"", "x86_64", "X86", "arm ", " arm", "aarch64", "riscv64"}) {
    const Result<Arch> read = parse_arch(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error(), Errno::einval);
  }
}

// ---- x86 ----------------------------------------------------------------------------------------

std::string hex(std::uint64_t v) {
  char text[24];
  std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(v));
  return text;
}

/// All 16-bit codes, and each higher bit alone with PROT and USER: those that are accesses.
std::string x86_accesses(bool user_mode, bool ac) {
  std::string out;
  const auto ask = [&](std::uint64_t e) {
    const Decoded d =
        arch::x86::decode({.error_code = e, .cr2 = kAt, .user_mode = user_mode, .ac = ac});
    expect_named(Arch::x86, d);
    EXPECT_NE(d.kind, Decoded::Kind::signal);
    if (d.kind != Decoded::Kind::access) return;
    const GuestFault& f = d.fault;
    EXPECT_EQ(f.user, user_mode);
    EXPECT_EQ(f.address, kAt);
    EXPECT_EQ(f.reported, kAt);
    EXPECT_EQ(f.present, (e & 1) != 0);
    EXPECT_EQ(f.key_denied, (e & 0x20) != 0);
    EXPECT_EQ(f.shadow_stack, (e & 0x40) != 0);
    EXPECT_EQ(f.key_read, (e & 0x42) == 0x40);
    EXPECT_EQ(f.sgx, (e & 0x8000) != 0);
    EXPECT_TRUE(f.check_keys);
    out += hex(e) + to_string(f.access)[0] + ' ';
  };
  for (std::uint64_t e = 0; e < 0x10000; ++e) ask(e);
  for (unsigned bit = 16; bit < 64; ++bit) ask(std::uint64_t{1} << bit | 5);
  return out;
}

TEST(X86, LegalCodes) {
  // Hexadecimal code, then r(ead), w(rite) or e(xec).
  const std::string user =
      "4r 5r 6w 7w 14e 15e 25r 27w 44w 45w 46w 47w 65w 67w "
      "8005r 8007w 8015e 8045w 8047w ";
  EXPECT_EQ(x86_accesses(true, false), user);
  // With AC the kernel's own accesses count too; a WRUSS faults as a user's whatever AC says.
  EXPECT_EQ(x86_accesses(false, false), "46w 47w 67w 8047w ");
  EXPECT_EQ(x86_accesses(false, true),
            "0r 1r 2w 3w 21r 23w 40w 41w 42w 43w 46w 47w 61w 63w 67w "
            "8001r 8003w 8041w 8043w 8047w ");
}

TEST(X86, RefusedByName) {
  const auto refusal = [](std::uint64_t e, bool user = true) {
    return why(arch::x86::decode({.error_code = e, .cr2 = kAt, .user_mode = user}));
  };
  EXPECT_EQ(refusal(0x04 | 0x20), "x86: PK without PROT");
  EXPECT_EQ(refusal(0x05 | 0x20 | 0x10), "x86: INSTR with PK");
  EXPECT_EQ(refusal(0x04 | 0x12), "x86: INSTR with WRITE");
  EXPECT_EQ(refusal(0x04 | 0x50), "x86: INSTR with SHSTK");
  EXPECT_EQ(refusal(0x0c), "x86: RSVD without PROT");
  EXPECT_EQ(refusal(0x0d), "x86: RSVD, the page table is corrupt");
  EXPECT_EQ(refusal(0x8004), "x86: SGX without PROT");
  EXPECT_EQ(refusal(0x8025), "x86: SGX with PK");
  EXPECT_EQ(refusal(0x800d), "x86: SGX with RSVD");
  EXPECT_EQ(refusal(0x80000005), "x86: RMP violation, not a VMA's matter");
  for (unsigned bit = 7; bit < 64; ++bit) {
    if (bit == 15 || bit == 31) continue;
    EXPECT_EQ(refusal(std::uint64_t{1} << bit | 4), "x86: reserved bit in the error code");
  }
  EXPECT_EQ(refusal(0x05, false), "x86: USER in kernel mode");
  EXPECT_EQ(refusal(0x10, false), "x86: kernel fetches from user memory (SMEP)");
  EXPECT_EQ(refusal(0x02, false), "x86: kernel touches user memory with AC clear (SMAP)");
  EXPECT_EQ(refusal(0x00, true), "x86: kernel touches user memory with AC clear (SMAP)");
}

TEST(X86, KernelAddresses) {
  const auto at = [](Addr a, bool user) {
    return arch::x86::decode(
        {.error_code = user ? 7u : 3u, .cr2 = a, .user_mode = user, .ac = true});
  };
  EXPECT_EQ(shown(at(kUserEnd - 1, true)), "write");
  EXPECT_EQ(shown(at(kUserEnd, true)), "SIGSEGV SEGV_MAPERR");
  EXPECT_EQ(at(kUserEnd, true).signal,
            Outcome::signal(kSigSegv, kSegvMapErr, kUserEnd, Access::write));
  EXPECT_EQ(why(at(Addr{1} << 63, false)), "x86: kernel-mode fault on a kernel address");
}

// ---- arm64 --------------------------------------------------------------------------------------

// One letter a fault status, 0x00 to 0x3f, sixteen a line:
//   t translation  p page (access flag, permission)  k SIGKILL  e SIGBUS BUS_OBJERR
//   a SIGBUS BUS_ADRALN  m SIGSEGV SEGV_MTESERR  . refused
constexpr std::string_view kArm64Data =
    "kkkkttttpppppppp"
    "em.kkkkke..kkkkk"
    ".a.......k.t...."
    "kk..ke..........";
constexpr std::string_view kArm64Fetch =
    "kkkkttttpppppppp"
    "e..kkkkke..kkkkk"
    ".........k.t...."
    "k...............";

TEST(Arm64, EveryStatus) {
  for (unsigned ec = 0; ec < 64; ++ec) {
    for (unsigned fsc = 0; fsc < 64; ++fsc) {
      for (unsigned bits = 0; bits < 64; ++bits) {
        const bool wnr = bits & 1, cm = bits & 2, gcs = bits & 4;
        const bool s1ptw = bits & 8, fnv = bits & 16, overlay = bits & 32;
        const std::uint64_t esr = std::uint64_t{ec} << 26 | fsc | std::uint64_t{wnr} << 6 |
                                  std::uint64_t{s1ptw} << 7 | std::uint64_t{cm} << 8 |
                                  std::uint64_t{fnv} << 10 | std::uint64_t{overlay} << 38 |
                                  std::uint64_t{gcs} << 40;
        for (bool poe : {false, true}) {
          const Decoded d =
              arch::arm64::decode({.esr = esr, .far = kAt, .poe = poe, .por_el0 = 0x7});
          expect_named(Arch::arm64, d);
          const bool fetch = ec == 0x20 || ec == 0x21;
          const bool user = ec == 0x20 || ec == 0x24;
          const char kind = (fetch ? kArm64Fetch : kArm64Data)[fsc];
          bool legal = (fetch || ec == 0x24 || ec == 0x25) && kind != '.' && !s1ptw;
          if (fetch && (wnr || cm || gcs)) legal = false;
          if (cm && (!wnr || gcs)) legal = false;
          if (fnv && fsc != 0x10) legal = false;
          if (overlay && (!poe || fsc < 0xc || fsc > 0xf)) legal = false;
          if (!user && (fetch || (kind != 't' && kind != 'p'))) legal = false;
          std::string expected = "refused";
          if (legal) {
            const char* access = fetch ? "exec" : gcs || (wnr && !cm) ? "write" : "read";
            switch (kind) {
              case 't':
              case 'p': expected = std::string(access) + (user ? "" : " kernel"); break;
              case 'k': expected = "SIGKILL SI_KERNEL"; break;
              case 'e': expected = "SIGBUS BUS_OBJERR"; break;
              case 'a': expected = "SIGBUS BUS_ADRALN"; break;
              case 'm': expected = "SIGSEGV SEGV_MTESERR"; break;
              default: break;
            }
          }
          ASSERT_EQ(shown(d), expected) << std::hex << esr << (poe ? " poe" : "");
          if (d.kind != Decoded::Kind::access) continue;
          ASSERT_EQ(d.fault.shadow_stack, gcs);
          ASSERT_EQ(d.fault.key_denied, overlay);
          ASSERT_EQ(d.fault.check_keys, poe);
          ASSERT_EQ(d.fault.key_rights, 0x7u);
        }
      }
    }
  }
}

TEST(Arm64, RefusedByName) {
  const auto refusal = [](std::uint64_t esr, bool poe = false) {
    return why(arch::arm64::decode({.esr = esr, .far = kAt, .poe = poe}));
  };
  constexpr std::uint64_t kFetch = 0x20u << 26;
  constexpr std::uint64_t kData = std::uint64_t{0x24} << 26;
  EXPECT_EQ(refusal(std::uint64_t{0x15} << 26), "arm64: exception class is no abort");
  EXPECT_EQ(refusal(kData | 0x12), "arm64: reserved fault status");
  EXPECT_EQ(refusal(kData | 0x3d), "arm64: domain fault in a 64-bit table");
  EXPECT_EQ(refusal(kFetch | 0x07 | 1 << 6), "arm64: WnR in an instruction abort");
  EXPECT_EQ(refusal(kFetch | 0x07 | 1 << 8), "arm64: CM in an instruction abort");
  EXPECT_EQ(refusal(kFetch | 0x07 | std::uint64_t{1} << 40), "arm64: GCS in an instruction abort");
  EXPECT_EQ(refusal(kFetch | 0x21), "arm64: a data abort's status in an instruction abort");
  EXPECT_EQ(refusal(kData | 0x07 | 1 << 7), "arm64: S1PTW without a second stage");
  EXPECT_EQ(refusal(kData | 0x07 | 1 << 8), "arm64: CM without WnR");
  EXPECT_EQ(refusal(kData | 0x07 | 1 << 6 | 1 << 8 | std::uint64_t{1} << 40), "arm64: CM with GCS");
  EXPECT_EQ(refusal(kData | 0x07 | 1 << 10), "arm64: FnV without an external abort");
  EXPECT_EQ(refusal(kData | 0x0f | std::uint64_t{1} << 38),
            "arm64: Overlay without permission overlays");
  EXPECT_EQ(refusal(kData | 0x07 | std::uint64_t{1} << 38, true),
            "arm64: Overlay without a permission fault");
  EXPECT_EQ(refusal(std::uint64_t{0x21} << 26 | 7), "arm64: kernel-mode instruction abort");
  EXPECT_EQ(refusal(std::uint64_t{0x25} << 26 | 0x21),
            "arm64: kernel-mode abort that no VMA settles");
}

TEST(Arm64, TagsAndTheKernelHalf) {
  constexpr std::uint64_t kData = std::uint64_t{0x24} << 26;
  constexpr Addr kTagged = Addr{0xab} << 56 | kAt;
  Decoded d = arch::arm64::decode({.esr = kData | 7, .far = kTagged});
  EXPECT_EQ(d.fault.address, kAt);
  EXPECT_EQ(d.fault.reported, kAt);
  d = arch::arm64::decode({.esr = kData | 7, .far = kTagged, .expose_tag_bits = true});
  EXPECT_EQ(d.fault.address, kAt);
  EXPECT_EQ(d.fault.reported, kTagged);
  // Tag check: bits 63:60 are unknown to the machine, and are the half's.
  d = arch::arm64::decode({.esr = kData | 0x11, .far = kTagged, .expose_tag_bits = true});
  EXPECT_EQ(d.signal.address(), Addr{0x0b} << 56 | kAt);
  // A translation fault in the kernel's half asks no VMA; a permission fault does, in vain.
  constexpr Addr kHigh = 0xffff800012345000;
  d = arch::arm64::decode({.esr = kData | 7, .far = kHigh});
  EXPECT_EQ(d.signal, Outcome::signal(kSigSegv, kSegvMapErr, kHigh, Access::read));
  d = arch::arm64::decode({.esr = kData | 0xf, .far = kHigh});
  EXPECT_EQ(shown(d), "read");
  EXPECT_EQ(d.fault.address, kHigh);
  EXPECT_EQ(why(arch::arm64::decode({.esr = std::uint64_t{0x25} << 26 | 7, .far = kHigh})),
            "arm64: kernel-mode fault on a kernel address");
  // An external abort whose address is not valid.
  d = arch::arm64::decode({.esr = kData | 0x10 | 1 << 10, .far = kTagged});
  EXPECT_EQ(d.signal, Outcome::signal(kSigBus, kBusObjErr, 0, Access::read));
}

// ---- arm ----------------------------------------------------------------------------------------

// v a VMA's matter  a SIGBUS BUS_ADRALN  b SIGBUS without code  o SIGBUS BUS_OBJERR
// M SIGSEGV SEGV_MAPERR  A SIGSEGV SEGV_ACCERR  . refused
constexpr std::string_view kArmShortData =
    ".a.MvvMvbA.AbMbv"
    "b...b.o.bbb.b.b.";
constexpr std::string_view kArmShortPrefetch =
    "...A.vAvbA.AbMbv"
    "b...b....bb.b.b.";
constexpr std::string_view kArmLongData =
    ".....vvv.Avv.Avv"
    "bb...bbbbb...bbb"
    ".a.............."
    "b...b.....b.....";
constexpr std::string_view kArmLongPrefetch =
    ".....vvv.Avv.Avv"
    "b....bbbb....bbb"
    "................"
    "b...b.....b.....";

TEST(Arm, EveryStatus) {
  for (bool lpae : {false, true}) {
    for (bool prefetch : {false, true}) {
      const std::string_view table = lpae ? (prefetch ? kArmLongPrefetch : kArmLongData)
                                          : (prefetch ? kArmShortPrefetch : kArmShortData);
      for (unsigned status = 0; status < table.size(); ++status) {
        for (unsigned bits = 0; bits < 16; ++bits) {
          const bool wnr = bits & 1, cm = bits & 2, format = bits & 4, user = bits & 8;
          const std::uint32_t placed = lpae ? status : (status & 15) | (status & 16) << 6;
          const std::uint32_t fsr = placed | std::uint32_t{format} << 9 | std::uint32_t{wnr} << 11 |
                                    std::uint32_t{cm} << 13;
          const Decoded d = arch::arm::decode({.fsr = fsr,
                                               .far = static_cast<std::uint32_t>(kAt),
                                               .lpae = lpae,
                                               .prefetch = prefetch,
                                               .user_mode = user});
          expect_named(Arch::arm, d);
          const char kind = table[status];
          bool legal = kind != '.' && format == lpae && !(cm && !wnr);
          if (prefetch && (wnr || cm)) legal = false;
          if (!user && (prefetch || kind != 'v')) legal = false;
          std::string expected = "refused";
          if (legal) {
            const char* access = prefetch ? "exec" : wnr && !cm ? "write" : "read";
            switch (kind) {
              case 'v': expected = std::string(access) + (user ? "" : " kernel"); break;
              case 'a': expected = "SIGBUS BUS_ADRALN"; break;
              case 'b': expected = "SIGBUS code?"; break;
              case 'o': expected = "SIGBUS BUS_OBJERR"; break;
              case 'M': expected = "SIGSEGV SEGV_MAPERR"; break;
              case 'A': expected = "SIGSEGV SEGV_ACCERR"; break;
              default: break;
            }
          }
          ASSERT_EQ(shown(d), expected) << std::hex << fsr << (prefetch ? " prefetch" : "");
          if (d.kind == Decoded::Kind::access) {
            ASSERT_EQ(d.fault.address, kAt);
          }
          if (d.kind == Decoded::Kind::signal) {
            ASSERT_EQ(d.signal.address(), kAt);
          }
        }
      }
    }
  }
}

TEST(Arm, RefusedByName) {
  const auto refusal = [](std::uint32_t fsr, bool lpae, bool prefetch, bool user = true) {
    return why(arch::arm::decode(
        {.fsr = fsr, .far = 0x1000, .lpae = lpae, .prefetch = prefetch, .user_mode = user}));
  };
  EXPECT_EQ(refusal(0x07 | 1u << 31, false, false), "arm: reserved bit in the status register");
  EXPECT_EQ(refusal(0x07 | 1 << 9 | 1 << 6 | 1 << 7, true, false),
            "arm: reserved bit in the status register");
  EXPECT_EQ(refusal(0x07, true, false), "arm: the status register's format is another one");
  EXPECT_EQ(refusal(0x07 | 1 << 11, false, true), "arm: WnR in a prefetch abort");
  EXPECT_EQ(refusal(0x07 | 1 << 13, false, true), "arm: CM in a prefetch abort");
  EXPECT_EQ(refusal(0x07 | 1 << 13, false, false), "arm: CM without WnR");
  EXPECT_EQ(refusal(0x0a, false, false), "arm: reserved fault status");
  EXPECT_EQ(refusal(0x02, false, false), "arm: debug event, no memory fault");
  EXPECT_EQ(refusal(0x01, false, true), "arm: a data abort's status in a prefetch abort");
  EXPECT_EQ(refusal(0x07, false, true, false), "arm: kernel-mode prefetch abort");
  EXPECT_EQ(refusal(0x01, false, false, false), "arm: kernel-mode abort that no VMA settles");
  EXPECT_EQ(refusal(0x37, false, false), "not refused");  // the domain is not looked at
}

// ---- powerpc ------------------------------------------------------------------------------------

TEST(Powerpc, EveryCombinationOfBits) {
  constexpr std::uint32_t kBits[] = {0x80000000, 0x40000000, 0x20000000, 0x10000000, 0x08000000,
                                     0x04000000, 0x02000000, 0x00400000, 0x00200000, 0x00100000,
                                     0x00080000, 0x00040000, 0x00020000, 0x00004000, 0x00000008,
                                     0x00000004, 0x00000002};
  constexpr std::uint32_t kBad = 0xa41a400e;
  for (std::uint32_t set = 0; set < 1u << 17; ++set) {
    std::uint32_t e = 0;
    for (unsigned i = 0; i < 17; ++i) {
      if (set >> i & 1) e |= kBits[i];
    }
    for (bool user : {true, false}) {
      const Decoded d = arch::powerpc::decode({.dsisr = e, .dar = kAt, .user_mode = user});
      std::string expected = e & 0x02000000 ? "write" : "read";
      if (!user) expected += " kernel";
      if (e & kBad) expected = user ? "SIGBUS BUS_OBJERR" : "refused";
      if (e & 0x10400000 || !(e & (kBad | 0x48240000))) expected = "refused";
      ASSERT_EQ(shown(d), expected) << std::hex << e;
      if (d.kind == Decoded::Kind::access) {
        ASSERT_EQ(d.fault.key_denied, (e & 0x00200000) != 0);
      }
    }
    // Of SRR1 seven bits are reasons, and the rest is the machine's state.
    const Decoded d = arch::powerpc::decode(
        {.trap = 0x400, .srr1 = e | 0x8000000000000000, .dar = 1, .nip = kAt});
    std::string expected = e & 0x000a0000 ? "SIGBUS BUS_OBJERR" : "exec";
    if (!(e & 0x582e0000)) expected = "refused";
    ASSERT_EQ(shown(d), expected) << std::hex << e;
    if (d.kind == Decoded::Kind::access) {
      ASSERT_EQ(d.fault.address, kAt);
    }
  }
}

TEST(Powerpc, RefusedByName) {
  using R = arch::powerpc::Registers;
  const auto refusal = [](const R& r) { return why(arch::powerpc::decode(r)); };
  EXPECT_EQ(refusal(R{.trap = 0x380, .dsisr = 0x40000000}), "powerpc: no storage interrupt");
  for (std::uint64_t bit : {0x01000000ull, 0x00800000ull, 0x00010000ull, 1ull, 1ull << 32}) {
    EXPECT_EQ(refusal(R{.dsisr = 0x40000000 | bit}), "powerpc: reserved bit in DSISR");
  }
  EXPECT_EQ(refusal(R{.dsisr = 0x10000000}), "powerpc: NOEXEC_OR_G of data");
  EXPECT_EQ(refusal(R{.dsisr = 0x00400000}), "powerpc: DABRMATCH, a watchpoint");
  EXPECT_EQ(refusal(R{.dsisr = 0x02000000}), "powerpc: no reason given");
  EXPECT_EQ(refusal(R{.dsisr = 0x04000000, .user_mode = false}),
            "powerpc: kernel-mode fault that no VMA settles");
  EXPECT_EQ(refusal(R{.trap = 0x400, .srr1 = 0x40000000, .user_mode = false}),
            "powerpc: kernel-mode instruction storage interrupt");
  EXPECT_EQ(refusal(R{.dsisr = 0x40000000, .dar = 0xc000000000000000, .user_mode = false}),
            "powerpc: kernel-mode fault on a kernel address");
}

// ---- riscv --------------------------------------------------------------------------------------

TEST(Riscv, EveryCause) {
  const std::map<std::uint64_t, std::string> expected = {{0, "SIGBUS BUS_ADRALN"},
                                                         {1, "SIGSEGV SEGV_ACCERR"},
                                                         {4, "SIGBUS BUS_ADRALN"},
                                                         {5, "SIGSEGV SEGV_ACCERR"},
                                                         {6, "SIGBUS BUS_ADRALN"},
                                                         {7, "SIGSEGV SEGV_ACCERR"},
                                                         {12, "exec"},
                                                         {13, "read"},
                                                         {15, "write"}};
  for (std::uint64_t cause = 0; cause < 64; ++cause) {
    const auto row = expected.find(cause);
    const std::string want = row == expected.end() ? "refused" : row->second;
    arch::riscv::Registers r{.scause = cause, .stval = kAt, .sepc = 0x8000};
    Decoded d = arch::riscv::decode(r);
    expect_named(Arch::riscv, d);
    EXPECT_EQ(shown(d), want) << cause;
    if (d.kind == Decoded::Kind::signal) {
      EXPECT_EQ(d.signal.address(), 0x8000u);
    }
    if (d.kind == Decoded::Kind::access) {
      EXPECT_EQ(d.fault.address, kAt);
    }
    r.user_mode = false;
    const bool page = cause == 12 || cause == 13 || cause == 15;
    EXPECT_EQ(shown(arch::riscv::decode(r)), "refused");
    r.sum = true;
    EXPECT_EQ(shown(arch::riscv::decode(r)), page ? want + " kernel" : "refused");
    r.scause |= std::uint64_t{1} << 63;
    EXPECT_EQ(why(arch::riscv::decode(r)), "riscv: an interrupt, no exception");
  }
}

TEST(Riscv, RefusedByName) {
  const auto refusal = [](std::uint64_t cause, bool user = true, bool sum = true, Addr at = kAt) {
    return why(arch::riscv::decode({.scause = cause, .stval = at, .user_mode = user, .sum = sum}));
  };
  for (std::uint64_t c : {2, 3, 8, 9, 11, 16, 18, 19, 22}) {
    EXPECT_EQ(refusal(c), "riscv: cause is no memory fault");
  }
  for (std::uint64_t c : {20, 21, 23}) {
    EXPECT_EQ(refusal(c), "riscv: guest page fault, the hypervisor's");
  }
  for (std::uint64_t c : {10, 14, 17, 24, 31, 63}) EXPECT_EQ(refusal(c), "riscv: reserved cause");
  EXPECT_EQ(refusal(13, false, false), "riscv: kernel touches user memory with SUM clear");
  EXPECT_EQ(refusal(13, false, true, ~Addr{0}), "riscv: kernel-mode fault on a kernel address");
  EXPECT_EQ(refusal(5, false), "riscv: kernel-mode trap that no VMA settles");
}

// ---- s390 ---------------------------------------------------------------------------------------

TEST(S390, EveryCode) {
  const std::set<unsigned> translation = {0x10, 0x11, 0x38, 0x39, 0x3a, 0x3b};
  for (unsigned code = 0; code < 0x400; ++code) {
    for (unsigned low = 0; low < 0x1000; low += 1) {
      const bool b56 = low & 0x80, b61 = low & 4;
      if (low & ~0xc87u) continue;  // the other bits are not looked at
      for (unsigned machine = 0; machine < 8; ++machine) {
        const bool user = machine & 1, facility = machine & 2, nx = machine & 4;
        const Decoded d = arch::s390::decode({.program_code = code,
                                              .teid = (kAt & ~Addr{0xfff}) | low,
                                              .psw_address = 0x7123,
                                              .user_mode = user,
                                              .store_indication = facility,
                                              .no_execute = nx});
        expect_named(Arch::s390, d);
        const unsigned bare = code & ~0x280u;  // program events and transactions come along
        const unsigned fsi = facility ? low >> 10 & 3 : 0;
        const unsigned space = low & 3;
        bool legal = bare == 4 || translation.contains(bare);
        legal = legal && fsi != 3 && (user ? space != 3 : space == 2);
        std::string expected = fsi == 1 ? "write" : "read";
        if (bare == 4) {
          const bool exec = nx && b56;
          legal = legal && b61 && fsi != (exec ? 1 : 2) && !(exec && !user);
          expected = exec ? "SIGSEGV SEGV_ACCERR" : "write";
        }
        if (!user) expected += " kernel";
        ASSERT_EQ(shown(d), legal ? expected : "refused") << std::hex << code << ' ' << low;
        if (d.kind == Decoded::Kind::access) {
          ASSERT_EQ(d.fault.address, kAt & ~Addr{0xfff});
        }
        if (d.kind == Decoded::Kind::signal) {
          ASSERT_EQ(d.signal.address(), 0x7000u);
        }
      }
    }
  }
}

TEST(S390, RefusedByName) {
  const auto refusal = [](std::uint32_t code, std::uint64_t teid, bool user = true) {
    return why(arch::s390::decode({.program_code = code, .teid = teid, .user_mode = user}));
  };
  EXPECT_EQ(refusal(0x05, 0), "s390: program code is no page fault");
  EXPECT_EQ(refusal(0x04, 0), "s390: low-address protection in user mode");
  EXPECT_EQ(refusal(0x04, 0, false), "s390: kernel-mode low-address or key protection");
  EXPECT_EQ(refusal(0x11, 0xc00), "s390: both store and fetch indicated");
  EXPECT_EQ(refusal(0x04, 0x484), "s390: execution protection of a store");
  EXPECT_EQ(refusal(0x04, 0x804), "s390: page protection of a fetch");
  EXPECT_EQ(refusal(0x11, 3), "s390: home space in user mode");
  EXPECT_EQ(refusal(0x11, 0, false), "s390: kernel-mode fault in the kernel's space");
  EXPECT_EQ(refusal(0x04, 0x886, false), "s390: kernel-mode execution protection");
}

// ---- access rules: rows are a VMA's rights, columns what is asked -------------------------------

struct Column {
  const char* name;
  std::function<void(GuestFault&)> set;
};

std::string table(Arch a, const std::vector<Column>& columns, bool shadow_stack_vma = false) {
  std::string out = "    ";
  for (const Column& c : columns) out += std::string(" ") + c.name;
  out += '\n';
  for (unsigned bits = 0; bits < 8; ++bits) {
    out += bits & 1 ? 'r' : '-';
    out += bits & 2 ? 'w' : '-';
    out += bits & 4 ? 'x' : '-';
    out += ' ';
    for (const Column& c : columns) {
      GuestFault f;
      f.arch = a;
      c.set(f);
      const Verdict v = arch::check_access(
          f, {.prot = static_cast<Prot>(bits), .shadow_stack = shadow_stack_vma});
      std::string cell = v == Verdict::allowed ? "ok" : v == Verdict::denied ? "." : "key";
      cell.resize(std::string_view(c.name).size(), ' ');
      out += ' ' + cell;
    }
    while (out.back() == ' ') out.pop_back();
    out += '\n';
  }
  return out;
}

const Column kRead = {"read", [](GuestFault& f) { f.access = Access::read; }};
const Column kWrite = {"write", [](GuestFault& f) { f.access = Access::write; }};
const Column kExec = {"exec", [](GuestFault& f) { f.access = Access::exec; }};

TEST(AccessRules, X86) {
  const std::vector<Column> columns = {
      kRead,
      kWrite,
      kExec,
      {"read-present", [](GuestFault& f) { f.present = true; }},
      {"write-present", [](GuestFault& f) { f.present = true, f.access = Access::write; }},
      {"exec-present", [](GuestFault& f) { f.present = true, f.access = Access::exec; }},
      {"shstk", [](GuestFault& f) { f.shadow_stack = true, f.access = Access::write; }},
      {"sgx", [](GuestFault& f) { f.sgx = f.present = true, f.access = Access::write; }},
      {"pk-bit", [](GuestFault& f) { f.key_denied = f.present = true; }}};
  EXPECT_EQ(table(Arch::x86, columns),
            R"(     read write exec read-present write-present exec-present shstk sgx pk-bit
---  .    .     .    .            .             .            .     .   key
r--  ok   .     ok   .            .             .            .     .   key
-w-  ok   ok    ok   .            ok            .            .     .   key
rw-  ok   ok    ok   .            ok            .            .     .   key
--x  ok   .     ok   .            .             .            .     .   key
r-x  ok   .     ok   .            .             .            .     .   key
-wx  ok   ok    ok   .            ok            .            .     .   key
rwx  ok   ok    ok   .            ok            .            .     .   key
)");
  EXPECT_EQ(table(Arch::x86, {kRead, kWrite, columns[6]}, true), R"(     read write shstk
---  .    .     .
r--  ok   .     .
-w-  ok   .     ok
rw-  ok   .     ok
--x  ok   .     .
r-x  ok   .     .
-wx  ok   .     ok
rwx  ok   .     ok
)");
}

TEST(AccessRules, Arm64) {
  const Column epan = {"read-epan", [](GuestFault& f) { f.epan = true; }};
  const Column gcs = {"gcs",
                      [](GuestFault& f) { f.shadow_stack = true, f.access = Access::write; }};
  EXPECT_EQ(table(Arch::arm64, {kRead, epan, kWrite, kExec, gcs}),
            R"(     read read-epan write exec gcs
---  .    .         .     .    .
r--  ok   ok        .     .    .
-w-  ok   ok        ok    .    .
rw-  ok   ok        ok    .    .
--x  ok   .         .     ok   .
r-x  ok   ok        .     ok   .
-wx  ok   ok        ok    ok   .
rwx  ok   ok        ok    ok   .
)");
  EXPECT_EQ(table(Arch::arm64, {kRead, kWrite, kExec, gcs}, true), R"(     read write exec gcs
---  .    .     .    .
r--  ok   .     .    .
-w-  ok   .     .    ok
rw-  ok   .     .    ok
--x  ok   .     ok   .
r-x  ok   .     ok   .
-wx  ok   .     ok   ok
rwx  ok   .     ok   ok
)");
}

TEST(AccessRules, Arm) {
  EXPECT_EQ(table(Arch::arm, {kRead, kWrite, kExec}), R"(     read write exec
---  .    .     .
r--  ok   .     .
-w-  ok   ok    .
rw-  ok   ok    .
--x  ok   .     ok
r-x  ok   .     ok
-wx  ok   ok    ok
rwx  ok   ok    ok
)");
}

TEST(AccessRules, Powerpc) {
  const Column old = {"exec-old-cpu", [](GuestFault& f) {
                        f.access = Access::exec;
                        f.no_execute = false;
                      }};
  EXPECT_EQ(table(Arch::powerpc, {kRead, kWrite, kExec, old}), R"(     read write exec exec-old-cpu
---  .    .     .    .
r--  ok   .     .    ok
-w-  ok   ok    .    ok
rw-  ok   ok    .    ok
--x  .    .     ok   ok
r-x  ok   .     ok   ok
-wx  ok   ok    ok   ok
rwx  ok   ok    ok   ok
)");
}

TEST(AccessRules, Riscv) {
  EXPECT_EQ(table(Arch::riscv, {kRead, kWrite, kExec}), R"(     read write exec
---  .    .     .
r--  ok   .     .
-w-  ok   ok    .
rw-  ok   ok    .
--x  .    .     ok
r-x  ok   .     ok
-wx  ok   ok    ok
rwx  ok   ok    ok
)");
}

TEST(AccessRules, S390) {
  EXPECT_EQ(table(Arch::s390, {kRead, kWrite}), R"(     read write
---  .    .
r--  ok   .
-w-  ok   ok
rw-  ok   ok
--x  ok   .
r-x  ok   .
-wx  ok   ok
rwx  ok   ok
)");
}

TEST(AccessRules, PresentPages) {
  std::string out;
  for (Arch a : kAllArchs) {
    out += name_of(a);
    for (unsigned bits = 0; bits < 8; ++bits) {
      const Prot p = static_cast<Prot>(bits);
      out += ' ';
      if (arch::readable_when_present(a, p)) out += 'r';
      if (arch::executable_when_present(a, p)) out += 'x';
      if (out.back() == ' ') out += '-';
    }
    out += '\n';
  }
  //                  ---  r--  -w-  rw-  --x  r-x  -wx  rwx
  EXPECT_EQ(out, R"(x86 - r r r rx rx rx rx
arm64 - r r r x rx rx rx
arm - r r r rx rx rx rx
powerpc - r r r x rx rx rx
riscv - r r r x rx rx rx
s390 - r r r rx rx rx rx
)");
}

TEST(AccessRules, APresentPageReadsAsTheVmaAllows) {
  for (Arch a : kAllArchs) {
    for (unsigned bits = 0; bits < 8; ++bits) {
      for (bool option : {false, true}) {
        const Prot prot = static_cast<Prot>(bits);
        GuestFault f;
        f.arch = a;
        f.epan = option;
        f.no_execute = option;
        EXPECT_EQ(arch::readable_when_present(a, prot, option),
                  arch::check_access(f, {.prot = prot}) == Verdict::allowed);
        if (a == Arch::x86 || a == Arch::s390) continue;  // a fetch is first taken for a read
        f.access = Access::exec;
        EXPECT_EQ(arch::executable_when_present(a, prot, option),
                  arch::check_access(f, {.prot = prot}) == Verdict::allowed);
      }
    }
  }
}

// ---- protection keys ----------------------------------------------------------------------------

/// The verdicts on read, write and exec for keys 0, 1 and 15 of memory that may all.
std::string keys(Arch a, std::uint64_t data_rights, std::uint64_t exec_rights) {
  std::string out;
  for (std::uint8_t key : {0, 1, 15}) {
    for (Access access : {Access::read, Access::write, Access::exec}) {
      GuestFault f;
      f.arch = a;
      f.access = access;
      f.check_keys = true;
      f.key_rights = access == Access::exec ? exec_rights : data_rights;
      const Prot all = Prot::read | Prot::write | Prot::exec;
      const Verdict v = arch::check_access(f, {.prot = all, .pkey = key});
      EXPECT_NE(v, Verdict::denied);
      out += v == Verdict::allowed ? "rwx"[static_cast<unsigned>(access)] : '-';
    }
    out += ' ';
  }
  return out;
}

TEST(Keys, X86Pkru) {  // two bits a key from the bottom: 1 no access, 2 no write
  EXPECT_EQ(keys(Arch::x86, 0, 0), "rwx rwx rwx ");
  EXPECT_EQ(keys(Arch::x86, 1u << 2, 1u << 2), "rwx --x rwx ");
  EXPECT_EQ(keys(Arch::x86, 2u << 2, 2u << 2), "rwx r-x rwx ");
  EXPECT_EQ(keys(Arch::x86, 3u << 30 | 1, 3u << 30 | 1), "--x rwx --x ");
}

TEST(Keys, PowerpcAmrAndIamr) {  // two bits a key from the top: 1 no read or fetch, 2 no write
  const auto bits = [](std::uint64_t v, unsigned key) { return v << (62 - 2 * key); };
  EXPECT_EQ(keys(Arch::powerpc, 0, 0), "rwx rwx rwx ");
  EXPECT_EQ(keys(Arch::powerpc, bits(1, 1), 0), "rwx -wx rwx ");
  EXPECT_EQ(keys(Arch::powerpc, bits(2, 1), 0), "rwx r-x rwx ");
  EXPECT_EQ(keys(Arch::powerpc, bits(3, 15), bits(1, 0)), "rw- rwx --x ");
}

TEST(Keys, Arm64Por) {  // four bits a key from the bottom: 1 read, 2 execute, 4 write
  const auto por = [](std::uint64_t k0, std::uint64_t k1, std::uint64_t k15) {
    return k0 | k1 << 4 | k15 << 60;
  };
  EXPECT_EQ(keys(Arch::arm64, por(7, 7, 7), por(7, 7, 7)), "rwx rwx rwx ");
  EXPECT_EQ(keys(Arch::arm64, por(7, 3, 0), por(7, 3, 0)), "rwx r-x --- ");
  EXPECT_EQ(keys(Arch::arm64, por(7, 1, 6), por(7, 1, 6)), "rwx r-- -wx ");
}

TEST(Keys, MachinesWithoutKeysIgnoreThem) {
  for (Arch a : {Arch::arm, Arch::riscv, Arch::s390}) {
    EXPECT_EQ(keys(a, ~0ull, ~0ull), "rwx rwx rwx ") << name_of(a);
  }
}

TEST(Keys, WhichComesFirst) {
  const auto verdict = [](Arch a, std::uint64_t rights, Prot prot) {
    GuestFault f;
    f.arch = a;
    f.access = Access::write;
    f.check_keys = true;
    f.key_rights = rights;
    return arch::check_access(f, {.prot = prot, .pkey = 1});
  };
  // A key and a right both missing: x86 and powerpc name the key, arm64 the right.
  EXPECT_EQ(verdict(Arch::x86, 3u << 2, Prot::read), Verdict::key_denied);
  EXPECT_EQ(verdict(Arch::powerpc, std::uint64_t{3} << 60, Prot::read), Verdict::key_denied);
  EXPECT_EQ(verdict(Arch::arm64, 0x7, Prot::read), Verdict::denied);
}

TEST(Keys, HardwareBits) {
  GuestFault f;
  f.check_keys = true;
  f.key_denied = true;
  f.key_rights = 7;  // arm64: all of key 0; x86, powerpc: nothing denied of key 2
  const VmaRights second{.prot = Prot::read, .pkey = 2};
  const VmaRights first{.prot = Prot::read, .pkey = 0};
  EXPECT_EQ(arch::check_access(f, second), Verdict::key_denied);  // x86 trusts PK
  f.arch = Arch::powerpc;
  EXPECT_EQ(arch::check_access(f, second), Verdict::allowed);  // KEYFAULT may be stale
  f.arch = Arch::arm64;
  EXPECT_EQ(arch::check_access(f, first), Verdict::allowed);  // Overlay may be stale
  f.arch = Arch::x86;
  f.key_denied = false;
  f.key_read = f.shadow_stack = true;  // a shadow-stack read: keys are asked about a read
  f.access = Access::write;
  f.key_rights = 2u << 2;
  EXPECT_EQ(arch::check_access(f, {.prot = Prot::write, .pkey = 1, .shadow_stack = true}),
            Verdict::allowed);
}

static_assert(arch::check_access({.arch = Arch::x86}, {.prot = Prot::exec}) == Verdict::allowed);
static_assert(arch::check_access({.arch = Arch::riscv}, {.prot = Prot::exec}) == Verdict::denied);
static_assert(arch::check_access({.access = Access::write}, {.prot = Prot::read}) ==
              Verdict::denied);
static_assert(!arch::readable_when_present(Arch::arm64, Prot::exec));

// ---- the enumeration that the checker shares ----------------------------------------------------

TEST(LegalFaults, EachIsAnAccessWithATextOfItsOwn) {
  const std::map<Arch, std::size_t> least = {{Arch::x86, 100}, {Arch::arm64, 500},
                                             {Arch::arm, 30},  {Arch::powerpc, 100},
                                             {Arch::riscv, 6}, {Arch::s390, 50}};
  for (Arch a : kAllArchs) {
    std::set<std::string> texts;
    std::set<std::pair<Access, bool>> kinds;
    std::size_t keyed = 0;
    check::for_each_legal_fault(a, 0x5000, [&](std::string_view code, const Decoded& d) {
      EXPECT_EQ(d.kind, Decoded::Kind::access);
      EXPECT_EQ(d.fault.arch, a);
      EXPECT_EQ(d.fault.address, 0x5000u) << code;
      EXPECT_EQ(code.substr(0, name_of(a).size()), name_of(a));
      EXPECT_TRUE(texts.insert(std::string(code)).second) << code << " is there twice";
      kinds.insert({d.fault.access, d.fault.user});
      const Verdict open = arch::check_access(
          d.fault, {.prot = arch::kAnyRight, .pkey = 1, .shadow_stack = d.fault.shadow_stack});
      if (open == Verdict::key_denied) ++keyed;
      // A hardware that blames a key is right about it.
      if (d.fault.key_denied) {
        EXPECT_EQ(open, Verdict::key_denied) << code;
      }
    });
    EXPECT_GE(texts.size(), least.at(a)) << name_of(a);
    EXPECT_TRUE(kinds.contains({Access::read, true})) << name_of(a);
    EXPECT_TRUE(kinds.contains({Access::write, true})) << name_of(a);
    EXPECT_EQ(kinds.contains({Access::exec, true}), a != Arch::s390) << name_of(a);
    EXPECT_TRUE(kinds.contains({Access::read, false})) << name_of(a);
    const bool has_keys = a == Arch::x86 || a == Arch::arm64 || a == Arch::powerpc;
    EXPECT_EQ(keyed > 0, has_keys) << name_of(a);
  }
}

TEST(LegalFaults, Texts) {
  std::set<std::string> texts;
  for (Arch a : kAllArchs) {
    check::for_each_legal_fault(
        a, 0x5000, [&](std::string_view code, const Decoded&) { texts.emplace(code); });
  }
  for (const char* code :
       {"x86 error_code 0x7 (PROT WRITE USER)",
        "x86 error_code 0x25 (PROT USER PK), key 1 no access",
        "arm64 esr 0x90000047 (WnR data), EPAN", "arm fsr 0x807 (WnR)",
        "powerpc 0x300 dsisr 0x42000000 (NOHPTE ISSTORE)", "riscv scause 0xf (store)",
        "s390 code 0x4 (protection store, space 0)"}) {
    EXPECT_TRUE(texts.contains(code)) << code;
  }
}

}  // namespace
}  // namespace faultpath
