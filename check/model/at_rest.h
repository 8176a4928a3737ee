// The laws that hold when no call is in progress, verified on the engine's own structures.
//
// Every frame has exactly one holder; references are as many as there are names; every VMA is where
// it belongs and unmarked; no lock is held; translations that Cpus keep are what the tables say, or
// a flush for them is posted; counters add up. What breaks one of these was lost, leaked, or left
// behind by somebody.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "check/scene/memory_store.h"
#include "memory/machine_core.h"
#include "vma/mm.h"

namespace faultpath::cache {
class FileObject;
}

namespace faultpath::check {

/// A stretch of addresses.
struct Range {
  Addr start = 0;
  Addr end = 0;
};

/// What there is to look at. Shared anonymous objects are found through the VMAs that map them.
struct Rest {
  struct File {
    cache::FileObject* object = nullptr;
    std::uint32_t handles = 1;           ///< references that are no mapping's
    const MemoryStore* store = nullptr;  ///< null: contents are not compared
  };

  memory::MachineCore* core = nullptr;
  std::span<vma::Mm* const> spaces{};  ///< all that are alive
  std::span<const File> files{};       ///< all that an embedder holds
  /// Where mappings may have been: page tables are read there and where VMAs are. Entries elsewhere
  /// show in the counts of their tables, and in the full walk of every 64th call.
  std::span<const Range> windows{};
};

/// True if all laws hold. If not, `why` (which may be null) says which do not, a line each. Not
/// reentrant: it works in memory of its own.
bool at_rest(const Rest& rest, std::string* why);

}  // namespace faultpath::check
