// The write side: mmap lock for write, mark, change, tables, flush, unmark, unlock.
//
// Each function checks its arguments in Linux's order, takes the locks itself, and is called parked
// and holding nothing.
#pragma once

#include <faultpath/address_space.h>

#include "vma/mm.h"

namespace faultpath::change {

using memory::Cpu;
using memory::MachineCore;
using vma::Mm;

Result<Addr> map(Cpu& cpu, Mm& mm, const MapRequest& request);
Result<void> unmap(Cpu& cpu, Mm& mm, Addr address, std::uint64_t length);
/// `key`: a protection key, or the one that each VMA has.
inline constexpr int kKeepKey = -1;
Result<void> protect(Cpu& cpu, Mm& mm, Addr address, std::uint64_t length, Prot prot,
                     int key = kKeepKey);
/// A stack that faulted at `address`, below its VMA, grows down to it (expand_stack). ENOMEM where
/// it may not, or where there is no such VMA any more.
Result<void> grow_stack(Cpu& cpu, Mm& mm, Addr address);
Addr brk(Cpu& cpu, Mm& mm, Addr new_break);
Result<void> advise(Cpu& cpu, Mm& mm, Addr address, std::uint64_t length, Advice advice);
Result<void> sync(Cpu& cpu, Mm& mm, Addr address, std::uint64_t length);

/// An empty space; null when frames are short.
Mm* create_mm(MachineCore& core, Cpu& cpu, const SpaceOptions& options);
/// The child, or null when frames are short: the parent is as before then.
Mm* fork(Cpu& cpu, Mm& parent);
/// No Cpu is inside; nobody else knows the space any more.
void destroy_mm(Cpu& cpu, Mm& mm);

}  // namespace faultpath::change
