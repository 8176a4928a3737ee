// What a word of the engine says.
#pragma once

#include <cstdint>

namespace faultpath::check {

/// What kind of word is there: how its values are to be read.
enum class Meaning : std::uint8_t {
  unknown,
  number,
  lock,       ///< a spin lock
  rw_lock,    ///< a SpinRwLock's word
  mmap_lock,  ///< an RwLock's word
  page_lock,  ///< a SleepLock's word
  sequence,
  section,
  signal,  ///< between Cpus, about flushes and sections
  entry,   ///< of a page table, of any level
  payload,
  frame_kind,
  page_flags,
  pointer,
  vma_flags,
  bits,
};

}  // namespace faultpath::check
