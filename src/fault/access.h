// Whether a VMA's rights allow an access. The rule of x86; other architectures come with src/arch.
#pragma once

#include <faultpath/outcome.h>
#include <faultpath/types.h>

namespace faultpath::fault {

/// A write needs the right to write. A read or an instruction fetch of a page that is not there
/// needs any right at all: hardware cannot tell them apart until the page is there (access_error()
/// of arch/x86). So write-only and exec-only mappings are readable.
constexpr bool access_allowed(Prot prot, Access access) {
  if (access == Access::write) return has(prot, Prot::write);
  return prot != Prot::none;
}

}  // namespace faultpath::fault
