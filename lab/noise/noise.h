// What else runs on this machine while the lab measures.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace faultpath::lab {

/// A run is noisy where others took more than `foreign_cpus` and it got less than `own_share` of
/// the CPUs that it could use.
struct NoiseLimits {
  double foreign_cpus = 0.08;
  double own_share = 0.96;
};

constexpr bool is_noisy(double foreign_cpus, double own_share, const NoiseLimits& limits = {}) {
  return foreign_cpus >= limits.foreign_cpus && own_share <= limits.own_share;
}

/// One line of /proc/PID/stat, as far as the lab wants it.
struct PidStat {
  pid_t pid = 0;
  pid_t parent = 0;
  bool kernel_thread = false;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  double cpu_seconds = 0;           ///< user and system
  double children_cpu_seconds = 0;  ///< of children that were waited for
};
std::optional<PidStat> parse_pid_stat(std::string_view line);
std::optional<PidStat> read_pid_stat(pid_t pid);

/// CPU seconds in which all CPUs did something, from the first line of /proc/stat.
std::optional<double> parse_busy_seconds(std::string_view first_line);

/// Sleeps for `seconds` and returns how many CPUs were busy meanwhile; 0 where /proc does not tell.
double busy_cpus(double seconds);

/// CPU time of the user processes that are none of ours, between two looks at /proc.
class ForeignCpu {
 public:
  /// `own`: the lab itself and its children.
  explicit ForeignCpu(std::vector<pid_t> own) : own_(std::move(own)) {}
  void begin();
  /// CPUs used by others since begin(), on average.
  double end() const;

 private:
  struct Look {
    double at = 0;
    std::map<pid_t, double> cpu_seconds;
  };
  Look look() const;

  std::vector<pid_t> own_;
  Look first_;
};

}  // namespace faultpath::lab
