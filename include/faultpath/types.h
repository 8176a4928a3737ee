// The vocabulary of mapping calls: rights, flags, advice, and what a VMA looks like from outside.
#pragma once

#include <faultpath/config.h>

#include <cstdint>

namespace faultpath {

/// Rights of a mapping; PROT_* of mmap(2). Combine with `|`.
enum class Prot : std::uint8_t { none = 0, read = 1, write = 2, exec = 4 };

constexpr Prot operator|(Prot a, Prot b) {
  return static_cast<Prot>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr Prot operator&(Prot a, Prot b) {
  return static_cast<Prot>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}
constexpr bool has(Prot set, Prot bits) { return (set & bits) == bits; }

/// Where a mapping may go; MAP_FIXED and its kin. Without one of them the address is a hint.
enum class Placement : std::uint8_t {
  hint,             ///< the hint if it is free, else top-down below the mmap base
  fixed,            ///< exactly there; what was there is unmapped, in one step for observers
  fixed_noreplace,  ///< exactly there; EEXIST where anything is in the way, nothing changed
};

/// madvise(2) values that exist so far.
enum class Advice : std::uint8_t {
  normal = 0,
  dontneed = 4,  ///< drop the pages of the range now; the next touch sees zeroes or the file
};

class File;

/// The arguments of AddressSpace::map, named as mmap(2)'s. Lengths and offsets in bytes.
struct MapRequest {
  Addr address = 0;          ///< hint, or the exact address under `fixed*`
  std::uint64_t length = 0;  ///< rounded up to whole pages; 0 is EINVAL
  Prot prot = Prot::none;
  bool shared = false;  ///< MAP_SHARED; else MAP_PRIVATE (copy on write)
  Placement placement = Placement::hint;
  const File* file =
      nullptr;               ///< null: anonymous memory. The mapping keeps the file open by itself.
  std::uint64_t offset = 0;  ///< into the file, a multiple of the page size
  /// MAP_GROWSDOWN: a fault below the mapping extends it down to there, within
  /// SpaceOptions::stack_limit and 256 pages from the next mapping. Not with `shared`.
  bool grows_down = false;
};

/// One VMA as for_each_vma shows it: what a line of /proc/PID/maps says.
struct VmaInfo {
  Addr start = 0;
  Addr end = 0;
  std::uint64_t offset = 0;  ///< bytes into the file; 0 for anonymous memory
  Prot prot = Prot::none;
  std::uint8_t pkey = 0;  ///< protection key
  bool shared = false;
  bool has_file = false;  ///< a file opened by the embedder (shared anonymous memory has none)
};

}  // namespace faultpath
