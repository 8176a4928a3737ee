// Page tables come and go beside faults and walks.
#include "check/scenes/scenes.h"
#include "vma/mm.h"

namespace faultpath::check {

namespace {

/// Tables of space 0 at rest, the root included.
std::string wants_tables(Stage& s, std::uint64_t wanted) {
  const std::uint64_t have = s.space(0).mm().tables.table_pages();
  if (have == wanted) return {};
  return "the space has " + std::to_string(have) + " page tables, and should have " +
         std::to_string(wanted);
}

// --- tables that go ------------------------------------------------------------------------------

//        page   0
//            [ rw, was there once ]      its table is there, and empty
//
// munmap clears no entry, so it owes no flush: only the grace period keeps the tables for those who
// are still reading them.
constexpr Cue kWalksFreedTable[] = {{0, "mmu::walk", 2}, {1, ""}, {0, ""}};
constexpr Planted kWalkPlanted[] = {{Guard::retire_through_epochs, kWalksFreedTable}};

constexpr Scene kUnmapBesideWalk{
    .name = "munmap-frees-tables-under-a-walk",
    .ids = "B29 B67 I3",
    .story =
        "A CPU walks the tables of a page while another one unmaps it and frees the tables, which "
        "are empty. The walker is inside an access section: until it has closed, the tables may "
        "not be used for anything else.",
    .build =
        [](Stage& s) {
          s.cpu("walker", [](Script& c) { c.load(page(0)); });
          Script& unmapper = s.cpu("unmapper", [](Script& c) { c.unmap(page(0), 1); });
          unmapper.map(page(0), 1);
          unmapper.store(page(0), 1);
          unmapper.dontneed(page(0), 1);
          s.at_rest = [&s] { return wants_tables(s, 1); };
        },
    .planted = kWalkPlanted,
    .unbounded = true,
};

constexpr Cue kFindsFreedTable[] = {{0, "find_entry", 2}, {1, "change::map"}, {0, ""}};
constexpr Planted kFindPlanted[] = {{Guard::retire_through_epochs, kFindsFreedTable}};

constexpr Scene kUnmapBesideFindEntry{
    .name = "munmap-frees-tables-under-a-speculative-fault",
    .ids = "B29 B37 I3",
    .story =
        "A speculative fault looks for its entry with interrupts off while another CPU unmaps the "
        "whole range, frees the tables, maps it anew and stores there. The fault must neither "
        "read a table that has been freed nor lock one, and its own store is lost only if it came "
        "before the new mapping.",
    .build =
        [](Stage& s) {
          s.cpu("faulter", [](Script& c) { c.store(page(0), 10); });
          Script& mapper = s.cpu("mapper", [](Script& c) {
            c.unmap(page(0), 1);
            c.map(page(0), 1);
            c.store(page(0) + 8, 20);
            c.load(page(0));
          });
          mapper.map(page(0), 1);
          mapper.store(page(0), 1);
          mapper.dontneed(page(0), 1);
        },
    .planted = kFindPlanted,
    .only = Policy::spf,
};

// The fault has seen the table. It is unlinked, two grace periods pass, and it is free.
constexpr Cue kLocksDeadTable[] = {{0, "EntryLock::lock"}, {1, ""}, {0, ""}};
constexpr Planted kLockPlanted[] = {{Guard::recheck_before_table_lock, kLocksDeadTable}};

constexpr Scene kGraceBeforeLock{
    .name = "grace-period-between-the-look-and-the-lock",
    .ids = "B29 B36 B37 I3",
    .story =
        "A speculative fault has found its entry and turned interrupts on again to get a page. "
        "Meanwhile the range is unmapped and a whole grace period passes, so that the table is "
        "free memory and its lock is nobody's. Before the fault tries that lock it must see that "
        "its VMA has changed.",
    .build =
        [](Stage& s) {
          s.cpu("faulter", [](Script& c) { c.store(page(0), 10); });
          Script& unmapper = s.cpu("unmapper", [](Script& c) {
            c.unmap(page(0), 1);
            c.quiesce();
          });
          unmapper.map(page(0), 1);
          unmapper.store(page(0), 1);
          unmapper.dontneed(page(0), 1);
          s.at_rest = [&s] { return wants_tables(s, 1); };
        },
    .planted = kLockPlanted,
};

constexpr Scene kReuse{
    .name = "tables-are-freed-and-used-again",
    .ids = "B29 B36 B37 I3 I7",
    .story =
        "One CPU unmaps a range, a second one lets grace periods pass, so that the frames of its "
        "tables really are handed out again: to a new mapping of the same range and its pages. A "
        "third one faults there throughout. It may find the old mapping, none, or the new one, "
        "and never a table that has become a page.",
    .build =
        [](Stage& s) {
          s.cpu("faulter", [](Script& c) { c.store(page(0), 10); });
          Script& mapper = s.cpu("mapper", [](Script& c) {
            c.unmap(page(0), 1);
            c.map(page(0), 1);
            c.store(page(0) + 8, 20);
          });
          s.cpu("quiescer", [](Script& c) { c.quiesce(); });
          mapper.map(page(0), 1);
          mapper.store(page(0), 1);
          mapper.dontneed(page(0), 1);
        },
    .preemptions = 1,
};

// --- rules ---------------------------------------------------------------------------------------

//        page  511          512
//            [ rw, has a page | rw, empty ]
//            one leaf table  | none
constexpr unsigned kEdge = 511;

constexpr Scene kAbsentTable{
    .name = "zap-and-munmap-skip-an-absent-table",
    .ids = "B29 I3 I4, rule: absent table",
    .story =
        "A fault has to link a table while another CPU zaps and unmaps the same range, and may "
        "skip it because there is no table yet. Whoever links holds the mmap lock, which keeps "
        "munmap out; a speculative fault does not link and passes on. So after the munmap nothing "
        "is there, and no table is left behind.",
    .build =
        [](Stage& s) {
          s.cpu("faulter", [](Script& c) {
            c.store(page(kEdge + 1), 10);
            const Counters n = c.soft().counters();
            c.expect(n.spf == 0 || n.classic_entered != 0, "a speculative fault linked a table");
          });
          Script& unmapper = s.cpu("unmapper", [](Script& c) {
            c.dontneed(page(kEdge + 1), 1);
            c.unmap(page(kEdge + 1), 1);
            c.load(page(kEdge + 1));
          });
          unmapper.map(page(kEdge), 2);
          unmapper.store(page(kEdge), 1);
          s.at_rest = [&s] { return wants_tables(s, 4); };
        },
};

//        page   0          4
//            [ rw ]     [ rw ]      one leaf table
constexpr Scene kSharedTable{
    .name = "two-mappings-share-a-table",
    .ids = "B29 B53 I3 I16, rule: shared table",
    .story =
        "Two mappings have their entries in one table. One is unmapped: the table stays, with the "
        "other's page in it, while a CPU uses that. Then the other is unmapped: now the table "
        "goes, and those above it.",
    .build =
        [](Stage& s) {
          s.cpu("user", [](Script& c) {
            c.store(page(4) + 8, 10);
            c.load(page(4));
          });
          Script& unmapper = s.cpu("unmapper", [](Script& c) {
            c.unmap(page(0), 1);
            c.expect(wants_tables(c.stage(), 4).empty(), "munmap took a table that is in use");
            c.unmap(page(4), 1);
            c.expect(wants_tables(c.stage(), 1).empty(), "munmap left a table behind");
          });
          unmapper.map(page(0), 1);
          unmapper.map(page(4), 1);
          unmapper.store(page(0), 1);
          unmapper.store(page(4), 2);
          s.at_rest = [&s] { return wants_tables(s, 1); };
        },
};

constexpr Scene kTwoLinkers{
    .name = "two-faults-link-one-table",
    .ids = "B29 I3 I14 I16",
    .story =
        "Two CPUs fault in neighbouring pages of a range that has no tables. Both make one; the "
        "second to come finds the entry taken and uses the first one's, and gives its own back.",
    .build =
        [](Stage& s) {
          Script& one = s.cpu("first", [](Script& c) {
            c.store(page(0), 10);
            c.load(page(1));
          });
          s.cpu("second", [](Script& c) {
            c.store(page(1), 20);
            c.load(page(0));
          });
          one.map(page(0), 2);
          s.at_rest = [&s] { return wants_tables(s, 4); };
        },
};

constexpr const Scene* kScenes[] = {&kUnmapBesideWalk, &kUnmapBesideFindEntry, &kGraceBeforeLock,
                                    &kReuse,           &kAbsentTable,          &kSharedTable,
                                    &kTwoLinkers};

}  // namespace

std::span<const Scene* const> table_scenes() { return kScenes; }

}  // namespace faultpath::check
