#include "lab/run/machine_facts.h"

#include <faultpath/config.h>
#include <sys/personality.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>

#include "lab/run/roles.h"
#include "lab/run/runner.h"

namespace faultpath::lab {
namespace {

std::string first_line(const char* path) {
  std::ifstream in(path);
  std::string line;
  std::getline(in, line);
  return line;
}

/// The number behind `key` in /proc/meminfo, in bytes.
std::uint64_t meminfo(std::string_view key) {
  std::ifstream in("/proc/meminfo");
  std::string line;
  while (std::getline(in, line)) {
    if (line.size() > key.size() && line.starts_with(key) && line[key.size()] == ':') {
      return std::strtoull(line.c_str() + key.size() + 1, nullptr, 10) * 1024;
    }
  }
  return 0;
}

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  std::string line;
  while (std::getline(in, line)) {
    if (!line.starts_with("model name")) continue;
    const auto colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::string aslr() {
  const int flags = personality(0xffffffff);
  if (flags != -1 && (flags & ADDR_NO_RANDOMIZE) != 0) return "off (for this process)";
  const std::string mode = first_line("/proc/sys/kernel/randomize_va_space");
  if (mode == "0") return "off";
  if (mode == "1") return "on, without the heap";
  if (mode == "2") return "on";
  return "unknown";
}

std::string kib(std::uint64_t bytes) { return std::to_string(bytes >> 10) + " KiB"; }

const char* type_of(unsigned long magic) {
  switch (magic) {
    case 0xEF53: return "ext4";
    case 0x01021994: return "tmpfs";
    case 0x58465342: return "xfs";
    case 0x9123683E: return "btrfs";
    case 0x794c7630: return "overlayfs";
    case 0x6969: return "nfs";
    case 0xF2F52010: return "f2fs";
    case 0x2FC12FC1: return "zfs";
    case 0x858458f6: return "ramfs";
    case 0x65735546: return "fuse";
    case 0x01021997: return "9p";
    default: return nullptr;
  }
}

/// Is `path` the mount point `mount`, or below it?
bool lies_below(const std::string& path, const std::string& mount) {
  if (mount == "/") return true;
  return path.starts_with(mount) && (path.size() == mount.size() || path[mount.size()] == '/');
}

}  // namespace

std::uint64_t available_memory() { return meminfo("MemAvailable"); }

std::string_view bracketed(std::string_view line) {
  const auto open = line.find('[');
  const auto close = line.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  return line.substr(open + 1, close - open - 1);
}

std::string filesystem_of(const std::string& dir) {
  struct statfs fs{};
  if (statfs(dir.c_str(), &fs) != 0) return "unknown";
  char hex[32];
  std::snprintf(hex, sizeof hex, "0x%lx", static_cast<unsigned long>(fs.f_type));
  const char* known = type_of(static_cast<unsigned long>(fs.f_type));
  char* resolved = realpath(dir.c_str(), nullptr);
  const std::string path = resolved ? resolved : dir;
  std::free(resolved);
  // ID PARENT MAJ:MIN ROOT MOUNT OPTIONS [TAG...] - TYPE SOURCE OPTIONS; the last match is on top.
  std::ifstream in("/proc/self/mountinfo");
  std::string line;
  std::string mount;
  std::string source;
  std::string mounted_type;
  while (std::getline(in, line)) {
    std::istringstream words(line);
    std::string skip, at, word, its_type, its_source;
    words >> skip >> skip >> skip >> skip >> at;
    while (words >> word && word != "-") {
    }
    words >> its_type >> its_source;
    if (!lies_below(path, at) || at.size() < mount.size()) continue;
    mount = at;
    source = its_source;
    mounted_type = its_type;
  }
  // ext2 and ext3 have the same magic number as ext4.
  std::string type = known ? known : hex;
  if ((known == nullptr || type == "ext4") && !mounted_type.empty()) type = mounted_type;
  if (mount.empty()) return type;
  return type + " (" + source + " on " + mount + ")";
}

MachineBlock read_machine_block(const std::string& dir) {
  MachineBlock b;
  utsname u{};
  if (uname(&u) == 0) b.kernel = std::string(u.sysname) + " " + u.release + " " + u.machine;
  b.cpu_model = cpu_model();
  b.thp = bracketed(first_line("/sys/kernel/mm/transparent_hugepage/enabled"));
  if (b.thp.empty()) b.thp = "not there";
  b.aslr = aslr();
  b.filesystem = filesystem_of(dir);
#if defined(__clang__)
  b.compiler = "Clang " __clang_version__;
#elif defined(__GNUC__)
  b.compiler = "GCC " __VERSION__;
#else
  b.compiler = "unknown";
#endif
  while (!b.compiler.empty() && b.compiler.back() == ' ') b.compiler.pop_back();
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  char date[32];
  std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
  b.date = date;
  b.page_size = kib(kPageSize);
  const auto host_page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (host_page != kPageSize) b.page_size += " (host " + kib(host_page) + ")";
  b.cpus = static_cast<int>(usable_cpus().size());
  b.memory_gib = static_cast<double>(meminfo("MemTotal")) / (1024.0 * 1024.0 * 1024.0);
  return b;
}

}  // namespace faultpath::lab
