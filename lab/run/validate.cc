#include <faultpath/policy.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <string_view>

#include "lab/run/machine_facts.h"
#include "lab/run/runner.h"
#include "lab/workloads/workload.h"

namespace faultpath::lab {
namespace {

std::string mib(std::uint64_t bytes) {
  return std::to_string((bytes + (std::uint64_t{1} << 20) - 1) >> 20) + " MiB";
}

std::string known_workloads() {
  std::string names;
  for (const WorkloadInfo& w : workloads()) names += (names.empty() ? "" : ", ") + w.name;
  return names;
}

std::string known_variants() {
  std::string names;
  for (const Policy p : kAllPolicies) names += std::string(name_of(p)) + ", ";
  return names + kHostVariant;
}

std::optional<std::string> check_names(const RunOptions& o) {
  if (o.workloads.empty()) return "no workload named; there are: " + known_workloads();
  for (const std::string& name : o.workloads) {
    if (find_workload(name) == nullptr) {
      return "unknown workload '" + name + "'; there are: " + known_workloads();
    }
  }
  if (o.variants.empty()) return "no policy named; there are: " + known_variants();
  for (const std::string& variant : o.variants) {
    if (variant == kHostVariant) {
      for (const std::string& name : o.workloads) {
        if (!find_workload(name)->host) return name + " cannot run as host";
      }
    } else if (!parse_policy(variant)) {
      return "unknown policy '" + variant + "'; there are: " + known_variants() +
             " (spf takes :single-thread-bypass=on or =off)";
    }
  }
  return {};
}

std::optional<std::string> check_numbers(const RunOptions& o) {
  if (o.tasks.empty()) return "no number of tasks given";
  for (const int t : o.tasks) {
    if (t < 1 || t > kMaxTasks) {
      return "number of tasks " + std::to_string(t) + " is not in 1.." + std::to_string(kMaxTasks);
    }
  }
  if (o.modes.empty()) return "no mode given: threads or processes";
  if (!std::isfinite(o.seconds) || o.seconds < 0.01 || o.seconds > 3600) {
    return "seconds of a run are not in 0.01..3600";
  }
  if (o.repeats < 1 || o.repeats > 10000) {
    return "number of repeats " + std::to_string(o.repeats) + " is not in 1..10000";
  }
  return {};
}

std::optional<std::string> check_ebizzy(const EbizzyOptions& e) {
  if (e.always_mmap && e.never_mmap) return "ebizzy: -m and -M exclude each other";
  if (e.chunks < 1 || e.chunks > 1'000'000) return "ebizzy: -n (chunks) is not in 1..1000000";
  if (e.chunk_bytes < 8 || e.chunk_bytes > (std::uint64_t{1} << 32) || e.chunk_bytes % 8 != 0) {
    return "ebizzy: -s (bytes of a chunk) is not a multiple of 8 in 8..4294967296";
  }
  return {};
}

std::optional<std::string> check_dir(const RunOptions& o) {
  const auto wants_file = std::find_if(o.workloads.begin(), o.workloads.end(),
                                       [](const auto& n) { return find_workload(n)->file; });
  if (wants_file == o.workloads.end()) return {};
  struct stat st{};
  if (stat(o.dir.c_str(), &st) != 0) return o.dir + ": " + std::strerror(errno);
  if (!S_ISDIR(st.st_mode)) return o.dir + ": not a directory";
  std::string probe = o.dir + "/faultpath-lab-XXXXXX";
  const int fd = mkstemp(probe.data());
  if (fd < 0) {
    return o.dir + ": not writable (" + std::strerror(errno) + "); " + *wants_file +
           " needs files there";
  }
  unlink(probe.c_str());
  const bool big = ftruncate(fd, static_cast<off_t>(kAreaBytes)) == 0;
  const int error = errno;
  close(fd);
  if (!big) return o.dir + ": no file of " + mib(kAreaBytes) + ": " + std::strerror(error);

  const auto most = static_cast<std::uint64_t>(*std::max_element(o.tasks.begin(), o.tasks.end()));
  struct statvfs fs{};
  if (statvfs(o.dir.c_str(), &fs) != 0) return {};
  const std::uint64_t room = static_cast<std::uint64_t>(fs.f_bavail) * fs.f_frsize;
  const auto hosts = std::count(o.variants.begin(), o.variants.end(), kHostVariant);
  const bool both = hosts > 0 && hosts < static_cast<std::ptrdiff_t>(o.variants.size());
  for (const std::string& name : o.workloads) {
    const std::uint64_t need = (both ? 2 : 1) * most * kAreaBytes;
    if (find_workload(name)->shared_file && need > room) {
      return o.dir + ": " + name + " with " + std::to_string(most) + " tasks fills " + mib(need) +
             ", free are " + mib(room);
    }
  }
  return {};
}

std::optional<std::string> check_memory(const RunOptions& o) {
  const std::uint64_t available = available_memory();
  const bool host =
      std::find(o.variants.begin(), o.variants.end(), kHostVariant) != o.variants.end();
  const bool engine = std::any_of(o.variants.begin(), o.variants.end(),
                                  [](const std::string& v) { return v != kHostVariant; });
  if (o.memory_bytes != 0 && o.memory_bytes < (std::uint64_t{1} << 20)) {
    return "memory of " + std::to_string(o.memory_bytes) + " bytes is below 1 MiB";
  }
  for (const std::string& name : o.workloads) {
    const WorkloadInfo& w = *find_workload(name);
    for (const Mode mode : o.modes) {
      for (const int tasks : o.tasks) {
        const std::uint64_t need = machine_bytes(w, tasks, mode == Mode::threads, o.ebizzy);
        const std::string who = name + " with " + std::to_string(tasks) +
                                (tasks == 1 ? " task" : " tasks") + " needs " + mib(need);
        if (engine && o.memory_bytes != 0 && o.memory_bytes < need) {
          return who + " of memory, given are " + mib(o.memory_bytes);
        }
        std::uint64_t total = engine ? std::max(need, o.memory_bytes) : 0;
        if (host) total += need;
        if (w.shared_file && host && engine)
          total += static_cast<std::uint64_t>(tasks) * kAreaBytes;
        if (available != 0 && total > available) {
          return who + " of memory for a variant and " + mib(total) +
                 " altogether; this machine has " + mib(available) + " free";
        }
      }
    }
  }
  return {};
}

}  // namespace

std::optional<std::string> validate(const RunOptions& options) {
  if (auto e = check_names(options)) return e;
  if (auto e = check_numbers(options)) return e;
  if (auto e = check_ebizzy(options.ebizzy)) return e;
  if (auto e = check_dir(options)) return e;
  return check_memory(options);
}

}  // namespace faultpath::lab
