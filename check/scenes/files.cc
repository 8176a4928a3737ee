// Files: pages that are shared, written back, and mapped in several places.
#include "check/model/at_rest.h"
#include "check/scenes/scenes.h"
#include "memory/machine_core.h"

namespace faultpath::check {

namespace {

// --- writeback and whoever can still store ----------------------------------------------------------

// A store that a CPU has made and told of, and then a sync: the file's store has it.
struct Told {
  Flag stored;
  void store(Script& c, Addr a, std::uint64_t v) {
    c.store(a, v);
    if (!c.failed()) stored.raise();
  }
  /// `sync` is a call that writes word 0 of the file's page back.
  template <class F>
  void sync(Script& c, unsigned file_page, std::uint64_t v, F&& sync) {
    const bool made = stored.raised();
    sync();
    if (!made) return;
    c.expect(c.stage().store(1).word(file_page, 0) == v,
             "a store that was made before sync is not in the file's store after it");
  }
};

//   space 0  page 0 [ shared, file page 0 | file page 1 ]    space 1  page 0 [ shared, file page 1 ]
//                                         ^ is unmapped
//
// The mapping's end has moved and the entry of page 1 is still there: a writeback that goes by the
// mapping's bounds finds nothing to protect, and calls the page clean.
constexpr Cue kPartIsMissed[] = {{0, "Gather::zap"}, {1, "Flag::raised"}, {2, ""}, {1, ""}};
constexpr Planted kPartPlanted[] = {{Guard::parts_stay_listed, kPartIsMissed}};

constexpr Scene kPartBesideWriteback{
    .name = "writeback-beside-munmap-of-a-part",
    .ids = "B50 I8 I15",
    .story =
        "One CPU unmaps the second half of a shared file mapping. A second one writes the file "
        "back, "
        "and once more later. A third one stores to the half that goes, through a translation "
        "that it has had all along. If that store was made before the second writeback, then that "
        "writeback has it: no page is clean while an entry lets stores through.",
    .build =
        [](Stage& s) {
          s.make_file(2);
          Told& told = s.state<Told>();
          Script& unmapper = s.cpu("unmapper", [](Script& c) { c.unmap(page(1), 1); });
          const unsigned elsewhere = s.new_space({.policy = s.policy()});
          Script& syncer = s.cpu(
              "syncer",
              [&told](Script& c) {
                c.sync(page(0), 1);
                told.sync(c, 1, 77, [&] { c.sync(page(0), 1); });
              },
              elsewhere);
          Script& writer = s.cpu("writer", [&told](Script& c) { told.store(c, page(1), 77); });
          unmapper.map(page(0), 2, {.shared = true, .file = 1});
          syncer.map(page(0), 1, {.shared = true, .file = 1, .file_page = 1});
          writer.store(page(1), 70);
        },
    .planted = kPartPlanted,
    .preemptions = 1,
};

// The entry is clear and its flush is owed: writeback finds nothing to protect, writes the page and
// calls it clean. Then a store through the old translation.
constexpr Cue kCleanTooSoon[] = {{0, "flush_range"}, {1, ""}, {2, ""}, {0, ""}};
constexpr Planted kCleanPlanted[] = {{Guard::clean_after_flush, kCleanTooSoon}};

constexpr Scene kDontneedBesideWriteback{
    .name = "writeback-beside-dontneed",
    .ids = "B66 I15",
    .story =
        "One CPU drops a dirty page of a shared file mapping, a second one writes the file back, a "
        "third one stores through its old translation until the flush. The last store is in the "
        "page; so the page may not be called clean, or it is never written again.",
    .build =
        [](Stage& s) {
          s.make_file(1);
          Script& dropper = s.cpu("dropper", [](Script& c) { c.dontneed(page(0), 1); });
          s.cpu("syncer", [](Script& c) { c.sync(page(0), 1); });
          Script& writer = s.cpu("writer", [](Script& c) { c.store(page(0), 77); });
          dropper.map(page(0), 1, {.shared = true, .file = 1});
          writer.store(page(0), 70);
        },
    .planted = kCleanPlanted,
    .preemptions = 1,
};

// The same window, and what is promised in it: the second writeback finds a clean page.
constexpr Cue kSkipsTheSecond[] = {{0, "flush_range"}, {1, "Flag::raised"}, {2, ""}, {1, ""}};
constexpr Planted kPromisePlanted[] = {{Guard::clean_after_flush, kSkipsTheSecond}};

constexpr Scene kPromiseBesideDontneed{
    .name = "two-writebacks-beside-dontneed",
    .ids = "B66 B48 I15",
    .story =
        "One CPU drops a dirty page of a shared file mapping and owes the flush. A second one "
        "writes "
        "the file back twice; between the two, a third one stores through its old translation. "
        "The store was made before the second writeback, so that one has it.",
    .build =
        [](Stage& s) {
          s.make_file(1);
          Told& told = s.state<Told>();
          Script& dropper = s.cpu("dropper", [](Script& c) { c.dontneed(page(0), 1); });
          s.cpu("syncer", [&told](Script& c) {
            c.sync(page(0), 1);
            told.sync(c, 0, 77, [&] { c.sync(page(0), 1); });
          });
          Script& writer = s.cpu("writer", [&told](Script& c) { told.store(c, page(0), 77); });
          dropper.map(page(0), 1, {.shared = true, .file = 1});
          writer.store(page(0), 70);
        },
    .planted = kPromisePlanted,
    .preemptions = 1,
};

constexpr Scene kUnmapBesideWriteback{
    .name = "writeback-beside-munmap",
    .ids = "B66 B50 I8 I15",
    .story =
        "The same with munmap of the whole mapping, which is in the file's list until its flush "
        "has "
        "been answered. The writeback is msync of another space's mapping of the page.",
    .build =
        [](Stage& s) {
          s.make_file(1);
          Script& unmapper = s.cpu("unmapper", [](Script& c) { c.unmap(page(0), 1); });
          const unsigned elsewhere = s.new_space({.policy = s.policy()});
          Script& syncer = s.cpu("syncer", [](Script& c) { c.sync(page(0), 1); }, elsewhere);
          Script& writer = s.cpu("writer", [](Script& c) { c.store(page(0), 77); });
          unmapper.map(page(0), 1, {.shared = true, .file = 1});
          syncer.map(page(0), 1, {.shared = true, .file = 1});
          writer.store(page(0), 70);
        },
    .planted = kCleanPlanted,
    .preemptions = 1,
};

constexpr Scene kSyncBesideStores{
    .name = "writeback-beside-stores",
    .ids = "B61 I15",
    .story =
        "One CPU stores to a shared file page, twice, while another one writes the file back, "
        "twice: each store either finds the page writable, and is in the page before it is "
        "written, or makes it dirty again. A store that was made before a writeback is in it.",
    .build =
        [](Stage& s) {
          s.make_file(1);
          Told& told = s.state<Told>();
          Script& writer = s.cpu("writer", [&told](Script& c) {
            told.store(c, page(0), 77);
            c.store(page(0) + 8, 78);
          });
          s.cpu("syncer", [&told](Script& c) {
            told.sync(c, 0, 77, [&] { c.sync_file(1); });
            told.sync(c, 0, 77, [&] { c.sync(page(0), 1); });
          });
          writer.map(page(0), 1, {.shared = true, .file = 1});
          writer.store(page(0), 70);
        },
};

constexpr Scene kTwoSyncs{
    .name = "two-writebacks-of-one-page",
    .ids = "I15",
    .story =
        "Two CPUs write one dirty page back. The first one has taken its mark and not yet written: "
        "the second one finds the page clean, and must wait for it all the same, since the store "
        "that it is promised was made before either began.",
    .build =
        [](Stage& s) {
          s.make_file(1);
          Script& one = s.cpu("one", [](Script& c) { c.sync(page(0), 1); });
          s.cpu("other", [](Script& c) {
            c.sync(page(0), 1);
            c.expect(c.stage().store(1).word(0, 0) == 70,
                     "a store that was made before sync is not in the file's store after it");
            c.store(page(0), 71);  // shared with the first one: searches switch where it reads it
          });
          one.map(page(0), 1, {.shared = true, .file = 1});
          one.store(page(0), 70);
        },
};

// The walk over the mappings takes no lock of the space: it finds a table that munmap unlinks.
constexpr Cue kLocksDeadTable[] = {{1, "lock@write_protect_entry"}, {0, ""}, {1, ""}};
constexpr Planted kTablePlanted[] = {{Guard::retire_through_epochs, kLocksDeadTable}};

constexpr Scene kTableBesideWriteback{
    .name = "writeback-beside-a-table-that-goes",
    .ids = "B29 B37 B67 I3",
    .story =
        "One CPU unmaps a shared file mapping and with it the page table. Another one writes the "
        "file back, and is on its way to the entry. What it locks is a table until it has left.",
    .build =
        [](Stage& s) {
          s.make_file(1);
          Script& unmapper = s.cpu("unmapper", [](Script& c) {
            c.unmap(kThere, 1);
            c.store(page(0), 1);
          });
          s.cpu("syncer", [](Script& c) { c.sync_file(1); });
          unmapper.map(page(0), 1);
          unmapper.map(kThere, 1, {.shared = true, .file = 1});
          unmapper.store(kThere, 70);
        },
    .planted = kTablePlanted,
};

// --- pages of the cache ---------------------------------------------------------------------------------

constexpr Scene kFirstFaults{
    .name = "two-first-faults-on-a-file-page",
    .ids = "B41 B63 I12 I14",
    .story =
        "Two CPUs need the same page of a file for the first time. Both make a frame, one of which "
        "becomes the page and the other goes back; the page is read from the store once, and "
        "nobody sees it before.",
    .build =
        [](Stage& s) {
          s.make_file(1);
          Script& one = s.cpu("reader", [](Script& c) {
            c.load(page(0) + 8);
            c.load(page(0));
          });
          s.cpu("writer", [](Script& c) {
            c.store(page(0), 77);
            c.load(page(0) + 8);
          });
          one.map(page(0), 1, {.shared = true, .file = 1});
        },
};

constexpr Scene kFirstPrivateFaults{
    .name = "two-private-faults-on-a-file-page",
    .ids = "B41 B56 I12 I16",
    .story =
        "One CPU reads a page of a private file mapping, which maps the file's page, while another "
        "one stores to it, which copies it. Both are for one entry; whoever is second looks "
        "again, and no reference to the file's page is lost.",
    .build =
        [](Stage& s) {
          s.make_file(1);
          Script& one = s.cpu("reader", [](Script& c) {
            c.load(page(0));
            c.load(page(0));
          });
          s.cpu("writer", [](Script& c) {
            c.store(page(0), 77);
            c.load(page(0) + 8);
          });
          one.map(page(0), 1, {.file = 1});
        },
};

//   space 0   page 0 [ shared, file page 0 ]    page 2 [ shared, file page 0 ]
constexpr Scene kTwoMappings{
    .name = "one-file-page-at-two-addresses",
    .ids = "I8 I15",
    .story =
        "A file's page is mapped at two addresses. Two CPUs store through one each and read "
        "through "
        "the other, while a third one writes the file back: it protects both entries, and every "
        "store is in the page.",
    .build =
        [](Stage& s) {
          s.make_file(1);
          Script& one = s.cpu("one", [](Script& c) {
            c.store(page(0), 11);
            c.load(page(0) + 8);
          });
          Script& other = s.cpu("other", [](Script& c) {
            c.store(page(2) + 8, 22);
            c.load(page(2));
          });
          s.cpu("syncer", [](Script& c) { c.sync_file(1); });
          one.map(page(0), 1, {.shared = true, .file = 1});
          one.map(page(2), 1, {.shared = true, .file = 1});
          one.store(page(0), 1);
          other.store(page(2), 2);
        },
    .preemptions = 1,
};

constexpr Scene kForkOfShared{
    .name = "fork-of-a-shared-mapping",
    .ids = "B01 I5 I8",
    .story =
        "One CPU forks a space with a shared file mapping and stores in the child; another one "
        "stores in the parent. Both go to the one page of the file, before and after the fork.",
    .build =
        [](Stage& s) {
          s.make_file(1);
          s.cpu("forker", [](Script& c) {
            c.fork(1);
            c.enter(1);
            c.store(page(0) + 8, 22);
            c.load(page(0));
          });
          Script& parent = s.cpu("parent", [](Script& c) {
            c.store(page(0), 11);
            c.load(page(0) + 8);
          });
          parent.map(page(0), 1, {.shared = true, .file = 1});
          parent.store(page(0), 1);
        },
};

// --- copies of file pages --------------------------------------------------------------------------------

//   page 0 [ shared, file page 0 ]    page 2 [ private, file page 0 ]
constexpr Scene kPrivateCopy{
    .name = "private-copy-beside-stores-to-the-file",
    .ids = "B61 I5 I16",
    .story =
        "One CPU stores to a private mapping of a file's page, which copies it. Another one stores "
        "to the same page through a shared mapping. Each word of the copy is one that the file "
        "had; once the copy is there it has nothing to do with the file.",
    .build =
        [](Stage& s) {
          s.make_file(1);
          Script& writer = s.cpu("writer", [](Script& c) {
            c.store(page(0), 11);
            c.store(page(0) + 8, 12);
          });
          s.cpu("copier", [](Script& c) {
            c.load(page(2));
            c.store(page(2) + 16, 22);
            c.load(page(2));
            c.load(page(2) + 8);
            c.load(page(2));
          });
          writer.map(page(0), 1, {.shared = true, .file = 1});
          writer.map(page(2), 1, {.file = 1});
          writer.store(page(0), 1);
        },
};

constexpr Scene kWriteFile{
    .name = "write-to-a-file-beside-faults",
    .ids = "B41 I14 I15",
    .story =
        "One CPU writes to a file with a call, another one has the page mapped, shared and "
        "private, "
        "and needs it for the first time. The mapping sees the page as the store has it or as the "
        "call has left it.",
    .build =
        [](Stage& s) {
          s.make_file(1);
          Script& caller = s.cpu("caller", [](Script& c) {
            c.write_file(1, 0, 0, 99);
            c.write_file(1, 0, 1, 98);
          });
          s.cpu("user", [](Script& c) {
            c.load(page(0) + 8);
            c.load(page(0));
            c.store(page(2) + 16, 22);
            c.load(page(2));
          });
          caller.map(page(0), 1, {.shared = true, .file = 1});
          caller.map(page(2), 1, {.file = 1});
        },
};

// --- the end of a file ---------------------------------------------------------------------------------

// Shared anonymous memory is a file that only its mappings know.
constexpr Scene kMsyncBesideLastUnmap{
    .name = "msync-beside-the-last-munmap",
    .ids = "B10 B41 I12",
    .story =
        "One CPU unmaps the last mapping of shared anonymous memory, another one is in msync of "
        "it. "
        "The object lives until both have let go of it, and then goes with its pages.",
    .build =
        [](Stage& s) {
          Script& unmapper = s.cpu("unmapper", [](Script& c) {
            c.unmap(page(0), 1);
            c.load(page(0));
          });
          s.cpu("syncer", [](Script& c) {
            c.sync(page(0), 1);
            c.load(page(0));
          });
          unmapper.map(page(0), 1, {.shared = true});
          unmapper.store(page(0), 70);
        },
};

// A file that the embedder has closed: what is mapped keeps it, and the last one writes it back.
constexpr Scene kClosedFile{
    .name = "msync-beside-the-last-munmap-of-a-closed-file",
    .ids = "B10 B41 B66 I12 I15",
    .story =
        "A file has been closed, and only its mapping is left. One CPU unmaps it, another one is "
        "in "
        "msync of it and then stores to it, if it is still there. Whoever lets go of the file last "
        "writes it back: what was stored through the mapping is in the file's store then.",
    .build =
        [](Stage& s) {
          s.bare = true;  // the laws at rest are asked below, without a file that is gone
          s.make_file(1);
          Told& told = s.state<Told>();
          Script& unmapper = s.cpu("unmapper", [](Script& c) { c.unmap(page(0), 1); });
          Script& syncer = s.cpu("syncer", [&told](Script& c) {
            c.sync(page(0), 1);
            told.store(c, page(0), 77);
          });
          unmapper.soft().enter(s.space(0));
          syncer.soft().enter(s.space(0));
          unmapper.map(page(0), 1, {.shared = true, .file = 1});
          syncer.store(page(0), 70);
          File(std::move(s.file(1)));
          s.at_rest = [&s, &told]() -> std::string {
            std::string why;
            vma::Mm* const spaces[] = {&s.space(0).mm()};
            static constexpr Range kWindows[] = {{page(0), page(4)}};
            if (!at_rest({&s.machine().core(), spaces, {}, kWindows}, &why)) return why;
            const std::uint64_t wanted = told.stored.raised() ? 77 : 70;
            const std::uint64_t there = s.store(1).word(0, 0);
            if (there == wanted) return {};
            return "the closed file's store has " + std::to_string(there) + ", not " +
                   std::to_string(wanted);
          };
        },
    .preemptions = 1,
};

constexpr const Scene* kScenes[] = {
    &kPartBesideWriteback,
    &kDontneedBesideWriteback,
    &kPromiseBesideDontneed,
    &kUnmapBesideWriteback,
    &kSyncBesideStores,
    &kTwoSyncs,
    &kTableBesideWriteback,
    &kFirstFaults,
    &kFirstPrivateFaults,
    &kTwoMappings,
    &kForkOfShared,
    &kPrivateCopy,
    &kWriteFile,
    &kMsyncBesideLastUnmap,
    &kClosedFile,
};

}  // namespace

std::span<const Scene* const> file_scenes() { return kScenes; }

}  // namespace faultpath::check
