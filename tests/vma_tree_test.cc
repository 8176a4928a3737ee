// The VMA tree: small cases drawn as pictures, a model test, failing allocation, and a reader that
// runs against a writer.
#include "vma/tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <ostream>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace faultpath::vma {
namespace {

// A Vma is nothing but its address here.
Vma* vma_of(std::uint64_t id) { return reinterpret_cast<Vma*>(static_cast<std::uintptr_t>(id)); }

/// Counts and tracks nodes; keeps retired ones until told, and can run out.
class TestPool {
 public:
  TestPool() = default;
  TestPool(const TestPool&) = delete;
  TestPool& operator=(const TestPool&) = delete;
  ~TestPool() {
    grace_period();
    EXPECT_TRUE(live_.empty()) << live_.size() << " nodes leaked";
    for (TreeNode* node : live_) delete node;
  }

  NodePool handle() { return NodePool{allocate, discard, retire, this}; }

  /// The n-th allocation from now fails, and all after it; 0: none does.
  void fail_at(std::uint64_t n) {
    calls_ = 0;
    fail_at_ = n;
  }
  std::uint64_t calls() const { return calls_; }
  /// Nodes that are neither free nor retired.
  std::size_t live() const { return live_.size(); }
  std::size_t retired() const { return retired_.size(); }

  /// Frees what is retired: no reader is left.
  void grace_period() {
    for (TreeNode* node : retired_) delete node;
    retired_.clear();
  }

 private:
  static TestPool* self(void* ctx) { return static_cast<TestPool*>(ctx); }
  static TreeNode* allocate(void* ctx) {
    TestPool* const pool = self(ctx);
    ++pool->calls_;
    if (pool->fail_at_ != 0 && pool->calls_ >= pool->fail_at_) return nullptr;
    auto* node = new TreeNode;
    std::memset(node, 0xa5, sizeof *node);  // the tree may not count on any content
    pool->live_.insert(node);
    return node;
  }
  static void discard(void* ctx, TreeNode* node) {
    EXPECT_EQ(self(ctx)->live_.erase(node), 1u) << "discarded, but not live";
    node->pool_link = ctx;
    delete node;
  }
  static void retire(void* ctx, TreeNode* node) {
    EXPECT_EQ(self(ctx)->live_.erase(node), 1u) << "retired, but not live";
    node->pool_link = ctx;  // the pool's word, at once
    self(ctx)->retired_.push_back(node);
  }

  std::uint64_t calls_ = 0;
  std::uint64_t fail_at_ = 0;
  std::set<TreeNode*> live_;
  std::vector<TreeNode*> retired_;
};

template <class T>
::testing::AssertionResult sound(const T& tree) {
  const char* why = "?";
  if (tree.check(&why)) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << why;
}

void clear(Tree& tree, TestPool& pool) {
  TreeEdit edit(tree, pool.handle());
  edit.clear();
  edit.commit();
  EXPECT_TRUE(tree.view().empty());
}

// --- pictures ------------------------------------------------------------------------------------
//
// One character is a page, '.' is free, and a run of one letter is a slot of that Vma. A '|' stands
// between two slots of the same letter and is no page.

struct Picture {
  std::string text;
  friend bool operator==(const Picture&, const Picture&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Picture& p) {
    return out << '"' << p.text << '"';
  }
};

void draw(TreeEdit& edit, const std::string& text) {
  Addr page = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '|') {
      ++i;
      continue;
    }
    const char c = text[i];
    const Addr start = page;
    for (; i < text.size() && text[i] == c; ++i) ++page;
    if (c != '.') {
      ASSERT_TRUE(edit.insert(start * kPageSize, page * kPageSize, vma_of(std::uint64_t(c))));
    }
  }
}

Picture picture(const TreeView& view, Addr pages) {
  Picture out;
  Addr page = 0;
  Vma* before = nullptr;
  view.for_each(0, ~Addr{0}, [&](const TreeSlot& slot) {
    if (slot.start / kPageSize == page && before == slot.vma) out.text += '|';
    out.text.append(slot.start / kPageSize - page, '.');
    page = slot.end / kPageSize;
    out.text.append(page - slot.start / kPageSize,
                    static_cast<char>(reinterpret_cast<std::uintptr_t>(slot.vma)));
    before = slot.vma;
    return true;
  });
  if (page < pages) out.text.append(pages - page, '.');
  return out;
}

class VmaTreePicture : public ::testing::Test {
 protected:
  void have(const std::string& text) {
    width_ = text.size() - static_cast<std::size_t>(std::count(text.begin(), text.end(), '|'));
    TreeEdit edit(tree_, pool_.handle());
    draw(edit, text);
    edit.commit();
    EXPECT_EQ(now(), Picture{text});
  }
  void TearDown() override {
    EXPECT_TRUE(sound(tree_));
    clear(tree_, pool_);
  }
  Picture now() const { return picture(tree_.view(), width_); }
  static Addr at(Addr page) { return page * kPageSize; }
  char who(const TreeSlot& slot) const {
    return slot ? static_cast<char>(reinterpret_cast<std::uintptr_t>(slot.vma)) : '-';
  }

  TestPool pool_;
  Tree tree_;
  std::size_t width_ = 0;
};

TEST_F(VmaTreePicture, EmptyTree) {
  EXPECT_TRUE(tree_.view().empty());
  EXPECT_TRUE(sound(tree_));
  EXPECT_FALSE(tree_.find(0));
  EXPECT_FALSE(tree_.covering(0));
  EXPECT_FALSE(tree_.find_last_below(~Addr{0}));
  EXPECT_FALSE(tree_.first_in(0, kUserEnd));
  EXPECT_TRUE(tree_.view().for_each(0, kUserEnd, [](const TreeSlot&) { return false; }));
  Addr out = 0;
  EXPECT_TRUE(tree_.find_gap_top_down(at(3), at(2), at(9), &out));
  EXPECT_EQ(out, at(6));
  EXPECT_TRUE(tree_.find_gap_top_down(at(7), at(2), at(9), &out));
  EXPECT_EQ(out, at(2));
  EXPECT_FALSE(tree_.find_gap_top_down(at(8), at(2), at(9), &out));
  EXPECT_FALSE(tree_.find_gap_top_down(at(1), at(9), at(2), &out));
  {
    TreeEdit edit(tree_, pool_.handle());
    edit.clear();
    edit.commit();
  }
  EXPECT_EQ(pool_.calls(), 0u);
}

TEST_F(VmaTreePicture, Find) {
  //    0123456789
  have("..aa.bbcc.");
  const std::string first = "aaaabbbcc-";
  const std::string cover = "--aa-bbcc-";
  for (Addr page = 0; page < 10; ++page) {
    EXPECT_EQ(who(tree_.find(at(page))), first[page]) << page;
    EXPECT_EQ(who(tree_.covering(at(page))), cover[page]) << page;
    EXPECT_EQ(who(tree_.find(at(page) + kPageSize - 1)), first[page]) << page;
  }
  const std::string below = "---aaabbccc";  // the last slot that starts below the page
  for (Addr page = 0; page <= 10; ++page) {
    EXPECT_EQ(who(tree_.find_last_below(at(page))), below[page]) << page;
  }
  const TreeSlot b = tree_.find(at(5));
  EXPECT_EQ(b.start, at(5));
  EXPECT_EQ(b.end, at(7));
  EXPECT_EQ(who(tree_.view().next(b)), 'c');
  EXPECT_EQ(who(tree_.view().prev(b)), 'a');
  EXPECT_EQ(who(tree_.first_in(at(0), at(2))), '-');
  EXPECT_EQ(who(tree_.first_in(at(0), at(3))), 'a');
  EXPECT_EQ(who(tree_.first_in(at(4), at(5))), '-');
  EXPECT_EQ(who(tree_.first_in(at(9), at(10))), '-');
}

TEST_F(VmaTreePicture, ForEachVisitsWhatOverlaps) {
  have("..aa.bbcc.");
  auto visited = [&](Addr from, Addr to) {
    std::string text;
    tree_.view().for_each(at(from), at(to), [&](const TreeSlot& slot) {
      text += who(slot);
      return true;
    });
    return text;
  };
  EXPECT_EQ(visited(0, 10), "abc");
  EXPECT_EQ(visited(0, 2), "");
  EXPECT_EQ(visited(3, 5), "a");
  EXPECT_EQ(visited(3, 6), "ab");
  EXPECT_EQ(visited(6, 8), "bc");
  EXPECT_EQ(visited(9, 10), "");
  int calls = 0;
  EXPECT_FALSE(tree_.view().for_each(0, at(10), [&](const TreeSlot&) { return ++calls < 2; }));
  EXPECT_EQ(calls, 2);
}

TEST_F(VmaTreePicture, AdjacentSlotsOfOneVmaStaySeparate) {
  have("aa|aa|a.");
  EXPECT_EQ(tree_.find(at(2)).start, at(2));
  EXPECT_EQ(tree_.find(at(4)).start, at(4));
}

TEST_F(VmaTreePicture, SplitAndReplaceIsOneStep) {
  have("..aaaaaa..");
  const TreeView before = tree_.view();
  TreeEdit edit(tree_, pool_.handle());
  // What mprotect does to the middle of a mapping.
  ASSERT_TRUE(edit.update(at(2), {at(2), at(4), vma_of('a')}));
  EXPECT_EQ(picture(edit.view(), 10), Picture{"..aa......"});
  ASSERT_TRUE(edit.insert(at(4), at(6), vma_of('w')));
  ASSERT_TRUE(edit.insert(at(6), at(8), vma_of('b')));
  EXPECT_EQ(picture(edit.view(), 10), Picture{"..aawwbb.."});
  EXPECT_EQ(now(), Picture{"..aaaaaa.."}) << "seen before the commit";
  edit.commit();
  EXPECT_EQ(now(), Picture{"..aawwbb.."});
  // A reader that is still in its section goes on seeing the old state.
  EXPECT_EQ(picture(before, 10), Picture{"..aaaaaa.."});
  EXPECT_EQ(pool_.retired(), 1u);
}

TEST_F(VmaTreePicture, UpdateMovesBoundsUpToTheNeighbours) {
  have("aa.bb..c");
  {
    TreeEdit edit(tree_, pool_.handle());
    ASSERT_TRUE(edit.update(at(3), {at(2), at(7), vma_of('b')}));
    edit.commit();
  }
  EXPECT_EQ(now(), Picture{"aabbbbbc"});
  {
    TreeEdit edit(tree_, pool_.handle());
    ASSERT_TRUE(edit.update(at(2), {at(6), at(7), vma_of('x')}));
    ASSERT_TRUE(edit.update(at(0), {at(1), at(6), vma_of('a')}));
    edit.commit();
  }
  EXPECT_EQ(now(), Picture{".aaaaaxc"});
}

TEST_F(VmaTreePicture, DroppedEditChangesNothing) {
  have("aa.bb.cc");
  {
    TreeEdit edit(tree_, pool_.handle());
    ASSERT_TRUE(edit.erase(at(3)));
    ASSERT_TRUE(edit.insert(at(2), at(6), vma_of('m')));
    EXPECT_EQ(picture(edit.view(), 8), Picture{"aammmmcc"});
  }
  EXPECT_EQ(now(), Picture{"aa.bb.cc"});
  EXPECT_EQ(pool_.live(), 1u);
  EXPECT_EQ(pool_.retired(), 0u);
  {
    TreeEdit edit(tree_, pool_.handle());
    edit.clear();
    EXPECT_TRUE(edit.view().empty());
  }
  EXPECT_EQ(now(), Picture{"aa.bb.cc"});
}

TEST_F(VmaTreePicture, NodeMadeAndDroppedInOneEditIsDiscarded) {
  TreeEdit edit(tree_, pool_.handle());
  ASSERT_TRUE(edit.insert(at(1), at(2), vma_of('a')));
  ASSERT_TRUE(edit.erase(at(1)));
  EXPECT_TRUE(edit.view().empty());
  // Until then it serves the edit again.
  ASSERT_TRUE(edit.insert(at(1), at(2), vma_of('a')));
  ASSERT_TRUE(edit.erase(at(1)));
  EXPECT_EQ(pool_.calls(), 1u);
  EXPECT_EQ(pool_.live(), 1u);
  edit.commit();
  EXPECT_EQ(pool_.live(), 0u);
  EXPECT_EQ(pool_.retired(), 0u);
}

TEST_F(VmaTreePicture, GapTopDown) {
  //                 0         1
  //                 0123456789012345
  have("a..b...cc.....dd");
  auto gap = [&](Addr length, Addr low, Addr high) -> int {
    Addr out = 0;
    if (!tree_.find_gap_top_down(at(length), at(low), at(high), &out)) return -1;
    return static_cast<int>(out / kPageSize);
  };
  EXPECT_EQ(gap(1, 0, 20), 19);  // above the last slot
  EXPECT_EQ(gap(4, 0, 20), 16);
  EXPECT_EQ(gap(5, 0, 20), 9);
  EXPECT_EQ(gap(6, 0, 20), -1);
  EXPECT_EQ(gap(5, 0, 14), 9);
  EXPECT_EQ(gap(5, 0, 13), -1);  // the limit cuts the gap
  EXPECT_EQ(gap(4, 0, 13), 9);
  EXPECT_EQ(gap(4, 10, 14), 10);
  EXPECT_EQ(gap(4, 11, 14), -1);
  EXPECT_EQ(gap(3, 0, 11), 4);
  EXPECT_EQ(gap(3, 5, 11), -1);
  EXPECT_EQ(gap(2, 0, 6), 4);
  EXPECT_EQ(gap(2, 0, 5), 1);
  EXPECT_EQ(gap(2, 2, 5), -1);
  EXPECT_EQ(gap(1, 7, 9), -1);  // wholly inside a slot
  EXPECT_EQ(gap(1, 16, 17), 16);
  EXPECT_EQ(gap(1, 16, 16), -1);
}

TEST_F(VmaTreePicture, GapBelowTheFirstSlot) {
  have("...aa");
  Addr out = 0;
  EXPECT_TRUE(tree_.find_gap_top_down(at(2), 0, at(5), &out));
  EXPECT_EQ(out, at(1));
  EXPECT_TRUE(tree_.find_gap_top_down(at(3), 0, at(5), &out));
  EXPECT_EQ(out, 0u);
  EXPECT_FALSE(tree_.find_gap_top_down(at(3), at(1), at(5), &out));
}

TEST_F(VmaTreePicture, GapAtTheEndsOfTheNumbers) {
  have("a");
  Addr out = 0;
  EXPECT_TRUE(tree_.find_gap_top_down(kPageSize, 0, ~Addr{0}, &out));
  EXPECT_EQ(out, ~Addr{0} - kPageSize);
  EXPECT_TRUE(tree_.find_gap_top_down(~Addr{0} - kPageSize, 0, ~Addr{0}, &out));
  EXPECT_EQ(out, kPageSize);
  EXPECT_FALSE(tree_.find_gap_top_down(~Addr{0}, 0, ~Addr{0}, &out));
}

// --- growing and shrinking -----------------------------------------------------------------------

class VmaTreeOrder : public ::testing::TestWithParam<int> {
 protected:
  std::vector<Addr> order(std::size_t n, int which) {
    std::vector<Addr> pages(n);
    for (std::size_t i = 0; i < n; ++i) pages[i] = 2 * i;
    if (which == 1) std::reverse(pages.begin(), pages.end());
    if (which == 2) std::shuffle(pages.begin(), pages.end(), std::mt19937_64(42));
    return pages;
  }
};

TEST_P(VmaTreeOrder, FillThenEmptyInEveryOrder) {
  constexpr std::size_t kSlots = 2000;
  for (int erase_order = 0; erase_order < 3; ++erase_order) {
    TestPool pool;
    Tree tree;
    for (Addr page : order(kSlots, GetParam())) {
      TreeEdit edit(tree, pool.handle());
      ASSERT_TRUE(edit.insert(page * kPageSize, (page + 1) * kPageSize, vma_of(page + 1)));
      edit.commit();
      pool.grace_period();
      ASSERT_TRUE(sound(tree));
    }
    // A run up or down leaves nodes two thirds full at least.
    if (GetParam() != 2) {
      EXPECT_LE(pool.live(), kSlots / 10 + kSlots / 100 + 8);
    }
    for (Addr page : order(kSlots, erase_order)) {
      TreeEdit edit(tree, pool.handle());
      ASSERT_EQ(edit.covering(page * kPageSize).vma, vma_of(page + 1));
      ASSERT_TRUE(edit.erase(page * kPageSize));
      ASSERT_FALSE(edit.covering(page * kPageSize));
      edit.commit();
      pool.grace_period();
      ASSERT_TRUE(sound(tree));
    }
    EXPECT_TRUE(tree.view().empty());
    EXPECT_EQ(pool.live(), 0u);
  }
}

TEST_P(VmaTreeOrder, OneEditCopiesEachNodeOnce) {
  constexpr std::size_t kSlots = 2000;
  TestPool pool;
  Tree tree;
  {
    TreeEdit edit(tree, pool.handle());
    for (Addr page : order(kSlots, GetParam())) {
      ASSERT_TRUE(edit.insert(page * kPageSize, (page + 1) * kPageSize, vma_of(page + 1)));
    }
    EXPECT_TRUE(tree.view().empty());
    edit.commit();
  }
  ASSERT_TRUE(sound(tree));
  EXPECT_EQ(pool.retired(), 0u);
  EXPECT_EQ(pool.calls(), pool.live()) << "a node was made in vain";

  const std::size_t nodes = pool.live();
  pool.fail_at(0);
  {
    TreeEdit edit(tree, pool.handle());
    for (Addr page : order(kSlots, GetParam())) {
      ASSERT_TRUE(edit.update(page * kPageSize,
                              {page * kPageSize, (page + 2) * kPageSize, vma_of(page + 2)}));
    }
    ASSERT_TRUE(sound(edit));
    EXPECT_EQ(pool.calls(), nodes);
    edit.commit();
  }
  EXPECT_EQ(pool.retired(), nodes);
  EXPECT_EQ(pool.live(), nodes);
  {
    TreeEdit edit(tree, pool.handle());
    for (Addr page : order(kSlots, GetParam())) ASSERT_TRUE(edit.erase(page * kPageSize));
    edit.commit();
  }
  EXPECT_TRUE(tree.view().empty());
  EXPECT_EQ(pool.live(), 0u);
  EXPECT_EQ(pool.retired(), 2 * nodes);
}

std::string order_name(const ::testing::TestParamInfo<int>& info) {
  const char* const names[] = {"Up", "Down", "Shuffled"};
  return names[info.param];
}
INSTANTIATE_TEST_SUITE_P(Orders, VmaTreeOrder, ::testing::Values(0, 1, 2), order_name);

TEST(VmaTree, CheckFindsDamage) {
  TestPool pool;
  Tree tree;
  TreeNode* made[3] = {};
  {
    struct Spy {
      NodePool inner;
      TreeNode** made;
      unsigned n;
    } spy{pool.handle(), made, 0};
    const NodePool spying{[](void* ctx) {
                            auto* s = static_cast<Spy*>(ctx);
                            return s->made[s->n++] = s->inner.allocate(s->inner.ctx);
                          },
                          nullptr, nullptr, &spy};
    TreeEdit edit(tree, spying);
    for (Addr i = 0; i < 17; ++i) {
      ASSERT_TRUE(edit.insert(i * 3 * kPageSize, (i * 3 + 2) * kPageSize, vma_of(i + 1)));
    }
    edit.commit();
  }
  ASSERT_TRUE(sound(tree));
  TreeNode* root = nullptr;
  TreeNode* leaf = nullptr;
  for (TreeNode* node : made) (node->level != 0 ? root : leaf) = node;
  ASSERT_NE(root, nullptr);
  ASSERT_NE(leaf, nullptr);

  auto broken = [&] {
    const char* why = "";
    return tree.check(&why) ? std::string() : std::string(why);
  };
  auto damage = [&](auto& field, auto value, const char* expected) {
    const auto good = field;
    field = value;
    EXPECT_EQ(broken(), expected);
    field = good;
    EXPECT_EQ(broken(), "");
  };
  damage(root->gap[0], 0u, "a child's largest gap is not what its parent says");
  damage(root->low[1], root->low[1] - 1, "a child's bounds are not what its parent says");
  damage(root->count, 1u, "a node has too few entries");
  damage(leaf->count, 5u, "a node has too few entries");
  damage(leaf->level, 1u, "a node's level does not fit its depth");
  damage(leaf->high[0], leaf->low[1] + 1, "entries overlap or are out of order");
  damage(leaf->high[0], leaf->low[0], "an entry's bounds are in the wrong order");
  damage(leaf->item[2], nullptr, "an entry has no item");
  clear(tree, pool);
}

// --- against a model -----------------------------------------------------------------------------

struct Model {
  std::map<Addr, TreeSlot> slots;  // by start

  TreeSlot find(Addr a) const {
    auto it = slots.upper_bound(a);
    if (it != slots.begin() && std::prev(it)->second.end > a) --it;
    return it == slots.end() ? TreeSlot{} : it->second;
  }
  TreeSlot find_last_below(Addr a) const {
    auto it = slots.lower_bound(a);
    return it == slots.begin() ? TreeSlot{} : std::prev(it)->second;
  }
  /// By trying the only places where the highest can be: below a slot, and below the limit.
  bool find_gap_top_down(std::uint64_t length, Addr low, Addr high, Addr* out) const {
    auto try_below = [&](Addr end) {
      if (end > high || end < length || end - length < low) return false;
      const TreeSlot slot = find(end - length);
      if (slot && slot.start < end) return false;
      *out = end - length;
      return true;
    };
    if (try_below(high)) return true;
    for (auto it = slots.rbegin(); it != slots.rend(); ++it) {
      if (try_below(it->first)) return true;
    }
    return false;
  }
};

bool same(const TreeSlot& a, const TreeSlot& b) {
  return a.start == b.start && a.end == b.end && a.vma == b.vma;
}

void expect_same(const TreeView& view, const Model& model) {
  ASSERT_TRUE(sound(view));
  auto it = model.slots.begin();
  const bool all = view.for_each(0, ~Addr{0}, [&](const TreeSlot& slot) {
    return it != model.slots.end() && same(slot, (it++)->second);
  });
  ASSERT_TRUE(all && it == model.slots.end());
}

/// A tree, its model, and the changes a kernel makes, each on both.
struct Pair {
  TreeEdit& edit;
  Model& model;
  std::uint64_t& next_id;

  bool unmap(Addr start, Addr end) {
    for (;;) {
      const TreeSlot slot = edit.first_in(start, end);
      if (!slot) return true;
      if (slot.start < start && slot.end > end) {  // a hole: two slots are left
        if (!edit.update(slot.start, {slot.start, start, slot.vma})) return false;
        model.slots[slot.start].end = start;
        if (!edit.insert(end, slot.end, vma_of(next_id))) return false;
        model.slots[end] = {end, slot.end, vma_of(next_id++)};
      } else if (slot.start < start) {
        if (!edit.update(slot.start, {slot.start, start, slot.vma})) return false;
        model.slots[slot.start].end = start;
      } else if (slot.end > end) {
        if (!edit.update(slot.start, {end, slot.end, slot.vma})) return false;
        model.slots.erase(slot.start);
        model.slots[end] = {end, slot.end, slot.vma};
      } else {
        if (!edit.erase(slot.start)) return false;
        model.slots.erase(slot.start);
      }
    }
  }
  bool map_fixed(Addr start, Addr end) {
    if (!unmap(start, end)) return false;
    if (!edit.insert(start, end, vma_of(next_id))) return false;
    model.slots[start] = {start, end, vma_of(next_id++)};
    return true;
  }
};

class VmaTreeModel : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(VmaTreeModel, ManyStepEditsSomeOfThemDropped) {
  std::mt19937_64 rng(GetParam());
  auto below = [&](std::uint64_t n) { return rng() % n; };
  TestPool pool;
  Tree tree;
  Model model;
  std::uint64_t next_id = 1;
  constexpr Addr kPages = 6000;
  unsigned failures = 0;
  std::size_t most = 0;
  for (int round = 0; round < 6000; ++round) {
    Model edited = model;
    {
      TreeEdit edit(tree, pool.handle());
      Pair both{edit, edited, next_id};
      bool good = true;
      // Now and then nodes run out in the middle; phases of growth and of shrinking alternate.
      pool.fail_at(below(8) == 0 ? 1 + below(12) : 0);
      const bool shrink = (round / 1000) % 2 == 1;
      const std::uint64_t steps = 1 + below(6);
      for (std::uint64_t step = 0; step < steps && good; ++step) {
        const Addr start = below(kPages);
        const Addr length = 1 + below(below(40) == 0 ? 400 : shrink ? 60 : 3);
        const Addr end = std::min(start + length, kPages);
        const Addr s = start * kPageSize;
        const Addr e = end * kPageSize;
        good = below(3) == 0 || shrink ? both.unmap(s, e) : both.map_fixed(s, e);
      }
      if (!good) {
        ++failures;
        ASSERT_TRUE(sound(edit)) << "after a change that found no node";
      } else {
        ASSERT_NO_FATAL_FAILURE(expect_same(edit.view(), edited));
      }
      pool.fail_at(0);
      if (good && below(5) != 0) {
        edit.commit();
        model = edited;
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(tree.view(), model));
    if (below(4) == 0) pool.grace_period();
    most = std::max(most, model.slots.size());

    for (int i = 0; i < 8; ++i) {
      const Addr a = below(kPages + 10) * kPageSize + below(2) * (kPageSize / 2);
      ASSERT_TRUE(same(tree.find(a), model.find(a)));
      ASSERT_TRUE(same(tree.find_last_below(a), model.find_last_below(a)));
      const Addr low = below(kPages) * kPageSize;
      const Addr high = low + below(kPages) * kPageSize;
      const std::uint64_t length = (1 + below(i < 4 ? 12 : 200)) * kPageSize;
      Addr got = 0;
      Addr want = 0;
      ASSERT_EQ(tree.find_gap_top_down(length, low, high, &got),
                model.find_gap_top_down(length, low, high, &want));
      ASSERT_EQ(got, want) << length << " in " << low << ".." << high;
    }
  }
  EXPECT_GT(failures, 20u);
  EXPECT_GT(most, 600u);
  clear(tree, pool);
}

INSTANTIATE_TEST_SUITE_P(Seeds, VmaTreeModel, ::testing::Values(1, 2, 3, 4));

// The gap search against every page, on small crowded trees of two and three levels.
TEST(VmaTree, GapAgainstBruteForce) {
  std::mt19937_64 rng(7);
  for (int round = 0; round < 30; ++round) {
    TestPool pool;
    Tree tree;
    const Addr pages = 40 + rng() % 800;
    const std::uint64_t density = 1 + rng() % 6;
    std::vector<bool> taken(pages);
    {
      TreeEdit edit(tree, pool.handle());
      for (Addr page = 0; page < pages;) {
        const Addr end = std::min(pages, page + 1 + rng() % 3);
        if (rng() % 7 < density) {
          ASSERT_TRUE(edit.insert(page * kPageSize, end * kPageSize, vma_of(page + 1)));
          for (Addr p = page; p < end; ++p) taken[p] = true;
        }
        page = end;
      }
      edit.commit();
    }
    for (int i = 0; i < 400; ++i) {
      const Addr length = 1 + rng() % 14;
      const Addr low = rng() % pages;
      const Addr high = low + rng() % (pages - low + 1);
      bool want = false;
      Addr at = 0;
      for (Addr s = high; s-- > low && !want;) {
        if (s + length > high) continue;
        want = std::none_of(taken.begin() + static_cast<std::ptrdiff_t>(s),
                            taken.begin() + static_cast<std::ptrdiff_t>(s + length),
                            [](bool t) { return t; });
        at = s;
      }
      Addr got = 0;
      ASSERT_EQ(tree.find_gap_top_down(length * kPageSize, low * kPageSize, high * kPageSize, &got),
                want);
      if (want) {
        ASSERT_EQ(got, at * kPageSize);
      }
    }
    clear(tree, pool);
  }
}

// --- allocation that fails -----------------------------------------------------------------------

class VmaTreeNoMemory : public ::testing::TestWithParam<std::uint64_t> {};

// Each allocation of a large transaction fails in turn: the published tree and the pool are as
// before, and the state of the edit is that of the last change that succeeded.
TEST_P(VmaTreeNoMemory, EveryPointOfATransaction) {
  std::mt19937_64 rng(GetParam());
  TestPool pool;
  Tree tree;
  Model model;
  std::uint64_t next_id = 1;
  constexpr Addr kPages = 4000;
  for (int i = 0; i < 2500; ++i) {
    TreeEdit edit(tree, pool.handle());
    Pair both{edit, model, next_id};
    const Addr start = rng() % kPages;
    ASSERT_TRUE(both.map_fixed(start * kPageSize, (start + 1 + rng() % 3) * kPageSize));
    edit.commit();
  }
  pool.grace_period();
  const std::size_t nodes = pool.live();
  const std::uint64_t seed = rng();

  std::uint64_t n = 1;
  for (bool done = false; !done; ++n) {
    Model edited = model;
    {
      TreeEdit edit(tree, pool.handle());
      Pair both{edit, edited, next_id};
      std::mt19937_64 same_each_time(seed);
      pool.fail_at(n);
      done = true;
      for (int step = 0; step < 40 && done; ++step) {
        const Addr start = same_each_time() % kPages;
        const Addr end = start + 1 + same_each_time() % (step % 2 == 0 ? 2 : 90);
        done = step % 2 == 0 ? both.map_fixed(start * kPageSize, end * kPageSize)
                             : both.unmap(start * kPageSize, end * kPageSize);
      }
      pool.fail_at(0);
      ASSERT_NO_FATAL_FAILURE(expect_same(edit.view(), edited));
      if (!done && n % 2 == 0) {
        // Memory is back: the edit is good for more.
        ASSERT_TRUE(both.map_fixed(0, kPages * kPageSize));
        ASSERT_NO_FATAL_FAILURE(expect_same(edit.view(), edited));
      }
      if (done) {
        edit.commit();
        model = edited;
      }
    }
    ASSERT_NO_FATAL_FAILURE(expect_same(tree.view(), model));
    if (!done) {
      ASSERT_EQ(pool.live(), nodes);
      ASSERT_EQ(pool.retired(), 0u);
    }
  }
  EXPECT_GT(n, 30u);
  clear(tree, pool);
}

INSTANTIATE_TEST_SUITE_P(Seeds, VmaTreeNoMemory, ::testing::Values(11, 12, 13, 14, 15, 16));

// --- a reader beside a writer --------------------------------------------------------------------

// The writer maps over the whole range again and again, with pieces of varying number and size, and
// holes only in the upper half. All pieces of one state carry its number.
TEST(VmaTree, ReaderAlwaysFindsWhatIsAlwaysMapped) {
  constexpr Addr kHalf = 300;  // pages [0, kHalf) are always mapped
  constexpr std::uint64_t kStates = 400;
  TestPool pool;  // frees nothing before the reader has ended
  Tree tree;
  auto publish = [&](std::uint64_t state, std::mt19937_64& rng) {
    TreeEdit edit(tree, pool.handle());
    while (const TreeSlot slot = edit.first_in(0, 2 * kHalf * kPageSize)) {
      if (!edit.erase(slot.start)) return false;
    }
    for (Addr page = 0; page < 2 * kHalf;) {
      const Addr limit = page < kHalf ? kHalf : 2 * kHalf;
      const Addr end = std::min(limit, page + 1 + rng() % 8);
      if (page < kHalf || rng() % 2 == 0) {
        if (!edit.insert(page * kPageSize, end * kPageSize, vma_of(state))) return false;
      }
      page = end;
    }
    edit.commit();
    return true;
  };
  std::mt19937_64 writer_rng(1);
  ASSERT_TRUE(publish(1, writer_rng));

  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> lookups{0};
  std::uint64_t wrong = 0;
  std::thread reader([&] {
    std::mt19937_64 rng(2);
    std::uint64_t newest = 0;
    while (!stop.load(std::memory_order_relaxed)) {
      const Addr a = rng() % kHalf * kPageSize;
      const TreeSlot slot = tree.covering(a);
      const std::uint64_t state = reinterpret_cast<std::uintptr_t>(slot.vma);
      if (!slot || slot.start > a || slot.end <= a || state < newest) ++wrong;
      newest = state;
      if (rng() % 64 == 0) {
        // One view is one state.
        const TreeView view = tree.view();
        Addr mapped_to = 0;
        Vma* const all = view.find(0).vma;
        view.for_each(0, ~Addr{0}, [&](const TreeSlot& s) {
          if (s.vma != all) ++wrong;
          if (s.start < kHalf * kPageSize && s.start != mapped_to) ++wrong;
          if (s.start < kHalf * kPageSize) mapped_to = s.end;
          return true;
        });
        if (mapped_to != kHalf * kPageSize) ++wrong;
        const char* why = "";
        if (!view.check(&why)) ++wrong;
        Addr gap = 0;
        if (view.find_gap_top_down(kPageSize, 0, kHalf * kPageSize, &gap)) ++wrong;
      }
      lookups.fetch_add(1, std::memory_order_relaxed);
    }
  });
  bool published = true;
  std::uint64_t state = 2;
  for (; state <= kStates && published; ++state) {
    published = publish(state, writer_rng);
    const std::uint64_t seen = lookups.load(std::memory_order_relaxed);
    // Let the reader take part even where both share a processor.
    while (lookups.load(std::memory_order_relaxed) < seen + 4) std::this_thread::yield();
  }
  stop.store(true, std::memory_order_relaxed);
  reader.join();
  EXPECT_TRUE(published);
  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(tree.find(0).vma, vma_of(kStates));
  clear(tree, pool);
}

}  // namespace
}  // namespace faultpath::vma
