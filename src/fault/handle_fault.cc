// The way in: policy, and counting once, with the final outcome (D10).
#include "fault/fault.h"

namespace faultpath::fault {

Outcome handle_fault(Cpu& cpu, Mm& mm, Addr address, Access access) {
  Outcome outcome = Outcome::done();
  bool settled = false;
  switch (mm.policy.policy) {
    case Policy::mmap_lock: break;
    case Policy::spf: settled = speculate(cpu, mm, address, access, &outcome); break;
    case Policy::vma_lock: settled = under_vma_lock(cpu, mm, address, access, &outcome); break;
  }
  if (!settled) outcome = classic(cpu, mm, address, access);

  cpu.count(Counter::faults);
  switch (outcome.kind()) {
    case Outcome::Kind::done:
      cpu.count(outcome.major() ? Counter::major_faults : Counter::minor_faults);
      break;
    case Outcome::Kind::signal: cpu.count(Counter::fault_signals); break;
    case Outcome::Kind::out_of_memory: cpu.count(Counter::fault_oom); break;
    case Outcome::Kind::interrupted:
    case Outcome::Kind::refused: break;
  }
  return outcome;
}

}  // namespace faultpath::fault
