// What it costs to move a cache line between two CPUs: what every contended lock and count pays.
#pragma once

#include "lab/bench/rows.h"

namespace faultpath::lab {

/// Nanoseconds for a line to go to the other CPU and back, pinned to CPUs 0 and 1. On a virtual machine
/// it depends on where the hypervisor runs the two, and can change from minute to minute: read every
/// figure of two threads in one space beside it.
BenchRow measure_line_transfer(int rounds);

}  // namespace faultpath::lab
