// Is the engine's address-space lock as good as the host's? A lock that were slow of itself would
// make every variant that avoids it look good. RwLock is measured against pthread_rwlock_t with
// default attributes, side by side in one run.
#pragma once

#include <string>
#include <vector>

namespace faultpath::lab {

/// One mix of operations with one number of threads. An operation is to lock, to read or increment
/// one counter, and to unlock; its cost is wall time over the operations of all threads.
struct LockRow {
  std::string name;  ///< "read", "write", "write 1 in 10"
  int threads = 1;
  std::vector<double> ours_ns_per_op;     ///< RwLock, one sample a round
  std::vector<double> pthread_ns_per_op;  ///< pthread_rwlock_t, the sample taken right after
  double ratio_median = 0;                ///< of the rounds' ratios ours / pthread
  double ratio_min = 0;
  double ratio_max = 0;
  bool counted_right = true;  ///< no increment was lost, under either lock
};

/// Six rows: each mix alone and with two threads. A round measures every row once under each lock,
/// one right after the other; a measurement lasts `seconds_per_cell`.
std::vector<LockRow> measure_lock_honesty(int rounds, double seconds_per_cell);

}  // namespace faultpath::lab
