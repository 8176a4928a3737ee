#include "memory/machine_core.h"

#include <new>

#include "base/assert.h"
#include "base/guards.h"
#include "sync/spin_guard.h"

namespace faultpath::memory {

namespace {

constexpr std::uint32_t kRetireThreshold = 256;  ///< objects a Cpu keeps before it tries to advance
/// Frames that only engine objects get: with the rest gone to guest pages, unmapping still finds
/// the tree nodes it needs.
constexpr std::uint32_t kReserve = 8;
/// How long an advance waits for one section.
constexpr int kSectionSpins = env::per_world(2000, 2);

constexpr std::uint64_t align_up(std::uint64_t v, std::uint64_t a) {
  return (v + a - 1) & ~(a - 1);
}

}  // namespace

MachineCore* MachineCore::create(const MachineOptions& options, Errno* why) {
  const std::uint64_t frames = options.memory_bytes >> kPageShift;
  *why = Errno::einval;
  if (options.memory_bytes < (std::uint64_t{1} << 20) || frames < 16 || frames >= kNoPfn ||
      options.max_cpus == 0 || options.max_cpus >= kMaxCpus) {
    return nullptr;
  }
  *why = Errno::enosys;
  if (!env::heavy_fence_available()) return nullptr;
  *why = Errno::enomem;
  const std::uint64_t core_bytes = align_up(sizeof(MachineCore), 64);
  const std::uint64_t frame_bytes = frames * sizeof(Frame);
  const std::uint64_t cpu_bytes = (std::uint64_t{options.max_cpus} + 1) * sizeof(Cpu);
  env::Region region;
  if (!env::map_region(frames, core_bytes + frame_bytes + cpu_bytes, options.prefault, region)) {
    return nullptr;
  }
  return ::new (region.tables) MachineCore(options, region);
}

MachineCore::MachineCore(const MachineOptions& options, const env::Region& region)
    : region_(region), max_cpus_(options.max_cpus + 1), poison_(options.poison_freed_frames) {
  std::byte* at = region_.tables + align_up(sizeof(MachineCore), 64);
  frames_ = reinterpret_cast<Frame*>(at);
  for (std::uint64_t i = 0; i < region_.frames; ++i) {
    ::new (frames_ + i) Frame();
    note_death(static_cast<Pfn>(i));
  }
  at += region_.frames * sizeof(Frame);
  cpus_ = reinterpret_cast<Cpu*>(at);
  buddy_.init(frames_, static_cast<std::uint32_t>(region_.frames));
  for (unsigned k = 0; k < kSlabKinds; ++k) {
    const auto kind = static_cast<SlabKind>(k);
    slabs_[k].init(kind, slab_object_bytes(kind), slab_stable_line(kind));
  }
  zero_pfn_ = buddy_.allocate(0);
  make_used(zero_pfn_, FrameKind::zero);
  env::payload_zero(payload(zero_pfn_));
  attach();  // slot 0: the system Cpu
}

void MachineCore::destroy(MachineCore* core) {
  env::Region region = core->region_;
  core->~MachineCore();
  env::unmap_region(region);
}

// --- Cpus -------------------------------------------------------------------------------------

Cpu* MachineCore::attach() {
  sync::SpinGuard guard(attach_lock_);
  const std::uint32_t limit = cpu_limit_.load(env::relaxed);
  std::uint32_t id = 0;
  while (id < limit && cpus_[id].attached.load(env::relaxed) != 0) ++id;
  if (id == max_cpus_) return nullptr;
  Cpu& cpu = cpus_[id];
  if (id == limit) {
    ::new (&cpu) Cpu();
    cpu.id = id;
    cpu.machine = this;
    for (detail::TlbEntry& e : cpu.tlb) {
      e.read_tag = detail::kNoTag;
      e.write_tag = detail::kNoTag;
    }
    cpu.parked.store(1, env::relaxed);
    cpu.section.store(detail::kInEngine, env::relaxed);
    // The slot is complete before a scan up to the new limit can reach it.
    cpu_limit_.store(id + 1, env::release);
  }
  cpu.pkru = 0;
  cpu.baseline.clear();
  Counters now;
  cpu.counters.add_to(now);
  std::size_t i = 0;
  now.for_each(
      [&](std::string_view, std::uint64_t& v) { cpu.baseline.add(static_cast<Counter>(i++), v); });
  cpu.attached.store(1, env::relaxed);
  return &cpu;
}

void MachineCore::detach(Cpu& cpu) {
  release_ripe(cpu, cpu);
  drain(cpu);
  // What still waits for a grace period moves to the system Cpu's buckets. Re-retiring it there at
  // a later epoch only prolongs the wait.
  RetireBatch batch;
  {
    sync::SpinGuard guard(cpu.cache_lock);
    for (RetireBucket& b : cpu.retired) {
      while (b.frames != kNoPfn) {
        const Pfn pfn = b.frames;
        const Pfn next = frame(pfn).next;
        b.frames = next;
        batch.add_frame(frames_, pfn);
      }
      for (unsigned k = 0; k < kSlabKinds; ++k) {
        while (b.objects[k] != nullptr) {
          void* const object = b.objects[k];
          void* const next = static_cast<PoolLink*>(object)->next;
          b.objects[k] = next;
          batch.add_object(static_cast<SlabKind>(k), object);
        }
      }
      b.count = 0;
    }
    cpu.retired_count = 0;
  }
  {
    SystemCpu system(*this);
    retire(system.get(), batch);
  }
  cpu.parked.store(1, env::release);
  sync::SpinGuard guard(attach_lock_);
  cpu.attached.store(0, env::relaxed);
}

Counters MachineCore::counters() {
  Counters sum;
  const std::uint32_t limit = cpu_limit();
  for (std::uint32_t i = 0; i < limit; ++i) cpus_[i].counters.add_to(sum);
  return sum;
}

// --- frames -----------------------------------------------------------------------------------

// A slab page's objects are dead already, each by itself (Slab::add_page, free_object): the death of
// the page is one more for the whole of it, and no second one of theirs (env::died).
void MachineCore::make_free(Pfn pfn) {
  Frame& f = frame(pfn);
  f.kind.store(FrameKind::free, env::relaxed);
  f.refs.store(0, env::relaxed);
  f.flags.store(0, env::relaxed);
  f.owner.store(nullptr, env::relaxed);
  if (poison_) env::payload_fill(payload(pfn), 0xcc);
  note_death(pfn);
}

void MachineCore::refill(Cpu& cpu) {
  // The cache is a stack: the batch is turned round so that frames come out ascending.
  const std::uint32_t got = buddy_.allocate_batch(cpu.frames, kFrameBatch, kReserve);
  for (std::uint32_t i = 0; i < got / 2; ++i) {
    const Pfn low = cpu.frames[i];
    const Pfn high = cpu.frames[got - 1 - i];
    cpu.frames[i] = high;
    cpu.frames[got - 1 - i] = low;
  }
  cpu.frame_count = got;
}

void MachineCore::cache_frame(Cpu& cpu, Pfn pfn) {
  if (cpu.frame_count == kFrameCache) {
    // The oldest go back; what was freed last is still in the host's caches.
    buddy_.release_batch(cpu.frames, kFrameBatch);
    for (std::uint32_t i = kFrameBatch; i < kFrameCache; ++i) {
      const Pfn young = cpu.frames[i];
      cpu.frames[i - kFrameBatch] = young;
    }
    cpu.frame_count -= kFrameBatch;
  }
  cpu.frames[cpu.frame_count++] = pfn;
}

Pfn MachineCore::allocate_frame(Cpu& cpu, FrameKind kind, bool may_wait) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    {
      sync::SpinGuard guard(cpu.cache_lock);
      if (cpu.frame_count == 0) refill(cpu);
      if (cpu.frame_count != 0) {
        const Pfn pfn = cpu.frames[--cpu.frame_count];
        make_used(pfn, kind);
        cpu.count(Counter::pgalloc);
        return pfn;
      }
    }
    if (!may_wait || !reclaim(cpu)) return kNoPfn;
  }
  return kNoPfn;
}

void MachineCore::free_frame(Cpu& cpu, Pfn pfn) {
  make_free(pfn);
  cpu.count(Counter::pgfree);
  sync::SpinGuard guard(cpu.cache_lock);
  cache_frame(cpu, pfn);
}

void MachineCore::free_chain(Cpu& cpu, Pfn head) {
  constexpr int kPerHold = 512;  // whoever drains this Cpu's cache is not kept waiting for long
  std::uint64_t freed = 0;
  while (head != kNoPfn) {
    sync::SpinGuard guard(cpu.cache_lock);
    for (int i = 0; i < kPerHold && head != kNoPfn; ++i) {
      const Pfn next = frame(head).next;
      make_free(head);
      cache_frame(cpu, head);
      head = next;
      ++freed;
    }
  }
  cpu.count(Counter::pgfree, freed);
}

void MachineCore::put_frame(Cpu& cpu, Pfn pfn) {
  Frame& f = frame(pfn);
  FP_ASSERT(f.refs.load(env::relaxed) != 0);
  // Sole owner: nobody can take another reference (references come from references), so the
  // read-modify-write is saved. Acquire pairs with the release of earlier putters.
  if (f.refs.load(env::acquire) == 1 || f.refs.fetch_sub(1, env::acq_rel) == 1) {
    free_frame(cpu, pfn);
  }
}

void MachineCore::release_slab_pages(Cpu& cpu, Pfn head) {
  for (Pfn at = head; at != kNoPfn;) {
    const Pfn next = frame(at).next;
    make_free(at);
    cpu.count(Counter::pgfree);
    buddy_.release(at, 0);
    at = next;
  }
}

// --- objects ----------------------------------------------------------------------------------

void* MachineCore::allocate_object(Cpu& cpu, SlabKind kind) {
  const auto k = static_cast<unsigned>(kind);
  const auto out = [&](void* object) {
    env::born(object, slabs_[k].object_bytes());
    return object;
  };
  {
    sync::SpinGuard guard(cpu.cache_lock);
    if (cpu.magazine_count[k] != 0) return out(cpu.magazine[k][--cpu.magazine_count[k]]);
  }
  if (void* object = slabs_[k].take(*this)) return out(object);
  Pfn pfn = allocate_frame(cpu, FrameKind::slab, true);
  if (pfn == kNoPfn) {
    pfn = buddy_.allocate(0);  // the reserve
    if (pfn == kNoPfn) return nullptr;
    make_used(pfn, FrameKind::slab);
    cpu.count(Counter::pgalloc);
  }
  env::object_zero(object_memory(pfn), kPageSize);
  return out(slabs_[k].add_page(*this, pfn));
}

void MachineCore::cache_object(Cpu& cpu, SlabKind kind, void* object) {
  const auto k = static_cast<unsigned>(kind);
  if (cpu.magazine_count[k] == kMagazine) {
    slabs_[k].put(*this, object);
  } else {
    cpu.magazine[k][cpu.magazine_count[k]++] = object;
  }
}

void MachineCore::free_object(Cpu& cpu, SlabKind kind, void* object) {
  sync::SpinGuard guard(cpu.cache_lock);
  slabs_[static_cast<unsigned>(kind)].note_death(object);
  cache_object(cpu, kind, object);
}

// --- grace periods ----------------------------------------------------------------------------

void MachineCore::release_bucket(Cpu& actor, Cpu& cpu, RetireBucket& bucket) {
  while (bucket.frames != kNoPfn) {
    const Pfn pfn = bucket.frames;
    const Pfn next = frame(pfn).next;
    bucket.frames = next;
    make_free(pfn);
    actor.count(Counter::pgfree);
    cache_frame(cpu, pfn);
  }
  for (unsigned k = 0; k < kSlabKinds; ++k) {
    while (bucket.objects[k] != nullptr) {
      void* const object = bucket.objects[k];
      void* const next = static_cast<PoolLink*>(object)->next;
      bucket.objects[k] = next;
      slabs_[k].note_death(object);
      cache_object(cpu, static_cast<SlabKind>(k), object);
    }
  }
  cpu.retired_count -= bucket.count;
  bucket.count = 0;
}

void MachineCore::release_ripe(Cpu& actor, Cpu& cpu) {
  const std::uint64_t now = epochs_.now();
  sync::SpinGuard guard(cpu.cache_lock);
  for (RetireBucket& b : cpu.retired) {
    if (b.count != 0 && now >= b.epoch + sync::EpochDomain::kGrace) release_bucket(actor, cpu, b);
  }
}

void MachineCore::retire(Cpu& cpu, RetireBatch& batch) {
  if (batch.count == 0) return;
  // Named fence: retire. The unlinking stores are visible before the epoch is read (sync/epoch.h).
  if (env::guard<Guard::fence_retire>()) env::full_fence(cpu.parked);
  bool full = false;
  {
    sync::SpinGuard guard(cpu.cache_lock);
    const std::uint64_t now = epochs_.now();
    RetireBucket& b = cpu.retired[now % kRetireBuckets];
    if (b.epoch != now) {
      // The bucket's last use was kRetireBuckets advances ago or more: ripe.
      release_bucket(cpu, cpu, b);
      b.epoch = now;
    }
    while (batch.frames != kNoPfn) {
      const Pfn pfn = batch.frames;
      batch.frames = frame(pfn).next;
      const Pfn older = b.frames;
      frame(pfn).next = older;
      b.frames = pfn;
    }
    for (unsigned k = 0; k < kSlabKinds; ++k) {
      while (batch.objects[k] != nullptr) {
        auto* object = static_cast<PoolLink*>(batch.objects[k]);
        batch.objects[k] = object->next;
        void* const older = b.objects[k];
        object->next = older;
        b.objects[k] = object;
      }
    }
    b.count += batch.count;
    cpu.retired_count += batch.count;
    batch.count = 0;
    if (!env::guard<Guard::retire_through_epochs>()) release_bucket(cpu, cpu, b);
    full = cpu.retired_count >= kRetireThreshold;
  }
  if (full && try_advance(cpu)) release_ripe(cpu, cpu);
}

bool MachineCore::try_advance(Cpu& cpu) {
  if (!epochs_.advance_lock.try_lock()) return false;
  const std::uint64_t epoch = epochs_.now();
  if (env::guard<Guard::fence_heavy>()) env::heavy_fence();
  cpu.count(Counter::membarriers);
  bool all = true;
  const std::uint32_t limit = cpu_limit();
  for (std::uint32_t i = 0; i < limit && all; ++i) {
    Cpu& other = cpus_[i];
    if (!sync::EpochDomain::passes(other.epoch, epoch)) {
      all = false;
      break;
    }
    const std::uint64_t section = other.section.load(env::acquire);
    if ((section & 1) == 0) continue;
    // Open at the fence, or opened since; either way a change means that it has closed.
    int spins = 0;
    while (other.section.load(env::acquire) == section && ++spins < kSectionSpins) env::pause();
    if (spins >= kSectionSpins) all = false;
  }
  if (all) epochs_.advance_from(epoch);
  epochs_.advance_lock.unlock();
  return all;
}

void MachineCore::drain(Cpu& cpu) {
  sync::SpinGuard guard(cpu.cache_lock);
  buddy_.release_batch(cpu.frames, cpu.frame_count);
  cpu.frame_count = 0;
  for (unsigned k = 0; k < kSlabKinds; ++k) {
    while (cpu.magazine_count[k] != 0) {
      slabs_[k].put(*this, cpu.magazine[k][--cpu.magazine_count[k]]);
    }
  }
}

bool MachineCore::reclaim(Cpu& cpu) {
  const std::uint64_t before = buddy_.free_frames();
  const std::uint32_t limit = cpu_limit();
  // kGrace advances make everything retired before them ripe. What they gave back may leave slab pages
  // empty, which wait as long again; and an attempt may meet another one under way.
  for (std::uint64_t round = 0; round <= 2 * sync::EpochDomain::kGrace; ++round) {
    if (round > sync::EpochDomain::kGrace && buddy_.free_frames() > before) break;
    try_advance(cpu);
    for (std::uint32_t i = 0; i < limit; ++i) {
      release_ripe(cpu, cpus_[i]);
      drain(cpus_[i]);
    }
    for (Slab& slab : slabs_) slab.trim(*this, cpu);
  }
  return buddy_.free_frames() > before || buddy_.free_frames() > kReserve;
}

void MachineCore::quiesce(Cpu& cpu) {
  // Once; and once more if pages of slabs owe a grace period of their own.
  bool more = true;
  for (int turn = 0; turn < 2 && more; ++turn) {
    const std::uint32_t limit = cpu_limit();
    const std::uint64_t target = epochs_.now() + sync::EpochDomain::kGrace;
    while (epochs_.now() < target) {
      if (!try_advance(cpu)) env::yield();
    }
    for (std::uint32_t i = 0; i < limit; ++i) {
      release_ripe(cpu, cpus_[i]);
      drain(cpus_[i]);
    }
    more = false;
    for (Slab& slab : slabs_) more = slab.trim(*this, cpu) || more;
  }
}

MemoryInfo MachineCore::memory_info() {
  MemoryInfo info;
  info.frames = region_.frames - 1;  // the zero page is nobody's
  info.free = buddy_.free_frames();
  const std::uint32_t limit = cpu_limit();
  for (std::uint32_t i = 0; i < limit; ++i) {
    Cpu& c = cpus_[i];
    sync::SpinGuard guard(c.cache_lock);
    info.cached += c.frame_count;
    for (const RetireBucket& b : c.retired) {
      for (Pfn at = b.frames; at != kNoPfn; at = frame(at).next) ++info.retired;
    }
  }
  for (Slab& slab : slabs_) info.slab += slab.pages();
  // The parts are read one after the other: beside running threads the sum may be off.
  const std::uint64_t spare = info.free + info.cached + info.retired + info.slab;
  info.in_use = spare < info.frames ? info.frames - spare : 0;
  return info;
}

}  // namespace faultpath::memory
