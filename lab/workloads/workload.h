// What every workload has, and what it may leave at the default.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "lab/run/control.h"
#include "lab/targets/target.h"
#include "lab/workloads/options.h"

namespace faultpath::lab {

/// What backs an area.
enum class Backing : std::uint8_t { anonymous, private_file, shared_file };

/// Size of the areas and files of will-it-scale's memory tests.
inline constexpr std::uint64_t kAreaBytes = std::uint64_t{128} << 20;

/// What read2 reads at once, and the size of its file.
inline constexpr std::uint64_t kReadBytes = 4096;
inline constexpr std::uint64_t kReadFileBytes = std::uint64_t{1} << 20;

/// Where one task sits: its memory, its meter, and its place among the tasks of its space.
template <MemoryTarget T>
struct Seat {
  T& target;
  Meter& meter;
  const EbizzyOptions& ebizzy;
  const typename T::File* file =
      nullptr;             ///< kAreaBytes long, or the one of all tasks; may be null
  unsigned index = 0;      ///< among the counting tasks of its space
  unsigned tasks = 1;      ///< counting tasks of its space
  std::uint32_t salt = 0;  ///< differs between tasks and between runs
  Plant plant = Plant::none;
};

/// The byte that belongs into page `page`; never 0.
constexpr std::uint8_t page_byte(std::uint64_t page, std::uint32_t salt) {
  const auto mixed = (static_cast<std::uint32_t>(page) + salt * 0x85EBCA6Bu) * 0x9E3779B1u;
  return static_cast<std::uint8_t>((mixed >> 24) | 1);
}

/// Life of a workload: the first task of a space calls prepare_space() while the others wait; all
/// call set_up(), and run() between start and stop; when every task has stopped, check(). The
/// mapper of a space calls run_mapper() instead of run(). What is left is dropped with the space.
template <MemoryTarget T>
class Workload {
 public:
  /// What the tasks of one space have in common.
  struct Shared {};

  explicit Workload(const Seat<T>& seat) : seat_(seat) {}

  bool prepare_space() { return true; }
  bool set_up() { return true; }
  void check() {}
  void run_mapper() {}

 protected:
  T& target() const { return seat_.target; }
  Meter& meter() const { return seat_.meter; }
  bool deep() const { return seat_.meter.deep(); }

  /// `call` failed at `a`. Returns false.
  FP_NOINLINE bool broken(const char* call, Addr a = 0) {
    char reason[128];
    target().why(reason, sizeof reason);
    if (a != 0) {
      meter().fail("%s at 0x%llx failed: %s", call, static_cast<unsigned long long>(a), reason);
    } else {
      meter().fail("%s failed: %s", call, reason);
    }
    return false;
  }

  /// Is the byte at `a` the one that belongs there? `what` names the place.
  bool expect(Addr a, std::uint8_t wanted, const char* what, std::uint64_t page) {
    const int found = target().read(a);
    if (FP_LIKELY(found == wanted)) return true;
    if (found < 0) return broken("read", a);
    return wrong(what, page, found, wanted);
  }
  FP_NOINLINE bool wrong(const char* what, std::uint64_t page, int found, int wanted) {
    meter().fail("%s: page %llu holds 0x%02x, not 0x%02x", what,
                 static_cast<unsigned long long>(page), static_cast<unsigned>(found),
                 static_cast<unsigned>(wanted));
    return false;
  }

  /// Plants the wrong byte that a test asked for, in memory that the check will read.
  void plant_at(Addr a) {
    if (seat_.plant != Plant::memory || a == 0) return;
    target().write(a, static_cast<std::uint8_t>(target().read(a) ^ 0x5a));
  }
  void plant_in_file() {
    if (seat_.plant != Plant::file || seat_.file == nullptr) return;
    std::uint8_t byte = 0;
    if (pread(seat_.file->fd, &byte, 1, 0) != 1) return;
    byte ^= 0x5a;
    if (pwrite(seat_.file->fd, &byte, 1, 0) != 1) return;
  }

  /// Reads the file itself: `wanted(page)` gives the first byte of each page, and the rest of each
  /// is zero; a negative answer is a page that may hold anything. Looks at the first `bytes`, a
  /// multiple of 64 KiB.
  template <class F>
  bool expect_file(F wanted, std::uint64_t bytes = kAreaBytes) {
    const std::uint64_t page_size = target().page_size();
    std::array<std::uint8_t, 64 * 1024> buffer;
    const std::uint64_t step = std::min<std::uint64_t>(page_size, buffer.size());
    for (std::uint64_t at = 0; at < bytes;) {
      const ssize_t got =
          pread(seat_.file->fd, buffer.data(), buffer.size(), static_cast<off_t>(at));
      if (got <= 0 || static_cast<std::uint64_t>(got) % step != 0) {
        meter().fail("reading the file back failed: %s",
                     got < 0 ? strerrorname_np(errno) : "it ended too early");
        return false;
      }
      for (std::uint64_t i = 0; i < static_cast<std::uint64_t>(got); i += step) {
        const std::uint64_t page = (at + i) / page_size;
        const bool starts = (at + i) % page_size == 0;
        const int first = starts ? wanted(page) : 0;
        if (first < 0) continue;
        if (buffer[i] != first) return wrong("the file itself", page, buffer[i], first);
        const auto* rest = buffer.data() + i + 1;
        const auto* end = buffer.data() + i + step;
        const auto* odd = std::find_if(rest, end, [](std::uint8_t b) { return b != 0; });
        if (odd != end) return wrong("the file itself, inside", page, *odd, 0);
      }
      at += static_cast<std::uint64_t>(got);
    }
    return true;
  }

  Seat<T> seat_;
};

}  // namespace faultpath::lab
