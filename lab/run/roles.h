// Who runs where: the tasks of a run, the mappers beside them, their spaces and their CPUs.
#pragma once

#include <sched.h>

#include <vector>

#include "lab/run/bench.h"

namespace faultpath::lab {

struct Role {
  unsigned id = 0;  ///< its slot
  unsigned space = 0;
  unsigned index = 0;  ///< among the counting tasks of its space; of a mapper: 0
  unsigned tasks = 1;  ///< counting tasks of its space
  bool mapper = false;
  bool first = false;  ///< prepares the space
  int cpu = 0;
};

/// CPUs that this process may use.
std::vector<int> usable_cpus();

/// Counting tasks first, then the mappers; CPUs round robin in that order.
std::vector<Role> cast(const BenchSpec& spec);
unsigned space_count(const BenchSpec& spec);

/// Binds the calling thread; where the host refuses, it stays unbound.
void pin_to(int cpu);

}  // namespace faultpath::lab
