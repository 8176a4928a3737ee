// The classic path: the mmap lock for read, over the whole fault (Linux before fault retry).
#include "fault/access.h"
#include "fault/fault.h"

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

std::optional<Outcome> under_mmap_lock(Fault& f, Growth growth) FP_REQUIRES_SHARED(f.mm.mmap_lock) {
  const vma::TreeSlot slot = f.mm.tree.find(f.address());
  if (!slot || slot.start > f.address()) {
    const bool grows = slot && (slot.vma->flags() & vma::kVmGrowsDown) != 0;
    if (grows && growth == Growth::untried) return {};
    return Outcome::signal(kSigSegv, kSegvMapErr, f.what.reported, f.what.access);
  }
  f.live = slot.vma;
  f.vma = slot.vma->view();
  if (const Outcome no = refusal(f.what, f.vma); !no.ok()) return no;
  f.leaf = f.mm.tables.ensure_leaf(f.cpu, f.page);
  if (!f.leaf) return Outcome::out_of_memory(f.address());
  f.seen = Pte(f.leaf.at(f.page, 0).load(env::acquire));
  return to_outcome(f, resolve(f));
}

}  // namespace

std::optional<Outcome> classic(Cpu& cpu, Mm& mm, const GuestFault& what, Growth growth) {
  if (growth == Growth::untried) cpu.count(Counter::classic_entered);
  Fault f(cpu, mm, what);
  std::optional<Outcome> outcome;
  {
    vma::ReadLock lock(mm, cpu);
    outcome = under_mmap_lock(f, growth);
  }
  if (outcome) cpu.count(Counter::classic_settled);
  return outcome;
}

}  // namespace faultpath::fault
