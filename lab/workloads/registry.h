// The workloads by name: what they do and what they need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lab/workloads/options.h"

namespace faultpath::lab {

/// Rises when a workload's work changes, so that results are not compared across the change.
inline constexpr std::string_view kWorkloadVersion = "1";

/// Guest memory that a cell needs.
struct MemoryNeed {
  std::uint64_t per_task = 0;
  std::uint64_t per_space = 0;  ///< beside that, once in threads mode, else once a task
};

struct WorkloadInfo {
  std::string name;
  std::string description;
  std::string counted;               ///< what one counted operation is
  std::vector<std::string> options;  ///< "-m", ...; empty for most
  bool host = true;                  ///< can run as the variant `host`
  bool file = false;                 ///< each task has a file of 128 MiB in --dir
  bool shared_file = false;          ///< and fills it
  bool warm_file = false;  ///< touches it: its pages are in the cache before a measured run
  std::uint64_t one_file_bytes = 0;  ///< not 0: all tasks have one file, this long and filled
  bool null_control = false;         ///< no policy can differ: what differs is the noise
  bool timed = false;                ///< its figure is Sample::access_time, not a rate
  bool mapper = false;               ///< one more thread a space, whose calls are not counted
  std::uint64_t verify_ops = 0;      ///< operations a task in the verification pass
  MemoryNeed (*need)(const EbizzyOptions&) = nullptr;
};

/// What a null control is, in one line.
inline constexpr std::string_view kNullControlText =
    "null control: calibrates the noise; no policy differs here";

/// In the order of `list`.
const std::vector<WorkloadInfo>& workloads();
/// Null where there is none of that name.
const WorkloadInfo* find_workload(std::string_view name);

/// Guest memory for a cell, with room for page tables and caches.
std::uint64_t machine_bytes(const WorkloadInfo& workload, int tasks, bool one_space,
                            const EbizzyOptions& ebizzy);

}  // namespace faultpath::lab
