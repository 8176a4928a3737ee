// Unmapping with the mmap lock already held for write.
#pragma once

#include "change/vma_change.h"

namespace faultpath::change {

Result<void> unmap_locked(Cpu& cpu, Mm& mm, Removed& removed, Addr start, Addr end)
    FP_REQUIRES(mm.mmap_lock);

}  // namespace faultpath::change
