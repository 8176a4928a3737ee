// MachineCore: the physical side that every room above works on. Frames, slabs, Cpus, epochs.
#pragma once

#include <faultpath/machine.h>

#include "memory/buddy.h"
#include "memory/cpu.h"
#include "memory/frame.h"
#include "memory/slab.h"
#include "sync/epoch.h"

namespace faultpath::check {
struct Inspect;
}

namespace faultpath::memory {

class MachineCore {
 public:
  /// In place, in the region's table memory. Null where the host gives no memory (out of range) or
  /// has no heavy fence; `why` says which.
  static MachineCore* create(const MachineOptions& options, Errno* why);
  static void destroy(MachineCore* core);

  // --- frames -------------------------------------------------------------------------------
  Frame& frame(Pfn pfn) { return frames_[pfn]; }
  Frame* frame_table() { return frames_; }
  Pfn pfn_of(const Frame& f) const { return static_cast<Pfn>(&f - frames_); }
  std::byte* payload(Pfn pfn) const { return region_.payload + pfn * env::kPayloadBytes; }
  std::byte* object_memory(Pfn pfn) const { return region_.objects + pfn * kPageSize; }
  /// The frame that holds an engine object.
  Pfn pfn_of_object(const void* object) const {
    const auto offset = static_cast<const std::byte*>(object) - region_.objects;
    return static_cast<Pfn>(static_cast<std::uint64_t>(offset) >> kPageShift);
  }
  Pfn zero_pfn() const { return zero_pfn_; }

  /// One frame with one reference and the given kind, payload as it was left. kNoPfn when there is
  /// none, after reclaim() if `may_wait`. Not from inside a section if it may wait.
  Pfn allocate_frame(Cpu& cpu, FrameKind kind, bool may_wait);
  /// Drops a reference taken on a guest page; the last one frees the frame.
  void put_frame(Cpu& cpu, Pfn pfn);
  /// A frame that nobody can reach any more, whatever its count says.
  void free_frame(Cpu& cpu, Pfn pfn);
  /// A chain of such frames by Frame::next, ended by kNoPfn.
  void free_chain(Cpu& cpu, Pfn head);

  // --- engine objects -----------------------------------------------------------------------
  /// Null when frames are short (after reclaim()). See Slab on what the memory holds.
  void* allocate_object(Cpu& cpu, SlabKind kind);
  /// An object that was never visible to others, or whose readers are known to be gone.
  void free_object(Cpu& cpu, SlabKind kind, void* object);

  /// A chain (by Frame::next) of slab pages without objects goes back to the buddy allocator.
  void release_slab_pages(Cpu& cpu, Pfn head);

  // --- grace periods ------------------------------------------------------------------------
  sync::EpochDomain& epochs() { return epochs_; }
  /// Hands over what was unlinked: reused after a grace period. The unlinking stores precede the
  /// call; the full fence is in here.
  void retire(Cpu& cpu, RetireBatch& batch);
  /// One attempt to advance the epoch; gives up on a Cpu that stays in a section for long.
  bool try_advance(Cpu& cpu);
  /// Out of memory: drains all Cpus' caches and waits for grace periods, a bounded time. True if a frame
  /// may have become free.
  bool reclaim(Cpu& cpu);
  void quiesce(Cpu& cpu);

  // --- Cpus ---------------------------------------------------------------------------------
  /// A slot for a new owner; null when all are taken.
  Cpu* attach();
  /// Hands caches and retired objects over and frees the slot. The owner is outside every section.
  void detach(Cpu& cpu);
  Cpu& cpu(std::uint32_t id) { return cpus_[id]; }
  std::uint32_t cpu_limit() const { return cpu_limit_.load(env::acquire); }

  /// The Cpu of calls that come without one (making and destroying spaces, quiesce). Holding
  /// `system_lock` is being its owner.
  sync::SleepLock system_lock;
  Cpu& system_cpu() FP_REQUIRES(system_lock) { return cpus_[0]; }

  MemoryInfo memory_info();
  Counters counters();
  int fd() const { return region_.fd; }

 private:
  friend struct ::faultpath::check::Inspect;  // the checker's laws at rest
  MachineCore(const MachineOptions& options, const env::Region& region);

  void refill(Cpu& cpu) FP_REQUIRES(cpu.cache_lock);
  void cache_frame(Cpu& cpu, Pfn pfn) FP_REQUIRES(cpu.cache_lock);
  void cache_object(Cpu& cpu, SlabKind kind, void* object) FP_REQUIRES(cpu.cache_lock);
  /// `actor` is the caller's own Cpu and counts; `cpu` is the one whose bucket it is.
  void release_bucket(Cpu& actor, Cpu& cpu, RetireBucket& bucket) FP_REQUIRES(cpu.cache_lock);
  void release_ripe(Cpu& actor, Cpu& cpu);
  void drain(Cpu& cpu);
  /// A frame out of the buddy allocator or a cache begins its life, which make_free() ends.
  void make_used(Pfn pfn, FrameKind kind) {
    frame(pfn).kind.store(kind, env::relaxed);
    frame(pfn).refs.store(1, env::relaxed);
    env::born(payload(pfn), env::kPayloadBytes);
    env::born(object_memory(pfn), kPageSize);
    env::lock_born(&frame(pfn).lock);
  }
  void note_death(Pfn pfn) const {
    env::died(payload(pfn), env::kPayloadBytes);
    env::died(object_memory(pfn), kPageSize);
    // The lock's memory is never freed (B37); whoever takes it believes in a table that is gone.
    env::lock_died(&frames_[pfn].lock);
  }
  void make_free(Pfn pfn);

  env::Region region_;
  Frame* frames_;
  Cpu* cpus_;
  std::uint32_t max_cpus_;
  bool poison_;
  Pfn zero_pfn_ = kNoPfn;
  Buddy buddy_;
  Slab slabs_[kSlabKinds];
  sync::EpochDomain epochs_;
  env::SpinLock attach_lock_;
  env::atomic<std::uint32_t> cpu_limit_;  ///< slots ever used; they stay readable
};

/// Bytes of each kind of object; defined by the rooms that own the types.
std::uint32_t slab_object_bytes(SlabKind kind);
/// Where in such an object is the line that readers may touch even while it is free, so that its
/// page becomes something else only after a grace period; 0: there is none.
std::uint32_t slab_stable_line(SlabKind kind);

/// Owning the system Cpu for a while.
class FP_SCOPED_CAPABILITY SystemCpu {
 public:
  explicit SystemCpu(MachineCore& core) FP_ACQUIRE(core.system_lock) : core_(core) {
    core_.system_lock.lock();
  }
  ~SystemCpu() FP_RELEASE() { core_.system_lock.unlock(); }
  Cpu& get() FP_NO_THREAD_SAFETY_ANALYSIS { return core_.system_cpu(); }
  SystemCpu(const SystemCpu&) = delete;
  SystemCpu& operator=(const SystemCpu&) = delete;

 private:
  MachineCore& core_;
};

}  // namespace faultpath::memory
