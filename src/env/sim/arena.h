// The arena: the memory of a simulated machine, at the same addresses in every process.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "world.h"

namespace faultpath::sim {

/// [data | stacks]. Data is handed out from the bottom: a scene's state, then the machine's region.
/// The snapshot keeps what of the data has been used. Plain stores of the engine go unnoticed, so
/// `always` is copied back whole; of the rest, the pages that have been marked dirty.
class Arena {
 public:
  static constexpr std::uint64_t kBase = 0x2000'0000'0000;
  static constexpr std::uint64_t kPage = 4096;
  static constexpr std::uint64_t kDataBytes = 3u << 20;
  static constexpr std::uint64_t kStackBytes = 128u << 10;
  static constexpr std::uint64_t kBytes = kDataBytes + kMaxCpus * kStackBytes;
  static constexpr std::uint64_t kGranule = 64;  ///< of the notes on dead memory

  Arena();

  bool contains(const void* at) const { return offset(at) < kBytes; }
  std::uint64_t offset(const void* at) const {
    return reinterpret_cast<std::uintptr_t>(at) - kBase;
  }
  std::byte* at(std::uint64_t offset) const { return base_ + offset; }
  std::byte* stack(unsigned cpu) const { return base_ + kDataBytes + cpu * kStackBytes; }

  void reset();
  /// Page-aligned zeroed data; null when the arena is full. `always`: may be written unnoticed.
  std::byte* take(std::uint64_t bytes, bool always);
  void freeze();
  void restore();
  void mark_dirty(std::uint64_t offset) {
    if (offset < kDataBytes) dirty_[offset / kPage] = 1;
  }

  /// Notes on lifetimes, by granule; restored with the data.
  std::vector<std::uint8_t> dead;
  std::vector<std::uint8_t> dead_page;
  std::vector<std::uint8_t> dead_lock;

 private:
  struct Range {
    std::uint64_t from;
    std::uint64_t to;
  };

  std::byte* base_ = nullptr;
  std::uint64_t used_ = 0;
  std::vector<Range> always_;
  std::vector<std::byte> snapshot_;
  std::vector<std::uint8_t> snapshot_dead_;
  std::vector<std::uint8_t> snapshot_dead_page_;
  std::vector<std::uint8_t> snapshot_dead_lock_;
  std::vector<std::uint8_t> dirty_;
};

}  // namespace faultpath::sim
