#include "vma/tree.h"

#include "base/assert.h"

namespace faultpath::vma {

namespace {

// Two nodes of which one is short by one entry: either they fit in one node, or sharing leaves
// neither short. Splitting leaves neither part short, however uneven.
static_assert(kTreeFanout + 1 >= 2 * kTreeMinFill);
static_assert(kTreeMinFill >= 2);

TreeNode* child_of(const TreeNode* node, unsigned i) {
  void* const item = node->item[i];
  return static_cast<TreeNode*>(item);
}

TreeSlot slot_of(const TreeNode* leaf, unsigned i) {
  void* const item = leaf->item[i];
  return TreeSlot{leaf->low[i], leaf->high[i], static_cast<Vma*>(item)};
}

/// The first entry that ends above `a`; the node's count if none does.
unsigned first_above(const TreeNode* node, Addr a) {
  const unsigned count = node->count;
  unsigned i = 0;
  while (i < count && node->high[i] <= a) ++i;
  return i;
}

}  // namespace

// --- reading ------------------------------------------------------------------------------------

TreeSlot TreeView::find(Addr a) const {
  const TreeNode* node = root_;
  if (node == nullptr) return {};
  for (;;) {
    const unsigned i = first_above(node, a);
    // Only at the root: below it the parent's bound promises an entry.
    if (i == node->count) return {};
    if (node->level == 0) return slot_of(node, i);
    node = child_of(node, i);
  }
}

TreeSlot TreeView::find_last_below(Addr a) const {
  const TreeNode* node = root_;
  if (node == nullptr) return {};
  for (;;) {
    unsigned i = node->count;
    while (i > 0 && node->low[i - 1] >= a) --i;
    if (i == 0) return {};  // only at the root, as above
    if (node->level == 0) return slot_of(node, i - 1);
    node = child_of(node, i - 1);
  }
}

namespace {

/// A search for a gap, from high addresses to low. `ceiling` is where the free space that is being
/// looked at ends: the limit of the search, or the start of the lowest slot passed.
struct GapSearch {
  std::uint64_t length;
  Addr floor;
  Addr ceiling;
  Addr found;

  bool fits_above(Addr bottom) {
    if (bottom < floor) bottom = floor;
    if (ceiling < bottom || ceiling - bottom < length) return false;
    found = ceiling - length;
    return true;
  }

  // A subtree that lies wholly within the limits and has a large enough gap yields one. So only
  // subtrees that a limit cuts are entered in vain, two at most on each level.
  bool search(const TreeNode* node) {
    for (unsigned i = node->count; i-- > 0;) {
      const Addr low = node->low[i];
      if (low >= ceiling) continue;  // above the limit of the search
      const Addr high = node->high[i];
      if (fits_above(high)) return true;
      if (high <= floor) return false;  // the rest is below the limit
      const std::uint64_t gap = node->gap[i];
      if (gap >= length && search(child_of(node, i))) return true;
      ceiling = low;
    }
    return false;
  }
};

}  // namespace

bool TreeView::find_gap_top_down(std::uint64_t length, Addr low, Addr high, Addr* out) const {
  FP_ASSERT(length != 0);
  if (low > high) return false;
  GapSearch search{length, low, high, 0};
  if ((root_ == nullptr || !search.search(root_)) && !search.fits_above(low)) return false;
  *out = search.found;
  return true;
}

// --- nodes --------------------------------------------------------------------------------------

struct TreeEdit::Entry {
  Addr low;
  Addr high;
  std::uint64_t gap;
  void* item;

  static Entry get(const TreeNode* node, unsigned i) {
    return Entry{node->low[i], node->high[i], node->gap[i], node->item[i]};
  }
  void put(TreeNode* node, unsigned i) const {
    node->low[i] = low;
    node->high[i] = high;
    node->gap[i] = gap;
    node->item[i] = item;
  }
  static unsigned get_all(const TreeNode* node, Entry* to) {
    const unsigned count = node->count;
    for (unsigned i = 0; i < count; ++i) to[i] = get(node, i);
    return count;
  }
  static void put_all(TreeNode* node, const Entry* from, unsigned count) {
    for (unsigned i = 0; i < count; ++i) from[i].put(node, i);
    node->count = count;
  }
  static void remove(TreeNode* node, unsigned at) {
    const unsigned count = node->count;
    for (unsigned i = at + 1; i < count; ++i) get(node, i).put(node, i - 1);
    node->count = count - 1;
  }
  static void insert(TreeNode* node, unsigned at, const Entry& entry) {
    const unsigned count = node->count;
    for (unsigned i = count; i > at; --i) get(node, i - 1).put(node, i);
    entry.put(node, at);
    node->count = count + 1;
  }
  /// What a parent says of `node`.
  static Entry of(TreeNode* node) {
    const unsigned count = node->count;
    std::uint64_t gap = node->gap[0];
    Addr high = node->high[0];
    for (unsigned i = 1; i < count; ++i) {
      const std::uint64_t between = node->low[i] - high;
      const std::uint64_t inside = node->gap[i];
      if (between > gap) gap = between;
      if (inside > gap) gap = inside;
      high = node->high[i];
    }
    return Entry{node->low[0], high, gap, node};
  }
};

/// The way from the root to a leaf, indexed by level: node[l]'s entry index[l] is node[l - 1]; at
/// level 0 it is the slot.
struct TreeEdit::Path {
  TreeNode* node[kTreeMaxLevels];
  unsigned index[kTreeMaxLevels];
  unsigned top;  // the root's level
};

/// Goes to the first slot that ends above `start`, or to the place past the last one. True if that
/// slot starts at `start`. There is a root.
bool TreeEdit::locate(Addr start, Path& path) const {
  TreeNode* node = root_;
  path.top = node->level;
  for (unsigned level = path.top;; --level) {
    path.node[level] = node;
    unsigned i = first_above(node, start);
    if (level == 0) {
      path.index[0] = i;
      return i < node->count && node->low[i] == start;
    }
    if (i == node->count) --i;
    path.index[level] = i;
    node = child_of(node, i);
  }
}

/// How many nodes of the path are published: they are the lower end of it.
unsigned TreeEdit::stale_nodes(const Path& path) const {
  unsigned count = 0;
  while (count <= path.top && !fresh(path.node[count])) ++count;
  return count;
}

bool TreeEdit::prepare(unsigned nodes) {
  while (spare_count_ < nodes) {
    TreeNode* const node = pool_.allocate(pool_.ctx);
    if (node == nullptr) return false;
    node->edit_link = spares_;
    spares_ = node;
    ++spare_count_;
  }
  return true;
}

TreeNode* TreeEdit::take(std::uint32_t level) {
  TreeNode* const node = spares_;
  FP_ASSERT(node != nullptr);
  spares_ = node->edit_link;
  --spare_count_;
  node->edit_link = nullptr;
  node->stamp = stamp_;
  node->level = level;
  node->count = 0;
  return node;
}

/// Copies a published node; the original is replaced.
TreeNode* TreeEdit::copy(TreeNode* node) {
  TreeNode* const made = take(node->level);
  const unsigned count = node->count;
  for (unsigned i = 0; i < count; ++i) Entry::get(node, i).put(made, i);
  made->count = count;
  drop(node);
  return made;
}

void TreeEdit::make_fresh(Path& path) {
  for (unsigned level = path.top + 1; level-- > 0;) {
    if (fresh(path.node[level])) continue;
    TreeNode* const made = copy(path.node[level]);
    path.node[level] = made;
    if (level == path.top) {
      root_ = made;
    } else {
      path.node[level + 1]->item[path.index[level + 1]] = made;
    }
  }
}

/// The edit's tree no longer has the node.
void TreeEdit::drop(TreeNode* node) {
  TreeNode*& chain = fresh(node) ? spares_ : replaced_;
  if (fresh(node)) ++spare_count_;
  node->edit_link = chain;
  chain = node;
}

void TreeEdit::drop_all(TreeNode* node) {
  if (node->level != 0) {
    const unsigned count = node->count;
    for (unsigned i = 0; i < count; ++i) drop_all(child_of(node, i));
  }
  drop(node);
}

/// The new nodes are the upper end of the tree: nothing published leads to one.
void TreeEdit::discard_fresh(TreeNode* node) {
  if (!fresh(node)) return;
  if (node->level != 0) {
    const unsigned count = node->count;
    for (unsigned i = 0; i < count; ++i) discard_fresh(child_of(node, i));
  }
  pool_.discard(pool_.ctx, node);
}

void TreeEdit::discard_spares() {
  while (spares_ != nullptr) {
    TreeNode* const node = spares_;
    spares_ = node->edit_link;
    pool_.discard(pool_.ctx, node);
  }
  spare_count_ = 0;
}

/// Brings the entries above `level` up to date.
void TreeEdit::summarise(Path& path, unsigned level) {
  for (; level < path.top; ++level) {
    Entry::of(path.node[level]).put(path.node[level + 1], path.index[level + 1]);
  }
}

// --- the edit -----------------------------------------------------------------------------------

TreeEdit::TreeEdit(Tree& tree, const NodePool& pool)
    : tree_(tree), pool_(pool), base_(tree.root_.load(env::acquire)), root_(base_) {
  stamp_ = tree.stamp_ + 1;
  tree.stamp_ = stamp_;
}

TreeEdit::~TreeEdit() {
  if (committed_) return;
  if (root_ != nullptr) discard_fresh(root_);
  discard_spares();
}

void TreeEdit::commit() {
  FP_ASSERT(!committed_);
  // Else another edit was committed meanwhile, which this one would undo.
  FP_ASSERT(tree_.root_.load(env::relaxed) == base_ && tree_.stamp_ == stamp_);
  committed_ = true;
  if (root_ != base_) tree_.root_.store(root_, env::release);
  while (replaced_ != nullptr) {
    TreeNode* const node = replaced_;
    replaced_ = node->edit_link;
    pool_.retire(pool_.ctx, node);
  }
  discard_spares();
}

bool TreeEdit::insert(Addr start, Addr end, Vma* vma) {
  FP_ASSERT(!committed_ && start < end && vma != nullptr);
  FP_ASSERT(!view().first_in(start, end));
  const Entry entry{start, end, 0, vma};
  if (root_ == nullptr) {
    if (!prepare(1)) return false;
    root_ = take(0);
    Entry::insert(root_, 0, entry);
    return true;
  }
  Path path;
  locate(start, path);
  // A full leaf splits; so does each full node above it, and a full root gets a parent.
  unsigned splits = 0;
  while (splits <= path.top && path.node[splits]->count == kTreeFanout) ++splits;
  if (splits > path.top) {
    FP_ASSERT(path.top + 1 < kTreeMaxLevels);
    ++splits;
  }
  if (!prepare(stale_nodes(path) + splits)) return false;
  make_fresh(path);
  add_entry(path, path.index[0], entry);
  return true;
}

/// Adds an entry to the leaf of a fresh path, splitting what is full.
void TreeEdit::add_entry(Path& path, unsigned at, Entry entry) {
  for (unsigned level = 0;; ++level) {
    TreeNode* const node = path.node[level];
    if (node->count < kTreeFanout) {
      Entry::insert(node, at, entry);
      summarise(path, level);
      return;
    }
    Entry all[kTreeFanout + 1];
    for (unsigned i = 0; i <= kTreeFanout; ++i) {
      all[i] = i == at ? entry : Entry::get(node, i < at ? i : i - 1);
    }
    // Mappings are mostly made next to the last one, top down or bottom up. The part that such a
    // run goes on filling is left with few entries, so that the parts behind it are not half empty.
    unsigned left = (kTreeFanout + 1) / 2;
    if (at == 0) left = kTreeMinFill;
    if (at == kTreeFanout) left = kTreeFanout + 1 - kTreeMinFill;
    TreeNode* const right = take(level);
    Entry::put_all(node, all, left);
    Entry::put_all(right, all + left, kTreeFanout + 1 - left);
    entry = Entry::of(right);
    if (level == path.top) {
      root_ = take(level + 1);
      Entry::insert(root_, 0, Entry::of(node));
      Entry::insert(root_, 1, entry);
      return;
    }
    Entry::of(node).put(path.node[level + 1], path.index[level + 1]);
    at = path.index[level + 1] + 1;
  }
}

bool TreeEdit::erase(Addr start) {
  FP_ASSERT(!committed_);
  Path path;
  if (root_ == nullptr || !locate(start, path)) {
    FP_ASSERT(false);
    return false;
  }
  // A node that gets short takes from a sibling or joins it. Joining needs no node; taking, which
  // ends the matter, may need a copy of the sibling.
  const unsigned sibling = path.top > 0 && path.node[0]->count == kTreeMinFill ? 1 : 0;
  if (!prepare(stale_nodes(path) + sibling)) return false;
  make_fresh(path);
  Entry::remove(path.node[0], path.index[0]);
  refill(path);
  return true;
}

/// After the leaf of a fresh path has lost an entry.
void TreeEdit::refill(Path& path) {
  unsigned level = 0;
  for (; level < path.top && path.node[level]->count < kTreeMinFill; ++level) {
    TreeNode* const node = path.node[level];
    TreeNode* const parent = path.node[level + 1];
    const unsigned at = path.index[level + 1];
    TreeNode* const left = at > 0 ? child_of(parent, at - 1) : nullptr;
    TreeNode* const right = at + 1 < parent->count ? child_of(parent, at + 1) : nullptr;
    // The smaller sibling is the one to join, if any.
    const bool go_left = right == nullptr || (left != nullptr && left->count < right->count);
    TreeNode* sibling = go_left ? left : right;
    const unsigned sibling_at = go_left ? at - 1 : at + 1;

    Entry all[2 * kTreeFanout];
    unsigned count = Entry::get_all(go_left ? sibling : node, all);
    count += Entry::get_all(go_left ? node : sibling, all + count);
    if (count <= kTreeFanout) {
      Entry::put_all(node, all, count);
      drop(sibling);
      Entry::of(node).put(parent, at);
      Entry::remove(parent, sibling_at);
      continue;
    }
    if (!fresh(sibling)) sibling = copy(sibling);
    const unsigned first = count / 2;
    Entry::put_all(go_left ? sibling : node, all, first);
    Entry::put_all(go_left ? node : sibling, all + first, count - first);
    Entry::of(sibling).put(parent, sibling_at);
    break;
  }
  summarise(path, level);

  while (root_->level != 0 && root_->count == 1) {
    TreeNode* const only = child_of(root_, 0);
    drop(root_);
    root_ = only;
  }
  if (root_->count == 0) {
    drop(root_);
    root_ = nullptr;
  }
}

bool TreeEdit::update(Addr start, const TreeSlot& replacement) {
  FP_ASSERT(!committed_ && replacement.start < replacement.end && replacement.vma != nullptr);
  Path path;
  if (root_ == nullptr || !locate(start, path)) {
    FP_ASSERT(false);
    return false;
  }
  FP_ASSERT(find_last_below(start).end <= replacement.start);
  FP_ASSERT(!find(path.node[0]->high[path.index[0]]) ||
            find(path.node[0]->high[path.index[0]]).start >= replacement.end);
  if (!prepare(stale_nodes(path))) return false;
  make_fresh(path);
  Entry{replacement.start, replacement.end, 0, replacement.vma}.put(path.node[0], path.index[0]);
  summarise(path, 0);
  return true;
}

void TreeEdit::clear() {
  FP_ASSERT(!committed_);
  if (root_ == nullptr) return;
  drop_all(root_);
  root_ = nullptr;
}

// --- checking -----------------------------------------------------------------------------------

namespace {

struct Checker {
  const char* why = nullptr;
  bool any = false;
  Addr end = 0;  // of the last slot visited

  bool fail(const char* reason) {
    why = reason;
    return false;
  }

  bool visit(const TreeNode* node, unsigned level, bool root, std::uint64_t& gap) {
    const unsigned count = node->count;
    if (node->level != level) return fail("a node's level does not fit its depth");
    if (count > kTreeFanout) return fail("a node has more entries than fit");
    const unsigned least = !root ? kTreeMinFill : level == 0 ? 1 : 2;
    if (count < least) return fail("a node has too few entries");
    gap = 0;
    for (unsigned i = 0; i < count; ++i) {
      const Addr low = node->low[i];
      const Addr high = node->high[i];
      const std::uint64_t inside = node->gap[i];
      void* const item = node->item[i];
      if (item == nullptr) return fail("an entry has no item");
      if (low >= high) return fail("an entry's bounds are in the wrong order");
      if (i > 0) {
        const Addr before = node->high[i - 1];
        if (low < before) return fail("entries overlap or are out of order");
        if (low - before > gap) gap = low - before;
      }
      if (inside > gap) gap = inside;
      if (level == 0) {
        if (inside != 0) return fail("a slot has a gap");
        if (any && low < end) return fail("slots overlap or are out of order");
        any = true;
        end = high;
        continue;
      }
      const TreeNode* const child = static_cast<const TreeNode*>(item);
      std::uint64_t actual = 0;
      if (!visit(child, level - 1, false, actual)) return false;
      if (actual != inside) return fail("a child's largest gap is not what its parent says");
      if (child->low[0] != low || child->high[child->count - 1] != high) {
        return fail("a child's bounds are not what its parent says");
      }
    }
    return true;
  }
};

}  // namespace

bool TreeView::check(const char** why) const {
  if (root_ == nullptr) return true;
  Checker checker;
  std::uint64_t gap = 0;
  bool good = false;
  if (root_->level >= kTreeMaxLevels) {
    checker.fail("the tree is too deep");
  } else {
    good = checker.visit(root_, root_->level, true, gap);
  }
  if (!good && why != nullptr) *why = checker.why;
  return good;
}

}  // namespace faultpath::vma
