// Runs jobs in forked processes: the simulated world is one to a process.
#pragma once

#include <functional>
#include <string>

namespace faultpath::check {

/// Does jobs 0..count-1 in `workers` processes; `work` runs there and returns a text, which `done`
/// gets here, in the order in which jobs end. A worker that dies loses its job: `done` gets an empty
/// text for it, and another worker takes its place. Nothing else may use threads.
void run_jobs(unsigned count, unsigned workers, const std::function<std::string(unsigned)>& work,
              const std::function<void(unsigned, const std::string&)>& done);

}  // namespace faultpath::check
