#include "vma/mm.h"

#include <new>

#include "base/guards.h"

namespace faultpath::vma {

using memory::SlabKind;

Vma* Mm::allocate_vma(Cpu& cpu) {
  auto* v = static_cast<Vma*>(core->allocate_object(cpu, SlabKind::vma));
  if (v == nullptr) return nullptr;
  // Not constructed anew: the sequence goes on from its former life. It left the tree marked, or is
  // fresh memory (zero: even). Of the lock's line the count is 0 and stays it; the sequence is
  // another space's, which must not pass for ours.
  v->mm = this;
  if (marking == Marking::vma_lock) {
    v->lock.sequence.store(env::guard<Guard::born_marked>() ? lock_sequence.load(env::relaxed) : 0,
                           env::relaxed);
  } else if (env::guard<Guard::born_marked>() && !v->sequence.is_marked()) {
    v->sequence.begin_write();
  }
  v->set_file(nullptr);
  v->set_anon(nullptr, false, true);
  v->rmap_next = v->rmap_prev = nullptr;
  v->refs.store(1, env::relaxed);
  return v;
}

void Mm::discard_vma(Cpu& cpu, Vma* v) { core->free_object(cpu, SlabKind::vma, v); }

AnonRoot* Mm::allocate_anon_root(Cpu& cpu) {
  auto* root = static_cast<AnonRoot*>(core->allocate_object(cpu, SlabKind::anon_root));
  if (root != nullptr) root->refs.store(1, env::relaxed);
  return root;
}

void Mm::put_anon_root(Cpu& cpu, AnonRoot* root) {
  if (root == nullptr || root->refs.fetch_sub(1, env::acq_rel) != 1) return;
  // Nobody follows a root without a reference or the anon lock, so no grace period is owed.
  core->free_object(cpu, SlabKind::anon_root, root);
}

Vma* Mm::get_vma(Addr a) {
  tree_lock.lock_read();
  Vma* v = tree.find(a).vma;
  // In the tree means refs >= 1, and it cannot leave while we hold the lock.
  if (v != nullptr) v->refs.fetch_add(1, env::relaxed);
  tree_lock.unlock_read();
  return v;
}

void Mm::put_vma(Cpu& cpu, Vma* v) {
  if (v->refs.fetch_sub(1, env::acq_rel) != 1) return;
  if (marking == Marking::vma_lock) {
    // At once: readers check what they have locked (vma_lock.h).
    core->free_object(cpu, SlabKind::vma, v);
    return;
  }
  memory::RetireBatch batch;
  batch.add_object(SlabKind::vma, v);
  core->retire(cpu, batch);
}

void Mm::publish(TreeEdit& edit) {
  if (policy.policy == Policy::spf) {
    tree_lock.lock_write();
    edit.commit();
    tree_lock.unlock_write();
  } else {
    edit.commit();
  }
}

NodePool NodeSource::pool() {
  return {
      [](void* ctx) -> TreeNode* {
        auto* self = static_cast<NodeSource*>(ctx);
        return static_cast<TreeNode*>(self->core.allocate_object(self->cpu, SlabKind::tree_node));
      },
      [](void* ctx, TreeNode* node) {
        auto* self = static_cast<NodeSource*>(ctx);
        self->core.free_object(self->cpu, SlabKind::tree_node, node);
      },
      [](void* ctx, TreeNode* node) {
        static_cast<NodeSource*>(ctx)->batch.add_object(SlabKind::tree_node, node);
      },
      this};
}

}  // namespace faultpath::vma
