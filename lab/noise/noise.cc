#include "lab/noise/noise.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <ctime>

#include "lab/run/ticks.h"

namespace faultpath::lab {
namespace {

double ticks_per_second() {
  static const auto hz = static_cast<double>(sysconf(_SC_CLK_TCK));
  return hz > 0 ? hz : 100;
}

/// The start of a small file; empty if it cannot be read.
std::string read_start(const char* path) {
  std::array<char, 1024> buffer;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  const ssize_t got = read(fd, buffer.data(), buffer.size());
  close(fd);
  return got > 0 ? std::string(buffer.data(), static_cast<std::size_t>(got)) : std::string();
}

/// The numbers of a line, up to the first word that is none.
template <std::size_t N>
std::size_t numbers(std::string_view text, std::array<std::int64_t, N>& out) {
  std::size_t n = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (n < N) {
    while (at < end && (*at == ' ' || *at == '\t')) ++at;
    const auto [next, error] = std::from_chars(at, end, out[n]);
    if (error == std::errc::invalid_argument) break;
    if (error != std::errc()) out[n] = 0;  // too big for us; nothing that we use is
    at = next;
    ++n;
  }
  return n;
}

}  // namespace

std::optional<PidStat> parse_pid_stat(std::string_view line) {
  // The name is in parentheses and may hold anything, parentheses too.
  const auto open_at = line.find('(');
  const auto close_at = line.rfind(')');
  if (open_at == std::string_view::npos || close_at == std::string_view::npos) return {};
  if (close_at < open_at || close_at + 4 > line.size()) return {};
  std::array<std::int64_t, 1> pid{};
  if (numbers(line.substr(0, open_at), pid) != 1) return {};
  // From the fourth field on; the third is a letter.
  std::array<std::int64_t, 14> f{};
  if (numbers(line.substr(close_at + 4), f) < f.size()) return {};
  PidStat s;
  s.pid = static_cast<pid_t>(pid[0]);
  s.parent = static_cast<pid_t>(f[0]);
  s.kernel_thread = (f[5] & 0x00200000) != 0;
  s.minor_faults = static_cast<std::uint64_t>(f[6]);
  s.major_faults = static_cast<std::uint64_t>(f[8]);
  s.cpu_seconds = static_cast<double>(f[10] + f[11]) / ticks_per_second();
  s.children_cpu_seconds = static_cast<double>(f[12] + f[13]) / ticks_per_second();
  return s;
}

std::optional<PidStat> read_pid_stat(pid_t pid) {
  return parse_pid_stat(read_start(("/proc/" + std::to_string(pid) + "/stat").c_str()));
}

std::optional<double> parse_busy_seconds(std::string_view first_line) {
  if (!first_line.starts_with("cpu ")) return {};
  std::array<std::int64_t, 8> f{};
  if (numbers(first_line.substr(4), f) < 4) return {};
  // user nice system idle iowait irq softirq steal
  return static_cast<double>(f[0] + f[1] + f[2] + f[5] + f[6] + f[7]) / ticks_per_second();
}

double busy_cpus(double seconds) {
  const double begin = now_seconds();
  const auto first = parse_busy_seconds(read_start("/proc/stat"));
  timespec rest{};
  rest.tv_sec = static_cast<time_t>(seconds);
  rest.tv_nsec = static_cast<long>((seconds - static_cast<double>(rest.tv_sec)) * 1e9);
  while (nanosleep(&rest, &rest) != 0) {
  }
  const auto second = parse_busy_seconds(read_start("/proc/stat"));
  const double passed = now_seconds() - begin;
  if (!first || !second || passed <= 0) return 0;
  return std::max(0.0, (*second - *first) / passed);
}

ForeignCpu::Look ForeignCpu::look() const {
  Look result;
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return result;
  const auto ours = [this](pid_t pid) {
    return std::find(own_.begin(), own_.end(), pid) != own_.end();
  };
  result.at = now_seconds();
  while (const dirent* entry = readdir(proc)) {
    if (std::isdigit(static_cast<unsigned char>(entry->d_name[0])) == 0) continue;
    const auto pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (ours(pid)) continue;
    const auto stat = read_pid_stat(pid);
    if (!stat || stat->kernel_thread) continue;
    // With the children that it waited for: what they used does not vanish when they end.
    result.cpu_seconds[pid] = stat->cpu_seconds + stat->children_cpu_seconds;
  }
  closedir(proc);
  return result;
}

void ForeignCpu::begin() { first_ = look(); }

double ForeignCpu::end() const {
  const Look last = look();
  const double passed = last.at - first_.at;
  if (passed <= 0) return 0;
  // A process that ended meanwhile left its time with the parent that waited for it.
  double used = 0;
  for (const auto& [pid, seconds] : last.cpu_seconds) used += seconds;
  for (const auto& [pid, seconds] : first_.cpu_seconds) used -= seconds;
  return std::max(0.0, used / passed);
}

}  // namespace faultpath::lab
