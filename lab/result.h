// What a measurement leaves behind: plain data, raw samples kept. The runner fills it; tables, JSON
// and verdicts read it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace faultpath::lab {

/// Name and value, in printing order.
using CounterList = std::vector<std::pair<std::string, double>>;

enum class Mode { threads, processes };

/// Nanoseconds; nothing sampled is all zero.
struct Latency {
  double p50 = 0;
  double p99 = 0;
  std::uint64_t samples = 0;
};

/// Of lat_sig_prot, nanoseconds an access; nothing timed is all zero.
struct AccessTime {
  double access_ns = 0;  ///< the figure: the access alone, never below 0
  double prot_ns = 0;    ///< the access and its handler
  double catch_ns = 0;   ///< the handler without an access
  std::uint64_t rounds = 0;
};

/// One measured run of one cell.
struct Sample {
  double seconds = 0;            ///< real length of the measured window
  double ops_per_second = 0;     ///< summed over the counting tasks
  std::vector<double> task_ops;  ///< per counting task, operations per second
  CounterList counters;          ///< totals of the window
  Latency fault_latency;         ///< of the faulting tasks' operations that may fault, sampled
  double faults_per_op = 0;
  AccessTime access_time;
  double own_cpu = 0;       ///< CPU seconds of this process and its children in the window
  double foreign_cpus = 0;  ///< CPUs used by other user processes, mean over the window
  bool noisy = false;       ///< over the noise limit even after the allowed repeats
};

/// One workload under one variant, in one mode, with one number of tasks.
struct Cell {
  std::string workload;  ///< "page_fault1"
  std::string variant;   ///< "mmap-lock", "spf:single-thread-bypass=off", "host"
  Mode mode = Mode::threads;
  int tasks = 1;
  std::vector<Sample> samples;
  int rejected_runs = 0;     ///< noisy runs that were thrown away and repeated
  bool verified = false;     ///< the unmeasured pass and every last window were right
  std::string verify_error;  ///< what was wrong, one line; empty if nothing was
};

struct MachineBlock {
  std::string kernel, cpu_model, thp, aslr, filesystem, compiler, version, date, page_size;
  int cpus = 0;
  double memory_gib = 0;
};

struct ResultSet {
  MachineBlock machine;
  std::string command;  ///< the command line that made it
  std::string workload_version;
  double seconds = 0;  ///< measured window asked for
  int repeats = 0;
  std::string base;  ///< variant on the left
  std::vector<std::string> heads;
  std::vector<Cell> cells;
  std::vector<std::string> notes;  ///< e.g. "host includes the hardware trap"
};

}  // namespace faultpath::lab
