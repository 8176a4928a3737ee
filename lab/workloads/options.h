// What a user may set about workloads.
#pragma once

#include <cstdint>

namespace faultpath::lab {

/// ebizzy's flags under its names; the defaults are ebizzy's.
struct EbizzyOptions {
  bool always_mmap = false;                ///< -m
  bool never_mmap = false;                 ///< -M
  bool touch_only = false;                 ///< -T
  std::uint32_t chunks = 10;               ///< -n
  std::uint64_t chunk_bytes = 512 * 1024;  ///< -s
};

/// A wrong byte, planted before the check: the test of the checks themselves.
enum class Plant : std::uint8_t { none, memory, file };

}  // namespace faultpath::lab
