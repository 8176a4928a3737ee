// The VMA tree: which VMA covers an address, what follows it, where a gap is.
//
// A B+-tree of disjoint half-open slots [start, end), each with its Vma*. The tree is persistent: a
// published node never changes. An edit copies the path it touches, works on the copies, and makes
// its root the tree's root with one store.
//
// What a reader sees
//
//   A TreeView is the tree as of one load of the root (Tree::view, or any reading function of Tree,
//   which makes a view of its own). All reads through one view are of one state of the tree: never
//   half of an edit, however many slots it moved, split or replaced. Two reads through Tree itself
//   may be of two states.
//   The linearisation point of an edit is the root store in TreeEdit::commit; that of a reader is
//   its load of the root. A reader that starts after commit returned (in the happens-before sense)
//   sees the edit. An edit that is not committed is never seen.
//   A slot's Vma* is as alive as the caller of the edit makes it: the tree never looks inside.
//
// Why the node fields are plain
//
//   A node is written only by the edit that allocated it, before the release store of the root that
//   first makes it reachable; a reader comes to it through an acquire load of that root or of a
//   later one. A node that an edit unlinks is given to NodePool::retire after the store, and the
//   pool keeps it untouched until every reader that may have loaded an older root has left its
//   epoch section. So a reader's plain loads race with nothing.
//   Three words of a node are not for readers: `pool_link` (the pool's, from retire or discard on,
//   at once), `edit_link` and `stamp` (the writer's; `edit_link` is written in published nodes
//   too). Readers never look at them.
//
// Who may call what, holding what
//
//   Tree's const functions, and a TreeView   inside an epoch section of the domain that the pool
//                                            waits for, or under a lock that excludes writers; the
//                                            view is good until that section or lock ends
//   TreeEdit, from construction to the end   under the lock that serialises the tree's writers (the
//                                            mmap lock for write); one edit of a tree at a time.
//                                            Needs no epoch section: nobody else unlinks nodes
//   TreeEdit::view and reads of an edit      the writer alone; good until the edit's next change,
//                                            which may be in place
//
// Failure
//
//   A change that needs nodes gets all of them before it touches anything. When the pool has none
//   the change returns false and the edit is as it was before the call: the caller may drop the
//   edit (the published tree was never touched, the new nodes go back to the pool), or commit what
//   it had. Committing, dropping and clear() allocate nothing and cannot fail.
//
// Cost: find, a change and find_gap_top_down are O(log n). Every node but the root has at least
// kMinFill entries.
#pragma once

#include <faultpath/config.h>

#include <cstdint>

#include "env.h"

namespace faultpath::check {
struct Inspect;
}

namespace faultpath::vma {

class Vma;

/// One entry of the tree. The empty slot, `vma == nullptr`, says "none".
struct TreeSlot {
  Addr start = 0;
  Addr end = 0;
  Vma* vma = nullptr;

  explicit operator bool() const { return vma != nullptr; }
};

inline constexpr unsigned kTreeFanout = 16;
/// The least number of entries of a node that is not the root. Two nodes of which one has fewer
/// either fit in one or can share their entries so that both have at least half of kTreeFanout.
inline constexpr unsigned kTreeMinFill = 6;
/// Levels suffice for more slots than there are pages: the top of L levels has 2 children at least,
/// so 2 * 6^(L-1) slots.
inline constexpr unsigned kTreeMaxLevels = 16;

/// Entry i of a leaf is a slot; of an inner node, a child: the lowest start and the highest end in
/// it, and the largest gap between neighbouring slots both in it. The gap between two neighbouring
/// entries is the difference of their bounds, and is kept nowhere.
struct TreeNode {
  env::pool_var<void*> pool_link;  ///< the pool's own, once the node is its again
  env::var<TreeNode*> edit_link;   ///< the writer's: chains nodes to retire, and spare nodes
  env::var<std::uint64_t> stamp;   ///< the writer's: which edit of the tree made the node
  env::var<std::uint32_t> level;   ///< 0: a leaf
  env::var<std::uint32_t> count;   ///< entries in use, the first `count`
  env::var<Addr> high[kTreeFanout];
  env::var<Addr> low[kTreeFanout];
  env::var<void*> item[kTreeFanout];         ///< Vma* in a leaf, else TreeNode*
  env::var<std::uint64_t> gap[kTreeFanout];  ///< 0 in a leaf
};
static_assert(sizeof(TreeNode) <= 640, "the pool's objects hold 640 bytes");

/// Where nodes come from and go to. A node comes with unspecified content.
struct NodePool {
  TreeNode* (*allocate)(void* ctx);       ///< nullptr when there is none
  void (*discard)(void* ctx, TreeNode*);  ///< never published: free at once
  void (*retire)(void* ctx, TreeNode*);   ///< unlinked by a commit: free after a grace period
  void* ctx;
};

/// One state of the tree, for as long as the section or lock it was taken in lasts.
class TreeView {
 public:
  TreeView() = default;
  explicit TreeView(const TreeNode* root) : root_(root) {}

  bool empty() const { return root_ == nullptr; }

  /// The first slot with end > a.
  TreeSlot find(Addr a) const;
  /// The slot with start <= a < end.
  TreeSlot covering(Addr a) const {
    const TreeSlot slot = find(a);
    return slot.start <= a ? slot : TreeSlot{};
  }
  /// The last slot with start < a.
  TreeSlot find_last_below(Addr a) const;
  /// The first slot that overlaps [start, end).
  TreeSlot first_in(Addr start, Addr end) const {
    const TreeSlot slot = find(start);
    return slot.start < end ? slot : TreeSlot{};
  }
  /// The neighbours of a slot of this view.
  TreeSlot next(const TreeSlot& slot) const { return find(slot.end); }
  TreeSlot prev(const TreeSlot& slot) const { return find_last_below(slot.start); }

  /// Calls fn(const TreeSlot&) for every slot that overlaps [from, to), in order, while it returns
  /// true. Returns false if a call did.
  template <class Fn>
  bool for_each(Addr from, Addr to, Fn&& fn) const {
    return root_ == nullptr || walk(root_, from, to, fn);
  }

  /// The highest s with low <= s, s + length <= high and [s, s + length) free of slots. `length` is
  /// not 0.
  bool find_gap_top_down(std::uint64_t length, Addr low, Addr high, Addr* out) const;

  /// Verifies every invariant: order, bounds, gaps, depth, fill. On false, *why says which broke.
  /// Visits the whole tree.
  bool check(const char** why) const;

 private:
  friend struct ::faultpath::check::Inspect;  // the checker's laws at rest
  template <class Fn>
  static bool walk(const TreeNode* node, Addr from, Addr to, Fn& fn) {
    const std::uint32_t count = node->count;
    const bool leaf = node->level == 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const Addr high = node->high[i];
      if (high <= from) continue;
      const Addr low = node->low[i];
      if (low >= to) break;
      void* const item = node->item[i];
      if (leaf) {
        if (!fn(TreeSlot{low, high, static_cast<Vma*>(item)})) return false;
      } else if (!walk(static_cast<const TreeNode*>(item), from, to, fn)) {
        return false;
      }
    }
    return true;
  }

  const TreeNode* root_ = nullptr;
};

/// The published tree. Empty at first; owns no node: whoever ends an address space clears its tree
/// with an edit.
class Tree {
 public:
  Tree() = default;
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  TreeView view() const { return TreeView(root_.load(env::acquire)); }

  // Each is a view's function on a view of its own.
  TreeSlot find(Addr a) const { return view().find(a); }
  TreeSlot covering(Addr a) const { return view().covering(a); }
  TreeSlot find_last_below(Addr a) const { return view().find_last_below(a); }
  TreeSlot first_in(Addr start, Addr end) const { return view().first_in(start, end); }
  bool find_gap_top_down(std::uint64_t length, Addr low, Addr high, Addr* out) const {
    return view().find_gap_top_down(length, low, high, out);
  }
  bool check(const char** why) const { return view().check(why); }

 private:
  friend class TreeEdit;

  env::atomic<TreeNode*> root_;
  env::var<std::uint64_t> stamp_{};  // of the newest edit; the writer's
};

/// One transaction: begins as the published tree, ends with commit() or in nothing.
class TreeEdit {
 public:
  TreeEdit(Tree& tree, const NodePool& pool);
  /// Drops an edit that was not committed: its nodes are discarded.
  ~TreeEdit();
  TreeEdit(const TreeEdit&) = delete;
  TreeEdit& operator=(const TreeEdit&) = delete;

  // Changes. False: the pool had no node, and the edit is as before the call.

  /// Adds [start, end), which overlaps no slot.
  [[nodiscard]] bool insert(Addr start, Addr end, Vma* vma);
  /// Removes the slot that starts at `start`; there is one.
  [[nodiscard]] bool erase(Addr start);
  /// Puts `replacement` in the place of the slot that starts at `start`; there is one. The bounds
  /// may move as far as the neighbours allow.
  [[nodiscard]] bool update(Addr start, const TreeSlot& replacement);
  /// Removes every slot. Takes no node, never fails.
  void clear();

  // Reads, of the edit's own state.

  TreeView view() const { return TreeView(root_); }
  TreeSlot find(Addr a) const { return view().find(a); }
  TreeSlot covering(Addr a) const { return view().covering(a); }
  TreeSlot find_last_below(Addr a) const { return view().find_last_below(a); }
  TreeSlot first_in(Addr start, Addr end) const { return view().first_in(start, end); }
  bool find_gap_top_down(std::uint64_t length, Addr low, Addr high, Addr* out) const {
    return view().find_gap_top_down(length, low, high, out);
  }
  bool check(const char** why) const { return view().check(why); }

  /// Publishes the edit: the one store of the root; then retires the nodes it replaced. The edit
  /// takes no further change.
  void commit();

 private:
  struct Entry;
  struct Path;

  bool fresh(const TreeNode* node) const { return node->stamp == stamp_; }
  bool locate(Addr start, Path& path) const;
  unsigned stale_nodes(const Path& path) const;
  bool prepare(unsigned nodes);
  TreeNode* take(std::uint32_t level);
  TreeNode* copy(TreeNode* node);
  void make_fresh(Path& path);
  void drop(TreeNode* node);
  void drop_all(TreeNode* node);
  void discard_fresh(TreeNode* node);
  void discard_spares();
  void add_entry(Path& path, unsigned at, Entry entry);
  void refill(Path& path);
  static void summarise(Path& path, unsigned level);

  Tree& tree_;
  const NodePool pool_;
  TreeNode* const base_;          // the published root
  TreeNode* root_;                // the edit's own
  TreeNode* replaced_ = nullptr;  // published nodes that the edit's tree no longer has
  TreeNode* spares_ = nullptr;    // nodes at hand: not yet used, or made and dropped in this edit
  unsigned spare_count_ = 0;
  std::uint64_t stamp_;
  bool committed_ = false;
};

}  // namespace faultpath::vma
