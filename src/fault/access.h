// Whether a fault's VMA forbids the access, and what the program hears then. One place for every
// path: the fast one says what the slow one says (I13, B17).
#pragma once

#include <faultpath/outcome.h>

#include "arch/access.h"
#include "vma/vma.h"

namespace faultpath::fault {

/// The signal for a forbidden access; `done` where the VMA allows it, by the rule of the machine that
/// reported the fault.
inline Outcome refusal(const GuestFault& what, const vma::VmaView& vma) {
  const std::uint8_t key = vma::key_of(vma.flags);
  switch (arch::check_access(what, {vma.prot(), key, false})) {
    case arch::Verdict::allowed: return Outcome::done();
    case arch::Verdict::denied: break;
    case arch::Verdict::key_denied:
      return Outcome::signal(kSigSegv, kSegvPkuErr, what.reported, what.access, key);
  }
  return Outcome::signal(kSigSegv, kSegvAccErr, what.reported, what.access);
}

}  // namespace faultpath::fault
