// VmaLock: the lock of one VMA, which faults take for read instead of the mmap lock (Linux 6.15's
// vm_refcnt and vm_lock_seq).
//
// Who waits for whom
//
//   A fault never waits: start_read either gets the lock, or says why not. A writer holds the mmap
//   lock for write, so there is one at a time in a space; it waits in start_write until the faults
//   that hold this VMA are through, and from then on none gets in. No writer unlocks a VMA: all
//   that it locked come free with one release store, of the space's own sequence, when it lets the
//   mmap lock go. A VMA is write-locked just while its sequence equals that one, which is odd while
//   the mmap lock is held for write.
//
// Type stability
//
//   A VMA's memory is reused for another VMA, of any space, at once; it becomes something else only
//   after a grace period. So who found a VMA in the tree, inside an epoch section, may touch this
//   line, whatever the VMA has become meanwhile: nothing else of it, until the count is up. The
//   line survives reuse: the count is 0 from detach() to attach(), through death and rebirth.
//
// Why the four checks of start_read, in their order, are enough (B14)
//
//   1  sequence equals the space's: a writer has it. Racy, and only there to save the write.
//   2  the count goes up from at least 1 (acquire). Zero: detached, dead or not yet born. The flag:
//      a writer drains. Once it is up, this VMA stays attached until it is down again: detach()
//      waits. So `mm` and the bounds, stored before attach()'s release, can be read.
//   3  `mm` is the caller's: else the memory was recycled for a VMA of another space.
//   4  sequence against the space's again (acquire). Only now is the answer exact: a writer stores
//      the VMA's sequence while readers are kept out by the flag, and takes the flag away with
//      release; whoever counted in before the flag is waited for, whoever counts in after it sees
//      the sequence. Equal to an old sequence of the space, read late: a false "locked", harmless.
//   then the caller compares the address with the bounds: recycled for another place in the same
//   space, or resized between the walk and the lock.
//
// 64 bits do not wrap, so a VMA that nobody locked for long is never taken for locked.
#pragma once

#include <cstdint>

#include "env.h"

namespace faultpath::memory {
struct Cpu;
}

namespace faultpath::vma {

class Mm;
class Vma;

struct alignas(64) VmaLock {
  static constexpr std::uint32_t kWriter = 1u << 30;  ///< a writer waits for readers
  static constexpr std::uint32_t kMostReaders = kWriter - 1;

  /// 0 detached; 1 attached, nobody reads; 1 + n: n readers; kWriter besides.
  env::atomic<std::uint32_t> count;
  /// The space's sequence when it was last locked for write; 0 never.
  env::atomic<std::uint64_t> sequence;
};

enum class StartRead : std::uint8_t {
  held,
  detached,  ///< it left the tree, or is on its way in: look up again
  busy,      ///< a writer has it or drains it, or it is another space's by now
};

/// vma_start_read. Inside the epoch section of `cpu` in which `v` was found in `mm`'s tree.
StartRead start_read(memory::Cpu& cpu, Mm& mm, Vma& v);
/// vma_end_read. The VMA may be gone when it returns; `mm` is a space that the caller is inside.
void end_read(Mm& mm, Vma& v);

}  // namespace faultpath::vma
