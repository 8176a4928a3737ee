#include "fault/entry_lock.h"

#include "base/assert.h"
#include "pagetable/flush.h"

namespace faultpath::fault {

namespace {
/// v11 loops for ever and v10 gave up at once; the bound is ours (B38). Between two tries other
/// Cpus' flushes are let through.
constexpr int kTrylockTries = env::per_world(64, 2);
}  // namespace

// v11's pte_map_lock and pte_spinlock: interrupts off, compare, try, compare again.
//
// Interrupts are off so that the table stays a table between the first comparison and the lock:
// whoever frees tables waits for this section. Only tried, since the holder may be waiting for our
// answer to a flush.
bool EntryLock::lock_speculatively() FP_NO_THREAD_SAFETY_ANALYSIS {
  for (int tries = 0; !env::guard<Guard::trylock_bounded>() || tries < kTrylockTries; ++tries) {
    {
      pagetable::InterruptsOff off(f_.cpu);
      if (env::guard<Guard::recheck_before_table_lock>() &&
          f_.live->sequence.changed(f_.sequence)) {
        f_.passed_on = Counter::spf_vma_changed;
        return false;
      }
      if (f_.leaf.meta->lock.try_lock()) {
        if (env::guard<Guard::recheck_under_table_lock>() &&
            f_.live->sequence.changed(f_.sequence)) {
          f_.leaf.meta->lock.unlock();
          f_.passed_on = Counter::spf_vma_changed;
          return false;
        }
        if (env::guard<Guard::table_still_linked>() && f_.leaf.meta->dead.load(env::relaxed) != 0) {
          f_.leaf.meta->lock.unlock();
          f_.passed_on = Counter::spf_pmd_changed;
          return false;
        }
        return true;
      }
    }
    env::pause();
  }
  f_.passed_on = Counter::spf_pte_lock;
  return false;
}

EntryLock::Result EntryLock::lock() FP_NO_THREAD_SAFETY_ANALYSIS {
  if (!f_.speculative()) {
    f_.leaf.meta->lock.lock();
    // Tables are unlinked only under the mmap lock for write, which our hold excludes; or, where
    // the VMA is locked, by an operation that has locked every VMA whose entries the table has.
    FP_ASSERT(f_.leaf.meta->dead.load(env::relaxed) == 0);
  } else if (!lock_speculatively()) {
    return Result::pass_on;
  }
  held_ = true;
  if (env::guard<Guard::pte_still_as_expected>() && entry().load(env::acquire) != f_.seen.word()) {
    unlock();
    return Result::entry_changed;
  }
  return Result::held;
}

}  // namespace faultpath::fault
