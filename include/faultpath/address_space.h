// AddressSpace: VMAs and page tables under one policy; Linux's mmap semantics as calls.
#pragma once

#include <faultpath/machine.h>
#include <faultpath/result.h>
#include <faultpath/types.h>

#include <cstdint>

namespace faultpath {

class SoftCpu;
namespace vma {
class Mm;
}

struct SpaceInfo {
  std::uint32_t map_count = 0;
  std::uint64_t anon_pages = 0;  ///< resident private anonymous pages (zero page not counted)
  std::uint64_t file_pages = 0;  ///< mapped page-cache pages, shared anonymous memory among them
  std::uint64_t table_pages = 0;
  Addr brk = 0;
};

/// Move-only; every method is thread-safe. Each call names the SoftCpu of the calling thread, which
/// lends its caches and counters; it need not be inside this space. EBUSY from a signal handler
/// that interrupted the engine or an access on the same SoftCpu; EINVAL for one of another Machine.
/// Destroying a space with a SoftCpu inside traps.
/// Errors are those of the Linux call of the same name, in Linux's order.
class AddressSpace {
 public:
  AddressSpace(AddressSpace&& other) noexcept : mm_(other.mm_) { other.mm_ = nullptr; }
  AddressSpace& operator=(AddressSpace&& other) noexcept;
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;
  ~AddressSpace();

  /// mmap(2). Returns the address.
  Result<Addr> map(SoftCpu& cpu, const MapRequest& request);
  /// munmap(2). Holes are fine. After it returns no Cpu reaches the old pages.
  Result<void> unmap(SoftCpu& cpu, Addr address, std::uint64_t length);
  /// mprotect(2). ENOMEM at a hole, after the part before the hole was changed.
  Result<void> protect(SoftCpu& cpu, Addr address, std::uint64_t length, Prot prot);
  /// pkey_mprotect(2): the range's protection key becomes `pkey` besides. EINVAL for a key that the
  /// space's machine does not have (x86: 0 to 15; powerpc: to 31; arm64: to 7; others: 0 alone).
  /// Which keys are in use is the embedder's affair.
  Result<void> protect(SoftCpu& cpu, Addr address, std::uint64_t length, Prot prot, int pkey);
  /// brk(2) as the system call has it: returns the break after the call, which is the old one where
  /// the wish could not be granted. 0 where other calls say EBUSY, EINVAL or EMFILE.
  Addr brk(SoftCpu& cpu, Addr new_break);
  /// madvise(2).
  Result<void> advise(SoftCpu& cpu, Addr address, std::uint64_t length, Advice advice);
  /// msync(2) with MS_SYNC: writes the dirty file pages of the range. ENOMEM if there was a hole.
  Result<void> sync(SoftCpu& cpu, Addr address, std::uint64_t length);
  /// fork(2): a copy that shares pages until either side writes. Same policy and limits.
  Result<AddressSpace> fork(SoftCpu& cpu);

  /// Calls `visit(const VmaInfo&)` for each VMA in address order, under the mmap lock for read:
  /// calling back into this space from it is forbidden.
  template <class F>
  void for_each_vma(SoftCpu& cpu, F&& visit) {
    visit_vmas(cpu, [](void* f, const VmaInfo& v) { (*static_cast<F*>(f))(v); }, &visit);
  }
  SpaceInfo info(SoftCpu& cpu) const;
  PolicySpec policy() const;

  /// Engine use.
  explicit AddressSpace(vma::Mm* mm) : mm_(mm) {}
  vma::Mm& mm() const { return *mm_; }

 private:
  void visit_vmas(SoftCpu& cpu, void (*visit)(void*, const VmaInfo&), void* context);
  vma::Mm* mm_;
};

}  // namespace faultpath
