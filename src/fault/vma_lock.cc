// Per-VMA locks: the VMA's own lock for read over the whole fault, no mmap lock (Linux 6.4 to
// 6.15+). What cannot be done so goes to the classic path.
#include "base/guards.h"
#include "fault/access.h"
#include "fault/fault.h"
#include "memory/machine_core.h"
#include "pagetable/flush.h"

namespace faultpath::fault {

namespace {

/// How often a lookup may meet a VMA that is being detached before it leaves it to the mmap lock
/// (I10). Each time an operation has taken a VMA out of the tree meanwhile.
constexpr int kLookups = env::per_world(8, 2);

/// lock_vma_under_rcu: the VMA that covers `a`, locked for read, and what it says; null with the
/// count made.
Vma* lock_vma(Cpu& cpu, Mm& mm, Addr a, VmaView* says) {
  vma::TreeView view;
  for (int tries = 0; tries < kLookups; ++tries) {
    Vma* v = nullptr;
    auto result = vma::StartRead::busy;
    {
      sync::EpochSection section(mm.core->epochs(), cpu.epoch);
      // From the root each time: the nodes of a view are kept for its own section only (B12).
      if (env::guard<Guard::vma_lock_lookup_afresh>() || view.empty()) view = mm.tree.view();
      const vma::TreeSlot slot = view.find(a);
      if (slot && slot.start <= a) {
        v = slot.vma;
        if (!env::guard<Guard::vma_fields_after_lock>()) *says = v->view();
        result = vma::start_read(cpu, mm, *v);
      }
    }
    if (result == vma::StartRead::held) {
      // Nothing of it is read before it is locked (B05).
      if (env::guard<Guard::vma_fields_after_lock>()) *says = v->view();
      // It may be another VMA by now, or have been resized since the walk.
      if (!env::guard<Guard::vma_lock_bounds>() || (says->start <= a && a < says->end)) return v;
      vma::end_read(mm, *v);
      break;
    }
    if (result == vma::StartRead::busy) break;
    cpu.count(Counter::vma_lock_miss);
  }
  cpu.count(Counter::vma_lock_abort);
  return nullptr;
}

/// The lock's hold on a VMA.
class VmaRead {
 public:
  VmaRead(Cpu& cpu, Mm& mm, Addr a, VmaView* says) : mm_(mm), vma_(lock_vma(cpu, mm, a, says)) {}
  ~VmaRead() { drop(); }
  VmaRead(const VmaRead&) = delete;
  VmaRead& operator=(const VmaRead&) = delete;
  Vma* get() const { return vma_; }
  void drop() {
    if (vma_ != nullptr) vma::end_read(mm_, *vma_);
    vma_ = nullptr;
  }

 private:
  Mm& mm_;
  Vma* vma_;
};

/// The VMA forbids the access, and has been let go. True: that is final, since the VMA's rights could
/// not change while it was locked, and a second look under the mmap lock would have found the same
/// (the bad-access exit of 2024).
bool refuse(Mm& mm, Cpu& cpu, const GuestFault& what, Outcome no, Outcome* outcome) {
  if (!mm.policy.bad_access_fast) {
    cpu.count(Counter::vma_lock_bad_access);
    return false;
  }
  *outcome = env::guard<Guard::bad_access_code>()
                 ? no
                 : Outcome::signal(kSigSegv, kSegvMapErr, what.reported, what.access);
  cpu.count(Counter::vma_lock_success);
  return true;
}

}  // namespace

bool under_vma_lock(Cpu& cpu, Mm& mm, const GuestFault& what, Outcome* outcome) {
  VmaView says;
  VmaRead lock(cpu, mm, what.address, &says);
  if (lock.get() == nullptr) return false;
  if (Outcome no = refusal(what, says); FP_UNLIKELY(!no.ok())) {
    const Vma* const live = lock.get();
    lock.drop();
    if (!env::guard<Guard::bad_access_under_lock>()) no = refusal(what, live->view());
    return refuse(mm, cpu, what, no, outcome);
  }

  pagetable::ensure_parked(cpu);  // nothing so far has waited for anybody
  Fault f(cpu, mm, what);
  f.stability = Stability::vma_lock;
  f.live = lock.get();
  f.vma = says;
  const Resolved r = link_and_resolve(f);
  if (r == Resolved::pass_on) {
    cpu.count(Counter::vma_lock_retry);
    return false;
  }
  cpu.count(Counter::vma_lock_success);  // errors too, as Linux counts
  *outcome = to_outcome(f, r);
  return true;
}

}  // namespace faultpath::fault
