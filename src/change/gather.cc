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
  hold(old);
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
        for (; a < stop && have_room(); a += kPageSize) {
          pagetable::Entry& entry = leaf.at(a, 0);
          // Nobody fills an entry but under this lock; the walker only sets bits in a filled one.
          if (entry.load(env::relaxed) == 0) continue;
          const Pte old = pagetable::exchange_entry(entry, Pte());
          --leaf.meta->occupied;
          take(old, a);
        }
      }
      if (a < stop) flush_and_release();
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
  for (unsigned i = 0; i < first_count_; ++i) release(first_[i]);
  first_count_ = 0;
  while (batches_ != nullptr) {
    Batch* const batch = batches_;
    batches_ = batch->next;
    for (std::uint64_t i = 0; i < batch->count; ++i) release(batch->entries[i]);
    mm_.core->free_frame(cpu_, mm_.core->pfn_of_object(batch));
  }
}

// A dirty page of a file needs no note here: it was marked before its entry could be written through,
// and a writeback that meets the cleared entry flushes before it calls the page clean (B66).
void Gather::release(Pte old) { mm_.core->put_frame(cpu_, old.pfn()); }

bool Gather::have_room() {
  constexpr std::uint64_t kEntries = sizeof(Batch::entries) / sizeof(Pte);
  if (first_count_ < kFirst || (batches_ != nullptr && batches_->count < kEntries)) return true;
  // Under a table lock: not a place to wait for memory.
  const Pfn pfn = mm_.core->allocate_frame(cpu_, FrameKind::index, false);
  if (pfn == kNoPfn) return false;
  auto* const batch = reinterpret_cast<Batch*>(mm_.core->object_memory(pfn));
  batch->next = batches_;
  batch->count = 0;
  batches_ = batch;
  return true;
}

void Gather::hold(Pte old) {
  if (first_count_ < kFirst) {
    first_[first_count_++] = old;
  } else {
    batches_->entries[batches_->count++] = old;
  }
}

void Gather::finish() {
  if (owes_flush() || sole_ != kNoPfn || first_count_ != 0) flush_and_release();
  mm_.core->retire(cpu_, tables_);
}

}  // namespace faultpath::change
