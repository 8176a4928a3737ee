// When two neighbouring VMAs may be one. Linux's rules for the attributes that exist.
#pragma once

#include "vma/vma.h"

namespace faultpath::vma {

/// What decides about merging, of a VMA that exists or of one about to be made.
struct MergeKey {
  Addr start = 0;
  Addr end = 0;
  std::uint64_t pgoff = 0;
  std::uint32_t flags = 0;
  cache::FileObject* file = nullptr;
  AnonRoot* root = nullptr;  ///< null: no page yet (whatever root the write side prepared)
  bool singular = true;

  static MergeKey of(const Vma& v) {
    return {v.start(),         v.end(),  v.pgoff(),
            v.flags(),         v.file(), v.ever_faulted() ? v.anon_root() : nullptr,
            v.chain_singular()};
  }
};

/// Same pages by one root, or one side without pages; but a child of fork whose pages come from the
/// parent does not merge with one that has none.
constexpr bool anon_compatible(const MergeKey& a, const MergeKey& b) {
  if (a.root == nullptr && b.root == nullptr) return true;
  if (a.root == nullptr) return b.singular;
  if (b.root == nullptr) return a.singular;
  return a.root == b.root;
}

/// `a` ends where `b` begins, and one VMA can say what both say.
constexpr bool can_merge(const MergeKey& a, const MergeKey& b) {
  return a.end == b.start && a.flags == b.flags && a.file == b.file &&
         b.pgoff == a.pgoff + ((a.end - a.start) >> kPageShift) && anon_compatible(a, b);
}

/// May one of these neighbours, `a` before `b`, take the other's root at its first fault? Rights
/// may differ: they can become equal later. Exactly one of the two has pages; the caller is the
/// other.
inline bool can_share_anon_root(const Vma& a, const Vma& b) {
  const bool other_has_pages = a.ever_faulted() != b.ever_faulted();
  const Vma& giver = a.ever_faulted() ? a : b;
  return other_has_pages && giver.chain_singular() && a.end() == b.start() &&
         a.file() == b.file() && ((a.flags() ^ b.flags()) & ~kVmProt) == 0 &&
         b.pgoff() == a.pgoff() + ((a.end() - a.start()) >> kPageShift);
}

}  // namespace faultpath::vma
