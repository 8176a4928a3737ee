// A stack grows: the fault below it asked for that (expand_stack).
#include "change/change.h"
#include "change/vma_change.h"

namespace faultpath::change {

namespace {
/// What stays free between a stack and the mapping below it (Linux's stack_guard_gap).
constexpr std::uint64_t kGuardGap = 256 * kPageSize;
}  // namespace

Result<void> grow_stack(Cpu& cpu, Mm& mm, Addr address) {
  Removed removed(mm, cpu);
  vma::WriteLock lock(mm, cpu);
  VmaChange change(mm, cpu, removed);
  const TreeSlot slot = change.find(address);
  if (!slot) return Errno::enomem;
  if (slot.start <= address) return {};  // another fault grew it
  const std::uint32_t flags = slot.vma->flags();
  if ((flags & vma::kVmGrowsDown) == 0) return Errno::enomem;
  const Addr start = page_floor(address);
  if (start < mm.options.lowest_address) return Errno::eperm;
  if (slot.end - start > mm.options.stack_limit) return Errno::enomem;
  if (slot.vma->pgoff() < (slot.start - start) >> kPageShift) return Errno::enomem;
  const TreeSlot below = change.find_last_below(slot.start);
  if (below && (below.vma->flags() & vma::kVmGrowsDown) == 0 && below.vma->prot() != Prot::none &&
      start - below.end < kGuardGap) {
    return Errno::enomem;
  }
  if (auto r = change.plan_grow(slot, start); !r) return r;
  change.apply();
  change.finish();
  return {};
}

}  // namespace faultpath::change
