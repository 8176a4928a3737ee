// The way in: policy, and counting once, with the final outcome (D10).
#include "fault/fault.h"
#include "pagetable/flush.h"

namespace faultpath::fault {

namespace {

/// Without the mmap lock, if the space's policy has such a way.
bool settle_fast(Cpu& cpu, Mm& mm, const GuestFault& what, Outcome* outcome) {
  switch (mm.policy.policy) {
    case Policy::mmap_lock: return false;
    case Policy::spf: pagetable::ensure_parked(cpu); return speculate(cpu, mm, what, outcome);
    case Policy::vma_lock:
      // Every kernel leaves its own faults on user addresses to the mmap lock.
      return what.user && under_vma_lock(cpu, mm, what, outcome);
  }
  return false;
}

}  // namespace

bool handle_fault(Cpu& cpu, Mm& mm, const GuestFault& what, Growth growth, Outcome* outcome) {
  if ((growth == Growth::tried || !settle_fast(cpu, mm, what, outcome)) &&
      !classic(cpu, mm, what, growth, outcome)) {
    return false;
  }

  cpu.count(Counter::faults);
  switch (outcome->kind()) {
    case Outcome::Kind::done:
      cpu.count(outcome->major() ? Counter::major_faults : Counter::minor_faults);
      break;
    case Outcome::Kind::signal: cpu.count(Counter::fault_signals); break;
    case Outcome::Kind::out_of_memory: cpu.count(Counter::fault_oom); break;
    case Outcome::Kind::interrupted:
    case Outcome::Kind::refused: break;
  }
  return true;
}

}  // namespace faultpath::fault
