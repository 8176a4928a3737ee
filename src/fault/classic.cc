// The classic path: the mmap lock for read, over the whole fault (Linux before fault retry).
#include "fault/access.h"
#include "fault/fault.h"
#include "pagetable/flush.h"

namespace faultpath::fault {

Outcome to_outcome(const Fault& f, Resolved r) {
  switch (r) {
    case Resolved::done: return Outcome::done(f.major);
    case Resolved::beyond_end:
    case Resolved::io_error:
      return Outcome::signal(kSigBus, kBusAdrErr, f.what.reported, f.what.access);
    case Resolved::out_of_memory:
    case Resolved::pass_on: break;
  }
  return Outcome::out_of_memory(f.address());
}

namespace {

/// The mmap lock is held for read.
bool under_mmap_lock(Fault& f, Growth growth, Outcome* outcome) {
  const vma::TreeSlot slot = f.mm.tree.find(f.address());
  if (!slot || slot.start > f.address()) {
    const bool grows = slot && (slot.vma->flags() & vma::kVmGrowsDown) != 0;
    if (grows && growth == Growth::untried) return false;
    *outcome = Outcome::signal(kSigSegv, kSegvMapErr, f.what.reported, f.what.access);
    return true;
  }
  f.live = slot.vma;
  f.vma = slot.vma->view();
  *outcome = refusal(f.what, f.vma);
  if (!outcome->ok()) return true;
  *outcome = to_outcome(f, link_and_resolve(f));
  return true;
}

}  // namespace

bool classic(Cpu& cpu, Mm& mm, const GuestFault& what, Growth growth, Outcome* outcome) {
  if (growth == Growth::untried) cpu.count(Counter::classic_entered);
  pagetable::ensure_parked(cpu);
  Fault f(cpu, mm, what);
  {
    vma::ReadLock lock(mm, cpu);
    if (!under_mmap_lock(f, growth, outcome)) return false;
  }
  cpu.count(Counter::classic_settled);
  return true;
}

}  // namespace faultpath::fault
