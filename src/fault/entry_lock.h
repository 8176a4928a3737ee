// EntryLock: the linearisation point of every fault.
//
// Held means: the table's lock is held; the table is linked (dead was read clear under it); the VMA
// copy is still true; and the entry is as the fault saw it. Everything before was a hint. From here
// to the release, whoever wants to change this entry waits, and whoever changes the VMA will come
// to this entry afterwards, because it marks before it walks (I1).
#pragma once

#include "base/guards.h"
#include "fault/fault.h"

namespace faultpath::fault {

class EntryLock {
 public:
  enum class Result : std::uint8_t {
    held,
    entry_changed,  ///< somebody was faster: try the access again
    pass_on,        ///< spf: VMA or table changed, or the lock was busy for too long
  };

  explicit EntryLock(Fault& f) : f_(f) {}
  ~EntryLock() {
    if (held_) unlock();
  }
  EntryLock(const EntryLock&) = delete;
  EntryLock& operator=(const EntryLock&) = delete;

  Result lock();
  void unlock() FP_NO_THREAD_SAFETY_ANALYSIS {
    held_ = false;
    f_.leaf.meta->lock.unlock();
  }

  pagetable::Entry& entry() const { return f_.leaf.at(f_.page, 0); }
  /// Fills an empty entry. Release: the page's content is visible to whoever walks to it (I14,
  /// B63).
  void fill(Pte pte, env::Site site = env::Site::current()) {
    entry().store(pte.word(), env::release, site);
    ++f_.leaf.meta->occupied;
  }

 private:
  bool lock_speculatively();

  Fault& f_;
  bool held_ = false;
};

}  // namespace faultpath::fault
