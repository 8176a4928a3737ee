// mprotect and pkey_mprotect.
#include "change/change.h"
#include "change/gather.h"
#include "change/vma_change.h"
#include "sync/spin_guard.h"

namespace faultpath::change {

namespace {

bool lost_rights(Pte old, Pte now) {
  return !now.present() || (old.writable() && !now.writable()) ||
         (old.executable() && !now.executable()) || (old.readable() && !now.readable()) ||
         old.key() != now.key();
}

// Gives the entries of [start, end) other rights. Write is never given to a page that another space
// may share, nor to a file's page that is not dirty: those fault once and the fault decides. A
// private page that only this entry refers to gets it here, as Linux does
// (can_change_pte_writable).
void change_entries(Mm& mm, Gather& gather, Addr start, Addr end, std::uint32_t flags) {
  const Prot prot = vma::prot_of(flags);
  const auto rights = pagetable::PageRights::of(mm.options.arch, prot, vma::key_of(flags));
  const bool may_write = has(prot, Prot::write);
  const bool shared = (flags & vma::kVmShared) != 0;
  Addr a = start;
  while (a < end) {
    unsigned absent = 0;
    const pagetable::Table leaf = mm.tables.find_leaf(a, &absent);
    const std::uint64_t span = pagetable::span_of(leaf ? 1 : absent);
    Addr stop = (a & ~(span - 1)) + span;
    if (stop > end) stop = end;
    if (!leaf) {
      a = stop;
      continue;
    }
    sync::SpinGuard guard(leaf.meta->lock);
    for (; a < stop; a += kPageSize) {
      pagetable::Entry& entry = leaf.at(a, 0);
      std::uint64_t word = entry.load(env::relaxed);
      for (;;) {
        const Pte old(word);
        if (!old.has_frame()) break;
        bool write = old.writable() && may_write;
        if (may_write && !shared && !old.special()) {
          const Frame& f = mm.core->frame(old.pfn());
          write = write || (f.kind.load(env::relaxed) == memory::FrameKind::anon &&
                            f.refs.load(env::acquire) == 1);
        }
        const Pte now = old.with_rights(rights, write);
        if (now == old) break;
        // The walker may be setting accessed or dirty in a present entry.
        if (!entry.compare_exchange(word, now.word(), env::acq_rel, env::relaxed)) continue;
        // More rights need no flush: a Cpu with the old translation misses and finds them.
        if (old.present() && lost_rights(old, now)) gather.changed(a);
        break;
      }
    }
  }
}

/// Keys that a machine has: 0 is everybody's.
int key_count(Arch arch) {
  switch (arch) {
    case Arch::x86: return 16;
    case Arch::powerpc: return 32;
    case Arch::arm64: return 8;
    case Arch::arm:
    case Arch::riscv:
    case Arch::s390: break;
  }
  return 1;
}

// One VMA's part of the range.
Result<void> protect_part(Cpu& cpu, Mm& mm, Removed& removed, const TreeSlot& slot, Addr start,
                          Addr end, std::uint32_t flags) FP_REQUIRES(mm.mmap_lock) {
  VmaChange change(mm, cpu, removed);
  if (auto r = change.plan_flags(slot, start, end, flags); !r) return r.error();
  change.apply();
  {
    Gather gather(mm, cpu);
    change_entries(mm, gather, start, end, flags);
    gather.finish();
  }
  change.finish();
  return {};
}

}  // namespace

Result<void> protect(Cpu& cpu, Mm& mm, Addr address, std::uint64_t length, Prot prot, int key) {
  if (key < kKeepKey || key >= key_count(mm.options.arch)) return Errno::einval;
  if ((address & ~kPageMask) != 0) return Errno::einval;
  if (length == 0) return {};
  const Addr end = address + page_ceil(length);
  if (end <= address) return Errno::enomem;
  if ((static_cast<std::uint32_t>(prot) & ~vma::kVmProt) != 0) return Errno::einval;

  Removed removed(mm, cpu);
  vma::WriteLock lock(mm, cpu);
  Addr at = address;
  while (at < end) {
    // Looked up anew each time: the step before may have merged what follows (D12).
    const TreeSlot slot = mm.tree.find(at);
    if (!slot || slot.start > at) return Errno::enomem;  // the part before the hole stays changed
    const Addr stop = slot.end < end ? slot.end : end;
    const std::uint32_t old = slot.vma->flags();
    std::uint32_t flags = (old & ~vma::kVmProt) | static_cast<std::uint32_t>(prot);
    if (key != kKeepKey) {
      flags = (flags & ~vma::kVmKey) | static_cast<std::uint32_t>(key) << vma::kVmKeyShift;
    }
    if (flags != old) {
      if (has(prot, Prot::write) && (old & vma::kVmMayWrite) == 0) return Errno::eacces;
      if (auto r = protect_part(cpu, mm, removed, slot, at, stop, flags); !r) return r.error();
    }
    at = stop;
  }
  return {};
}

}  // namespace faultpath::change
