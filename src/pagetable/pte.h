// Page-table entries in x86-64's format.
#pragma once

#include <faultpath/config.h>
#include <faultpath/types.h>

#include "arch/access.h"
#include "memory/frame.h"

namespace faultpath::pagetable {

using memory::Pfn;

/// What an entry lets a machine do, of a VMA's rights.
struct PageRights {
  bool present = false;  ///< any right at all; else PROTNONE
  bool read = false;
  bool exec = false;
  std::uint8_t key = 0;

  /// Under the rules of `arch`. Write is not among them: an entry grants it when the fault says so.
  static constexpr PageRights of(Arch arch, Prot prot, std::uint8_t key) {
    return {prot != Prot::none, arch::readable_when_present(arch, prot),
            arch::executable_when_present(arch, prot), key};
  }
};

/// One entry, by value. The word in the table is an env::atomic<uint64_t>.
///
/// Bits: 0 present, 1 writable, 2 user, 5 accessed, 6 dirty, 8 (global, in hardware) PROTNONE when
/// not present, 9 special (software: the zero page; not counted, not released), 10 no-read (software:
/// exec-only memory of machines that do not read it), 58 to 62 the protection key (x86 has four bits,
/// 59 and up; the fifth, below them, is powerpc's), 63 no-execute. The frame is in bits 12 to 51. An entry that is neither zero nor present occupies its slot: today
/// only PROTNONE, whose page the VMA's rights hide.
class Pte {
 public:
  static constexpr std::uint64_t kPresent = 1u << 0;
  static constexpr std::uint64_t kWrite = 1u << 1;
  static constexpr std::uint64_t kUser = 1u << 2;
  static constexpr std::uint64_t kAccessed = 1u << 5;
  static constexpr std::uint64_t kDirty = 1u << 6;
  static constexpr std::uint64_t kProtNone = 1u << 8;
  static constexpr std::uint64_t kSpecial = 1u << 9;
  static constexpr std::uint64_t kNoRead = 1u << 10;
  static constexpr unsigned kKeyShift = 59;
  static constexpr std::uint64_t kKeyMask = std::uint64_t{31} << (kKeyShift - 1);
  static constexpr std::uint64_t kNoExec = std::uint64_t{1} << 63;
  static constexpr std::uint64_t kFrameMask = ((std::uint64_t{1} << 52) - 1) & kPageMask;

  constexpr Pte() = default;
  constexpr explicit Pte(std::uint64_t word) : word_(word) {}

  constexpr std::uint64_t word() const { return word_; }
  constexpr bool none() const { return word_ == 0; }
  constexpr bool present() const { return (word_ & kPresent) != 0; }
  constexpr bool writable() const { return (word_ & kWrite) != 0; }
  constexpr bool dirty() const { return (word_ & kDirty) != 0; }
  constexpr bool accessed() const { return (word_ & kAccessed) != 0; }
  constexpr bool executable() const { return (word_ & kNoExec) == 0; }
  constexpr bool readable() const { return (word_ & kNoRead) == 0; }
  constexpr std::uint8_t key() const {
    return static_cast<std::uint8_t>(((word_ >> kKeyShift) & 15) | ((word_ >> (kKeyShift - 1)) & 1)
                                                                       << 4);
  }
  constexpr bool special() const { return (word_ & kSpecial) != 0; }
  constexpr bool prot_none() const { return (word_ & (kPresent | kProtNone)) == kProtNone; }
  /// Names a frame: present, or hidden by PROT_NONE.
  constexpr bool has_frame() const { return (word_ & (kPresent | kProtNone)) != 0; }
  constexpr Pfn pfn() const { return static_cast<Pfn>((word_ & kFrameMask) >> kPageShift); }
  constexpr Pte with(std::uint64_t bits) const { return Pte(word_ | bits); }
  constexpr Pte without(std::uint64_t bits) const { return Pte(word_ & ~bits); }
  friend constexpr bool operator==(Pte, Pte) = default;

  /// An entry that upper levels use for a table.
  static constexpr Pte table(Pfn pfn) {
    return Pte((std::uint64_t{pfn} << kPageShift) | kPresent | kWrite | kUser | kAccessed);
  }
  /// A leaf for `pfn` with the VMA's rights. Write stays off unless asked: whoever sets it has
  /// proof that the page is this entry's alone, or has marked the file's page dirty.
  static constexpr Pte leaf(Pfn pfn, const PageRights& rights, bool write, bool dirty,
                            bool special) {
    std::uint64_t w = (std::uint64_t{pfn} << kPageShift) | kUser | kAccessed | bits_of(rights);
    if (write) w |= kWrite;
    if (dirty) w |= kDirty;
    if (special) w |= kSpecial;
    return Pte(w);
  }
  /// The same page under other rights. Write survives only where it was and may be; see
  /// change/protect.cc for when it is given.
  constexpr Pte with_rights(const PageRights& rights, bool write) const {
    std::uint64_t w = word_ & ~(kPresent | kProtNone | kWrite | kNoRead | kKeyMask | kNoExec);
    w |= bits_of(rights);
    if (write && rights.present) w |= kWrite;
    return Pte(w);
  }

 private:
  static constexpr std::uint64_t bits_of(const PageRights& r) {
    return (r.present ? kPresent : kProtNone) | (r.read ? 0 : kNoRead) | (r.exec ? 0 : kNoExec) |
           std::uint64_t{r.key & 15u} << kKeyShift |
           static_cast<std::uint64_t>(r.key >> 4) << (kKeyShift - 1);
  }

  std::uint64_t word_ = 0;
};

}  // namespace faultpath::pagetable
