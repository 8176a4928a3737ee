// The walker: what hardware does on a TLB miss. Inside an access section, no locks.
#pragma once

#include <faultpath/outcome.h>

#include "vma/mm.h"

namespace faultpath::mmu {

/// Translates the page of `a` for `access`: host address of its payload, or null for a fault, and
/// then `*present` says whether the page was there and forbade it. Sets accessed, and dirty for a
/// write, as hardware does; fills the TLB if `insert`. An access section of `cpu` is open.
std::byte* walk(memory::Cpu& cpu, vma::Mm& mm, Addr a, Access access, bool insert, bool* present);

}  // namespace faultpath::mmu
