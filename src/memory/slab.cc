#include "memory/slab.h"

#include "base/assert.h"
#include "memory/machine_core.h"
#include "sync/spin_guard.h"

namespace faultpath::memory {

// A slab page's Frame: owner = first free object (linked by PoolLink), occupied = objects out,
// next/prev = the list of pages that have a free object.

void Slab::init(SlabKind kind, std::uint32_t object_bytes, std::uint32_t stable_line) {
  kind_ = kind;
  bytes_ = (object_bytes + 63u) & ~63u;
  stable_line_ = stable_line;
  per_page_ = static_cast<std::uint32_t>(kPageSize / bytes_);
}

void Slab::link(MachineCore& core, Pfn pfn) {
  Frame& f = core.frame(pfn);
  f.prev = kNoPfn;
  const Pfn first = partial_;
  f.next = first;
  if (first != kNoPfn) core.frame(first).prev = pfn;
  partial_ = pfn;
}

void Slab::unlink(MachineCore& core, Pfn pfn) {
  Frame& f = core.frame(pfn);
  const Pfn next = f.next;
  const Pfn prev = f.prev;
  if (prev != kNoPfn) {
    core.frame(prev).next = next;
  } else {
    partial_ = next;
  }
  if (next != kNoPfn) core.frame(next).prev = prev;
}

void* Slab::pop(MachineCore& core, Pfn pfn) {
  Frame& f = core.frame(pfn);
  auto* object = static_cast<PoolLink*>(f.owner.load(env::relaxed));
  void* const next = object->next;
  f.owner.store(next, env::relaxed);
  ++f.occupied;
  if (next == nullptr) unlink(core, pfn);
  return object;
}

void* Slab::take(MachineCore& core) {
  sync::SpinGuard guard(lock_);
  return partial_ == kNoPfn ? nullptr : pop(core, partial_);
}

void* Slab::add_page(MachineCore& core, Pfn pfn) {
  std::byte* at = core.object_memory(pfn);
  Frame& f = core.frame(pfn);
  f.slab_kind = static_cast<std::uint8_t>(kind_);
  f.occupied = 0;
  void* head = nullptr;
  for (std::uint32_t i = per_page_; i-- > 0;) {
    auto* object = reinterpret_cast<PoolLink*>(at + std::uint64_t{i} * bytes_);
    object->next = head;
    note_death(object);
    head = object;
  }
  f.owner.store(head, env::relaxed);
  sync::SpinGuard guard(lock_);
  pages_.store(pages_.load(env::relaxed) + 1, env::relaxed);
  link(core, pfn);
  return pop(core, pfn);
}

void Slab::put(MachineCore& core, void* object) {
  const Pfn pfn = core.pfn_of_object(object);
  sync::SpinGuard guard(lock_);
  Frame& f = core.frame(pfn);
  FP_ASSERT(f.kind.load(env::relaxed) == FrameKind::slab);
  void* first = f.owner.load(env::relaxed);
  static_cast<PoolLink*>(object)->next = first;
  f.owner.store(object, env::relaxed);
  --f.occupied;
  if (first == nullptr) link(core, pfn);
}

bool Slab::trim(MachineCore& core, Cpu& cpu) {
  Pfn empty = kNoPfn;
  {
    sync::SpinGuard guard(lock_);
    Pfn at = partial_;
    while (at != kNoPfn) {
      const Pfn next = core.frame(at).next;
      if (core.frame(at).occupied == 0) {
        unlink(core, at);
        core.frame(at).next = empty;
        empty = at;
        pages_.store(pages_.load(env::relaxed) - 1, env::relaxed);
      }
      at = next;
    }
  }
  if (stable_line_ == 0) {
    core.release_slab_pages(cpu, empty);
    return false;
  }
  RetireBatch batch;
  while (empty != kNoPfn) {
    const Pfn next = core.frame(empty).next;
    batch.add_frame(core.frame_table(), empty);
    empty = next;
  }
  const bool any = batch.count != 0;
  core.retire(cpu, batch);
  return any;
}

}  // namespace faultpath::memory
