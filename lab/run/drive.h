// Leads the tasks of one run through its phases and takes the figures.
#pragma once

#include <sys/mman.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "lab/run/bench.h"
#include "lab/run/roles.h"

namespace faultpath::lab {

/// Control and slots of one run, in memory that forked tasks share.
class Stage {
 public:
  explicit Stage(std::size_t slots);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;
  ~Stage();

  bool ok() const { return memory_ != nullptr; }
  Control& control() const { return *control_; }
  TaskSlot& slot(std::size_t i) const { return slots_[i]; }

 private:
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
  Control* control_ = nullptr;
  TaskSlot* slots_ = nullptr;
};

/// What the driver asks of whoever runs the tasks.
struct Troupe {
  std::vector<std::string> counter_names;
  std::function<std::vector<std::uint64_t>()> counters;  ///< totals so far, one a name
  std::function<double()> cpu_seconds;                   ///< of the lab and its children, so far
  std::function<std::string()> trouble;                  ///< one line where a task died, else empty
  std::vector<pid_t> pids;                               ///< the lab's processes
};

/// Drives warm-up and window; tasks have stopped and checked, or were told to give up, when it
/// returns. Errors of the tasks are in the result; latencies are added by finish().
Measured drive_window(Stage& stage, const std::vector<Role>& roles, const Troupe& troupe,
                      const Window& window);
/// Lets the tasks make their fixed number of operations. Returns an error or nothing.
std::string drive_fixed(Stage& stage, const std::vector<Role>& roles, const Troupe& troupe);

/// When the tasks are gone: their complaints.
std::string complaints(const Stage& stage, const std::vector<Role>& roles);
/// When the tasks are gone: the latencies of the counting ones.
Latency latency_of(const Stage& stage, const std::vector<Role>& roles);
/// When the tasks are gone: the mean over the counting ones that timed accesses.
AccessTime access_time_of(const Stage& stage, const std::vector<Role>& roles);
FixedResult fixed_result(const Stage& stage, const std::vector<Role>& roles, std::string error);

/// Whose file the task `role` has, as an index: its own, or the one that all tasks have.
std::size_t file_index(const WorkloadInfo& workload, const Role& role);
std::size_t file_count(const BenchSpec& spec);
/// An unlinked file in `dir`: a hole of kAreaBytes, or the workload's one file, filled. -1 with
/// errno set where that cannot be.
int make_task_file(const WorkloadInfo& workload, const std::string& dir);

}  // namespace faultpath::lab
