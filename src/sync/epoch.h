// Epochs: readers that take no lock, and memory that outlives them.
//
// Guarantees. An object that was unlinked, then retired with the global epoch at e, is handed back
// for reuse only after the global epoch has reached e + 2. The epoch advances from g to g + 1 only
// when every Cpu that is inside an epoch section entered it at g, and every access section (and
// interrupts-off section) that was open at the beginning of the attempt has closed. So whoever
// could have seen the object before it was unlinked is gone.
//
// Why e + 2. The retirer passes a full fence between the unlink and its read of the epoch, so
// whoever enters at e + 1 or later cannot find the object. Those who entered at e or before hold up
// the advance to e + 2.
//
// An entrant that read an old epoch and published it late is harmless: it holds advances up for
// longer, and it cannot have found anything before its fence.
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
  /// Enters a section. May be nested; a signal handler may enter inside its outer frame's.
  void enter(EpochSlot& slot, env::Site site = env::Site::current()) {
    if (slot.depth++ != 0) return;
    slot.word.store(global_.load(env::relaxed, site) * 2 + 1, env::relaxed, site);
    // Named fence: epoch entry. The slot is visible before the first load of the section.
    if (env::guard<Guard::fence_epoch_entry>()) env::full_fence(slot.word, site);
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
