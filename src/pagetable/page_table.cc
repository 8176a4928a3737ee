#include "pagetable/page_table.h"

#include "base/assert.h"
#include "base/guards.h"
#include "sync/spin_guard.h"

namespace faultpath::pagetable {

using memory::FrameKind;
using memory::kNoPfn;

Table PageTable::make_table(Cpu& cpu, unsigned level) {
  const Pfn pfn = core_->allocate_frame(cpu, FrameKind::table, true);
  if (pfn == kNoPfn) return {};
  Table t = table(pfn);
  env::object_zero(t.entries, kEntries * sizeof(Entry));  // private until it is linked
  t.meta->level = static_cast<std::uint8_t>(level);
  t.meta->occupied = 0;
  t.meta->dead.store(0, env::relaxed);
  tables_.fetch_add(1, env::relaxed);
  cpu.count(Counter::table_alloc);
  return t;
}

bool PageTable::init(MachineCore& core, Cpu& cpu) {
  core_ = &core;
  tables_.store(0, env::relaxed);
  const Table t = make_table(cpu, kLevels - 1);
  if (!t) return false;
  root_ = core.pfn_of(*t.meta);
  return true;
}

void PageTable::destroy(Cpu& cpu) {
  FP_ASSERT(root().meta->occupied == 0);
  memory::RetireBatch batch;
  batch.add_frame(core_->frame_table(), root_);
  cpu.count(Counter::table_free);
  core_->retire(cpu, batch);
  root_ = kNoPfn;
}

Table PageTable::ensure_leaf(Cpu& cpu, Addr a) {
  Table t = root();
  for (unsigned level = kLevels - 1; level > 0; --level) {
    Entry& entry = t.at(a, level);
    Pte e(entry.load(env::acquire));
    if (!e.present()) {
      const Table fresh = make_table(cpu, level - 1);
      if (!fresh) return {};
      bool linked = false;
      {
        sync::SpinGuard guard(t.meta->lock);
        FP_ASSERT(t.meta->dead.load(env::relaxed) == 0);
        e = Pte(entry.load(env::relaxed));
        if (e.none()) {
          e = Pte::table(core_->pfn_of(*fresh.meta));
          // Release: the zeroed table is visible to whoever finds the entry (I14).
          entry.store(e.word(), env::release);
          ++t.meta->occupied;
          linked = true;
        }
      }
      if (!linked) {  // another fault was first; ours was never visible
        tables_.fetch_sub(1, env::relaxed);
        cpu.count(Counter::table_free);
        core_->free_frame(cpu, core_->pfn_of(*fresh.meta));
      }
    }
    t = table(e.pfn());
  }
  return t;
}

void PageTable::free_tables(Cpu& cpu, Addr start, Addr end, Addr floor, Addr ceiling,
                            memory::RetireBatch& batch) {
  free_level(cpu, root(), kLevels - 1, 0, start, end, floor, ceiling, batch);
}

// Frees what hangs below `t` in [start, end). Whether a table has nothing left is asked under its own
// lock alone: in one that other VMAs use too, faults that hold those VMAs link tables meanwhile.
void PageTable::free_level(Cpu& cpu, Table t, unsigned level, Addr base, Addr start, Addr end,
                           Addr floor, Addr ceiling, memory::RetireBatch& batch) {
  const std::uint64_t span = span_of(level);
  for (unsigned i = index_of(start > base ? start : base, level); i < kEntries; ++i) {
    const Addr child_base = base + i * span;
    if (child_base >= end) break;
    // Only a child that no other VMA can have entries in: all it covers lies in [floor, ceiling).
    const Pte e(t.entries[i].load(env::acquire));
    if (!e.present()) continue;
    const Table child = table(e.pfn());
    if (level > 1) free_level(cpu, child, level - 1, child_base, start, end, floor, ceiling, batch);
    if (child_base < floor || child_base + span > ceiling) continue;
    sync::SpinGuard parent_guard(t.meta->lock);
    sync::SpinGuard child_guard(child.meta->lock);
    if (child.meta->occupied != 0) {
      // Not reached: nothing outside [floor, ceiling) has entries here, and what is inside is
      // zapped and marked (under `vma-lock`: no fault holds those VMAs any more). A table with something in it is not freed all the same.
      continue;
    }
    // Whoever waits for the child's lock, or finds the child by a stale upper entry, sees the flag
    // under the lock and starts over.
    child.meta->dead.store(1, env::relaxed);
    t.entries[i].store(0, env::release);
    --t.meta->occupied;
    tables_.fetch_sub(1, env::relaxed);
    cpu.count(Counter::table_free);
    batch.add_frame(core_->frame_table(), core_->pfn_of(*child.meta));
  }
}

}  // namespace faultpath::pagetable
