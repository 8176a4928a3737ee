// Slabs: fixed-size engine objects over the engine's own frames.
#pragma once

#include "memory/frame.h"

namespace faultpath::check {
struct Inspect;
}

namespace faultpath::memory {

class MachineCore;
struct Cpu;

/// The kinds of object that slabs hold. Sizes are told by the rooms that define the types.
enum class SlabKind : std::uint8_t { vma, tree_node, anon_root, file, mm, count };
inline constexpr unsigned kSlabKinds = static_cast<unsigned>(SlabKind::count);

/// Every object in a slab begins with this word, which only the pool uses, and only while the
/// object is free or retired, or being taken out of its tree by the one writer: readers never look
/// at it.
struct PoolLink {
  env::pool_var<void*> next;
};

/// One kind's slab. Fresh memory is zero; a reused object is as it was left, so that counts in it
/// can go on (a VMA's sequence). Thread-safe behind one spin lock; Cpus keep small magazines in
/// front.
class Slab {
 public:
  Slab() { partial_ = kNoPfn; }
  /// `stable_line`: see slab_stable_line().
  void init(SlabKind kind, std::uint32_t object_bytes, std::uint32_t stable_line);
  /// A free object of a slab page that has one; null if a new page is needed (see add_page).
  void* take(MachineCore& core);
  void put(MachineCore& core, void* object);
  /// Makes the frame (owned by the caller, its memory zeroed) a page of this slab, and takes from
  /// it. Free objects are dead, the one that is returned is too: who hands it out notes its birth.
  void* add_page(MachineCore& core, Pfn pfn);
  /// Gives pages without objects back to the buddy allocator. True where they only were retired,
  /// since readers may be looking at stable lines.
  bool trim(MachineCore& core, Cpu& cpu);
  /// For the checker: the object is free, all but its stable line.
  void note_death(void* object) const {
    env::died(object, bytes_);
    if (stable_line_ != 0) env::born(static_cast<std::byte*>(object) + stable_line_, 64);
  }
  std::uint32_t pages() const { return pages_.load(env::relaxed); }
  std::uint32_t object_bytes() const { return bytes_; }

 private:
  friend struct ::faultpath::check::Inspect;  // the checker's laws at rest
  void* pop(MachineCore& core, Pfn pfn) FP_REQUIRES(lock_);
  void link(MachineCore& core, Pfn pfn) FP_REQUIRES(lock_);
  void unlink(MachineCore& core, Pfn pfn) FP_REQUIRES(lock_);

  alignas(64) env::SpinLock lock_;
  /// Pages with a free object, linked by next and prev.
  env::var<Pfn> partial_ FP_GUARDED_BY(lock_){};
  env::atomic<std::uint32_t> pages_;
  std::uint32_t bytes_ = 0;
  std::uint32_t per_page_ = 0;
  std::uint32_t stable_line_ = 0;
  SlabKind kind_{};
};

}  // namespace faultpath::memory
