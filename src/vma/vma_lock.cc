#include "vma/vma_lock.h"

#include "base/assert.h"
#include "base/guards.h"
#include "vma/mm.h"

namespace faultpath::vma {

namespace {

constexpr int kDrainSpins = env::per_world(200, 1);

/// Check 2: up by one, unless it is 0 or a writer's flag is set.
StartRead count_up(env::atomic<std::uint32_t>& count) {
  std::uint32_t seen = count.load(env::relaxed);
  for (;;) {
    if (seen == 0) return StartRead::detached;
    if (seen >= VmaLock::kMostReaders) return StartRead::busy;
    if (count.compare_exchange(seen, seen + 1, env::acquire, env::relaxed)) {
      return StartRead::held;
    }
  }
}

void wake_writer(Mm& owner) {
  owner.vma_drained.fetch_add(1, env::release);
  env::unpark_all(owner.vma_drained);
}

/// Down by one. The last one out wakes the writer of the VMA's space, who may be gone with the
/// space as soon as the count is down: so who is not inside that space is in an epoch section, which
/// keeps the space's memory (B11).
void count_down(Mm& owner, env::atomic<std::uint32_t>& count) {
  const std::uint32_t left = count.fetch_sub(1, env::release) - 1;
  if (FP_UNLIKELY((left & VmaLock::kWriter) != 0 && left <= VmaLock::kWriter + 1)) {
    wake_writer(owner);
  }
}

/// Counted in, and not what it was for.
StartRead step_back(Cpu& cpu, Mm& mm, Mm& owner, Vma& v) {
  if (!env::guard<Guard::vma_lock_wake_in_section>()) mm.core->epochs().leave(cpu.epoch);
  count_down(owner, v.lock.count);
  if (!env::guard<Guard::vma_lock_wake_in_section>()) mm.core->epochs().enter(cpu.epoch);
  return StartRead::busy;
}

}  // namespace

StartRead start_read(Cpu& cpu, Mm& mm, Vma& v) FP_NO_THREAD_SAFETY_ANALYSIS {
  if (v.lock.sequence.load(env::relaxed) == mm.lock_sequence.load(env::relaxed)) {  // 1
    return StartRead::busy;
  }
  const StartRead counted = count_up(v.lock.count);  // 2
  if (counted != StartRead::held) return counted;
  Mm* const owner = v.mm;
  if (env::guard<Guard::vma_lock_same_space>() && owner != &mm) {  // 3
    return step_back(cpu, mm, *owner, v);
  }
  if (env::guard<Guard::vma_lock_recheck>() &&
      v.lock.sequence.load(env::relaxed) == mm.lock_sequence.load(env::acquire)) {  // 4
    return step_back(cpu, mm, *owner, v);
  }
  return StartRead::held;
}

void end_read(Mm& mm, Vma& v) { count_down(mm, v.lock.count); }

// The word is read before the count: a reader that goes meanwhile changes it after the count, so
// either the count is seen as it should be, or parking finds the word changed.
void Mm::drain(Vma& v, std::uint32_t until) {
  for (int spins = 0;; ++spins) {
    const std::uint32_t seen = vma_drained.load(env::acquire);
    if (v.lock.count.load(env::acquire) == until) return;
    if (spins < kDrainSpins) {
      env::pause();
    } else {
      env::park(vma_drained, seen, 0);
    }
  }
}

void Mm::start_write(Vma& v) {
  const std::uint64_t now = lock_sequence.load(env::relaxed);
  if (v.lock.sequence.load(env::relaxed) == now) return;
  v.lock.count.fetch_add(VmaLock::kWriter, env::acquire);
  if (env::guard<Guard::vma_lock_drains_readers>()) drain(v, VmaLock::kWriter + 1);
  v.lock.sequence.store(now, env::relaxed);
  v.lock.count.fetch_sub(VmaLock::kWriter, env::release);
}

void Mm::attach(Vma& v) {
  if (marking != Marking::vma_lock) return;
  FP_ASSERT(v.lock.count.load(env::relaxed) == 0);
  v.lock.count.store(1, env::release);
}

// Late readers, who found the VMA in an older tree, come to check 4 at most and go again. After the
// wait no reader holds it, and none can count in.
void Mm::detach(Vma& v) {
  if (marking != Marking::vma_lock || v.lock.count.load(env::relaxed) == 0) return;
  if (v.lock.count.fetch_sub(1, env::acq_rel) == 1) return;
  if (!env::guard<Guard::vma_lock_detach_drains>()) return;
  v.lock.count.fetch_add(VmaLock::kWriter, env::acquire);
  drain(v, VmaLock::kWriter);
  v.lock.count.store(0, env::relaxed);
}

}  // namespace faultpath::vma
