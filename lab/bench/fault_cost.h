// What one page fault costs, over the zeroing that it cannot avoid; and what two threads make of it.
#pragma once

#include <string>
#include <vector>

#include "lab/bench/rows.h"

namespace faultpath::lab {

struct FaultCostOptions {
  std::vector<std::string> policies;
  int rounds = 11;
  std::uint64_t bytes = std::uint64_t{128} << 20;
};

/// One thread: first touch of `bytes`, ascending, mapped and unmapped each round; then the same frames
/// zeroed in the order in which the faults got them, and in ascending order. Two threads: the same
/// loop in one space and in two, against one thread. All policies in every round.
std::vector<BenchRow> measure_fault_cost(const FaultCostOptions& options);

}  // namespace faultpath::lab
