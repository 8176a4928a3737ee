// Gather: entries are cleared now; frames and tables are let go after the flush.
#pragma once

#include "cache/file_object.h"
#include "vma/mm.h"

namespace faultpath::change {

using memory::Cpu;
using memory::Frame;
using memory::MachineCore;
using memory::Pfn;
using pagetable::Pte;
using vma::Mm;
using vma::Vma;

/// One operation's harvest, and one flush for all of it, however large: old entries wait in batch
/// frames (as Linux's mmu_gather), and only where no frame for a batch is to be had is there a
/// flush in between.
///
/// The caller is parked, holds the mmap lock, and keeps the VMAs marked (where the operation
/// excludes faults) until finish() has returned: flush, then release (I6).
class Gather {
 public:
  Gather(Mm& mm, Cpu& cpu) : mm_(mm), cpu_(cpu) {}
  ~Gather();
  Gather(const Gather&) = delete;
  Gather& operator=(const Gather&) = delete;

  /// Clears every entry in [start, end); page tables stay.
  void zap(Addr start, Addr end);
  /// An entry's rights were taken: its translation must be flushed.
  void changed(Addr page) { widen(page); }
  /// Tables that only [floor, ceiling) uses are unlinked, for the addresses [start, end).
  void free_tables(Addr start, Addr end, Addr floor, Addr ceiling) {
    mm_.tables.free_tables(cpu_, start, end, floor, ceiling, tables_);
  }
  /// Flushes even if nothing was found (B48).
  void owe(Addr start, Addr end) {
    widen(start);
    widen(end - kPageSize);
  }
  bool owes_flush() const { return start_ < end_; }
  /// Flush, then release.
  void finish();

 private:
  /// Entries whose frames others refer to as well. The first batch is on the stack.
  static constexpr unsigned kFirst = 64;
  struct Batch {
    Batch* next;
    std::uint64_t count;
    Pte entries[kPageSize / sizeof(Pte) - 2];
  };
  static_assert(sizeof(Batch) == kPageSize);

  void widen(Addr page) {
    if (page < start_) start_ = page;
    if (page + kPageSize > end_) end_ = page + kPageSize;
  }
  void take(Pte old, Addr page);
  /// Room for one more entry in hold(). False: flush first.
  bool have_room();
  void hold(Pte old);
  void release(Pte old);
  void flush_and_release();

  Mm& mm_;
  Cpu& cpu_;
  Addr start_ = ~Addr{0};
  Addr end_ = 0;
  Pfn sole_ = memory::kNoPfn;  ///< frames that nobody else refers to, linked by Frame::next
  unsigned first_count_ = 0;
  Pte first_[kFirst];
  Batch* batches_ = nullptr;  ///< the newest first
  memory::RetireBatch tables_;
};

}  // namespace faultpath::change
