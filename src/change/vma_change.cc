#include "change/vma_change.h"

#include "base/assert.h"
#include "base/guards.h"

// The mmap lock is held for write throughout (the class says so); Clang cannot connect mm_ with the
// caller's name for the same space.
#define FP_MMAP_LOCK_HELD FP_NO_THREAD_SAFETY_ANALYSIS

namespace faultpath::change {

namespace {
/// The VMA after `v` in a chain by PoolLink.
Vma* next_of(const Vma* v) {
  void* const next = v->link.next;
  return static_cast<Vma*>(next);
}
}  // namespace

Removed::~Removed() {
  while (head_ != nullptr) {
    Vma* v = head_;
    head_ = next_of(v);
    // Fields of a VMA that left the tree: nobody validates a copy of it any more (it stays marked),
    // so they may be taken without touching them.
    if (v->file() != nullptr) v->file()->put(cpu_);
    mm_.put_anon_root(cpu_, v->anon_root());
    mm_.put_vma(cpu_, v);
  }
}

VmaChange::VmaChange(Mm& mm, Cpu& cpu, Removed& removed)
    : mm_(mm), cpu_(cpu), out_(removed), nodes_{*mm.core, cpu, {}}, edit_(mm.tree, nodes_.pool()) {}

VmaChange::~VmaChange() {
  if (applied_) return;
  for (unsigned i = 0; i < touched_count_; ++i) {
    if (touched_[i].fresh) discard_unlisted(cpu_, mm_, touched_[i].vma);
  }
}

void discard_unlisted(Cpu& cpu, Mm& mm, Vma* v) {
  if (v->file() != nullptr)
    v->file()->put(cpu);  // never the last: whoever it was copied from has one
  mm.put_anon_root(cpu, v->anon_root());
  mm.discard_vma(cpu, v);
}

namespace {
/// Pages from `from` to `to`, negative where the start of a VMA moves down, modulo 2^64.
std::uint64_t pages_between(Addr from, Addr to) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(to - from) >> kPageShift);
}
}  // namespace

// --- planning ---------------------------------------------------------------------------------

MergeKey VmaChange::key_of(const TreeSlot& slot) const {
  MergeKey key = MergeKey::of(*slot.vma);
  key.pgoff += pages_between(key.start, slot.start);
  key.start = slot.start;
  key.end = slot.end;
  return key;
}

VmaChange::Touched* VmaChange::touched(Vma* v) {
  for (unsigned i = 0; i < touched_count_; ++i) {
    if (touched_[i].vma == v) return &touched_[i];
  }
  return nullptr;
}

VmaChange::Touched* VmaChange::touch(const TreeSlot& slot) {
  if (Touched* t = touched(slot.vma)) return t;
  FP_ASSERT(touched_count_ < kMost);
  Touched& t = touched_[touched_count_++];
  const MergeKey key = key_of(slot);
  t = {slot.vma, key.start, key.end, key.pgoff, key.flags, nullptr, false, false, false};
  return &t;
}

bool VmaChange::resize(const TreeSlot& slot, Addr start, Addr end) {
  Touched* t = touch(slot);
  if (!edit_.update(slot.start, {start, end, slot.vma})) return false;
  t->pgoff += pages_between(t->start, start);
  t->start = start;
  t->end = end;
  return true;
}

bool VmaChange::remove(const TreeSlot& slot) {
  if (!edit_.erase(slot.start)) return false;
  if (Touched* t = touched(slot.vma)) {
    // A VMA that this plan had resized leaves the list: its fields stay as they are. One that it
    // had made (the right part of a cut, which a new mapping in the hole joins again) never was.
    const bool fresh = t->fresh;
    *t = touched_[--touched_count_];
    if (fresh) {
      --count_delta_;
      discard_unlisted(cpu_, mm_, slot.vma);
      return true;
    }
  }
  slot.vma->link.next = removed_;
  removed_ = slot.vma;
  --count_delta_;
  return true;
}

bool VmaChange::insert(Vma* v, Addr start, Addr end, std::uint64_t pgoff, std::uint32_t flags) {
  FP_ASSERT(touched_count_ < kMost);
  touched_[touched_count_++] = {v, start, end, pgoff, flags, nullptr, true, false, false};
  ++count_delta_;
  return edit_.insert(start, end, v);
}

Vma* VmaChange::clone(const Vma& like, Addr start, Addr end, std::uint64_t pgoff,
                      std::uint32_t flags) {
  Vma* v = mm_.allocate_vma(cpu_);
  if (v == nullptr) return nullptr;
  v->set_bounds(start, end, pgoff);
  v->set_flags(flags);
  if (like.file() != nullptr) like.file()->get();
  v->set_file(like.file());
  mm_.get_anon_root(like.anon_root());
  v->set_anon(like.anon_root(), like.ever_faulted(), like.chain_singular());
  return v;
}

// A part that is cut off a VMA which stays would be in no reverse map from apply() until its
// entries are gone: a writeback in between would leave one writable and call the page clean (I8).
// It stays listed as a VMA of its own that no tree holds, as if it had been split off first.
bool VmaChange::keep_listed(const TreeSlot& slot, Addr start, Addr end) {
  if (!env::guard<Guard::parts_stay_listed>()) return true;
  if (slot.vma->file() == nullptr || (slot.start >= start && slot.end <= end)) return true;
  const Addr from = slot.start > start ? slot.start : start;
  const Addr to = slot.end < end ? slot.end : end;
  const MergeKey key = key_of(slot);
  const std::uint64_t pgoff = key.pgoff + pages_between(slot.start, from);
  Vma* part = clone(*slot.vma, from, to, pgoff, key.flags);
  if (part == nullptr) return false;
  FP_ASSERT(touched_count_ < kMost);
  touched_[touched_count_++] = {part, from, to, pgoff, key.flags, nullptr, true, false, true};
  return true;
}

Result<void> VmaChange::plan_unmap(Addr start, Addr end) FP_MMAP_LOCK_HELD {
  for (TreeSlot slot = edit_.first_in(start, end); slot; slot = edit_.first_in(start, end)) {
    bool ok = keep_listed(slot, start, end);
    if (!ok) return Errno::enomem;
    if (slot.start < start && slot.end > end) {
      if (mm_.map_count >= mm_.options.max_map_count) return Errno::enomem;
      const MergeKey key = key_of(slot);
      const std::uint64_t pgoff = key.pgoff + ((end - slot.start) >> kPageShift);
      Vma* right = clone(*slot.vma, end, slot.end, pgoff, key.flags);
      if (right == nullptr) return Errno::enomem;
      ok = resize(slot, slot.start, start);
      // Listed even where the resize failed, so that the destructor lets it go.
      ok = insert(right, end, slot.end, pgoff, key.flags) && ok;
    } else if (slot.start < start) {
      ok = resize(slot, slot.start, start);
    } else if (slot.end > end) {
      ok = resize(slot, end, slot.end);
    } else {
      ok = remove(slot);
    }
    if (!ok) return Errno::enomem;
  }
  return {};
}

Result<void> VmaChange::plan_insert(const MergeKey& key) FP_MMAP_LOCK_HELD {
  const TreeSlot prev = edit_.find_last_below(key.start);
  const TreeSlot next = edit_.find(key.start);
  const bool with_prev = prev && vma::can_merge(key_of(prev), key);
  const bool with_next = next && vma::can_merge(key, key_of(next));
  if (with_prev && with_next && vma::anon_compatible(key_of(prev), key_of(next))) {
    // A part that this plan cut off `prev` itself has the same root.
    const Touched* t = touched(next.vma);
    Vma* const adopt = t != nullptr && t->fresh ? nullptr : next.vma;
    if (!remove(next)) return Errno::enomem;
    if (!resize(prev, prev.start, next.end)) return Errno::enomem;
    touched(prev.vma)->adopt = adopt;
    return {};
  }
  if (with_prev) {
    if (!resize(prev, prev.start, key.end)) return Errno::enomem;
    return {};
  }
  if (with_next) {
    if (!resize(next, key.start, next.end)) return Errno::enomem;
    return {};
  }
  Vma* v = mm_.allocate_vma(cpu_);
  if (v == nullptr) return Errno::enomem;
  v->set_bounds(key.start, key.end, key.pgoff);
  v->set_flags(key.flags);
  if (key.file != nullptr) key.file->get();
  v->set_file(key.file);
  bool ok = true;
  if ((key.flags & vma::kVmShared) == 0) {
    vma::AnonRoot* root = mm_.allocate_anon_root(cpu_);
    v->set_anon(root, false, true);
    ok = root != nullptr;
  }
  ok = insert(v, key.start, key.end, key.pgoff, key.flags) && ok;
  if (!ok) return Errno::enomem;
  return {};
}

Result<void> VmaChange::plan_flags(const TreeSlot& slot, Addr start, Addr end,
                                   std::uint32_t flags) FP_MMAP_LOCK_HELD {
  MergeKey piece = key_of(slot);
  piece.pgoff += (start - slot.start) >> kPageShift;
  piece.start = start;
  piece.end = end;
  piece.flags = flags;
  const bool at_start = start == slot.start;
  const bool at_end = end == slot.end;
  const TreeSlot prev = at_start ? edit_.find_last_below(start) : TreeSlot{};
  const TreeSlot next = at_end ? edit_.find(end) : TreeSlot{};
  const bool with_prev = prev && vma::can_merge(key_of(prev), piece);
  const bool with_next = next && vma::can_merge(piece, key_of(next));

  bool ok = true;
  if (with_prev && with_next && vma::anon_compatible(key_of(prev), key_of(next))) {
    ok = remove(slot) && remove(next) && resize(prev, prev.start, next.end);
    if (ok) touched(prev.vma)->adopt = slot.vma->ever_faulted() ? slot.vma : next.vma;
  } else if (with_prev) {
    ok = (at_end ? remove(slot) : resize(slot, end, slot.end)) && resize(prev, prev.start, end);
    if (ok) touched(prev.vma)->adopt = slot.vma;
  } else if (with_next) {
    ok = (at_start ? remove(slot) : resize(slot, slot.start, start)) &&
         resize(next, start, next.end);
    if (ok) touched(next.vma)->adopt = slot.vma;
  } else if (at_start && at_end) {
    touch(slot)->flags = flags;
  } else {
    // One cut needs one more VMA, two cuts two; Linux makes them one after the other and refuses at
    // the limit. Here a refusal leaves no half of it behind.
    const std::uint32_t cuts = (at_start ? 0u : 1u) + (at_end ? 0u : 1u);
    if (mm_.map_count + cuts > mm_.options.max_map_count) return Errno::enomem;
    const MergeKey whole = key_of(slot);
    Vma* middle = clone(*slot.vma, start, end, piece.pgoff, flags);
    if (middle == nullptr) return Errno::enomem;
    if (at_start) {
      ok = resize(slot, end, slot.end);
    } else {
      ok = resize(slot, slot.start, start);
    }
    ok = insert(middle, start, end, piece.pgoff, flags) && ok;
    if (ok && cuts == 2) {
      const std::uint64_t pgoff = whole.pgoff + ((end - slot.start) >> kPageShift);
      Vma* right = clone(*slot.vma, end, slot.end, pgoff, whole.flags);
      if (right == nullptr) return Errno::enomem;
      ok = insert(right, end, slot.end, pgoff, whole.flags);
    }
  }
  if (!ok) return Errno::enomem;
  return {};
}

Result<void> VmaChange::plan_grow(const TreeSlot& slot, Addr start) {
  if (!resize(slot, start, slot.end)) return Errno::enomem;
  return {};
}

// --- applying ---------------------------------------------------------------------------------

void VmaChange::adopt_root(Vma& v, Vma& from) {
  if (v.ever_faulted() || !from.ever_faulted()) return;
  vma::AnonRoot* old = v.anon_root();
  mm_.get_anon_root(from.anon_root());
  v.set_anon(from.anon_root(), true, from.chain_singular());
  mm_.put_anon_root(cpu_, old);
}

void VmaChange::write_fields(Touched& t) {
  if (t.adopt != nullptr) adopt_root(*t.vma, *t.adopt);
  t.vma->set_bounds(t.start, t.end, t.pgoff);
  t.vma->set_flags(t.flags);
  t.written = true;
}

void VmaChange::apply() FP_MMAP_LOCK_HELD {
  // Everything that will change is marked before anything changes; new VMAs were born marked.
  for (unsigned i = 0; i < touched_count_; ++i) {
    if (!touched_[i].fresh) mm_.mark(*touched_[i].vma);
  }
  for (Vma* v = removed_; v != nullptr; v = next_of(v)) mm_.mark(*v);

  for (unsigned i = 0; i < touched_count_; ++i) {
    if (touched_[i].written) continue;
    cache::FileObject* file = touched_[i].vma->file();
    if (file == nullptr) {
      write_fields(touched_[i]);
      continue;
    }
    // All VMAs of one file under one hold of its reverse-map lock: a walker finds each page under
    // the old bounds or under the new ones. (A VMA that was merged away is still listed until
    // finish(); its pages are met twice, never not at all: I8.)
    file->rmap_lock.lock_write();
    for (unsigned j = i; j < touched_count_; ++j) {
      Touched& t = touched_[j];
      if (t.vma->file() != file) continue;
      write_fields(t);
      if (t.fresh) file->link_vma(*t.vma);
    }
    file->rmap_lock.unlock_write();
  }
  for (unsigned i = 0; i < touched_count_; ++i) {
    if (touched_[i].fresh && !touched_[i].ghost) mm_.attach(*touched_[i].vma);
  }
  mm_.map_count += static_cast<std::uint32_t>(count_delta_);
  mm_.publish(edit_);  // the linearisation point for lookups
  applied_ = true;
}

void VmaChange::finish() FP_MMAP_LOCK_HELD {
  while (removed_ != nullptr) {
    Vma* v = removed_;
    removed_ = next_of(v);
    if (v->file() != nullptr) v->file()->remove_mapping(*v);
    if (!env::guard<Guard::unlinked_stays_marked>()) mm_.unmark(*v);
    out_.add(v);
  }
  for (unsigned i = 0; i < touched_count_; ++i) {
    Vma* v = touched_[i].vma;
    if (!touched_[i].ghost) {
      mm_.unmark(*v);
      continue;
    }
    v->file()->remove_mapping(*v);
    out_.add(v);
  }
  mm_.core->retire(cpu_, nodes_.batch);
}

}  // namespace faultpath::change
