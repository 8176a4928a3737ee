// Vma: one mapping of an address space. Who may read or write its fields is said beside them.
#pragma once

#include <faultpath/types.h>

#include "base/assert.h"
#include "memory/slab.h"
#include "sync/seq_count.h"
#include "vma/vma_lock.h"

namespace faultpath::cache {
class FileObject;
}

namespace faultpath::vma {

class Mm;

/// Bits of Vma::flags. The low three are Prot's.
inline constexpr std::uint32_t kVmProt = 7;
inline constexpr std::uint32_t kVmShared = 1u << 3;
/// Asked for with MAP_SHARED, and shown so. Without kVmShared: the file was opened for reading
/// alone, and the mapping behaves as a private one that may not become writable.
inline constexpr std::uint32_t kVmMayShare = 1u << 9;
inline constexpr std::uint32_t kVmMayWrite = 1u << 4;     ///< protect may grant write
inline constexpr std::uint32_t kVmGrowsDown = 1u << 5;    ///< MAP_GROWSDOWN
inline constexpr std::uint32_t kVmUffdMissing = 1u << 6;  ///< nothing sets it yet; spf's check 6
inline constexpr std::uint32_t kVmInterleave = 1u << 7;   ///< nothing sets it yet; spf's check 11
/// The protection key, five bits of it.
inline constexpr unsigned kVmKeyShift = 16;
inline constexpr std::uint32_t kVmKey = 31u << kVmKeyShift;

constexpr Prot prot_of(std::uint32_t flags) { return static_cast<Prot>(flags & kVmProt); }
constexpr std::uint8_t key_of(std::uint32_t flags) {
  return static_cast<std::uint8_t>((flags & kVmKey) >> kVmKeyShift);
}

/// The identity that stands for Linux's anon_vma: which private VMAs may merge once they have
/// pages. Counted by the VMAs that name it. Its reverse map comes with the first thing that walks
/// it.
struct AnonRoot {
  memory::PoolLink link;
  env::atomic<std::uint32_t> refs;
};

/// A copy of what a fault derives its entry from. A fault knows this, never the live VMA.
struct VmaView {
  Addr start = 0;
  Addr end = 0;
  std::uint64_t pgoff = 0;
  std::uint32_t flags = 0;
  bool ever_faulted = false;
  cache::FileObject* file = nullptr;

  Prot prot() const { return prot_of(flags); }
  bool shared() const { return (flags & kVmShared) != 0; }
  std::uint64_t page_index(Addr a) const { return pgoff + ((a - start) >> kPageShift); }
};

/// What of a VMA is there even while it is free.
struct VmaHead {
  memory::PoolLink link;
  VmaLock lock;  ///< a line of its own: readers may be counting in (vma_lock.h)
};

/// Slab object, type-stable: `sequence` goes on over reuse, everything else is written before the
/// tree's root makes it reachable.
///
/// Fields are stored release and loaded acquire (free on x86), so that a speculative reader's
/// second look at `sequence` needs no fence (sync/seq_count.h). Whoever holds the mmap lock, in any
/// mode, reads stable values; whoever does not has a hint until `sequence` is compared.
///
/// Writing: mmap lock held for write, and the VMA marked where the space's policy reads marks: the
/// setters assert it. start, end and pgoff of a VMA with a file change under the file's reverse-map
/// lock besides. `ever_faulted` and `anon_root` are also set by the first fault, under the mmap lock for
/// read and the mm's anon lock, only from clear to set.
class Vma : public VmaHead {
 public:
  // The two words that speculative faults write and compare have a line of their own, as v11's
  // struct had them at its end: faults of other Cpus in this VMA fight for it, the fields below
  // stay shared.
  alignas(64) sync::SeqCount sequence;  ///< odd while marked; odd for ever once it left the tree
  env::atomic<std::uint32_t> refs;  ///< 1 for the tree; spf's get_vma / put_vma. 0: being retired
  alignas(64) env::var<Mm*> mm;     ///< constant from insertion to reuse

  Addr start() const { return start_.load(env::acquire); }
  Addr end() const { return end_.load(env::acquire); }
  std::uint64_t pgoff() const { return pgoff_.load(env::acquire); }
  std::uint32_t flags() const { return flags_.load(env::acquire); }
  cache::FileObject* file() const { return file_.load(env::acquire); }
  AnonRoot* anon_root() const { return anon_root_.load(env::acquire); }
  bool ever_faulted() const { return ever_faulted_.load(env::acquire) != 0; }
  /// False in a child of fork whose root came from a parent with pages: such a VMA merges with none
  /// that has no pages yet (Linux's singular-chain rule).
  bool chain_singular() const { return chain_singular_; }

  Prot prot() const { return prot_of(flags()); }
  bool shared() const { return (flags() & kVmShared) != 0; }
  bool contains(Addr a) const { return start() <= a && a < end(); }
  std::uint64_t page_index(Addr a) const { return pgoff() + ((a - start()) >> kPageShift); }

  VmaView view() const { return {start(), end(), pgoff(), flags(), ever_faulted(), file()}; }

  void set_bounds(Addr start, Addr end, std::uint64_t pgoff) {
    assert_writable();
    start_.store(start, env::release);
    end_.store(end, env::release);
    pgoff_.store(pgoff, env::release);
  }
  void set_flags(std::uint32_t flags) {
    assert_writable();
    flags_.store(flags, env::release);
  }
  void set_file(cache::FileObject* file) {
    assert_writable();
    file_.store(file, env::release);
  }
  void set_anon(AnonRoot* root, bool ever_faulted, bool singular) {
    assert_writable();
    anon_root_.store(root, env::release);
    ever_faulted_.store(ever_faulted ? 1 : 0, env::release);
    chain_singular_ = singular;
  }
  /// The first fault, under the mm's anon lock: see above why no mark is needed.
  void set_first_fault(AnonRoot* root) {
    anon_root_.store(root, env::release);
    ever_faulted_.store(1, env::release);
  }

  // Links of the file's reverse map; under its lock.
  env::var<Vma*> rmap_next;
  env::var<Vma*> rmap_prev;

 private:
  void assert_writable() const;

  env::atomic<Addr> start_;
  env::atomic<Addr> end_;
  env::atomic<std::uint64_t> pgoff_;
  env::atomic<std::uint32_t> flags_;
  env::atomic<std::uint32_t> ever_faulted_;
  env::atomic<cache::FileObject*> file_;
  env::atomic<AnonRoot*> anon_root_;
  env::var<bool> chain_singular_;
};

}  // namespace faultpath::vma
