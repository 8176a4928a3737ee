// Cpu: an execution context. What one thread of the engine works with and no other writes.
#pragma once

#include <faultpath/detail/cpu_block.h>

#include "base/counting.h"
#include "memory/frame.h"
#include "memory/slab.h"
#include "sync/epoch.h"

namespace faultpath::memory {

class MachineCore;

inline constexpr std::uint32_t kMaxCpus = env::per_world<std::uint32_t>(256, 64);
inline constexpr std::uint32_t kFrameCache = env::per_world<std::uint32_t>(256, 16);
inline constexpr std::uint32_t kFrameBatch = env::per_world<std::uint32_t>(128, 8);
inline constexpr std::uint32_t kMagazine = env::per_world<std::uint32_t>(16, 4);

/// One a bucket's epoch: when it comes round again, its objects are ripe.
inline constexpr unsigned kRetireBuckets = sync::EpochDomain::kGrace + 1;

/// Objects and frames that were unlinked while the global epoch was `epoch`.
struct RetireBucket {
  env::var<std::uint64_t> epoch{};
  env::var<Pfn> frames{};  ///< linked by Frame::next
  env::var<void*> objects[kSlabKinds]{};
  env::var<std::uint32_t> count{};

  RetireBucket() { frames = kNoPfn; }
};

/// A flush asked of a Cpu: the hull of all ranges not yet answered.
struct FlushBox {
  env::SpinLock lock;
  env::var<Addr> start FP_GUARDED_BY(lock);
  env::var<Addr> end FP_GUARDED_BY(lock);
  env::atomic<std::uint64_t> posted;    ///< generation of the last request; written under lock
  env::atomic<std::uint64_t> answered;  ///< generation up to which the TLB has been cleaned
};

/// Lines, by who writes them: CpuBlock's hot line (owner; flushers raise `attention`), the epoch
/// slot (owner), the flush box (flushers, owner when it answers), the caches (owner under
/// cache_lock; others take the lock only to drain them), the counters (owner).
struct Cpu : detail::CpuBlock {
  alignas(64) sync::EpochSlot epoch;
  MachineCore* machine = nullptr;
  void* space = nullptr;  ///< the Mm that it is inside; owner only
  std::uint32_t id = 0;
  std::uint32_t pkru = 0;  ///< x86's register of protection-key rights; owner only
  env::atomic<std::uint32_t> attached;

  alignas(64) FlushBox flush;

  /// Guards everything to the end of the block. The owner takes it uncontended, on its own line;
  /// out of memory and quiesce take it to drain the rest. Never held while waiting for anything.
  alignas(64) env::SpinLock cache_lock;
  env::var<std::uint32_t> frame_count FP_GUARDED_BY(cache_lock){};
  env::var<std::uint32_t> retired_count FP_GUARDED_BY(cache_lock){};
  env::var<std::uint8_t> magazine_count[kSlabKinds] FP_GUARDED_BY(cache_lock){};
  env::var<Pfn> frames[kFrameCache] FP_GUARDED_BY(cache_lock);
  env::var<void*> magazine[kSlabKinds][kMagazine] FP_GUARDED_BY(cache_lock);
  RetireBucket retired[kRetireBuckets] FP_GUARDED_BY(cache_lock);

  alignas(64) CounterBlock counters;
  CounterBlock baseline;  ///< counters' values when this owner attached

  void count(Counter c, std::uint64_t n = 1) { counters.add(c, n); }
};

/// What one operation unlinked, on its way to retire().
struct RetireBatch {
  Pfn frames = kNoPfn;
  void* objects[kSlabKinds] = {};
  std::uint32_t count = 0;

  void add_frame(Frame* table, Pfn pfn) {
    table[pfn].next = frames;
    frames = pfn;
    ++count;
  }
  void add_object(SlabKind kind, void* object) {
    auto& head = objects[static_cast<unsigned>(kind)];
    static_cast<PoolLink*>(object)->next = head;
    head = object;
    ++count;
  }
};

}  // namespace faultpath::memory
