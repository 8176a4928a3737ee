#include "fault/anon_prepare.h"

#include "base/assert.h"
#include "base/guards.h"
#include "sync/spin_guard.h"
#include "vma/merge.h"

namespace faultpath::fault {

// Linux lets a VMA take over the anon_vma of a neighbour that it might merge with one day, so that
// having had pages does not keep two mappings apart for ever. The neighbour's root may change only
// under the anon lock (another first fault) or the mmap lock for write, which our hold excludes.
namespace {
void settle_root(Fault& f) {
  Mm& mm = f.mm;
  Vma& v = *f.live;
  vma::AnonRoot* spare = nullptr;
  {
    sync::SpinGuard guard(mm.anon_lock);
    if (!v.ever_faulted()) {
      vma::AnonRoot* root = v.anon_root();
      const vma::TreeView view = mm.tree.view();
      const Vma* next = view.find(v.end()).vma;
      const Vma* prev = view.find_last_below(v.start()).vma;
      if (next != nullptr && vma::can_share_anon_root(v, *next)) {
        spare = root;
        root = next->anon_root();
      } else if (prev != nullptr && vma::can_share_anon_root(*prev, v)) {
        spare = root;
        root = prev->anon_root();
      }
      if (spare != nullptr) mm.get_anon_root(root);
      v.set_first_fault(root);
    }
  }
  if (spare != nullptr) mm.put_anon_root(f.cpu, spare);
  f.vma.ever_faulted = true;
}
}  // namespace

bool prepare_anon(Fault& f) FP_NO_THREAD_SAFETY_ANALYSIS {
  if (f.vma.ever_faulted) return true;
  FP_ASSERT(!f.speculative());
  // Against the lock order, so only tried: a writer may be waiting for our VMA.
  const bool take =
      f.stability == Stability::vma_lock && env::guard<Guard::anon_prepare_under_mmap_lock>();
  if (take && !f.mm.mmap_lock.try_lock_read()) return false;
  if (take) f.cpu.count(Counter::mmap_lock_read);
  settle_root(f);
  if (take) f.mm.unlock_read();
  return true;
}

}  // namespace faultpath::fault
