// munmap.
#include "change/unmap.h"
#include "change/change.h"
#include "change/vma_change.h"

namespace faultpath::change {

Result<void> unmap_locked(Cpu& cpu, Mm& mm, Removed& removed, Addr start, Addr end) {
  VmaChange change(mm, cpu, removed);
  const TreeSlot first = change.find(start);
  if (!first || first.start >= end) return {};
  if (auto r = change.plan_unmap(start, end); !r) return r.error();
  change.apply();
  mm.flush_pending.fetch_add(1, env::acq_rel);  // from before the first clear to after the flush
  {
    Gather gather(mm, cpu);
    gather.zap(start, end);
    // Linux's floor and ceiling: a table goes only if no mapping that stays can have entries in it.
    const TreeSlot below = change.find_last_below(start);
    const TreeSlot above = change.find(end);
    gather.free_tables(start, end, below ? below.end : 0, above ? above.start : ~Addr{0});
    gather.finish();
  }
  mm.flush_pending.fetch_sub(1, env::acq_rel);
  change.finish();
  return {};
}

Result<void> unmap(Cpu& cpu, Mm& mm, Addr address, std::uint64_t length) {
  if ((address & ~kPageMask) != 0 || address > kUserEnd || length > kUserEnd - address) {
    return Errno::einval;
  }
  if (length == 0) return Errno::einval;
  Removed removed(mm, cpu);
  vma::WriteLock lock(mm, cpu);
  return unmap_locked(cpu, mm, removed, address, address + page_ceil(length));
}

}  // namespace faultpath::change
