// FileObject: a file's identity, its pages, and who maps them.
#pragma once

#include <faultpath/file.h>

#include "memory/machine_core.h"
#include "sync/spin_rw_lock.h"
#include "vma/vma.h"

namespace faultpath::check {
struct Inspect;
}

namespace faultpath::cache {

using memory::Cpu;
using memory::Frame;
using memory::MachineCore;
using memory::Pfn;

/// How getting a page ended.
enum class PageStatus : std::uint8_t {
  ok,
  beyond_end,
  no_memory,
  io_error,
  would_wait,  ///< for the store or for another's page lock, and the caller may not
};

/// Pages are found by an index tree of frames (nodes of kPageSize / 8 words) whose height grows
/// with the file. Lookups take no lock: a word goes from empty to a page or a node once, and
/// neither leaves before the file does (truncation and reclaim come later). Insertion is under
/// `index_lock`.
///
/// Shared anonymous memory is a FileObject without a store: its pages begin as zeroes.
class FileObject {
 public:
  memory::PoolLink link;

  /// One reference. Null when frames are short; the store is then the caller's again.
  static FileObject* create(MachineCore& core, Cpu& cpu, Store* store, FileMode mode,
                            std::uint64_t size);
  void get() { refs_.fetch_add(1, env::relaxed); }
  /// The last put writes dirty pages back, frees the pages and closes the store. Not with a page
  /// lock, a table lock or a section held. Errors of that last writeback have nobody to go to:
  /// sync() first.
  void put(Cpu& cpu);

  bool anonymous() const { return store_ == nullptr; }
  FileMode mode() const { return mode_; }
  std::uint64_t size() const { return size_.load(env::acquire); }
  /// Pages that the size covers, the last one perhaps in part.
  std::uint64_t pages() const { return (size() + kPageSize - 1) >> kPageShift; }
  MachineCore& core() const { return *core_; }

  /// The page at `index`, up to date, locked, with a reference for the caller; read from the store
  /// if it is not there. The size was read again with the page locked (I15). `read_it` is set if
  /// this call waited for the store: a major fault. Not in a section, not with a table lock. Without
  /// `may_wait` it still waits for memory.
  PageStatus get_page_locked(Cpu& cpu, std::uint64_t index, bool may_wait, Pfn* out, bool* read_it);
  /// (Which page lock is held is a matter of values, which Clang's analysis cannot follow.)
  void unlock_page(Pfn pfn) FP_NO_THREAD_SAFETY_ANALYSIS { core_->frame(pfn).page_lock.unlock(); }
  /// A store through a mapping or write_at is about to happen, or has happened through a
  /// translation that is now gone. For the first the page is locked.
  static void mark_dirty(Frame& page) { page.flags.fetch_or(memory::kPageDirty, env::release); }

  /// Writes dirty pages with an index in [first, end) to the store. Stores made before the call are
  /// written; a page stored to meanwhile is dirty again.
  Result<void> write_back(Cpu& cpu, std::uint64_t first, std::uint64_t end);
  Result<std::uint64_t> read_at(Cpu& cpu, std::uint64_t offset, void* to, std::uint64_t bytes);
  Result<std::uint64_t> write_at(Cpu& cpu, std::uint64_t offset, const void* from,
                                 std::uint64_t bytes);

  /// The reverse map: every VMA that maps the file. Bounds and pgoff of a linked VMA change under
  /// it for write; walkers hold it for read.
  sync::SpinRwLock rmap_lock;
  void link_vma(vma::Vma& v) FP_REQUIRES(rmap_lock);
  void unlink_vma(vma::Vma& v) FP_REQUIRES(rmap_lock);
  /// The same for one VMA, with the lock taken around it.
  void add_mapping(vma::Vma& v) FP_EXCLUDES(rmap_lock) {
    rmap_lock.lock_write();
    link_vma(v);
    rmap_lock.unlock_write();
  }
  void remove_mapping(vma::Vma& v) FP_EXCLUDES(rmap_lock) {
    rmap_lock.lock_write();
    unlink_vma(v);
    rmap_lock.unlock_write();
  }

 private:
  friend struct ::faultpath::check::Inspect;  // the checker's laws at rest
  static constexpr unsigned kIndexShift = kPageShift - 3;
  static constexpr std::uint64_t kIndexFan = std::uint64_t{1} << kIndexShift;
  using Word = env::atomic<std::uint64_t>;

  Word* node(Pfn pfn) const { return reinterpret_cast<Word*>(core_->object_memory(pfn)); }
  /// 0 where there is none, else pfn + 1.
  std::uint64_t lookup(std::uint64_t index) const;
  /// The page at `index`, made if need be, with a reference; not locked, perhaps not up to date.
  Pfn find_or_create(Cpu& cpu, std::uint64_t index);
  bool fill(Cpu& cpu, Frame& page, std::uint64_t index);
  bool write_protect_mappings(Cpu& cpu, std::uint64_t index, Pfn pfn);
  Result<void> write_page(Cpu& cpu, Pfn pfn);
  template <class F>
  Result<std::uint64_t> for_each_part(Cpu& cpu, std::uint64_t offset, std::uint64_t bytes,
                                      F&& move);
  template <class F>
  bool for_each_page(Pfn at, unsigned height, std::uint64_t base, std::uint64_t first,
                     std::uint64_t end, F&& f) const;
  void free_index(Cpu& cpu, Pfn at, unsigned height);

  MachineCore* core_;
  env::atomic<std::uint32_t> refs_;
  FileMode mode_;
  Store* store_;
  env::atomic<std::uint64_t> size_;
  /// Root node's pfn + 1 in the low half, height (levels of nodes) in the high; 0: no page yet.
  Word root_;
  env::SpinLock index_lock_;
  env::var<vma::Vma*> mappings_ FP_GUARDED_BY(rmap_lock) = nullptr;
};

}  // namespace faultpath::cache
