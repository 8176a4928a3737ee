// The first fault that puts a private page into a VMA settles which anon root the VMA has.
#pragma once

#include "fault/fault.h"

namespace faultpath::fault {

/// Makes `ever_faulted` true, as Linux's anon_vma_prepare. Under the mmap lock for read; nothing to
/// do in a speculative fault, whose check 5 demanded it. A fault that holds the VMA's lock takes the
/// mmap lock for it if that can be had at once: neighbours are read. False: it could not, and the
/// classic path must do it (B18).
bool prepare_anon(Fault& f);

}  // namespace faultpath::fault
