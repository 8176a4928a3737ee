// The walker: what hardware does on a TLB miss. Inside an access section, no locks.
#pragma once

#include <faultpath/outcome.h>

#include "vma/mm.h"

namespace faultpath::mmu {

/// Why a walk found nothing that serves the access.
struct Miss {
  Addr at = 0;
  bool present = false;  ///< the page is there
  bool key = false;      ///< ... and its protection key denies the access
};

/// Translates the page of `a` for `access`: host address of its payload, or null for a fault, and
/// then `*miss` says why. Sets accessed, and dirty for a
/// write, as hardware does; fills the TLB if `insert`. An access section of `cpu` is open.
std::byte* walk(memory::Cpu& cpu, vma::Mm& mm, Addr a, Access access, bool insert, Miss* miss);

}  // namespace faultpath::mmu
