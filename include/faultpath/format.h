// Text of outcomes and policies.
#pragma once

#include <faultpath/outcome.h>
#include <faultpath/policy.h>

#include <cstdio>
#include <string>

namespace faultpath {

namespace detail {

constexpr const char* code_name(std::uint8_t number, std::uint8_t code) {
  if (number == kSigBus) {
    if (code == kBusAdrAln) return "BUS_ADRALN";
    if (code == kBusAdrErr) return "BUS_ADRERR";
    if (code == kBusObjErr) return "BUS_OBJERR";
  } else if (number == kSigSegv) {
    if (code == kSegvMapErr) return "SEGV_MAPERR";
    if (code == kSegvAccErr) return "SEGV_ACCERR";
    if (code == kSegvPkuErr) return "SEGV_PKUERR";
    if (code == kSegvMteSErr) return "SEGV_MTESERR";
  } else if (number == kSigKill && code == kSiKernel) {
    return "SI_KERNEL";
  }
  return "code?";
}

}  // namespace detail

/// "done", "Signal: SIGSEGV, SEGV_ACCERR, write at 0x7ffff7ffe000", ... For messages, not parsing.
inline std::string to_string(const Outcome& o) {
  char text[128];
  const char* access = to_string(o.access());
  const auto address = static_cast<unsigned long long>(o.address());
  switch (o.kind()) {
    case Outcome::Kind::done: return o.major() ? "done (major)" : "done";
    case Outcome::Kind::signal: {
      const char* code = detail::code_name(o.signal_number(), o.signal_code());
      const char* name = o.signal_number() == kSigBus    ? "SIGBUS"
                         : o.signal_number() == kSigKill ? "SIGKILL"
                                                         : "SIGSEGV";
      std::snprintf(text, sizeof text, "Signal: %s, %s, %s at 0x%llx", name, code, access, address);
      return text;
    }
    case Outcome::Kind::out_of_memory:
      std::snprintf(text, sizeof text, "OutOfMemory: at 0x%llx", address);
      return text;
    case Outcome::Kind::interrupted: return "Interrupted";
    case Outcome::Kind::refused:
      std::snprintf(text, sizeof text, "Refused: %s, at 0x%llx",
                    o.reason() == RefusedReason::nested       ? "nested fault"
                    : o.reason() == RefusedReason::impossible ? "impossible fault code"
                                                              : "not inside a space",
                    address);
      return text;
  }
  return "?";
}

/// What parse_policy() reads as the same policy; switches that are as usual are left out.
inline std::string to_string(const PolicySpec& spec) {
  std::string text(name_of(spec.policy));
  char before = ':';
  const auto add = [&](const char* item) {
    text += before;
    text += item;
    before = ',';
  };
  if (spec.policy == Policy::spf && !spec.single_thread_bypass) add("single-thread-bypass=off");
  if (spec.policy == Policy::vma_lock && !spec.bad_access_fast) add("bad-access=slow");
  return text;
}

}  // namespace faultpath
