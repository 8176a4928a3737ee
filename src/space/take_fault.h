// take_fault: into the engine with a fault, and out with its outcome.
#pragma once

#include "fault/fault.h"

namespace faultpath::space {

/// The owner of `cpu` has no section open and is not in the engine.
Outcome take_fault(memory::Cpu& cpu, vma::Mm& mm, const GuestFault& what);

}  // namespace faultpath::space
