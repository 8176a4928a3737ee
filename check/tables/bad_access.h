// Forbidden accesses: every legal fault code of a machine, every right a VMA can have, on two paths.
// What the paths say must be the same in every part of the signal.
#pragma once

#include <faultpath/address_space.h>
#include <faultpath/arch.h>
#include <faultpath/soft_cpu.h>

#include <string>

namespace faultpath::check {

struct BadAccessTable {
  std::uint64_t rows = 0;      ///< faults that were compared
  std::uint64_t refusals = 0;  ///< of them, the forbidden ones
  std::string difference;      ///< the first one; empty: none
};

/// Takes every fault of `arch` in a space under `one` and in a space under `other`, in VMAs of every
/// combination of rights and keys, with and without a page. Compares the outcomes, and what they count
/// as: one fault, minor or signal. `cpu` is inside no space, and afterwards again.
BadAccessTable compare_bad_access(Machine& machine, SoftCpu& cpu, Arch arch, PolicySpec one,
                                  PolicySpec other);

}  // namespace faultpath::check
