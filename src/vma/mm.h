// Mm: an address space's state. Its locks, tree, tables, limits; what Linux calls mm_struct.
//
// Lock order (docs/LOCKING.md): mmap lock, VMA mark, page lock, file reverse map, table locks
// (parent, then child). tree_lock and anon_lock are leaves below the mmap lock.
#pragma once

#include <faultpath/machine.h>

#include "pagetable/flush.h"
#include "pagetable/page_table.h"
#include "sync/rw_lock.h"
#include "sync/spin_rw_lock.h"
#include "vma/tree.h"
#include "vma/vma.h"

namespace faultpath::vma {

using memory::Cpu;
using memory::MachineCore;

/// How writers keep faults off a VMA that they change: what the space's policy, and what it falls
/// back to, look at. No policy pays for another.
enum class Marking : std::uint8_t {
  none,      ///< faults hold the mmap lock
  sequence,  ///< Vma::sequence is odd meanwhile
  vma_lock,  ///< Vma::lock is held for write, until the mmap lock is let go
};

class Mm {
 public:
  memory::PoolLink link;

  /// The address-space lock: for read by classic faults and DONTNEED, for write by every operation
  /// that changes the set of VMAs or their fields.
  sync::RwLock mmap_lock;

  /// v11's rwlock around its VMA tree: taken by `spf` alone, so that its cost is v11's. The tree
  /// itself can be read without it inside an epoch section.
  alignas(64) sync::SpinRwLock tree_lock;

  /// Written under the mmap lock for write (and tree_lock for write under `spf`).
  alignas(64) Tree tree;
  pagetable::PageTable tables;

  // Constant from creation on.
  MachineCore* core = nullptr;
  PolicySpec policy;
  SpaceOptions options;
  Marking marking = Marking::none;

  // `vma-lock`: what every fault compares its VMA's sequence with, odd while the mmap lock is held
  // for write; and what a writer sleeps on until a VMA's readers are gone.
  alignas(64) env::atomic<std::uint64_t> lock_sequence;
  env::atomic<std::uint32_t> vma_drained;

  // Under the mmap lock: read for either mode, written for write.
  env::var<std::uint32_t> map_count FP_GUARDED_BY(mmap_lock);
  env::var<Addr> brk FP_GUARDED_BY(mmap_lock);

  /// Serialises first faults that give a VMA its anon root (Linux takes page_table_lock there).
  env::SpinLock anon_lock;

  /// Zaps (DONTNEED, munmap, fixed) between clearing an entry and their flush: whoever finds an entry
  /// clear that another one cleared, and may not rely on that one's flush, flushes for it: DONTNEED
  /// (B48) and writeback (B66).
  env::atomic<std::uint32_t> flush_pending;

  /// Cpus inside, and how many they are (v11's mm_users).
  alignas(64) pagetable::CpuSet cpus;
  env::atomic<std::uint32_t> users;

  // --- the mmap lock with its statistics ------------------------------------------------------
  void lock_read(Cpu& cpu, env::Site site = env::Site::current()) FP_ACQUIRE_SHARED(mmap_lock) {
    const sync::Wait w = mmap_lock.lock_read(site);
    cpu.count(Counter::mmap_lock_read);
    if (FP_UNLIKELY(w.contended)) {
      cpu.count(Counter::mmap_lock_read_waits);
      cpu.count(Counter::mmap_lock_read_wait_ns, w.wait_ns);
    }
  }
  void unlock_read(env::Site site = env::Site::current()) FP_RELEASE_SHARED(mmap_lock) {
    mmap_lock.unlock_read(site);
  }
  void lock_write(Cpu& cpu, env::Site site = env::Site::current()) FP_ACQUIRE(mmap_lock) {
    const sync::Wait w = mmap_lock.lock_write(site);
    cpu.count(Counter::mmap_lock_write);
    if (FP_UNLIKELY(w.contended)) {
      cpu.count(Counter::mmap_lock_write_waits);
      cpu.count(Counter::mmap_lock_write_wait_ns, w.wait_ns);
    }
    if (marking == Marking::vma_lock) {
      // Release, for what the writer before had written: whoever reads this value has it too.
      lock_sequence.store(lock_sequence.load(env::relaxed, site) + 1, env::release, site);
    }
  }
  void unlock_write(env::Site site = env::Site::current()) FP_RELEASE(mmap_lock) {
    if (marking == Marking::vma_lock) {
      // Unlocks every VMA that was locked meanwhile. Release: who finds this value or a later one has
      // all that was written (B06, I14).
      lock_sequence.store(lock_sequence.load(env::relaxed, site) + 1, env::release, site);
    }
    mmap_lock.unlock_write(site);
  }

  // --- marks ----------------------------------------------------------------------------------
  /// From before the first change of the VMA, or of an entry under it by an operation that excludes
  /// faults, until after the flush. Marking twice is harmless for the caller. `vma-lock`: waits for
  /// the faults that hold the VMA; it stays locked until the mmap lock is let go.
  void mark(Vma& v, env::Site site = env::Site::current()) FP_REQUIRES(mmap_lock) {
    if (marking == Marking::sequence) {
      if (!v.sequence.is_marked(site)) v.sequence.begin_write(site);
    } else if (marking == Marking::vma_lock) {
      start_write(v);
    }
  }
  void unmark(Vma& v, env::Site site = env::Site::current()) FP_REQUIRES(mmap_lock) {
    if (marking == Marking::sequence && v.sequence.is_marked(site)) v.sequence.end_write(site);
  }
  bool is_marked(const Vma& v) const {
    return marking == Marking::sequence
               ? v.sequence.is_marked()
               : v.lock.sequence.load(env::relaxed) == lock_sequence.load(env::relaxed);
  }
  /// `vma-lock`: from here on faults can lock the VMA, once it is in the tree and unmarked. All its
  /// fields are set.
  void attach(Vma& v) FP_REQUIRES(mmap_lock);
  /// It has left the tree, marked: no fault holds it or can lock it any more.
  void detach(Vma& v) FP_REQUIRES(mmap_lock);

  // --- VMAs -----------------------------------------------------------------------------------
  /// A fresh VMA: one reference, marked, no file, no root. Null when frames are short.
  Vma* allocate_vma(Cpu& cpu);
  /// One that never was in the tree.
  void discard_vma(Cpu& cpu, Vma* v);
  AnonRoot* allocate_anon_root(Cpu& cpu);
  void get_anon_root(AnonRoot* root) {
    if (root != nullptr) root->refs.fetch_add(1, env::relaxed);
  }
  void put_anon_root(Cpu& cpu, AnonRoot* root);

  /// spf's get_vma: the VMA of the first slot with end > a, with a reference; null if there is
  /// none.
  Vma* get_vma(Addr a);
  /// Drops a reference; the last one retires the VMA, still marked.
  void put_vma(Cpu& cpu, Vma* v);

  /// Publishes an edit: one root store, under tree_lock where `spf` reads.
  void publish(TreeEdit& edit) FP_REQUIRES(mmap_lock);

 private:
  void start_write(Vma& v) FP_REQUIRES(mmap_lock);
  void drain(Vma& v, std::uint32_t until) FP_REQUIRES(mmap_lock);
};

/// NodePool over the machine's slabs; retired nodes collect in the batch.
struct NodeSource {
  MachineCore& core;
  Cpu& cpu;
  memory::RetireBatch batch;
  NodePool pool();
};

/// Scopes of the mmap lock.
class FP_SCOPED_CAPABILITY ReadLock {
 public:
  ReadLock(Mm& mm, Cpu& cpu, env::Site site = env::Site::current()) FP_ACQUIRE_SHARED(mm.mmap_lock)
      : mm_(mm), site_(site) {
    mm_.lock_read(cpu, site);
  }
  ~ReadLock() FP_RELEASE() { mm_.unlock_read(site_); }
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;

 private:
  Mm& mm_;
  [[no_unique_address]] env::Site site_;
};
class FP_SCOPED_CAPABILITY WriteLock {
 public:
  WriteLock(Mm& mm, Cpu& cpu, env::Site site = env::Site::current()) FP_ACQUIRE(mm.mmap_lock)
      : mm_(mm), site_(site) {
    mm_.lock_write(cpu, site);
  }
  ~WriteLock() FP_RELEASE() { mm_.unlock_write(site_); }
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;

 private:
  Mm& mm_;
  [[no_unique_address]] env::Site site_;
};

inline void Vma::assert_writable() const {
#if FAULTPATH_ASSERTS
  if (mm->marking != Marking::none && !mm->is_marked(*this)) env::unmarked_write();
#endif
}

}  // namespace faultpath::vma
