#include "change/gather.h"

#include "base/assert.h"
#include "base/guards.h"
#include "sync/spin_guard.h"

namespace faultpath::change {

using memory::FrameKind;
using memory::kNoPfn;

Gather::~Gather() { finish(); }

// Under the table's lock. A frame whose only reference is this entry's can be chained through its
// own metadata: nobody can take another reference without this lock. Others wait in the array.
void Gather::take(Pte old, Addr page) {
  if (old.present()) widen(page);
  if (old.special()) return;
  Frame& f = mm_.core->frame(old.pfn());
  if (f.kind.load(env::relaxed) == FrameKind::anon && f.refs.load(env::acquire) == 1) {
    f.next = sole_;
    sole_ = old.pfn();
    return;
  }
  held_pages_[held_++] = old;
}

void Gather::zap(Addr start, Addr end) {
  Addr a = start;
  while (a < end) {
    unsigned absent = 0;
    const pagetable::Table leaf = mm_.tables.find_leaf(a, &absent);
    if (!leaf) {
      const std::uint64_t span = pagetable::span_of(absent);
      a = (a & ~(span - 1)) + span;
      continue;
    }
    const std::uint64_t span = pagetable::span_of(1);
    Addr stop = (a & ~(span - 1)) + span;
    if (stop > end) stop = end;
    while (a < stop) {
      {
        sync::SpinGuard guard(leaf.meta->lock);
        FP_ASSERT(leaf.meta->dead.load(env::relaxed) == 0);
        for (; a < stop && held_ < kHeld; a += kPageSize) {
          pagetable::Entry& entry = leaf.at(a, 0);
          // Nobody fills an entry but under this lock; the walker only sets bits in a filled one.
          if (entry.load(env::relaxed) == 0) continue;
          const Pte old = pagetable::exchange_entry(entry, Pte());
          --leaf.meta->occupied;
          take(old, a);
        }
      }
      if (held_ == kHeld) flush_and_release();
    }
  }
}

void Gather::flush_and_release() {
  if (env::guard<Guard::flush_before_release>() && owes_flush()) {
    pagetable::flush_range(*mm_.core, cpu_, mm_.cpus, start_, end_);
  }
  start_ = ~Addr{0};
  end_ = 0;
  if (sole_ != kNoPfn) {
    mm_.core->free_chain(cpu_, sole_);
    sole_ = kNoPfn;
  }
  for (unsigned i = 0; i < held_; ++i) {
    const Pte old = held_pages_[i];
    Frame& f = mm_.core->frame(old.pfn());
    // Stores through a translation that lived until the flush: a writeback that ran in between
    // found no entry and may have cleaned the page before them (B66).
    if (env::guard<Guard::dirty_after_flush>() && old.dirty() &&
        f.kind.load(env::relaxed) == FrameKind::cache) {
      cache::FileObject::mark_dirty(f);
    }
    mm_.core->put_frame(cpu_, old.pfn());
  }
  held_ = 0;
}

void Gather::finish() {
  if (owes_flush() || sole_ != kNoPfn || held_ != 0) flush_and_release();
  mm_.core->retire(cpu_, tables_);
}

}  // namespace faultpath::change
