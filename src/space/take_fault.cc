#include "space/take_fault.h"

#include "base/assert.h"
#include "change/change.h"
#include "space/engine_entry.h"

namespace faultpath::space {

// The one place where a fault leads to a change: faults only know VMAs, and whoever changes one needs
// the mmap lock for write, which a fault must not hold anything to get.
Outcome take_fault(memory::Cpu& cpu, vma::Mm& mm, const GuestFault& what) {
  const EngineEntry entry(cpu, EngineEntry::Parking::later);
  FP_ASSERT(entry);
  Outcome outcome;
  if (fault::handle_fault(cpu, mm, what, fault::Growth::untried, &outcome)) return outcome;
  (void)change::grow_stack(cpu, mm,
                           what.address);  // where it did not, the second look finds nothing
  const bool settled = fault::handle_fault(cpu, mm, what, fault::Growth::tried, &outcome);
  FP_ASSERT(settled);
  (void)settled;
  return outcome;
}

}  // namespace faultpath::space
