// Laws of frames and engine objects: each has one holder, and as many references as names.
#include "check/model/inspection.h"

namespace faultpath::check {

using memory::Cpu;
using memory::kNoPfn;
using memory::SlabKind;

const char* Inspection::text_of(FrameKind kind) {
  switch (kind) {
    case FrameKind::free: return "free";
    case FrameKind::anon: return "anon";
    case FrameKind::cache: return "cache";
    case FrameKind::table: return "table";
    case FrameKind::index: return "index";
    case FrameKind::slab: return "slab";
    case FrameKind::zero: return "zero";
  }
  return "of no kind";
}

const char* Inspection::text_of(Holder holder) {
  switch (holder) {
    case Holder::none: return "nobody";
    case Holder::buddy: return "the buddy allocator";
    case Holder::cpu_cache: return "a Cpu's cache";
    case Holder::retired: return "a retired bucket";
    case Holder::table: return "a page table";
    case Holder::index: return "a file's index, as a node";
    case Holder::page: return "a file's index, as a page";
  }
  return "?";
}

std::string Inspection::text_of(Pfn pfn) const {
  const Frame& f = frame(pfn);
  return fmt::format("frame {} ({}, {} reference{})", pfn, text_of(f.kind.load(env::relaxed)),
                     f.refs.load(env::relaxed), f.refs.load(env::relaxed) == 1 ? "" : "s");
}

void Inspection::held_twice(Pfn pfn, Holder holder) {
  wrong("{}: {} has it, and {} too", text_of(pfn), text_of(named_[pfn].holder), text_of(holder));
}

// --- files ------------------------------------------------------------------------------------

void Inspection::file_pages() {
  for (unsigned i = 0; i < files_; ++i) {
    const std::uint64_t root = Inspect::root(*file_[i].file);
    if (root == 0) continue;
    file_level(file_[i], static_cast<Pfn>(root) - 1, static_cast<unsigned>(root >> 32), 0);
  }
}

// A node of the index, `height` levels above the pages.
void Inspection::file_level(const KnownFile& file, Pfn node, unsigned height, std::uint64_t base) {
  constexpr unsigned kShift = kPageShift - 3;
  if (node >= frames_ || named_[node].holder != Holder::none) {
    if (node < frames_) held_twice(node, Holder::index);
    return;
  }
  named_[node].holder = Holder::index;
  const auto* words =
      reinterpret_cast<const env::atomic<std::uint64_t>*>(core().object_memory(node));
  // The whole node now and then; else the pages that scenes have.
  const std::uint64_t most = std::uint64_t{1} << kShift;
  const std::uint64_t count = full_ || height > 1 ? most : MemoryStore::kPages;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t word = words[i].load(env::relaxed);
    if (word == 0) continue;
    const auto pfn = static_cast<Pfn>(word - 1);
    const std::uint64_t index = base + (i << (kShift * (height - 1)));
    if (height > 1) {
      file_level(file, pfn, height - 1, index);
      continue;
    }
    if (pfn >= frames_) {
      nonsense("a file's index is nonsense at page {}", index);
      continue;
    }
    if (named_[pfn].holder != Holder::none) held_twice(pfn, Holder::page);
    named_[pfn].holder = Holder::page;
    ++named_[pfn].refs;
    const Frame& f = frame(pfn);
    if (f.owner.load(env::relaxed) != file.file || f.index.load(env::relaxed) != index) {
      wrong("{}: it is page {} of a file, and says page {} of {}", text_of(pfn), index,
            f.index.load(env::relaxed), f.owner.load(env::relaxed) == file.file ? "it" : "another");
    }
    if (f.page_lock.is_locked()) {
      wrong("{}: page {} of a file is locked", text_of(pfn), index);
    }
  }
}

// --- frames -----------------------------------------------------------------------------------

void Inspection::free_frame(Pfn pfn, Holder holder) {
  if (named_[pfn].holder != Holder::none) {
    held_twice(pfn, holder);
    return;
  }
  named_[pfn].holder = holder;
  if (frame(pfn).kind.load(env::relaxed) != FrameKind::free || named_[pfn].refs != 0) {
    wrong("{}: {} has it as a free one{}", text_of(pfn), text_of(holder),
          named_[pfn].refs != 0 ? ", and entries name it" : "");
  }
}

void Inspection::free_frames() {
  const memory::Buddy& buddy = Inspect::buddy(core());
  std::uint64_t free = 0;
  for (unsigned order = 0; order <= memory::kMaxOrder; ++order) {
    for (Pfn at = Inspect::head(buddy, order); at != kNoPfn; at = frame(at).next) {
      if (at >= frames_ || free > frames_) {
        nonsense("the buddy allocator's list of order {} is broken", order);
        return;
      }
      for (Pfn pfn = at; pfn < at + (1u << order); ++pfn) free_frame(pfn, Holder::buddy);
      free += std::uint64_t{1} << order;
    }
  }
  if (free != buddy.free_frames()) {
    wrong("the buddy allocator counts {} frames, and has {}", buddy.free_frames(), free);
  }
  for (std::uint32_t id = 0; id < cpus(); ++id) {
    Cpu& cpu = core().cpu(id);
    for (std::uint32_t i = 0; i < cpu.frame_count; ++i) {
      free_frame(cpu.frames[i], Holder::cpu_cache);
    }
    cached_ += cpu.frame_count;
    std::uint64_t in_buckets = 0;
    for (memory::RetireBucket& bucket : cpu.retired) {
      std::uint64_t count = 0;
      for (Pfn at = bucket.frames; at != kNoPfn; at = frame(at).next) {
        if (at >= frames_ || count > frames_) {
          nonsense("Cpu {}: a list of retired frames is broken", id);
          return;
        }
        if (named_[at].holder != Holder::none) held_twice(at, Holder::retired);
        named_[at].holder = Holder::retired;
        ++retired_;
        ++count;
      }
      for (unsigned k = 0; k < memory::kSlabKinds; ++k) {
        for (void* at = bucket.objects[k]; at != nullptr;
             at = static_cast<memory::PoolLink*>(at)->next) {
          if (++count > std::uint64_t{frames_} * kPageSize / 64) {
            nonsense("Cpu {}: a list of retired objects has no end", id);
            return;
          }
        }
      }
      if (count != bucket.count) {
        wrong("Cpu {}: a bucket counts {} retired things, and has {}", id,
              std::uint32_t{bucket.count}, count);
      }
      in_buckets += count;
    }
    if (in_buckets != cpu.retired_count) {
      wrong("Cpu {}: it counts {} retired things, and has {}", id, std::uint32_t{cpu.retired_count},
            in_buckets);
    }
  }
}

void Inspection::lost(Pfn pfn, const Frame& f) {
  const FrameKind kind = f.kind.load(env::relaxed);
  wrong("{}: it is lost, {}", text_of(pfn),
        kind == FrameKind::anon    ? "no entry names it"
        : kind == FrameKind::cache ? "it is in no file's index"
        : kind == FrameKind::table ? "no table above it names it"
        : kind == FrameKind::free  ? "nobody has it as a free one"
                                   : "nobody names it");
}

void Inspection::every_frame() {
  for (unsigned k = 0; k < memory::kSlabKinds; ++k) slab_pages_[k] = slab_objects_[k] = 0;
  for (Pfn pfn = 0; pfn < frames_; ++pfn) {
    const Frame& f = frame(pfn);
    const Named& named = named_[pfn];
    switch (named.holder) {
      case Holder::buddy:
      case Holder::cpu_cache: continue;
      default: break;
    }
    const FrameKind kind = f.kind.load(env::relaxed);
    const std::uint32_t refs = f.refs.load(env::relaxed);
    bool right = false;
    switch (kind) {
      case FrameKind::free: break;
      case FrameKind::anon: right = named.holder == Holder::none && named.refs != 0; break;
      case FrameKind::cache: right = named.holder == Holder::page; break;
      case FrameKind::table:
        right = named.holder == Holder::table || named.holder == Holder::retired;
        break;
      case FrameKind::index: right = named.holder == Holder::index; break;
      case FrameKind::zero:
        right = pfn == core().zero_pfn() && named.holder == Holder::none && named.refs == 0;
        break;
      case FrameKind::slab: {
        const unsigned k = f.slab_kind;
        right = named.holder == Holder::none && named.refs == 0 && k < memory::kSlabKinds;
        if (!right) break;
        ++slab_pages_[k];
        slab_objects_[k] += f.occupied;
        break;
      }
    }
    if (!right) {
      if (named.holder == Holder::none && named.refs == 0) {
        lost(pfn, f);
      } else if (named.holder == Holder::none) {
        wrong("{}: {} entries name it", text_of(pfn), named.refs);
      } else {
        wrong("{}: {} has it", text_of(pfn), text_of(named.holder));
      }
      continue;
    }
    if (kind == FrameKind::anon && refs != named.refs) {
      wrong("{}: {} entr{} it", text_of(pfn), named.refs, named.refs == 1 ? "y names" : "ies name");
    } else if (kind == FrameKind::cache && refs != named.refs) {
      wrong("{}: its file's index and {} entr{} it", text_of(pfn), named.refs - 1,
            named.refs == 2 ? "y name" : "ies name");
    }
  }
}

// --- objects ----------------------------------------------------------------------------------

// Free ones that no slab page has back yet.
std::uint64_t Inspection::parked_objects(unsigned kind) const {
  std::uint64_t sum = 0;
  for (std::uint32_t id = 0; id < cpus(); ++id) {
    const Cpu& cpu = core().cpu(id);
    sum += cpu.magazine_count[kind];
    for (const memory::RetireBucket& bucket : cpu.retired) {
      for (void* at = bucket.objects[kind]; at != nullptr;
           at = static_cast<memory::PoolLink*>(at)->next) {
        ++sum;
      }
    }
  }
  return sum;
}

bool Inspection::is_parked(const void* object) const {
  constexpr auto kKind = static_cast<unsigned>(SlabKind::vma);
  for (std::uint32_t id = 0; id < cpus(); ++id) {
    const Cpu& cpu = core().cpu(id);
    for (unsigned i = 0; i < cpu.magazine_count[kKind]; ++i) {
      if (cpu.magazine[kKind][i] == object) return true;
    }
    for (const memory::RetireBucket& bucket : cpu.retired) {
      for (void* at = bucket.objects[kKind]; at != nullptr;
           at = static_cast<memory::PoolLink*>(at)->next) {
        if (at == object) return true;
      }
    }
  }
  return false;
}

void Inspection::objects_of(SlabKind kind, const char* what, std::uint64_t alive) {
  const auto k = static_cast<unsigned>(kind);
  const memory::Slab& slab = Inspect::slab(core(), k);
  if (slab.pages() != slab_pages_[k]) {
    wrong("the slab of {} counts {} pages, and has {}", what, slab.pages(), slab_pages_[k]);
  }
  const std::uint64_t parked = parked_objects(k);
  if (slab_objects_[k] == alive + parked) return;
  wrong("{} {} are out of their slab: {} in use, {} free or retired with Cpus", slab_objects_[k],
        what, alive, parked);
  if (kind == SlabKind::vma) lost_vmas();
}

// Which ones: out of the slab, in no tree, not waiting anywhere.
void Inspection::lost_vmas() {
  const auto k = static_cast<unsigned>(SlabKind::vma);
  const memory::Slab& slab = Inspect::slab(core(), k);
  for (Pfn pfn = 0; pfn < frames_; ++pfn) {
    const Frame& f = frame(pfn);
    if (f.kind.load(env::relaxed) != FrameKind::slab || f.slab_kind != k) continue;
    for (std::uint32_t i = 0; i < Inspect::per_page(slab); ++i) {
      std::byte* const at = core().object_memory(pfn) + std::uint64_t{i} * slab.object_bytes();
      bool accounted = is_parked(at);
      for (void* free = f.owner.load(env::relaxed); free != nullptr && !accounted;
           free = static_cast<memory::PoolLink*>(free)->next) {
        accounted = free == at;
      }
      for (unsigned j = 0; j < vmas_ && !accounted; ++j)
        accounted = static_cast<void*>(vma_[j].vma) == at;
      if (accounted) continue;
      const auto& v = *reinterpret_cast<const vma::Vma*>(at);
      wrong("VMA {:#x}-{:#x}: no tree has it, and it was never retired; {} references, sequence {}",
            v.start(), v.end(), v.refs.load(env::relaxed), v.sequence.read_begin());
    }
  }
}

void Inspection::objects() {
  objects_of(SlabKind::vma, "VMAs", vmas_);
  objects_of(SlabKind::tree_node, "tree nodes", nodes_);
  objects_of(SlabKind::anon_root, "anon roots", roots_);
  objects_of(SlabKind::file, "files", files_);
  objects_of(SlabKind::mm, "spaces", rest_->spaces.size());
}

}  // namespace faultpath::check
