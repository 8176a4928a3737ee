// madvise: DONTNEED. And msync.
#include "base/guards.h"
#include "cache/file_object.h"
#include "change/change.h"
#include "change/gather.h"

namespace faultpath::change {

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
    Addr at = address;
    while (at < end) {
      const vma::TreeSlot slot = mm.tree.find(at);
      if (!slot || slot.start >= end) {
        hole = true;
        break;
      }
      if (slot.start > at) {
        hole = true;
        at = slot.start;
      }
      const Addr stop = slot.end < end ? slot.end : end;
      if (zap) {
        if (!env::guard<Guard::zap_does_not_mark>()) slot.vma->sequence.begin_write();
        gather.zap(at, stop);
        if (!env::guard<Guard::zap_does_not_mark>()) slot.vma->sequence.end_write();
      }
      at = stop;
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
  Addr at = address;
  while (at < end) {
    cache::FileObject* file = nullptr;
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    {
      vma::ReadLock lock(mm, cpu);
      const vma::TreeSlot slot = mm.tree.find(at);
      if (!slot || slot.start >= end) {
        hole = true;
        break;
      }
      if (slot.start > at) {
        hole = true;
        at = slot.start;
      }
      const Addr stop = slot.end < end ? slot.end : end;
      if (slot.vma->shared() && slot.vma->file() != nullptr) {
        file = slot.vma->file();
        file->get();
        first = slot.vma->page_index(at);
        last = first + ((stop - at) >> kPageShift);
      }
      at = stop;
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
