// The classic path: the mmap lock for read, over the whole fault (Linux before fault retry).
#include "fault/access.h"
#include "fault/fault.h"

namespace faultpath::fault {

Outcome to_outcome(const Fault& f, Resolved r) {
  switch (r) {
    case Resolved::done: return Outcome::done(f.major);
    case Resolved::beyond_end:
    case Resolved::io_error: return Outcome::signal(kSigBus, kBusAdrErr, f.address, f.access);
    case Resolved::out_of_memory:
    case Resolved::pass_on: break;
  }
  return Outcome::out_of_memory(f.address);
}

Outcome classic(Cpu& cpu, Mm& mm, Addr address, Access access) {
  cpu.count(Counter::classic_entered);
  Outcome outcome = Outcome::done();
  {
    vma::ReadLock lock(mm, cpu);
    const vma::TreeSlot slot = mm.tree.find(address);
    if (!slot || slot.start > address) {
      outcome = Outcome::signal(kSigSegv, kSegvMapErr, address, access);
    } else {
      Fault f{cpu, mm, address, page_floor(address), access};
      f.live = slot.vma;
      f.vma = slot.vma->view();
      if (!access_allowed(f.vma.prot(), access)) {
        outcome = Outcome::signal(kSigSegv, kSegvAccErr, address, access);
      } else {
        f.leaf = mm.tables.ensure_leaf(cpu, f.page);
        Resolved r = Resolved::out_of_memory;
        if (f.leaf) {
          f.seen = Pte(f.leaf.at(f.page, 0).load(env::acquire));
          r = resolve(f);
        }
        outcome = to_outcome(f, r);
      }
    }
  }
  cpu.count(Counter::classic_settled);
  return outcome;
}

}  // namespace faultpath::fault
