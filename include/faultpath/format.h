// Text of outcomes and policies.
#pragma once

#include <faultpath/outcome.h>
#include <faultpath/policy.h>

#include <cstdio>
#include <string>

namespace faultpath {

/// "done", "Signal: SIGSEGV, SEGV_ACCERR, write at 0x7ffff7ffe000", ... For messages, not parsing.
inline std::string to_string(const Outcome& o) {
  char text[128];
  const char* access = to_string(o.access());
  const auto address = static_cast<unsigned long long>(o.address());
  switch (o.kind()) {
    case Outcome::Kind::done: return o.major() ? "done (major)" : "done";
    case Outcome::Kind::signal: {
      const bool bus = o.signal_number() == kSigBus;
      const char* code = "code?";
      if (bus) {
        code = o.signal_code() == kBusAdrErr ? "BUS_ADRERR" : "BUS_ADRALN";
      } else if (o.signal_code() == kSegvMapErr) {
        code = "SEGV_MAPERR";
      } else if (o.signal_code() == kSegvAccErr) {
        code = "SEGV_ACCERR";
      } else if (o.signal_code() == kSegvPkuErr) {
        code = "SEGV_PKUERR";
      }
      std::snprintf(text, sizeof text, "Signal: %s, %s, %s at 0x%llx", bus ? "SIGBUS" : "SIGSEGV",
                    code, access, address);
      return text;
    }
    case Outcome::Kind::out_of_memory:
      std::snprintf(text, sizeof text, "OutOfMemory: at 0x%llx", address);
      return text;
    case Outcome::Kind::interrupted: return "Interrupted";
    case Outcome::Kind::refused:
      std::snprintf(text, sizeof text, "Refused: %s, at 0x%llx",
                    o.reason() == RefusedReason::nested ? "nested fault" : "not inside a space",
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
