// VMAs are cut, joined, replaced and removed beside faults in them and in their neighbours.
#include "check/scenes/scenes.h"
#include "vma/mm.h"

namespace faultpath::check {

namespace {

constexpr Prot kRw = Prot::read | Prot::write;
constexpr Prot kRwx = Prot::read | Prot::write | Prot::exec;

const vma::Vma* vma_at(Stage& s, Addr a) {
  const vma::TreeSlot slot = s.space(0).mm().tree.find(a);
  return slot && slot.start <= a ? slot.vma : nullptr;
}

/// How many VMAs space 0 (or another) has at rest.
std::string wants_vmas(Stage& s, std::uint32_t wanted, unsigned space = 0) {
  std::uint32_t have = 0;
  s.space(space).mm().tree.view().for_each(0, ~Addr{0}, [&](const vma::TreeSlot&) {
    ++have;
    return true;
  });
  if (have == wanted) return {};
  return "the space has " + std::to_string(have) + " VMAs, and should have " +
         std::to_string(wanted);
}

// --- a VMA that is new ---------------------------------------------------------------------------

//        page   0    1
//   before   [ rw   rw ]       the writer has a translation of page 1
//   protect  [ rw ][ r- ]      the second VMA is new
//
// The right is gone from the entry, its flush is owed. Whoever is refused now says that the right
// is gone for all.
constexpr Cue kBornEven[] = {{0, "flush_range"}, {1, ""}, {2, ""}, {0, ""}};
constexpr Planted kBornPlanted[] = {{Guard::born_marked, kBornEven}};

constexpr Scene kFreshVma{
    .name = "refusal-from-a-vma-that-is-being-made",
    .ids = "B02 B28 I1 I2",
    .story =
        "protect cuts a VMA off and takes write from it. A second CPU stores there and must not be "
        "refused before the flush has taken the right from the third one, which still stores "
        "through an old translation: the new VMA is marked until the operation has ended.",
    .build =
        [](Stage& s) {
          Script& protector =
              s.cpu("protector", [](Script& c) { c.protect(page(1), 1, Prot::read); });
          s.cpu("refused", [](Script& c) { c.store(page(1), 21); });
          Script& writer = s.cpu("writer", [](Script& c) { c.store(page(1) + 8, 31); });
          protector.map(page(0), 2);
          writer.store(page(1), 1);
        },
    .planted = kBornPlanted,
    .preemptions = 1,
};

// --- a VMA that has left the tree ----------------------------------------------------------------

//        page   0          1                4
//            [ rw, empty | rw, has a page ]  [ rw, keeps the table ]
constexpr Cue kEvenAgain[] = {{0, "attempt"}, {1, "SoftCpu::load"}, {0, ""}, {1, ""}};
constexpr Planted kRemovedPlanted[] = {{Guard::unlinked_stays_marked, kEvenAgain}};

constexpr Scene kRemovedVma{
    .name = "fault-holds-a-vma-that-left-the-tree",
    .ids = "B05 B14 I1 I4 I7, rule: removed VMA",
    .story =
        "A speculative fault has looked its VMA up and holds a reference. Another CPU unmaps the "
        "VMA; the operation ends. Only that the VMA stays marked for ever tells the fault, which "
        "has not read the sequence yet, that what it holds is no part of the space any more.",
    .build =
        [](Stage& s) {
          s.cpu("faulter", [](Script& c) { c.store(page(0), 10); });
          Script& unmapper = s.cpu("unmapper", [](Script& c) {
            c.unmap(page(0), 2);
            c.load(page(0));
          });
          unmapper.map(page(0), 2);
          unmapper.map(page(4), 1);
          unmapper.store(page(1), 1);
          unmapper.store(page(4), 2);
        },
    .planted = kRemovedPlanted,
};

constexpr Scene kNoHole{
    .name = "map-replaces-without-a-hole",
    .ids = "B02 B05 I1 I4, rule: removed VMA",
    .story =
        "One CPU maps over a mapping that is in use. Another one loads and stores there: it may "
        "find the old contents or the new, empty ones, never that nothing is mapped, and what it "
        "stores after the new mapping was made stays.",
    .build =
        [](Stage& s) {
          Script& mapper = s.cpu("mapper", [](Script& c) {
            c.map(page(0), 2);
            c.load(page(0));
          });
          s.cpu("user", [](Script& c) {
            c.store(page(0), 20);
            c.load(page(0) + 8);
          });
          mapper.map(page(0), 2, {.prot = kRw});
          mapper.store(page(0) + 8, 1);
        },
};

//        page   0        1
//            [ rw, empty, had a page once ]
//   map      [ rw, never had one          ]
//
// A page put into the VMA that replaces another one: nobody would know that it has pages.
constexpr Cue kHasPagesUnknown[] = {{0, "try_lock@EntryLock::"}, {1, "await"}, {0, ""}, {1, ""}};
constexpr Planted kHasPagesPlanted[] = {{Guard::recheck_under_table_lock, kHasPagesUnknown}};

constexpr Scene kHasPages{
    .name = "has-pages-is-read-before-the-vma-is-replaced",
    .ids = "B05 I1 I5",
    .story =
        "A fault has read that its VMA has had pages, and another CPU replaces the VMA by one that "
        "has had none. If the fault's page came into the new one, a fork would believe that there "
        "is nothing to copy, and the child would miss what the parent has.",
    .build =
        [](Stage& s) {
          Flag& stored = s.flag();
          Script& faulter = s.cpu("faulter", [&stored](Script& c) {
            c.store(page(0), 10);
            stored.raise();
          });
          s.cpu("mapper", [&stored](Script& c) {
            c.map(page(0), 2);
            stored.await();
            c.load(page(0));
            c.fork(1);
            c.enter(1);
            c.load(page(0));
          });
          faulter.map(page(0), 2);
          faulter.store(page(1), 1);
          faulter.dontneed(page(1), 1);
        },
    .planted = kHasPagesPlanted,
    .preemptions = 1,
};

// --- merging, splitting, shrinking ---------------------------------------------------------------

//        page   0           1     2            3
//   before   [ rw, empty ][ r- ][ rw, empty | rw, has a page ]
//   protect  [ rw                                            ]   one VMA, with the last one's root
constexpr Scene kMergeOfThree{
    .name = "three-vmas-become-one-beside-faults",
    .ids = "B07 B39 I1 I7 I8",
    .story =
        "protect gives the VMA in the middle the rights of its neighbours, and the three become "
        "one: the first, which has had no page, takes over that the last one has had some. Faults "
        "in the first and in the last go on. Both merged VMAs are marked before anything "
        "changes.",
    .build =
        [](Stage& s) {
          Script& merger = s.cpu("merger", [](Script& c) { c.protect(page(1), 1, kRw); });
          s.cpu("user", [](Script& c) {
            c.store(page(2), 20);
            c.store(page(0), 30);
          });
          merger.map(page(0), 4);
          merger.protect(page(1), 1, Prot::read);
          merger.store(page(3), 1);
          s.at_rest = [&s]() -> std::string {
            const vma::Vma* v = vma_at(s, page(0));
            if (v == nullptr || !v->ever_faulted()) return "the VMA has pages and does not say so";
            return wants_vmas(s, 1);
          };
        },
    .unbounded = true,
};

//        page   0    1    2
//   first    [ rw   rw   rw ]
//   split    [ rw ][ r-][ rw ]
//   merge    [ rw   rw   rw ]
//   shrink   [ rw   rw ]
constexpr Scene kSplitMergeShrink{
    .name = "split-merge-and-shrink-beside-a-fault",
    .ids = "B05 B39 I1",
    .story =
        "protect cuts a VMA in three and joins the parts again, and munmap takes the last page "
        "off, while a CPU faults in the first page. At the end one VMA is left, unmarked, and the "
        "fault's page is in it.",
    .build =
        [](Stage& s) {
          Script& changer = s.cpu("changer", [](Script& c) {
            c.protect(page(1), 1, Prot::read);
            c.protect(page(1), 1, kRw);
            c.unmap(page(2), 1);
          });
          s.cpu("faulter", [](Script& c) { c.store(page(0), 10); });
          changer.map(page(0), 3);
          changer.store(page(1), 1);
          s.at_rest = [&s] { return wants_vmas(s, 1); };
        },
};

constexpr Scene kFailedChanges{
    .name = "changes-that-fail-beside-a-fault",
    .ids = "B07 B39 I1",
    .story =
        "A space that may have one VMA more no more: protect and munmap in the middle of a VMA are "
        "refused, and protect over a hole changes what comes before the hole. A fault in the VMA "
        "goes on. What failed leaves no mark and nothing half done.",
    .build =
        [](Stage& s) {
          const unsigned small = s.new_space({.policy = s.policy(), .max_map_count = 1});
          Script& changer = s.cpu(
              "changer",
              [](Script& c) {
                c.protect(page(1), 1, Prot::read);
                c.expect(c.failed(), "protect cut a VMA beyond the limit");
                c.unmap(page(1), 1);
                c.expect(c.failed(), "munmap cut a VMA beyond the limit");
                c.protect(page(0), 4, kRwx);
                c.expect(c.failed(), "protect went over a hole");
              },
              small);
          s.cpu("faulter", [](Script& c) { c.store(page(1), 10); }, small);
          changer.map(page(0), 3);
          changer.store(page(0), 1);
          s.at_rest = [&s, small] { return wants_vmas(s, 1, small); };
        },
};

// --- anon roots ----------------------------------------------------------------------------------

//        page   0      1
//            [ rw ] [ rwx ]      neither has had a page
constexpr Scene kNeighboursFirstFaults{
    .name = "first-faults-in-neighbouring-vmas",
    .ids = "B18 I7 I8",
    .story =
        "Two CPUs have the first faults of two neighbouring VMAs at the same time. Each looks at "
        "the other VMA for a root to share; one of them comes second and shares the first one's. "
        "So they can become one VMA later.",
    .build =
        [](Stage& s) {
          Script& one = s.cpu("first", [](Script& c) { c.store(page(0), 10); });
          s.cpu("second", [](Script& c) { c.store(page(1), 20); });
          one.map(page(0), 1, {.prot = kRw});
          one.map(page(1), 1, {.prot = kRwx});
          s.at_rest = [&s]() -> std::string {
            const vma::Vma* a = vma_at(s, page(0));
            const vma::Vma* b = vma_at(s, page(1));
            if (a == nullptr || b == nullptr) return "a VMA is missing";
            if (a->anon_root() != b->anon_root()) return "two neighbours have roots of their own";
            return {};
          };
        },
    .unbounded = true,
};

constexpr Scene kRootOfAGoneNeighbour{
    .name = "first-fault-beside-the-end-of-its-neighbour",
    .ids = "B18 I7",
    .story =
        "The first fault of a VMA looks at its neighbour for a root to share while another CPU "
        "unmaps that neighbour. The fault holds the mmap lock, so the neighbour and its root are "
        "there or are not looked at.",
    .build =
        [](Stage& s) {
          s.cpu("faulter", [](Script& c) {
            c.store(page(1), 10);
            c.load(page(1));
          });
          Script& unmapper = s.cpu("unmapper", [](Script& c) {
            c.unmap(page(0), 1);
            c.quiesce();
          });
          unmapper.map(page(0), 1, {.prot = kRw});
          unmapper.map(page(1), 1, {.prot = kRwx});
          unmapper.store(page(0), 1);
        },
};

//        page   0            1
//            [ rw, a page ] [ rwx, empty ]
//   protect  [ rw                        ]
constexpr Scene kFirstFaultBesideMerge{
    .name = "first-fault-beside-a-merge-that-asks-for-it",
    .ids = "B07 B18 I1 I8, rule: ever_faulted",
    .story =
        "Whether two VMAs may merge depends on whether each has had pages, and the first fault in "
        "the second one is just under way. Whichever comes first, they end as one VMA: the fault "
        "shares the neighbour's root, or the merge finds a VMA without pages.",
    .build =
        [](Stage& s) {
          s.cpu("faulter", [](Script& c) {
            c.store(page(1), 10);
            c.load(page(1));
          });
          Script& merger = s.cpu("merger", [](Script& c) { c.protect(page(1), 1, kRw); });
          merger.map(page(0), 1, {.prot = kRw});
          merger.map(page(1), 1, {.prot = kRwx});
          merger.store(page(0), 1);
          s.at_rest = [&s] { return wants_vmas(s, 1); };
        },
    .unbounded = true,
};

constexpr Scene kFirstFaultBesideSplit{
    .name = "first-fault-beside-a-split-and-a-fork",
    .ids = "B05 B39 I5, rule: ever_faulted",
    .story =
        "A VMA without pages is cut in two, each part told whether there have been any, while its "
        "first fault is under way. A fork afterwards asks both parts. The child must have the "
        "page that the parent has.",
    .build =
        [](Stage& s) {
          Flag& stored = s.flag();
          Script& faulter = s.cpu("faulter", [&stored](Script& c) {
            c.store(page(1), 10);
            stored.raise();
          });
          s.cpu("splitter", [&stored](Script& c) {
            c.protect(page(1), 1, kRwx);
            stored.await();
            c.fork(1);
            c.enter(1);
            c.load(page(1));
          });
          faulter.map(page(0), 2);
        },
    .unbounded = true,
};

// --- lookups -------------------------------------------------------------------------------------

/// So many mappings of one page each that the tree has an inner node; no two merge.
constexpr unsigned kMany = 18;
void map_many(Script& c) {
  for (unsigned i = 0; i < kMany; ++i) {
    c.map(page(i), 1, {.prot = i % 2 == 0 ? kRw : kRwx});
  }
}

constexpr Scene kLookupBesideEdits{
    .name = "lookups-beside-edits-of-the-tree",
    .ids = "B04 B12 I7 I9",
    .story =
        "A mapping is removed from a tree of two levels and mapped again, and the nodes that the "
        "edits replaced are really freed. Faults at both ends of the tree look up all the while: "
        "what is mapped all the time is found all the time, and no node is read after its end.",
    .build =
        [](Stage& s) {
          s.cpu("faulter", [](Script& c) {
            c.store(page(0), 10);
            c.store(page(kMany - 1), 20);
          });
          Script& editor = s.cpu("editor", [](Script& c) {
            c.unmap(page(8), 1);
            c.quiesce();
            c.map(page(8), 1);
          });
          map_many(editor);
          editor.store(page(kMany - 1) + 8, 1);
          s.at_rest = [&s] { return wants_vmas(s, kMany); };
        },
    .preemptions = 1,
};

//        page   0         1
//            [ shared ][ shared ]      two objects
constexpr Scene kSyncBesideUnmap{
    .name = "msync-looks-up-again-after-each-part",
    .ids = "B12 I7",
    .story =
        "msync goes from mapping to mapping, drops the mmap lock to write, and looks the next one "
        "up from the root. Meanwhile another CPU unmaps the second mapping, maps another one in "
        "its place and lets everything that is free be used again.",
    .build =
        [](Stage& s) {
          const unsigned file = s.make_file(1);
          Script& syncer = s.cpu("syncer", [](Script& c) { c.sync(page(0), 2); });
          s.cpu("mapper", [](Script& c) {
            c.unmap(page(1), 1);
            c.map(page(1), 1);
            c.quiesce();
            c.store(page(1), 20);
          });
          syncer.map(page(0), 1, {.shared = true, .file = file});
          syncer.map(page(1), 1, {.shared = true});
          syncer.store(page(0), 1);
          syncer.store(page(1), 2);
        },
    .preemptions = 1,
};

// --- those who believe that they are alone -------------------------------------------------------

constexpr Scene kWalkersUnderWriteLock{
    .name = "walkers-under-the-mmap-lock-are-not-alone",
    .ids = "B09 I1 I12",
    .story =
        "One CPU counts the pages of a space and then protects them, with the mmap lock for write. "
        "That keeps classic faults out, not speculative ones: the count is of about one moment, "
        "and protect marks before it believes that no page comes in. After it, nobody can "
        "store.",
    .build =
        [](Stage& s) {
          s.cpu("faulter", [](Script& c) { c.store(page(0), 10); });
          Script& walker = s.cpu("walker", [](Script& c) {
            const SpaceInfo info = c.stage().space(0).info(c.soft());
            c.expect(info.anon_pages == 1 || info.anon_pages == 2,
                     "a count of pages that never were");
            c.protect(page(0), 2, Prot::read);
            c.store(page(0), 20);
          });
          walker.map(page(0), 2);
          walker.store(page(1), 1);
        },
    .preemptions = 1,
};

constexpr const Scene* kScenes[] = {
    &kFreshVma,
    &kRemovedVma,
    &kNoHole,
    &kHasPages,
    &kMergeOfThree,
    &kSplitMergeShrink,
    &kFailedChanges,
    &kNeighboursFirstFaults,
    &kRootOfAGoneNeighbour,
    &kFirstFaultBesideMerge,
    &kFirstFaultBesideSplit,
    &kLookupBesideEdits,
    &kSyncBesideUnmap,
    &kWalkersUnderWriteLock,
};

}  // namespace

std::span<const Scene* const> vma_scenes() { return kScenes; }

}  // namespace faultpath::check
