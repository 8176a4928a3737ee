// brk, as the system call has it.
#include "change/change.h"
#include "change/unmap.h"
#include "change/vma_change.h"

namespace faultpath::change {

namespace {

Result<void> grow(Cpu& cpu, Mm& mm, Removed& removed, Addr start, Addr end)
    FP_REQUIRES(mm.mmap_lock) {
  if (mm.map_count > mm.options.max_map_count) return Errno::enomem;
  VmaChange change(mm, cpu, removed);
  const TreeSlot next = change.find(start);
  if (next && next.start < end + kPageSize) return Errno::enomem;
  const MergeKey key{start,
                     end,
                     start >> kPageShift,
                     static_cast<std::uint32_t>(Prot::read | Prot::write) | vma::kVmMayWrite,
                     nullptr,
                     nullptr,
                     true};
  if (auto r = change.plan_insert(key); !r) return r.error();
  change.apply();
  change.finish();
  return {};
}

}  // namespace

Addr brk(Cpu& cpu, Mm& mm, Addr wanted) {
  Removed removed(mm, cpu);
  vma::WriteLock lock(mm, cpu);
  const Addr old = mm.brk;
  if (wanted < mm.options.brk_start || wanted > kUserEnd) return old;
  const Addr old_end = page_ceil(old);
  const Addr new_end = page_ceil(wanted);
  if (new_end < old_end) {
    if (!unmap_locked(cpu, mm, removed, new_end, old_end)) return old;
  } else if (new_end > old_end) {
    if (!grow(cpu, mm, removed, old_end, new_end)) return old;
  }
  mm.brk = wanted;
  return wanted;
}

}  // namespace faultpath::change
