// The fault: what it knows, and the one way in.
//
//   handle_fault            counts, picks the policy, counts the outcome        handle_fault.cc
//     speculate             spf: no lock; settles, or passes on                 spf.cc
//     under_vma_lock        the VMA's lock for read; settles, or passes on      vma_lock.cc
//     classic               the mmap lock for read over the whole fault         classic.cc
//       resolve             PTE level: what must the entry become?              resolve.cc
//         EntryLock         the linearisation point: table lock, checks         entry_lock.h
#pragma once

#include <faultpath/arch.h>
#include <faultpath/outcome.h>

#include "pagetable/page_table.h"
#include "vma/mm.h"

namespace faultpath::fault {

using memory::Cpu;
using memory::Frame;
using memory::Pfn;
using pagetable::Pte;
using pagetable::Table;
using vma::Mm;
using vma::Vma;
using vma::VmaView;

/// How the fault's VMA copy is kept true until the entry is set.
enum class Stability : std::uint8_t {
  mmap_lock,  ///< the mmap lock is held for read: nothing can change
  sequence,   ///< spf: the VMA's sequence is compared under the table lock
  vma_lock,   ///< the VMA's own lock is held for read: it cannot change
};

/// One fault in flight; lives on the stack.
struct Fault {
  Cpu& cpu;
  Mm& mm;
  const GuestFault& what;
  Addr page;  ///< of the address, rounded down
  Stability stability = Stability::mmap_lock;
  VmaView vma{};               ///< the copy that everything is derived from
  Vma* live = nullptr;         ///< the VMA itself: stable under a lock; spf: a reference
  std::uint64_t sequence = 0;  ///< spf: the even count that `vma` was read under
  Table leaf{};
  Pte seen{};  ///< the entry as the decision was made from
  bool major = false;
  Counter passed_on = Counter::spf_vma_changed;  ///< spf: the event that ended the attempt

  Fault(Cpu& c, Mm& m, const GuestFault& w) : cpu(c), mm(m), what(w), page(page_floor(w.address)) {}

  Addr address() const { return what.address; }
  bool write() const { return what.access == Access::write; }
  /// What an entry of the VMA lets the space's machine do.
  pagetable::PageRights rights() const {
    return pagetable::PageRights::of(mm.options.arch, vma.prot(), vma::key_of(vma.flags));
  }
  /// spf works on a copy that may be out of date, and may not wait.
  bool speculative() const { return stability == Stability::sequence; }
  /// For the store, or for a page lock: not with a VMA locked, since whoever changes the VMA would
  /// wait as well (and hold the mmap lock meanwhile).
  bool may_wait() const { return stability == Stability::mmap_lock; }
};

/// What resolve came to.
enum class Resolved : std::uint8_t {
  done,        ///< the entry allows the access, or changed meanwhile: the access is tried again
  beyond_end,  ///< SIGBUS: past the end of the file
  io_error,    ///< SIGBUS: the store failed
  out_of_memory,
  pass_on,  ///< the classic path must do it; spf: Fault::passed_on says why
};

/// What has been done about a fault below a stack.
enum class Growth : std::uint8_t {
  untried,  ///< the fault may answer that the stack has to grow
  tried,    ///< it has grown, or cannot: under the mmap lock alone, and final
};

/// Handles one fault of a Cpu that is in the engine (space/take_fault.h), holding nothing. It parks
/// the Cpu before anything that waits.
/// False: a stack has to grow first (change::grow_stack); then again, with Growth::tried. Counted
/// once, with the outcome.
bool handle_fault(Cpu& cpu, Mm& mm, const GuestFault& what, Growth growth, Outcome* outcome);

/// Under the mmap lock for read, from lookup to install. False: as above.
bool classic(Cpu& cpu, Mm& mm, const GuestFault& what, Growth growth, Outcome* outcome);

/// True: settled, `*outcome` is final. False: nothing is held, the classic path is next; the reason
/// has been counted.
bool speculate(Cpu& cpu, Mm& mm, const GuestFault& what, Outcome* outcome);
/// The same, under the lock of the one VMA.
bool under_vma_lock(Cpu& cpu, Mm& mm, const GuestFault& what, Outcome* outcome);

/// What the access gets for what resolve came to; not `pass_on`.
Outcome to_outcome(const Fault& f, Resolved r);

/// Makes the entry allow the access. `f.leaf` and `f.seen` are set.
Resolved resolve(Fault& f);
/// The same from the upper levels on: links the tables that are not there. Under a lock that keeps
/// them.
Resolved link_and_resolve(Fault& f);

}  // namespace faultpath::fault
