// What the engine counts, under the names that kernel people know.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace faultpath {

// X(identifier, printed name). The order is the order of printing.
#define FAULTPATH_COUNTERS(X)                           \
  X(faults, "faults")                                   \
  X(minor_faults, "minor-faults")                       \
  X(major_faults, "major-faults")                       \
  X(fault_signals, "fault-signals")                     \
  X(fault_oom, "fault-oom")                             \
  X(refused, "refused")                                 \
  X(spf, "spf")                                         \
  X(spf_entered, "pagefault:spf_entered")               \
  X(spf_bypassed, "pagefault:spf_bypassed")             \
  X(spf_vma_changed, "pagefault:spf_vma_changed")       \
  X(spf_vma_noanon, "pagefault:spf_vma_noanon")         \
  X(spf_vma_notsup, "pagefault:spf_vma_notsup")         \
  X(spf_vma_access, "pagefault:spf_vma_access")         \
  X(spf_pmd_changed, "pagefault:spf_pmd_changed")       \
  X(spf_pte_lock, "pagefault:spf_pte_lock")             \
  X(spf_no_vma, "pagefault:spf_no_vma")                 \
  X(spf_no_memory, "pagefault:spf_no_memory")           \
  X(vma_lock_success, "vma_lock_success")               \
  X(vma_lock_abort, "vma_lock_abort")                   \
  X(vma_lock_retry, "vma_lock_retry")                   \
  X(vma_lock_miss, "vma_lock_miss")                     \
  X(vma_lock_bad_access, "vma_lock_bad_access")         \
  X(classic_entered, "pagefault:classic_entered")       \
  X(classic_settled, "pagefault:classic_settled")       \
  X(mmap_lock_read, "mmap_lock.read.acquired")          \
  X(mmap_lock_read_waits, "mmap_lock.read.contended")   \
  X(mmap_lock_read_wait_ns, "mmap_lock.read.wait_ns")   \
  X(mmap_lock_write, "mmap_lock.write.acquired")        \
  X(mmap_lock_write_waits, "mmap_lock.write.contended") \
  X(mmap_lock_write_wait_ns, "mmap_lock.write.wait_ns") \
  X(flushes, "tlb.flushes")                             \
  X(flush_targets, "tlb.flush_targets")                 \
  X(flush_wait_ns, "tlb.flush_wait_ns")                 \
  X(flush_answered, "tlb.flush_answered")               \
  X(membarriers, "tlb.membarriers")                     \
  X(tlb_misses, "tlb.misses")                           \
  X(pgalloc, "pgalloc")                                 \
  X(pgfree, "pgfree")                                   \
  X(table_alloc, "pgtable.alloc")                       \
  X(table_free, "pgtable.free")                         \
  X(cow_copies, "cow.copied")                           \
  X(cow_reuses, "cow.reused")                           \
  X(zero_page_maps, "zero-page.mapped")                 \
  X(file_reads, "file.pages_read")                      \
  X(file_writes, "file.pages_written")

enum class Counter : std::uint16_t {
#define FAULTPATH_COUNTER_ID(id, name) id,
  FAULTPATH_COUNTERS(FAULTPATH_COUNTER_ID)
#undef FAULTPATH_COUNTER_ID
      count
};

inline constexpr std::size_t kCounterCount = static_cast<std::size_t>(Counter::count);

/// A snapshot of counters; plain values. Differences of two snapshots are made field by field.
struct Counters {
#define FAULTPATH_COUNTER_FIELD(id, name) std::uint64_t id = 0;
  FAULTPATH_COUNTERS(FAULTPATH_COUNTER_FIELD)
#undef FAULTPATH_COUNTER_FIELD

  /// Calls `f(std::string_view name, std::uint64_t& value)` for each counter, in printing order.
  template <class F>
  void for_each(F&& f) {
#define FAULTPATH_COUNTER_VISIT(id, name) f(std::string_view(name), id);
    FAULTPATH_COUNTERS(FAULTPATH_COUNTER_VISIT)
#undef FAULTPATH_COUNTER_VISIT
  }
  template <class F>
  void for_each(F&& f) const {
#define FAULTPATH_COUNTER_VISIT(id, name) f(std::string_view(name), id);
      FAULTPATH_COUNTERS(FAULTPATH_COUNTER_VISIT)
#undef FAULTPATH_COUNTER_VISIT
  } Counters& operator+=(const Counters& o) {
#define FAULTPATH_COUNTER_ADD(id, name) id += o.id;
    FAULTPATH_COUNTERS(FAULTPATH_COUNTER_ADD)
#undef FAULTPATH_COUNTER_ADD
    return *this;
  }
  Counters& operator-=(const Counters& o) {
#define FAULTPATH_COUNTER_SUB(id, name) id -= o.id;
    FAULTPATH_COUNTERS(FAULTPATH_COUNTER_SUB)
#undef FAULTPATH_COUNTER_SUB
    return *this;
  }
};

}  // namespace faultpath
