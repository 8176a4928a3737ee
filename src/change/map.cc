// mmap.
#include "base/guards.h"
#include "cache/file_object.h"
#include "change/change.h"
#include "change/vma_change.h"

namespace faultpath::change {

namespace {

/// mmap's checks that need no lock, in Linux's order; the length is rounded, the file's rights are
/// in `flags` afterwards.
struct Wish {
  Addr address = 0;
  std::uint64_t length = 0;
  std::uint64_t pgoff = 0;
  std::uint32_t flags = 0;
  cache::FileObject* file = nullptr;
};

Result<Wish> check_lengths(const Mm& mm, const MapRequest& r) {
  Wish w;
  if ((r.offset & ~kPageMask) != 0) return Errno::einval;
  if (r.length == 0) return Errno::einval;
  w.address = r.address;
  if (r.placement == Placement::hint) {
    w.address = page_floor(r.address);
    if (w.address != 0 && w.address < mm.options.lowest_address) {
      w.address = mm.options.lowest_address;
    }
  }
  w.length = page_ceil(r.length);
  if (w.length == 0) return Errno::enomem;
  w.pgoff = r.offset >> kPageShift;
  if (w.pgoff + (w.length >> kPageShift) < w.pgoff) return Errno::eoverflow;
  return w;
}

Result<void> check_file(const Mm& mm, const MapRequest& r, Wish& w) {
  w.flags = static_cast<std::uint32_t>(r.prot) & vma::kVmProt;  // as mmap: unknown bits are ignored
  if (r.grows_down) {
    if (r.shared) return Errno::einval;
    w.flags |= vma::kVmGrowsDown;
  }
  if (r.file == nullptr) {
    w.flags |= vma::kVmMayWrite | (r.shared ? vma::kVmShared | vma::kVmMayShare : 0);
    w.pgoff = 0;
    return {};
  }
  w.file = r.file->object();
  if (&w.file->core() != mm.core) return Errno::einval;  // a file of another machine
  constexpr std::uint64_t kLargest = ~std::uint64_t{0} >> 1;
  if (w.length > kLargest || w.pgoff > (kLargest - w.length) >> kPageShift) {
    return Errno::eoverflow;
  }
  const FileMode mode = w.file->mode();
  if (r.shared && has(r.prot, Prot::write) && !mode.writable) return Errno::eacces;
  if (!mode.readable) return Errno::eacces;
  if (!r.shared) {
    w.flags |= vma::kVmMayWrite;
  } else if (mode.writable) {
    w.flags |= vma::kVmMayWrite | vma::kVmShared | vma::kVmMayShare;
  } else {
    w.flags |= vma::kVmMayShare;  // Linux clears VM_SHARED there
  }
  return {};
}

/// get_unmapped_area.
Result<Addr> place(const Mm& mm, const VmaChange& change, const MapRequest& r, const Wish& w) {
  if (w.length > kUserEnd) return Errno::enomem;
  const Addr lowest = mm.options.lowest_address;
  if (r.placement != Placement::hint) {
    if (w.address > kUserEnd - w.length) return Errno::enomem;
    if ((w.address & ~kPageMask) != 0) return Errno::einval;
    if (w.address < lowest) return Errno::eperm;
    if (r.placement == Placement::fixed_noreplace) {
      const TreeSlot there = change.find(w.address);
      if (there && there.start < w.address + w.length) return Errno::eexist;
    }
    return w.address;
  }
  if (w.address != 0 && w.address <= kUserEnd - w.length) {
    const TreeSlot there = change.find(w.address);
    if (!there || there.start >= w.address + w.length) return w.address;
  }
  Addr found = 0;
  const vma::TreeView view = mm.tree.view();
  if (view.find_gap_top_down(w.length, lowest, mm.options.mmap_base, &found)) return found;
  // Linux's second try goes bottom-up from a third of the address space.
  const Addr third = page_ceil(kUserEnd / 3);
  if (find_gap_bottom_up(view, w.length, third, kUserEnd, &found)) return found;
  return Errno::enomem;
}

}  // namespace

bool find_gap_bottom_up(const vma::TreeView& view, std::uint64_t length, Addr low, Addr high,
                        Addr* out) {
  Addr at = low;
  while (at <= high && length <= high - at) {
    const TreeSlot next = view.find(at);
    if (!next || next.start >= at + length) {
      *out = at;
      return true;
    }
    at = next.end;
  }
  return false;
}

Result<Addr> map(Cpu& cpu, Mm& mm, const MapRequest& request) {
  auto checked = check_lengths(mm, request);
  if (!checked) return checked.error();
  Wish wish = checked.value();

  // Shared anonymous memory is a file that nobody else can open. Made before the lock, let go after
  // it; the VMA takes a reference of its own.
  struct FileRef {
    Cpu& cpu;
    cache::FileObject* file = nullptr;
    ~FileRef() {
      if (file != nullptr) file->put(cpu);
    }
  } shmem{cpu};

  Removed removed(mm, cpu);
  vma::WriteLock lock(mm, cpu);
  if (mm.map_count > mm.options.max_map_count) return Errno::enomem;
  VmaChange change(mm, cpu, removed);
  auto placed = place(mm, change, request, wish);
  if (!placed) return placed.error();
  const Addr start = placed.value();
  const Addr end = start + wish.length;
  if (auto r = check_file(mm, request, wish); !r) return r.error();
  if (request.shared && wish.file == nullptr) {
    shmem.file = cache::FileObject::create(*mm.core, cpu, nullptr, {true, true}, wish.length);
    if (shmem.file == nullptr) return Errno::enomem;
    wish.file = shmem.file;
  }
  if (wish.file == nullptr) wish.pgoff = start >> kPageShift;

  bool replaces = false;
  if (request.placement == Placement::fixed) {
    const TreeSlot there = change.find(start);
    replaces = there && there.start < end;
    if (replaces) {
      if (auto r = change.plan_unmap(start, end); !r) return r.error();
    }
  }
  const MergeKey key{start, end, wish.pgoff, wish.flags, wish.file, nullptr, true};
  if (auto r = change.plan_insert(key); !r) return r.error();
  change.apply();
  if (replaces) {
    // The new mapping is in the tree, marked; faults on it wait until the old pages are gone.
    mm.flush_pending.fetch_add(1, env::acq_rel);
    Gather gather(mm, cpu);
    gather.zap(start, end);
    gather.finish();
    mm.flush_pending.fetch_sub(1, env::acq_rel);
  }
  change.finish();
  return start;
}

}  // namespace faultpath::change
