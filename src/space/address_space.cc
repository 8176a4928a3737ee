// AddressSpace as the public header names it: checks who calls, then the write side.
#include <faultpath/address_space.h>
#include <faultpath/soft_cpu.h>

#include "cache/file_object.h"
#include "change/change.h"
#include "memory/machine_core.h"
#include "space/engine_entry.h"

namespace faultpath {

using memory::Cpu;
using space::EngineEntry;
using vma::Mm;

namespace {

/// Runs `call(cpu)` inside the engine; EMFILE for a SoftCpu without a slot, EINVAL for one of
/// another machine, EBUSY from a signal handler that interrupted the engine.
template <class R, class F>
R enter_engine(const Mm& mm, SoftCpu& soft, F&& call) {
  if (!soft.attached()) return Errno::emfile;
  Cpu& cpu = static_cast<Cpu&>(*soft.block());
  if (cpu.machine != mm.core) return Errno::einval;
  EngineEntry entry(cpu);
  if (!entry) return Errno::ebusy;
  return call(cpu);
}

}  // namespace

AddressSpace& AddressSpace::operator=(AddressSpace&& other) noexcept {
  if (this != &other) {
    AddressSpace old(static_cast<AddressSpace&&>(*this));
    mm_ = other.mm_;
    other.mm_ = nullptr;
  }
  return *this;
}

AddressSpace::~AddressSpace() {
  if (mm_ == nullptr) return;
  if (!mm_->cpus.empty()) __builtin_trap();
  memory::SystemCpu system(*mm_->core);
  change::destroy_mm(system.get(), *mm_);
}

Result<Addr> AddressSpace::map(SoftCpu& cpu, const MapRequest& request) {
  return enter_engine<Result<Addr>>(*mm_, cpu,
                                    [&](Cpu& c) { return change::map(c, *mm_, request); });
}

Result<void> AddressSpace::unmap(SoftCpu& cpu, Addr address, std::uint64_t length) {
  return enter_engine<Result<void>>(
      *mm_, cpu, [&](Cpu& c) { return change::unmap(c, *mm_, address, length); });
}

Result<void> AddressSpace::protect(SoftCpu& cpu, Addr address, std::uint64_t length, Prot prot) {
  return enter_engine<Result<void>>(
      *mm_, cpu, [&](Cpu& c) { return change::protect(c, *mm_, address, length, prot); });
}

Result<void> AddressSpace::protect(SoftCpu& cpu, Addr address, std::uint64_t length, Prot prot,
                                   int pkey) {
  if (pkey < 0) return Errno::einval;
  return enter_engine<Result<void>>(
      *mm_, cpu, [&](Cpu& c) { return change::protect(c, *mm_, address, length, prot, pkey); });
}

Addr AddressSpace::brk(SoftCpu& cpu, Addr new_break) {
  auto r = enter_engine<Result<Addr>>(
      *mm_, cpu, [&](Cpu& c) -> Result<Addr> { return change::brk(c, *mm_, new_break); });
  return r ? r.value() : 0;
}

Result<void> AddressSpace::advise(SoftCpu& cpu, Addr address, std::uint64_t length, Advice advice) {
  return enter_engine<Result<void>>(
      *mm_, cpu, [&](Cpu& c) { return change::advise(c, *mm_, address, length, advice); });
}

Result<void> AddressSpace::sync(SoftCpu& cpu, Addr address, std::uint64_t length) {
  return enter_engine<Result<void>>(*mm_, cpu,
                                    [&](Cpu& c) { return change::sync(c, *mm_, address, length); });
}

Result<AddressSpace> AddressSpace::fork(SoftCpu& cpu) {
  return enter_engine<Result<AddressSpace>>(*mm_, cpu, [&](Cpu& c) -> Result<AddressSpace> {
    Mm* child = change::fork(c, *mm_);
    if (child == nullptr) return Errno::enomem;
    return AddressSpace(child);
  });
}

void AddressSpace::visit_vmas(SoftCpu& cpu, void (*visit)(void*, const VmaInfo&), void* context) {
  (void)enter_engine<Result<void>>(*mm_, cpu, [&](Cpu& c) -> Result<void> {
    vma::ReadLock lock(*mm_, c);
    mm_->tree.view().for_each(0, ~Addr{0}, [&](const vma::TreeSlot& slot) {
      const vma::Vma& v = *slot.vma;
      VmaInfo info;
      info.start = slot.start;
      info.end = slot.end;
      info.prot = v.prot();
      info.pkey = vma::key_of(v.flags());
      info.shared = (v.flags() & vma::kVmMayShare) != 0;
      info.has_file = v.file() != nullptr && !v.file()->anonymous();
      info.offset = v.file() != nullptr ? v.pgoff() << kPageShift : 0;
      visit(context, info);
      return true;
    });
    return {};
  });
}

SpaceInfo AddressSpace::info(SoftCpu& cpu) const {
  SpaceInfo info;
  (void)enter_engine<Result<void>>(*mm_, cpu, [&](Cpu& c) -> Result<void> {
    // A walk, not counters that every fault of every Cpu would have to write. For write, so that
    // the figures are of one moment; beside faults without it the page counts are of about one.
    vma::WriteLock lock(*mm_, c);
    info.map_count = mm_->map_count;
    info.brk = mm_->brk;
    info.table_pages = mm_->tables.table_pages();
    mm_->tables.for_each_leaf_entry([&](pagetable::Pte pte) {
      if (!pte.has_frame() || pte.special()) return;
      const auto kind = mm_->core->frame(pte.pfn()).kind.load(env::relaxed);
      ++(kind == memory::FrameKind::cache ? info.file_pages : info.anon_pages);
    });
    return {};
  });
  return info;
}

PolicySpec AddressSpace::policy() const { return mm_->policy; }

}  // namespace faultpath
