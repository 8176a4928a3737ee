// Page-table entries in x86-64's format.
#pragma once

#include <faultpath/config.h>
#include <faultpath/types.h>

#include "memory/frame.h"

namespace faultpath::pagetable {

using memory::Pfn;

/// One entry, by value. The word in the table is an env::atomic<uint64_t>.
///
/// Bits: 0 present, 1 writable, 2 user, 5 accessed, 6 dirty, 8 (global, in hardware) PROTNONE when
/// not present, 9 special (software: the zero page; not counted, not released), 63 no-execute. The
/// frame is in bits 12 to 51. An entry that is neither zero nor present occupies its slot: today
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
  /// proof that the page is this entry's alone, or has marked the file's page dirty. As on x86, any
  /// right makes a page readable.
  static constexpr Pte leaf(Pfn pfn, Prot prot, bool write, bool dirty, bool special) {
    std::uint64_t w = (std::uint64_t{pfn} << kPageShift) | kUser | kAccessed;
    w |= prot == Prot::none ? kProtNone : kPresent;
    if (write) w |= kWrite;
    if (dirty) w |= kDirty;
    if (special) w |= kSpecial;
    if (!has(prot, Prot::exec)) w |= kNoExec;
    return Pte(w);
  }
  /// The same page under other rights. Write survives only where it was and may be; see
  /// change/protect.cc for when it is given.
  constexpr Pte with_prot(Prot prot, bool write) const {
    std::uint64_t w = word_ & ~(kPresent | kProtNone | kWrite | kNoExec);
    w |= prot == Prot::none ? kProtNone : kPresent;
    if (write && prot != Prot::none) w |= kWrite;
    if (!has(prot, Prot::exec)) w |= kNoExec;
    return Pte(w);
  }

 private:
  std::uint64_t word_ = 0;
};

}  // namespace faultpath::pagetable
