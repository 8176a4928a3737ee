#include "cache/file_object.h"

#include <new>

#include "base/assert.h"
#include "base/guards.h"
#include "sync/spin_guard.h"
#include "vma/mm.h"

namespace faultpath::cache {

using memory::FrameKind;
using memory::kNoPfn;
using memory::SlabKind;
using pagetable::Pte;

namespace {

class FP_SCOPED_CAPABILITY RmapReadLock {
 public:
  explicit RmapReadLock(sync::SpinRwLock& lock, env::Site site = env::Site::current())
      FP_ACQUIRE_SHARED(lock)
      : lock_(lock), site_(site) {
    lock.lock_read(site);
  }
  ~RmapReadLock() FP_RELEASE() { lock_.unlock_read(site_); }
  RmapReadLock(const RmapReadLock&) = delete;
  RmapReadLock& operator=(const RmapReadLock&) = delete;

 private:
  sync::SpinRwLock& lock_;
  [[no_unique_address]] env::Site site_;
};

}  // namespace

FileObject* FileObject::create(MachineCore& core, Cpu& cpu, Store* store, FileMode mode,
                               std::uint64_t size) {
  void* memory = core.allocate_object(cpu, SlabKind::file);
  if (memory == nullptr) return nullptr;
  auto* file = ::new (memory) FileObject();
  file->core_ = &core;
  file->refs_.store(1, env::relaxed);
  file->mode_ = mode;
  file->store_ = store;
  file->size_.store(size, env::release);
  return file;
}

void FileObject::put(Cpu& cpu) {
  if (refs_.fetch_sub(1, env::acq_rel) != 1) return;
  if (store_ != nullptr) (void)write_back(cpu, 0, ~std::uint64_t{0});
  const std::uint64_t root = root_.load(env::acquire);
  if (root != 0) free_index(cpu, static_cast<Pfn>(root) - 1, static_cast<unsigned>(root >> 32));
  Store* store = store_;
  core_->free_object(cpu, SlabKind::file, this);
  if (store != nullptr) store->closed();
}

// --- the index --------------------------------------------------------------------------------

std::uint64_t FileObject::lookup(std::uint64_t index) const {
  const std::uint64_t root = root_.load(env::acquire);
  if (root == 0) return 0;
  auto height = static_cast<unsigned>(root >> 32);
  if (height * kIndexShift < 64 && (index >> (height * kIndexShift)) != 0) return 0;
  std::uint64_t at = root & 0xffffffff;
  while (height > 0) {
    --height;
    at = node(static_cast<Pfn>(at - 1))[(index >> (height * kIndexShift)) & (kIndexFan - 1)].load(
        env::acquire);
    if (at == 0) return 0;
  }
  return at;
}

Pfn FileObject::find_or_create(Cpu& cpu, std::uint64_t index) {
  if (const std::uint64_t hit = lookup(index); hit != 0) {
    const auto pfn = static_cast<Pfn>(hit - 1);
    core_->frame(pfn).refs.fetch_add(1, env::relaxed);
    return pfn;
  }
  // Everything is allocated before the lock is taken: the page, and as many nodes as a path may
  // need. What is not used goes back.
  constexpr unsigned kMost = 64 / kIndexShift + 2;
  Pfn spare[kMost];
  unsigned spares = 0;
  const Pfn page = core_->allocate_frame(cpu, FrameKind::cache, true);
  if (page == kNoPfn) return kNoPfn;
  Frame& meta = core_->frame(page);
  meta.flags.store(0, env::relaxed);
  meta.owner.store(this, env::relaxed);
  meta.index.store(index, env::relaxed);

  const auto make_node = [&]() -> bool {
    const Pfn pfn = core_->allocate_frame(cpu, FrameKind::index, true);
    if (pfn == kNoPfn) return false;
    env::object_zero(core_->object_memory(pfn), kPageSize);
    spare[spares++] = pfn;
    return true;
  };

  Pfn result = kNoPfn;
  for (bool short_of_nodes = true; short_of_nodes;) {
    short_of_nodes = false;
    {
      sync::SpinGuard guard(index_lock_);
      std::uint64_t root = root_.load(env::relaxed);
      unsigned used = 0;
      const auto take = [&] { return used < spares ? spare[used++] : kNoPfn; };
      auto height = static_cast<unsigned>(root >> 32);
      // Grow until the index fits. Each new root has the old one as its first child.
      while (!short_of_nodes &&
             (root == 0 || (height * kIndexShift < 64 && (index >> (height * kIndexShift)) != 0))) {
        const Pfn top = take();
        if (top == kNoPfn) {
          short_of_nodes = true;
          break;
        }
        node(top)[0].store(root & 0xffffffff, env::relaxed);
        ++height;
        root = (std::uint64_t{height} << 32) | (top + 1);
        root_.store(root, env::release);
      }
      if (!short_of_nodes) {
        std::uint64_t at = root & 0xffffffff;
        for (unsigned level = height; level-- > 0;) {
          Word& word =
              node(static_cast<Pfn>(at - 1))[(index >> (level * kIndexShift)) & (kIndexFan - 1)];
          at = word.load(env::relaxed);
          if (level == 0) {
            if (at == 0) {
              // The index's reference and the caller's. Release: the page's identity is visible.
              meta.refs.store(2, env::relaxed);
              word.store(page + 1, env::release);
              result = page;
            } else {
              result = static_cast<Pfn>(at - 1);
              core_->frame(result).refs.fetch_add(1, env::relaxed);
            }
          } else if (at == 0) {
            const Pfn child = take();
            if (child == kNoPfn) {
              short_of_nodes = true;
              break;
            }
            at = std::uint64_t{child} + 1;
            word.store(at, env::release);
          }
        }
      }
      // Nodes that were linked are no longer spare.
      for (unsigned i = used; i < spares; ++i) spare[i - used] = spare[i];
      spares -= used;
    }
    if (short_of_nodes && !make_node()) break;
  }
  if (result != page) core_->free_frame(cpu, page);
  while (spares != 0) core_->free_frame(cpu, spare[--spares]);
  return result;
}

template <class F>
bool FileObject::for_each_page(Pfn at, unsigned height, std::uint64_t base, std::uint64_t first,
                               std::uint64_t end, F&& f) const {
  const unsigned shift = (height - 1) * kIndexShift;
  for (std::uint64_t i = 0; i < kIndexFan; ++i) {
    const std::uint64_t low = base + (shift < 64 ? i << shift : 0);
    if (low >= end) break;
    if (shift < 64 && low + ((std::uint64_t{1} << shift) - 1) < first) continue;
    const std::uint64_t word = node(at)[i].load(env::acquire);
    if (word == 0) continue;
    const auto pfn = static_cast<Pfn>(word - 1);
    if (height == 1) {
      if (!f(pfn)) return false;
    } else if (!for_each_page(pfn, height - 1, low, first, end, f)) {
      return false;
    }
  }
  return true;
}

void FileObject::free_index(Cpu& cpu, Pfn at, unsigned height) {
  for (std::uint64_t i = 0; i < kIndexFan; ++i) {
    const std::uint64_t word = node(at)[i].load(env::acquire);
    if (word == 0) continue;
    const auto pfn = static_cast<Pfn>(word - 1);
    if (height == 1) {
      // The file's own reference; no mapping is left, or the file would not be dying.
      core_->put_frame(cpu, pfn);
    } else {
      free_index(cpu, pfn, height - 1);
    }
  }
  core_->free_frame(cpu, at);
}

// --- pages ------------------------------------------------------------------------------------

// With the page locked: reads it from the store, or makes it zeroes.
bool FileObject::fill(Cpu& cpu, Frame& page, std::uint64_t index) {
  std::byte* to = core_->payload(core_->pfn_of(page));
  std::uint64_t got = 0;
  if (store_ != nullptr) {
    auto read = store_->read(index << kPageShift, to, env::kPayloadBytes);
    if (!read.has_value()) return false;
    got = read.value();
    cpu.count(Counter::file_reads);
  }
  if (got == 0) {
    env::payload_zero(to);
  } else if (got < env::kPayloadBytes) {
    env::payload_zero_tail(to, got);
  }
  page.flags.fetch_or(memory::kPageUptodate, env::release);
  return true;
}

// Returns with the lock of a page that only its result names: beyond Clang's analysis.
PageStatus FileObject::get_page_locked(Cpu& cpu, std::uint64_t index, bool may_wait, Pfn* out,
                                       bool* read_it) FP_NO_THREAD_SAFETY_ANALYSIS {
  // A hint; asked again below.
  if (index >= pages()) return PageStatus::beyond_end;
  const Pfn pfn = find_or_create(cpu, index);
  if (pfn == kNoPfn) return PageStatus::no_memory;
  Frame& page = core_->frame(pfn);
  if (may_wait) {
    page.page_lock.lock();
  } else if (!page.page_lock.try_lock()) {
    core_->put_frame(cpu, pfn);
    return PageStatus::would_wait;
  }
  PageStatus status = PageStatus::ok;
  if (env::guard<Guard::file_size_under_page_lock>() && index >= pages()) {
    status = PageStatus::beyond_end;
  } else if ((page.flags.load(env::acquire) & memory::kPageUptodate) != 0) {
    // As it is.
  } else if (!may_wait && store_ != nullptr) {
    status = PageStatus::would_wait;
  } else {
    if (!fill(cpu, page, index)) status = PageStatus::io_error;
    if (read_it != nullptr && store_ != nullptr) *read_it = true;
  }
  if (status != PageStatus::ok) {
    page.page_lock.unlock();
    core_->put_frame(cpu, pfn);
    return status;
  }
  *out = pfn;
  return PageStatus::ok;
}

// Page by page from `offset`, to the end of the file at most; `move(payload, n)` moves n bytes of
// the locked page. What was moved before a failure is what the caller hears of.
template <class F>
Result<std::uint64_t> FileObject::for_each_part(Cpu& cpu, std::uint64_t offset, std::uint64_t bytes,
                                                F&& move) {
  std::uint64_t done = 0;
  const std::uint64_t end = size();
  while (done < bytes && offset < end) {
    const std::uint64_t in_page = offset & (kPageSize - 1);
    FP_ASSERT(in_page < env::kPayloadBytes);
    std::uint64_t n = env::kPayloadBytes - in_page;
    if (n > bytes - done) n = bytes - done;
    if (n > end - offset) n = end - offset;
    Pfn pfn = kNoPfn;
    const PageStatus status = get_page_locked(cpu, offset >> kPageShift, true, &pfn, nullptr);
    if (status != PageStatus::ok) {
      if (done != 0 || status == PageStatus::beyond_end) return done;
      return status == PageStatus::no_memory ? Errno::enomem : Errno::eio;
    }
    move(core_->frame(pfn), core_->payload(pfn) + in_page, n);
    unlock_page(pfn);
    core_->put_frame(cpu, pfn);
    done += n;
    offset += n;
  }
  return done;
}

Result<std::uint64_t> FileObject::read_at(Cpu& cpu, std::uint64_t offset, void* to,
                                          std::uint64_t bytes) {
  if (!mode_.readable) return Errno::ebadf;
  auto* at = static_cast<std::byte*>(to);
  return for_each_part(cpu, offset, bytes, [&](Frame&, std::byte* payload, std::uint64_t n) {
    env::copy_from_payload(at, payload, n);
    at += n;
  });
}

Result<std::uint64_t> FileObject::write_at(Cpu& cpu, std::uint64_t offset, const void* from,
                                           std::uint64_t bytes) {
  if (!mode_.writable) return Errno::ebadf;
  const auto* at = static_cast<const std::byte*>(from);
  return for_each_part(cpu, offset, bytes, [&](Frame& page, std::byte* payload, std::uint64_t n) {
    env::copy_to_payload(payload, at, n);
    mark_dirty(page);
    at += n;
  });
}

// --- writeback --------------------------------------------------------------------------------

void FileObject::link_vma(vma::Vma& v) {
  v.rmap_prev = nullptr;
  v.rmap_next = mappings_;
  if (mappings_ != nullptr) mappings_->rmap_prev = &v;
  mappings_ = &v;
}

void FileObject::unlink_vma(vma::Vma& v) {
  if (v.rmap_prev != nullptr) {
    v.rmap_prev->rmap_next = v.rmap_next;
  } else {
    mappings_ = v.rmap_next;
  }
  if (v.rmap_next != nullptr) v.rmap_next->rmap_prev = v.rmap_prev;
  v.rmap_next = v.rmap_prev = nullptr;
}

namespace {

// One mapping's entry; true if it had been stored through. The walk is inside an epoch section, so a
// table that is being unlinked stays memory; under its lock `dead` tells.
//
// The flush is under the table's lock: an mprotect that found write gone already would have nothing
// to take, owe no flush, and return while somebody still stores through the old translation.
bool write_protect_entry(Cpu& cpu, vma::Mm& mm, Addr a, Pfn pfn) {
  sync::EpochSection section(mm.core->epochs(), cpu.epoch);
  const pagetable::Table leaf = mm.tables.find_leaf(a);
  if (!leaf) return false;
  sync::SpinGuard guard(leaf.meta->lock);
  if (env::guard<Guard::table_still_linked>() && leaf.meta->dead.load(env::relaxed) != 0) {
    return false;
  }
  pagetable::Entry& entry = leaf.at(a, 0);
  std::uint64_t word = entry.load(env::relaxed);
  for (;;) {
    const Pte pte(word);
    if (!pte.has_frame() || pte.special() || pte.pfn() != pfn) return false;
    if (!pte.writable() && !pte.dirty()) return false;
    // Compare-exchange: the walker may be setting accessed or dirty.
    if (entry.compare_exchange(word, pte.without(Pte::kWrite | Pte::kDirty).word(), env::acq_rel,
                               env::relaxed)) {
      pagetable::flush_range(*mm.core, cpu, mm.cpus, a, a + kPageSize);
      return pte.dirty();
    }
  }
}

}  // namespace

// Takes write and dirty from every entry that maps the page, and flushes. The page is locked, so no
// fault makes an entry writable meanwhile. True if an entry had been stored through.
//
// An entry that is not there may have been cleared a moment ago by a zap that still owes its flush:
// somebody may go on storing through it, and a later sync would find the page clean. So this flushes
// too (B66). The zap counts itself in before its first clear; the table's lock orders the two, or the
// upper entry that its unlinking stored with release.
//
// Spaces: a linked VMA's mm is alive, since VMAs leave the reverse map before it goes.
bool FileObject::write_protect_mappings(Cpu& cpu, std::uint64_t index, Pfn pfn) {
  bool stored = false;
  RmapReadLock rmap(rmap_lock);
  for (vma::Vma* v = mappings_; v != nullptr; v = v->rmap_next) {
    const std::uint64_t first = v->pgoff();
    if (!v->shared() || index < first) continue;
    const Addr a = v->start() + ((index - first) << kPageShift);
    if (a >= v->end()) continue;
    vma::Mm& mm = *v->mm;
    stored = write_protect_entry(cpu, mm, a, pfn) || stored;
    if (env::guard<Guard::clean_after_flush>() && mm.flush_pending.load(env::acquire) != 0) {
      pagetable::flush_range(*core_, cpu, mm.cpus, a, a + kPageSize);
    }
  }
  return stored;
}

Result<void> FileObject::write_page(Cpu& cpu, Pfn pfn) {
  Frame& page = core_->frame(pfn);
  sync::SleepGuard locked(page.page_lock);
  const std::uint64_t index = page.index.load(env::relaxed);
  Errno error{};
  bool failed = false;
  const bool stored = write_protect_mappings(cpu, index, pfn);
  const std::uint32_t old = page.flags.fetch_and(~memory::kPageDirty, env::acq_rel);
  if ((stored || (old & memory::kPageDirty) != 0) && (old & memory::kPageUptodate) != 0) {
    const std::uint64_t offset = index << kPageShift;
    const std::uint64_t end = size();
    std::uint64_t n = env::kPayloadBytes;
    if (offset >= end) {
      n = 0;
    } else if (n > end - offset) {
      n = end - offset;
    }
    if (n != 0) {
      auto written = store_->write(offset, core_->payload(pfn), n);
      cpu.count(Counter::file_writes);
      if (!written.has_value()) {
        failed = true;
        error = written.error();
        mark_dirty(page);  // not lost: the next writeback tries again
      }
    }
  }
  if (failed) return error;
  return {};
}

Result<void> FileObject::write_back(Cpu& cpu, std::uint64_t first, std::uint64_t end) {
  if (store_ == nullptr || !mode_.writable) return {};
  const std::uint64_t root = root_.load(env::acquire);
  if (root == 0) return {};
  Errno error{};
  bool failed = false;
  for_each_page(static_cast<Pfn>(root) - 1, static_cast<unsigned>(root >> 32), 0, first, end,
                [&](Pfn pfn) {
                  // Clean and never mapped for writing: nothing to look at. A page that a shared
                  // mapping can write is marked dirty before its entry is made.
                  // Clean but locked: perhaps being written at this moment, with stores in it that
                  // the caller is promised; waited for, and looked at again.
                  Frame& page = core_->frame(pfn);
                  if ((page.flags.load(env::acquire) & memory::kPageDirty) == 0 &&
                      !page.page_lock.is_locked()) {
                    return true;
                  }
                  auto r = write_page(cpu, pfn);
                  if (!r.has_value() && !failed) {
                    failed = true;
                    error = r.error();
                  }
                  return true;
                });
  if (failed) return error;
  return {};
}

}  // namespace faultpath::cache

namespace faultpath::memory {

std::uint32_t slab_object_bytes(SlabKind kind) {
  switch (kind) {
    case SlabKind::vma: return sizeof(vma::Vma);
    case SlabKind::tree_node: return sizeof(vma::TreeNode);
    case SlabKind::anon_root: return sizeof(vma::AnonRoot);
    case SlabKind::file: return sizeof(cache::FileObject);
    case SlabKind::mm: return sizeof(vma::Mm);
    case SlabKind::count: break;
  }
  return 64;
}

std::uint32_t slab_stable_line(SlabKind kind) {
  return kind == SlabKind::vma ? offsetof(vma::VmaHead, lock) : 0;
}

}  // namespace faultpath::memory
