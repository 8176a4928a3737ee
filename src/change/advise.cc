// madvise: DONTNEED. And msync.
#include "base/guards.h"
#include "cache/file_object.h"
#include "change/change.h"
#include "change/gather.h"

namespace faultpath::change {

namespace {

/// What of one VMA lies in a range.
struct Part {
  vma::Vma* vma = nullptr;  ///< null: no VMA is left in the range
  Addr start = 0;
  Addr stop = 0;
};

/// The first part at or after `at`; a hole before it, or in its place, is noted. The mmap lock is
/// held.
Part next_part(const Mm& mm, Addr at, Addr end, bool* hole) {
  const vma::TreeSlot slot = mm.tree.find(at);
  if (!slot || slot.start >= end) {
    *hole = true;
    return {};
  }
  if (slot.start > at) *hole = true;
  return {slot.vma, slot.start > at ? slot.start : at, slot.end < end ? slot.end : end};
}

}  // namespace

// DONTNEED runs under the mmap lock for read, beside faults and beside other DONTNEEDs. It marks
// nothing (two of them would make an odd count even: B31); it takes the lock of every table, and
// what a fault puts in afterwards is a fault after the zap. It ends only when its own clears have
// been flushed and, where another zap cleared the entries it came for, that one's too (B48).
Result<void> advise(Cpu& cpu, Mm& mm, Addr address, std::uint64_t length, Advice advice) {
  if (advice != Advice::normal && advice != Advice::dontneed) return Errno::einval;
  if ((address & ~kPageMask) != 0) return Errno::einval;
  const std::uint64_t rounded = page_ceil(length);
  if (length != 0 && rounded == 0) return Errno::einval;
  const Addr end = address + rounded;
  if (end < address) return Errno::einval;
  if (end == address) return {};

  bool hole = false;
  vma::ReadLock lock(mm, cpu);
  const bool zap = advice == Advice::dontneed;
  if (zap) mm.flush_pending.fetch_add(1, env::acq_rel);
  {
    Gather gather(mm, cpu);
    for (Addr at = address; at < end;) {
      const Part part = next_part(mm, at, end, &hole);
      if (part.vma == nullptr) break;
      if (zap) {
        if (!env::guard<Guard::zap_does_not_mark>()) part.vma->sequence.begin_write();
        gather.zap(part.start, part.stop);
        if (!env::guard<Guard::zap_does_not_mark>()) part.vma->sequence.end_write();
      }
      at = part.stop;
    }
    // Entries that we found clear may have been cleared a moment ago by one whose flush is pending.
    if (zap && env::guard<Guard::flush_owed_by_others>() &&
        mm.flush_pending.load(env::acquire) > 1) {
      gather.owe(address, end);
    }
    gather.finish();
  }
  if (zap) mm.flush_pending.fetch_sub(1, env::acq_rel);
  if (hole) return Errno::enomem;
  return {};
}

Result<void> sync(Cpu& cpu, Mm& mm, Addr address, std::uint64_t length) {
  if ((address & ~kPageMask) != 0) return Errno::einval;
  const Addr end = address + page_ceil(length);
  if (end < address) return Errno::enomem;
  if (end == address) return {};

  bool hole = false;
  for (Addr at = address; at < end;) {
    cache::FileObject* file = nullptr;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    {
      vma::ReadLock lock(mm, cpu);
      const Part part = next_part(mm, at, end, &hole);
      if (part.vma == nullptr) break;
      if (part.vma->shared() && part.vma->file() != nullptr) {
        file = part.vma->file();
        file->get();
        first = part.vma->page_index(part.start);
        last = first + ((part.stop - part.start) >> kPageShift);
      }
      at = part.stop;
    }
    // The lock is dropped for the writing, as msync does; the file is held, not the VMA.
    if (file != nullptr) {
      auto written = file->write_back(cpu, first, last);
      file->put(cpu);
      if (!written) return written.error();
    }
  }
  if (hole) return Errno::enomem;
  return {};
}

}  // namespace faultpath::change
