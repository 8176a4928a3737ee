// VmaChange: one step of the write side on the set of VMAs. Plan, apply, finish.
//
//   plan    edits a private copy of the tree and allocates all that is needed; may fail, and then
//           nothing has happened
//   apply   marks every VMA that the plan touches, writes the new fields, and publishes the new
//           tree with one store: an observer sees the state before or after (MAP_FIXED has no gap)
//   (the caller changes page-table entries, and its Gather flushes)
//   finish  unmarks what is left; what was removed stays marked for ever
//
// Files and VMAs that lost their last reference are let go by the destructor, which must run after
// the mmap lock has been dropped: closing a file may write it back.
#pragma once

#include "change/gather.h"
#include "vma/merge.h"
#include "vma/mm.h"

namespace faultpath::change {

using vma::MergeKey;
using vma::TreeSlot;

/// Lets go of a VMA that no tree and no reverse map has held, with its references.
void discard_unlisted(Cpu& cpu, Mm& mm, Vma* v);

/// VMAs that left a tree, to be released outside the mmap lock. Declare it before the lock's scope.
class Removed {
 public:
  Removed(Mm& mm, Cpu& cpu) : mm_(mm), cpu_(cpu) {}
  ~Removed();
  Removed(const Removed&) = delete;
  Removed& operator=(const Removed&) = delete;
  /// Under the mmap lock for write; the VMA is marked, and in no tree.
  void add(Vma* v) FP_NO_THREAD_SAFETY_ANALYSIS {
    mm_.detach(*v);
    v->link.next = head_;
    head_ = v;
  }

 private:
  Mm& mm_;
  Cpu& cpu_;
  Vma* head_ = nullptr;
};

/// The lowest free stretch at or above `low`.
bool find_gap_bottom_up(const vma::TreeView& view, std::uint64_t length, Addr low, Addr high,
                        Addr* out);

/// The caller holds the mmap lock for write from construction to destruction.
class VmaChange {
 public:
  VmaChange(Mm& mm, Cpu& cpu, Removed& removed);
  ~VmaChange();
  VmaChange(const VmaChange&) = delete;
  VmaChange& operator=(const VmaChange&) = delete;

  /// Takes [start, end) out: VMAs inside go, those that reach in are trimmed, one around it is cut
  /// in two. ENOMEM without frames, or for a cut at the limit of VMAs.
  Result<void> plan_unmap(Addr start, Addr end);
  /// Puts a mapping into free space (after plan_unmap, where needed), merging it with its
  /// neighbours where it can. Takes references of its own on the key's file.
  Result<void> plan_insert(const MergeKey& key);
  /// Gives [start, end), inside the one VMA of `slot`, other flags; merging and cutting as needed.
  Result<void> plan_flags(const TreeSlot& slot, Addr start, Addr end, std::uint32_t flags);

  /// Moves the start of a VMA down, into free space.
  Result<void> plan_grow(const TreeSlot& slot, Addr start);

  void apply();
  void finish();

  /// Of the planned tree.
  TreeSlot find(Addr a) const { return edit_.find(a); }
  TreeSlot find_last_below(Addr a) const { return edit_.find_last_below(a); }

 private:
  struct Touched {
    Vma* vma = nullptr;
    Addr start = 0;
    Addr end = 0;
    std::uint64_t pgoff = 0;
    std::uint32_t flags = 0;
    Vma* adopt = nullptr;  ///< take this one's anon root
    bool fresh = false;    ///< made by this plan
    bool written = false;
    bool ghost = false;  ///< stands in the reverse map alone, for a part that is being cut off
  };
  static constexpr unsigned kMost = 8;

  MergeKey key_of(const TreeSlot& slot) const;
  Touched* touched(Vma* v);
  Touched* touch(const TreeSlot& slot);
  bool resize(const TreeSlot& slot, Addr start, Addr end);
  bool remove(const TreeSlot& slot);
  /// A new VMA that says what `like` says, for [start, end).
  Vma* clone(const Vma& like, Addr start, Addr end, std::uint64_t pgoff, std::uint32_t flags);
  bool keep_listed(const TreeSlot& slot, Addr start, Addr end);
  bool insert(Vma* v, Addr start, Addr end, std::uint64_t pgoff, std::uint32_t flags);
  void write_fields(Touched& t);
  void adopt_root(Vma& v, Vma& from);

  Mm& mm_;
  Cpu& cpu_;
  Removed& out_;
  vma::NodeSource nodes_;
  vma::TreeEdit edit_;
  Touched touched_[kMost];
  unsigned touched_count_ = 0;
  Vma* removed_ = nullptr;  ///< linked by PoolLink, which readers do not read
  std::int32_t count_delta_ = 0;
  bool applied_ = false;
};

}  // namespace faultpath::change
