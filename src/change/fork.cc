// fork: a child that shares pages until either side writes.
#include <new>

#include "base/guards.h"
#include "cache/file_object.h"
#include "change/change.h"
#include "change/gather.h"
#include "change/vma_change.h"
#include "sync/spin_guard.h"

namespace faultpath::change {

using memory::SlabKind;

Mm* create_mm(MachineCore& core, Cpu& cpu, const SpaceOptions& options)
    FP_NO_THREAD_SAFETY_ANALYSIS {  // nobody else knows the space yet
  void* memory = core.allocate_object(cpu, SlabKind::mm);
  if (memory == nullptr) return nullptr;
  Mm* mm = ::new (memory) Mm();
  mm->core = &core;
  mm->policy = options.policy;
  mm->options = options;
  mm->options.mmap_base = page_floor(options.mmap_base);  // the default is no multiple of 64 KiB
  if (options.policy.policy == Policy::spf) mm->marking = vma::Marking::sequence;
  if (options.policy.policy == Policy::vma_lock) mm->marking = vma::Marking::vma_lock;
  mm->brk = options.brk_start;
  mm->map_count = 0;
  if (!mm->tables.init(core, cpu)) {
    core.free_object(cpu, SlabKind::mm, mm);
    return nullptr;
  }
  return mm;
}

namespace {

// The child's VMA. Its pages, if it has any, come from the parent: a root of its own, and no
// merging with VMAs that have none (Linux: a chain of more than one).
Vma* copy_vma(Cpu& cpu, Mm& child, const Vma& from) {
  Vma* v = child.allocate_vma(cpu);
  if (v == nullptr) return nullptr;
  v->set_bounds(from.start(), from.end(), from.pgoff());
  v->set_flags(from.flags());
  if (from.file() != nullptr) {
    from.file()->get();
    v->set_file(from.file());
  }
  if (from.anon_root() != nullptr) {
    vma::AnonRoot* root = child.allocate_anon_root(cpu);
    if (root == nullptr) {
      discard_unlisted(cpu, child, v);
      return nullptr;
    }
    const bool faulted = from.ever_faulted();
    v->set_anon(root, faulted, !faulted && from.chain_singular());
  }
  return v;
}

// Copies the entries of one private VMA that has had pages. Both sides lose write. False: frames
// are short.
bool copy_entries(Cpu& cpu, Mm& parent, Mm& child, const Vma& v, Gather& gather) {
  const Addr end = v.end();
  Addr a = v.start();
  while (a < end) {
    unsigned absent = 0;
    const pagetable::Table from = parent.tables.find_leaf(a, &absent);
    const std::uint64_t span = pagetable::span_of(from ? 1 : absent);
    Addr stop = (a & ~(span - 1)) + span;
    if (stop > end) stop = end;
    if (!from) {
      a = stop;
      continue;
    }
    const pagetable::Table to = child.tables.ensure_leaf(cpu, a);
    if (!to) return false;
    sync::SpinGuard from_guard(from.meta->lock);
    // The child's table is nobody else's yet; its lock is taken for the rule, parent's first.
    sync::SpinGuard to_guard(to.meta->lock);
    for (; a < stop; a += kPageSize) {
      pagetable::Entry& entry = from.at(a, 0);
      std::uint64_t word = entry.load(env::acquire);
      Pte copied;
      for (;;) {
        copied = Pte(word);
        if (!copied.has_frame() || !copied.writable()) break;
        if (entry.compare_exchange(word, copied.without(Pte::kWrite).word(), env::acq_rel,
                                   env::acquire)) {
          gather.changed(a);
          copied = copied.without(Pte::kWrite);
          break;
        }
      }
      if (!copied.has_frame()) continue;
      if (!copied.special()) {
        // From the entry's own reference, under its table's lock.
        parent.core->frame(copied.pfn()).refs.fetch_add(1, env::relaxed);
      }
      to.at(a, 0).store(copied.word(), env::release);
      ++to.meta->occupied;
    }
  }
  return true;
}

}  // namespace

// Every parent VMA is marked before its first entry is copied, and stays marked until the flush is
// answered: a speculative fault that saw write gone would copy the page, while another Cpu still
// stores to the old one through a translation that has not been flushed (B26).
Mm* fork(Cpu& cpu, Mm& parent) {
  Mm* child = create_mm(*parent.core, cpu, parent.options);
  if (child == nullptr) return nullptr;
  bool ok = true;
  {
    vma::WriteLock parent_lock(parent, cpu);
    vma::WriteLock child_lock(*child, cpu);
    child->brk = parent.brk;
    vma::NodeSource nodes{*child->core, cpu, {}};
    {
      vma::TreeEdit edit(child->tree, nodes.pool());
      Gather gather(parent, cpu);
      const vma::TreeView view = parent.tree.view();
      if (env::guard<Guard::fork_marks_parent>()) {
        view.for_each(0, ~Addr{0}, [&](const vma::TreeSlot& slot) FP_NO_THREAD_SAFETY_ANALYSIS {
          parent.mark(*slot.vma);
          return true;
        });
      }
      view.for_each(0, ~Addr{0}, [&](const vma::TreeSlot& slot) FP_NO_THREAD_SAFETY_ANALYSIS {
        Vma* v = copy_vma(cpu, *child, *slot.vma);
        if (v == nullptr) return ok = false;
        // In the child's tree first: whatever happens next, destroy_mm finds it.
        if (!edit.insert(slot.start, slot.end, v)) {
          discard_unlisted(cpu, *child, v);
          return ok = false;
        }
        child->attach(*v);
        ++child->map_count;
        if (v->file() != nullptr) v->file()->add_mapping(*v);
        // Pages of shared mappings, and of private file mappings without copies, are found again by
        // faulting.
        if (!slot.vma->shared() && slot.vma->ever_faulted()) {
          ok = copy_entries(cpu, parent, *child, *slot.vma, gather);
        }
        return ok;
      });
      child->publish(edit);
      gather.finish();  // the parent's translations, before anybody's lock or mark goes
      view.for_each(0, ~Addr{0}, [&](const vma::TreeSlot& slot) FP_NO_THREAD_SAFETY_ANALYSIS {
        parent.unmark(*slot.vma);
        return true;
      });
      child->tree.view().for_each(0, ~Addr{0},
                                  [&](const vma::TreeSlot& slot) FP_NO_THREAD_SAFETY_ANALYSIS {
                                    child->unmark(*slot.vma);
                                    return true;
                                  });
    }
    child->core->retire(cpu, nodes.batch);
  }
  if (ok) return child;
  destroy_mm(cpu, *child);
  return nullptr;
}

void destroy_mm(Cpu& cpu, Mm& mm) {
  {
    Removed removed(mm, cpu);  // lets files go after the lock, while the mm is still there
    vma::WriteLock lock(mm, cpu);
    vma::NodeSource nodes{*mm.core, cpu, {}};
    // Its nodes are retired below: good until then.
    const vma::TreeView view = mm.tree.view();
    view.for_each(0, ~Addr{0}, [&](const vma::TreeSlot& slot) FP_NO_THREAD_SAFETY_ANALYSIS {
      mm.mark(*slot.vma);
      return true;
    });
    {
      vma::TreeEdit edit(mm.tree, nodes.pool());
      edit.clear();
      mm.publish(edit);
    }
    Gather gather(mm, cpu);
    gather.zap(0, kUserEnd);
    view.for_each(0, ~Addr{0}, [&](const vma::TreeSlot& slot) {
      if (slot.vma->file() != nullptr) slot.vma->file()->remove_mapping(*slot.vma);
      removed.add(slot.vma);
      return true;
    });
    gather.free_tables(0, kUserEnd, 0, ~Addr{0});
    gather.finish();
    mm.core->retire(cpu, nodes.batch);
  }
  mm.tables.destroy(cpu);
  memory::RetireBatch batch;
  batch.add_object(SlabKind::mm, &mm);
  mm.core->retire(cpu, batch);
}

}  // namespace faultpath::change
