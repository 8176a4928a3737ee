#include "check/tables/fault_codes.h"

#include <cstdint>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <utility>

#include "arch/arm.h"
#include "arch/arm64.h"
#include "arch/powerpc.h"
#include "arch/riscv.h"
#include "arch/s390.h"
#include "arch/x86.h"

namespace faultpath::check {
namespace {

using Each = std::function<void(std::string_view, const Decoded&)>;

/// What key 1 forbids; key 0 never forbids anything.
enum class Keys : std::uint8_t { open, no_access, no_write };
constexpr Keys kAllKeys[] = {Keys::open, Keys::no_access, Keys::no_write};

const char* text_of(Keys k) {
  if (k == Keys::no_access) return ", key 1 no access";
  if (k == Keys::no_write) return ", key 1 no writes";
  return "";
}

/// "PROT WRITE USER" from the bits that are set.
using Names = std::initializer_list<std::pair<std::uint64_t, const char*>>;
std::string words(std::uint64_t bits, Names names) {
  std::string out;
  for (const auto& [bit, name] : names) {
    if (!(bits & bit)) continue;
    if (!out.empty()) out += ' ';
    out += name;
  }
  return out;
}

std::string coded(const char* what, std::uint64_t value, const std::string& meaning) {
  char text[64];
  std::snprintf(text, sizeof text, "%s 0x%llx (", what, static_cast<unsigned long long>(value));
  std::string out = text;
  out += meaning;
  out += ')';
  return out;
}

void give(const Each& each, const std::string& code, const Decoded& d) {
  if (d.kind == Decoded::Kind::access) each(code, d);
}

void x86_faults(Addr at, const Each& each) {
  using namespace arch::x86;
  for (std::uint64_t e = 0; e <= kSgx + 0x7f; e = (e == 0x7f ? kSgx : e + 1)) {
    for (bool user : {true, false}) {
      for (Keys keys : kAllKeys) {
        const std::uint32_t pkru = keys == Keys::open        ? 0u
                                   : keys == Keys::no_access ? 1u << 2
                                                             : 2u << 2;
        const Access data = (e & kWrite) ? Access::write : Access::read;
        if ((e & kPk) && !key_denies(pkru, 1, data)) continue;  // the hardware had no reason
        std::string text = coded("x86 error_code", e,
                                 words(e, {{kProt, "PROT"},
                                           {kWrite, "WRITE"},
                                           {kUser, "USER"},
                                           {kInstr, "INSTR"},
                                           {kPk, "PK"},
                                           {kShstk, "SHSTK"},
                                           {kSgx, "SGX"}}));
        if (!user) text += ", kernel";
        text += text_of(keys);
        give(each, text,
             decode({.error_code = e, .cr2 = at, .user_mode = user, .ac = true, .pkru = pkru}));
      }
    }
  }
}

void arm64_faults(Addr at, const Each& each) {
  using namespace arch::arm64;
  constexpr std::uint64_t kOpen = 0x77;  // read, write and execute for keys 0 and 1
  for (std::uint64_t ec : {kFetchEl0, kDataEl0, kDataEl1}) {
    for (std::uint64_t fsc = 0; fsc <= kFsc; ++fsc) {
      for (std::uint64_t how : {std::uint64_t{0}, kWnr, kWnr | kCm, kGcs, kGcs | kWnr}) {
        for (bool epan : {false, true}) {
          const std::uint64_t esr = ec << kEcShift | fsc | how;
          std::string text =
              coded("arm64 esr", esr,
                    words(esr, {{kWnr, "WnR"}, {kCm, "CM"}, {kGcs, "GCS"}, {kOverlay, "Overlay"}}));
          text.insert(text.size() - 1, (text[text.size() - 2] == '(' ? "" : " ") +
                                           std::string(ec == kFetchEl0  ? "fetch"
                                                       : ec == kDataEl0 ? "data"
                                                                        : "data, kernel"));
          if (epan) text += ", EPAN";
          give(each, text, decode({.esr = esr, .far = at, .epan = epan}));
          for (Keys keys : kAllKeys) {
            const std::uint64_t por = keys == Keys::open        ? kOpen
                                      : keys == Keys::no_access ? kOpen & ~std::uint64_t{0x70}
                                                                : kOpen & ~std::uint64_t{0x40};
            Registers r{.esr = esr, .far = at, .epan = epan, .poe = true, .por_el0 = por};
            const Decoded d = decode(r);
            give(each, text + ", POE" + text_of(keys), d);
            if (!key_denies(por, 1, d.fault.access)) continue;
            r.esr |= kOverlay;
            give(each, text + ", POE" + text_of(keys) + ", Overlay", decode(r));
          }
        }
      }
    }
  }
}

void arm_faults(Addr at, const Each& each) {
  using namespace arch::arm;
  for (bool lpae : {false, true}) {
    for (unsigned status = 0; status < (lpae ? 64u : 32u); ++status) {
      for (std::uint32_t how : {0u, kWnr, kWnr | kCm}) {
        for (bool prefetch : {false, true}) {
          for (bool user : {true, false}) {
            const std::uint32_t fsr =
                (lpae ? status | kLongFormat : from_short_status(status)) | how;
            std::string text =
                coded(prefetch ? "arm ifsr" : "arm fsr", fsr,
                      words(fsr, {{kWnr, "WnR"}, {kCm, "CM"}, {kLongFormat, "LPAE"}}));
            if (!user) text += ", kernel";
            give(each, text,
                 decode({.fsr = fsr,
                         .far = static_cast<std::uint32_t>(at),
                         .lpae = lpae,
                         .prefetch = prefetch,
                         .user_mode = user}));
          }
        }
      }
    }
  }
}

void powerpc_faults(Addr at, const Each& each) {
  using namespace arch::powerpc;
  constexpr std::uint64_t kBits[] = {kNoHpte,  kNoExecOrGuarded, kProtFault,
                                     kIsStore, kKeyFault,        kSetRc};
  for (unsigned set = 0; set < 64; ++set) {
    std::uint64_t e = 0;
    for (unsigned i = 0; i < 6; ++i) {
      if (set >> i & 1) e |= kBits[i];
    }
    const std::string meaning = words(e, {{kNoHpte, "NOHPTE"},
                                          {kNoExecOrGuarded, "NOEXEC_OR_G"},
                                          {kProtFault, "PROTFAULT"},
                                          {kIsStore, "ISSTORE"},
                                          {kKeyFault, "KEYFAULT"},
                                          {kSetRc, "SET_RC"}});
    for (Keys keys : kAllKeys) {
      const std::uint64_t rights =
          keys == Keys::open ? 0 : (keys == Keys::no_access ? std::uint64_t{3} : 2) << 60;
      const Access data = (e & kIsStore) ? Access::write : Access::read;
      for (bool user : {true, false}) {
        if ((e & kKeyFault) && !key_denies(rights, 1, data)) continue;
        give(each,
             coded("powerpc 0x300 dsisr", e, meaning) + (user ? "" : ", kernel") + text_of(keys),
             decode({.dsisr = e, .dar = at, .amr = rights, .user_mode = user}));
      }
      // A fetch has no ISSTORE, and its key register no bit for writes.
      if ((e & kIsStore) || keys == Keys::no_write) continue;
      if ((e & kKeyFault) && !key_denies(rights, 1, Access::exec)) continue;
      for (bool no_execute : {true, false}) {
        give(each,
             coded("powerpc 0x400 srr1", e, meaning) +
                 (no_execute ? "" : ", CPU without no-execute") + text_of(keys),
             decode({.trap = kInstStorage,
                     .srr1 = e,
                     .nip = at,
                     .iamr = rights,
                     .no_execute = no_execute}));
      }
    }
  }
}

void riscv_faults(Addr at, const Each& each) {
  for (std::uint64_t cause = 0; cause < 64; ++cause) {
    for (bool user : {true, false}) {
      const char* meaning = cause == arch::riscv::kFetchPage  ? "fetch"
                            : cause == arch::riscv::kLoadPage ? "load"
                                                              : "store";
      give(each, coded("riscv scause", cause, meaning) + (user ? "" : ", kernel"),
           arch::riscv::decode({.scause = cause, .stval = at, .user_mode = user, .sum = true}));
    }
  }
}

void s390_faults(Addr at, const Each& each) {
  using namespace arch::s390;
  for (std::uint32_t code = 0; code < 0x80; ++code) {
    for (std::uint64_t fsi : {std::uint64_t{0}, kFsiStore, kFsiFetch}) {
      for (bool facility : {true, false}) {
        for (std::uint64_t space = 0; space < 4; ++space) {
          for (bool user : {true, false}) {
            if (!facility && fsi != 0) continue;
            const std::uint64_t teid = (at & kAddress) | fsi | space |
                                       (code == kProtection ? kDatProtection : std::uint64_t{0});
            std::string meaning = code == kProtection ? "protection" : "translation";
            if (fsi) meaning += fsi == kFsiStore ? " store" : " fetch";
            meaning += ", space " + std::to_string(space);
            if (!facility) meaning += ", no store indication";
            give(each, coded("s390 code", code, meaning) + (user ? "" : ", kernel"),
                 decode({.program_code = code,
                         .teid = teid,
                         .psw_address = at,
                         .user_mode = user,
                         .store_indication = facility}));
          }
        }
      }
    }
  }
}

}  // namespace

void for_each_legal_fault(Arch arch, Addr at, const Each& each) {
  switch (arch) {
    case Arch::x86: return x86_faults(at, each);
    case Arch::arm64: return arm64_faults(at, each);
    case Arch::arm: return arm_faults(at, each);
    case Arch::powerpc: return powerpc_faults(at, each);
    case Arch::riscv: return riscv_faults(at, each);
    case Arch::s390: return s390_faults(at, each);
  }
}

}  // namespace faultpath::check
