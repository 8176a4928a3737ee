// Four levels of tables, one lock a table.
//
// Who may do what:
//   read an entry            anybody inside an access or epoch section, or holding a lock that
//                            keeps tables from being freed (mmap lock, in any mode; or a VMA lock,
//                            for the tables in which that VMA has entries)
//   set or clear a leaf      holding that table's lock, after `dead` was seen clear under it
//   set accessed, dirty      anybody inside an access section, by compare-exchange
//   link a table             holding the parent's lock, after the parent's `dead` was seen clear
//   empty and unlink a table holding the mmap lock for write, the parent's lock, then the child's;
//                            the table is retired through epochs, its lock with it (B37)
//
// A leaf that a walker can reach changes by exchange or compare-exchange only, since the walker
// sets accessed and dirty under nobody's lock.
#pragma once

#include "memory/machine_core.h"
#include "pagetable/pte.h"

namespace faultpath::pagetable {

using memory::Cpu;
using memory::Frame;
using memory::MachineCore;

inline constexpr unsigned kLevels = 4;
inline constexpr unsigned kIndexBits = 9;
inline constexpr unsigned kEntries = 1u << kIndexBits;

/// Bytes of address space that one entry at `level` covers.
constexpr std::uint64_t span_of(unsigned level) {
  return std::uint64_t{1} << (kPageShift + kIndexBits * level);
}
constexpr unsigned index_of(Addr a, unsigned level) {
  return static_cast<unsigned>(a >> (kPageShift + kIndexBits * level)) & (kEntries - 1);
}

using Entry = env::atomic<std::uint64_t>;

/// A table by its frame: entries and metadata.
struct Table {
  Frame* meta = nullptr;
  Entry* entries = nullptr;
  explicit operator bool() const { return meta != nullptr; }
  Entry& at(Addr a, unsigned level) const { return entries[index_of(a, level)]; }
};

class PageTable {
 public:
  /// The root, or false when frames are short.
  bool init(MachineCore& core, Cpu& cpu);
  /// The root goes back; everything below it is gone already.
  void destroy(Cpu& cpu);

  Table table(Pfn pfn) const {
    return {&core_->frame(pfn), reinterpret_cast<Entry*>(core_->object_memory(pfn))};
  }
  Table root() const { return table(root_); }

  /// The leaf table for an address, or a null one where a level is absent; `*absent` then says at
  /// which level the entry was empty: span_of(*absent) bytes have no table.
  Table find_leaf(Addr a, unsigned* absent = nullptr) const {
    Table t = root();
    for (unsigned level = kLevels - 1; level > 0; --level) {
      const Pte e(t.at(a, level).load(env::acquire));
      if (!e.present()) {
        if (absent != nullptr) *absent = level;
        return {};
      }
      t = table(e.pfn());
    }
    return t;
  }
  /// The leaf table, linking what is absent. Null when frames are short. The caller holds the mmap
  /// lock in any mode, or the lock of the VMA at `a`, so that no table on the way can be unlinked.
  Table ensure_leaf(Cpu& cpu, Addr a);

  /// Unlinks every table that covers only addresses in [floor, ceiling) and has nothing left in it,
  /// for the addresses [start, end). The caller holds the mmap lock for write and has zapped the
  /// range. Unlinked tables go to `batch`.
  void free_tables(Cpu& cpu, Addr start, Addr end, Addr floor, Addr ceiling,
                   memory::RetireBatch& batch);

  /// Calls f(Pte) for every leaf entry that is not empty. The caller holds the mmap lock.
  template <class F>
  void for_each_leaf_entry(F&& f) const {
    visit(root(), kLevels - 1, f);
  }

  std::uint64_t table_pages() const { return tables_.load(env::relaxed); }
  MachineCore& core() const { return *core_; }

 private:
  template <class F>
  void visit(Table t, unsigned level, F& f) const {
    for (unsigned i = 0; i < kEntries; ++i) {
      const Pte e(t.entries[i].load(env::acquire));
      if (e.none()) continue;
      if (level == 0) {
        f(e);
      } else {
        visit(table(e.pfn()), level - 1, f);
      }
    }
  }
  Table make_table(Cpu& cpu, unsigned level);
  void free_level(Cpu& cpu, Table t, unsigned level, Addr base, Addr start, Addr end, Addr floor,
                  Addr ceiling, memory::RetireBatch& batch);

  MachineCore* core_ = nullptr;
  Pfn root_ = memory::kNoPfn;
  env::atomic<std::uint64_t> tables_;  ///< pages of tables; a shared line, written once a table
};

/// Replaces an entry whatever the walker does to its accessed and dirty bits; returns what was
/// there. The table's lock is held.
inline Pte exchange_entry(Entry& entry, Pte to, env::Site site = env::Site::current()) {
  return Pte(entry.exchange(to.word(), env::acq_rel, site));
}

}  // namespace faultpath::pagetable
