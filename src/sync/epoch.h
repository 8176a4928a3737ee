// Epochs: readers that take no lock, and memory that outlives them.
//
// Guarantees. An object that was unlinked, then retired with the global epoch at e, is handed back
// for reuse only after the global epoch has reached e + 3. The epoch advances from g to g + 1 only
// when, after a heavy fence, every Cpu that is inside an epoch section entered it at g, and every
// access section (and interrupts-off section) that was open has closed. So whoever could have seen
// the object before it was unlinked is gone.
//
// Entering costs no fence: it is the light half of the asymmetric pair, whose heavy half each advance
// issues between reading the epoch and reading the slots.
//
// Why e + 3. Call the advances A1 (e to e + 1), A2, A3.
//   A section that says e or less holds A2 up, if A2 sees it; one that A2's heavy fence came too early
//   for opened after that fence, and so did its loads.
//   A section that says e + 1 may still find the object: nothing orders its loads after the fence that
//   the retirer passed between the unlink and its read of e. It holds A3 up, in the same way.
//   A section that says e + 2 cannot. It acquired e + 2 from A2, whose heavy fence followed A2's read
//   of e + 1, and so the retirer's fence: the unlink is visible to all that A2's store is visible to.
//   Likewise what opens after the heavy fence of A2 or A3, whatever it says.
//
// An entrant that read an old epoch and published it late is harmless: it holds advances up for
// longer.
#pragma once

#include "base/guards.h"
#include "env.h"

namespace faultpath::sync {

/// One Cpu's place. Written by its owner.
struct EpochSlot {
  env::atomic<std::uint64_t> word;  ///< 0 outside; epoch * 2 + 1 inside
  env::var<std::uint32_t> depth;    ///< sections nest
};

class EpochDomain {
 public:
  /// Advances from retirement to reuse.
  static constexpr std::uint64_t kGrace = 3;

  /// Enters a section. May be nested; a signal handler may enter inside its outer frame's.
  void enter(EpochSlot& slot, env::Site site = env::Site::current()) {
    if (slot.depth++ != 0) return;
    // Acquire: see "a section that says e + 2".
    env::store_then_light_fence(slot.word, global_.load(env::acquire, site) * 2 + 1, site);
  }
  void leave(EpochSlot& slot, env::Site site = env::Site::current()) {
    if (--slot.depth == 0) slot.word.store(0, env::release, site);
  }
  std::uint64_t now() const { return global_.load(env::acquire); }

  /// True if `slot` does not hold up the advance from `epoch`.
  static bool passes(const EpochSlot& slot, std::uint64_t epoch) {
    const std::uint64_t w = slot.word.load(env::acquire);
    return w == 0 || w == epoch * 2 + 1;
  }
  /// Caller has checked every slot and section since it read now() == epoch, under `advance_lock`.
  void advance_from(std::uint64_t epoch) FP_REQUIRES(advance_lock) {
    global_.store(epoch + 1, env::release);
  }

  env::SpinLock advance_lock;  ///< one attempt at a time

 private:
  alignas(64) env::atomic<std::uint64_t> global_;
};

/// Scope of an epoch section.
class EpochSection {
 public:
  EpochSection(EpochDomain& domain, EpochSlot& slot, env::Site site = env::Site::current())
      : domain_(domain), slot_(slot), site_(site) {
    domain_.enter(slot_, site_);
  }
  ~EpochSection() { domain_.leave(slot_, site_); }
  EpochSection(const EpochSection&) = delete;
  EpochSection& operator=(const EpochSection&) = delete;

 private:
  EpochDomain& domain_;
  EpochSlot& slot_;
  [[no_unique_address]] env::Site site_;
};

}  // namespace faultpath::sync
