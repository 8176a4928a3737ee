// A load that hits the TLB against a plain load, each depending on the one before.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/bench/rows.h"

namespace faultpath::lab {

std::vector<BenchRow> measure_tlb_hit(int rounds);
/// `steps` guest loads; what callgrind counts. Returns the last address, so that nothing is dropped.
std::uint64_t run_tlb_hit_loop(std::uint64_t steps);
/// Instructions of one load, from two callgrind runs of this program; nothing where there is no
/// valgrind, and `*why` says so.
std::vector<BenchRow> count_tlb_hit_instructions(std::string* why);

}  // namespace faultpath::lab
