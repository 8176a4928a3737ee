// Copies of pages: whose page is written to, and what is in the copy.
#include "check/scenes/scenes.h"

namespace faultpath::check {

namespace {

// --- the source of a copy -------------------------------------------------------------------------

//   space 0  page 0  [ rw ] --+
//                             +--> one page, read-only in both
//   space 1  page 0  [ rw ] --+
//
// The copier has seen that the page is shared and let go of the table's lock. Then both names of the
// page go.
constexpr Cue kSourceGoes[] = {{0, "peek@do_wp_page"}, {1, ""}, {0, ""}};
constexpr Planted kSourcePlanted[] = {{Guard::copy_holds_reference, kSourceGoes}};

constexpr Scene kSourceOfACopy{
    .name = "source-of-a-copy-is-freed",
    .ids = "B56 B59 I11",
    .story =
        "One CPU stores to a page that is shared with a child, and copies it. Meanwhile another "
        "one "
        "drops the page in the parent and unmaps it in the child, so that only the copier still "
        "needs the page. It must not be freed while it is being read.",
    .build =
        [](Stage& s) {
          Script& copier = s.cpu("copier", [](Script& c) {
            c.store(page(0), 11);
            c.load(page(0) + 8);
          });
          s.cpu("dropper", [](Script& c) {
            c.dontneed(page(0), 1);
            c.enter(1);
            c.unmap(page(0), 1);
          });
          copier.map(page(0), 1);
          copier.store(page(0), 10);
          copier.store(page(0) + 8, 12);
          copier.fork(1);
        },
    .planted = kSourcePlanted,
};

// (An entry that looks as it did would need a fork in the parent, which waits for the mmap lock or is
// seen by the sequence: so what is left is that a free frame is read.)
constexpr Cue kSourceIsFree[] = {{0, "peek@do_wp_page"}, {1, "SoftCpu::store"}, {0, ""}};
constexpr Planted kComesBackPlanted[] = {{Guard::copy_holds_reference, kSourceIsFree}};

constexpr Scene kSourceComesBackScene{
    .name = "source-of-a-copy-comes-back",
    .ids = "B56 B59 I11 I16",
    .story =
        "As before, but the page is then filled again in the parent, with the frame that became "
        "free. The copier may not put a copy of its former life, or of parts of both, in the "
        "place of what was stored meanwhile.",
    .build =
        [](Stage& s) {
          Script& copier = s.cpu("copier", [](Script& c) {
            c.store(page(0), 11);
            c.load(page(0) + 8);
          });
          s.cpu("dropper", [](Script& c) {
            c.enter(1);
            c.unmap(page(0), 1);
            c.enter(0);
            c.dontneed(page(0), 1);
            c.store(page(0) + 8, 22);
          });
          copier.map(page(0), 1);
          copier.store(page(0), 10);
          copier.store(page(0) + 8, 12);
          copier.fork(1);
        },
    .planted = kComesBackPlanted,
};

// --- whose page ---------------------------------------------------------------------------------------

constexpr Scene kReuseAfterChild{
    .name = "parent-stores-beside-the-end-of-its-child",
    .ids = "B60 I5 I12",
    .story =
        "A page is shared with a child, and the child is destroyed while the parent stores to the "
        "page: a copy if the child still has it, the page itself if not. Either way it is the "
        "parent's alone afterwards, with what was in it.",
    .build =
        [](Stage& s) {
          Script& parent = s.cpu("parent", [](Script& c) {
            c.store(page(0), 11);
            c.load(page(0) + 8);
          });
          s.cpu("reaper", [](Script& c) { c.destroy(1); });
          parent.map(page(0), 1);
          parent.store(page(0), 10);
          parent.store(page(0) + 8, 12);
          parent.fork(1);
        },
    .preemptions = 1,
    .call_steps = 12'000,  // a whole space's tables are looked through
};

constexpr Scene kReuseBesideReader{
    .name = "reuse-beside-a-child-that-reads",
    .ids = "B60 I5 I12",
    .story =
        "A child reads a page that it shares with its parent and then unmaps it. The parent stores "
        "to the page at the same time. As long as the child can read the page it finds what was "
        "in it at the fork.",
    .build =
        [](Stage& s) {
          Script& parent = s.cpu("parent", [](Script& c) {
            c.store(page(0), 11);
            c.load(page(0) + 8);
          });
          parent.map(page(0), 1);
          parent.store(page(0), 10);
          parent.store(page(0) + 8, 12);
          parent.fork(1);
          s.cpu(
              "child",
              [](Script& c) {
                c.load(page(0));
                c.unmap(page(0), 1);
                c.load(page(0));
              },
              1);
        },
};

constexpr Scene kParentAndChild{
    .name = "parent-and-child-store-at-once",
    .ids = "B60 B64 I5",
    .story =
        "Parent and child store to a page that they share, at the same time. One of them may find "
        "itself the last user and keep the page, or both copy it. Neither sees the other's store.",
    .build =
        [](Stage& s) {
          Script& parent = s.cpu("parent", [](Script& c) {
            c.store(page(0), 11);
            c.load(page(0));
          });
          parent.map(page(0), 1);
          parent.store(page(0), 10);
          parent.fork(1);
          s.cpu(
              "child",
              [](Script& c) {
                c.store(page(0), 21);
                c.load(page(0));
              },
              1);
        },
};

constexpr Scene kForkBesideReuse{
    .name = "fork-beside-a-store-to-a-page-of-its-own",
    .ids = "B60 B26 I5",
    .story =
        "A child has gone, and the page is the parent's alone again, still read-only. One CPU "
        "stores to it, and finds itself the sole user, while another one forks: the page may be "
        "given back to the parent or shared with the new child, not both.",
    .build =
        [](Stage& s) {
          Script& writer = s.cpu("writer", [](Script& c) {
            c.store(page(0), 11);
            c.store(page(0), 12);
          });
          s.cpu("forker", [](Script& c) {
            c.fork(2);
            c.enter(2);
            c.load(page(0));
            c.load(page(0));
          });
          writer.map(page(0), 1);
          writer.store(page(0), 10);
          writer.fork(1);
          s.director().destroy(1);
        },
};

// --- a child's pages are whole -------------------------------------------------------------------------

//        page   0          1
//            [ a page     | a page ]
constexpr Scene kForkBesideStores{
    .name = "fork-beside-stores-to-two-pages",
    .ids = "B62 B26 B01 I5",
    .story =
        "One CPU stores twice to one page and then once to another, while a second one forks and "
        "looks at the child. Each page of the child is as it was at one instant: who sees the "
        "second store sees the first. Between the two pages nothing is promised.",
    .build =
        [](Stage& s) {
          Script& writer = s.cpu("writer", [](Script& c) {
            c.store(page(1), 11);
            c.store(page(1) + 8, 12);
            c.store(page(0), 13);
          });
          s.cpu("forker", [](Script& c) {
            c.fork(1);
            c.enter(1);
            c.load(page(1) + 8);
            c.load(page(1));
            c.load(page(0));
            c.load(page(1));
          });
          writer.map(page(0), 2);
          writer.store(page(0), 1);
          writer.store(page(1), 2);
        },
};

// --- what is in a new page ---------------------------------------------------------------------------

constexpr Cue kSeesStale[] = {{0, "poke@do_anonymous_page"}, {1, ""}, {0, ""}};
constexpr Planted kNewPagePlanted[] = {{Guard::init_before_publish, kSeesStale}};

constexpr Scene kNewPage{
    .name = "new-page-beside-a-reader",
    .ids = "B63 I14",
    .story =
        "One CPU stores to an empty page, which gets a frame that was used before. Another one "
        "reads another word of the page: a zero, never what the frame held in its former life.",
    .build =
        [](Stage& s) {
          Script& writer = s.cpu("writer", [](Script& c) { c.store(page(0), 11); });
          s.cpu("reader", [](Script& c) {
            c.load(page(0) + 8);
            c.load(page(0));
          });
          writer.map(page(0), 2);
          writer.store(page(1), 1);
        },
    .planted = kNewPagePlanted,
};

constexpr Cue kWipesAStore[] = {
    {0, "poke@do_anonymous_page"}, {1, "SoftCpu::load"}, {0, ""}, {1, ""}};
constexpr Planted kWipedPlanted[] = {{Guard::init_before_publish, kWipesAStore}};

constexpr Scene kNewPageTwoWriters{
    .name = "new-page-beside-a-writer",
    .ids = "B63 I14 I16",
    .story =
        "Two CPUs store to different words of an empty page and read their own back. Whoever sets "
        "the page up must be done with it before the other one can store to it.",
    .build =
        [](Stage& s) {
          Script& one = s.cpu("one", [](Script& c) {
            c.store(page(0), 11);
            c.load(page(0));
          });
          s.cpu("other", [](Script& c) {
            c.store(page(0) + 8, 22);
            c.load(page(0) + 8);
          });
          one.map(page(0), 2);
          one.store(page(1), 1);
        },
    .planted = kWipedPlanted,
};

// --- old and new page ---------------------------------------------------------------------------------

// The copier has put the copy in and not flushed. The writer walks to the copy, the reader still uses
// the page it was made from.
constexpr Cue kOldAndNew[] = {{0, "flush_range"}, {1, ""}, {2, ""}, {0, ""}};
constexpr Planted kOldAndNewPlanted[] = {{Guard::cow_clear_flush_set, kOldAndNew}};

constexpr Scene kCopyBesideReader{
    .name = "copy-beside-a-reader-of-the-old-page",
    .ids = "B64 I5",
    .story =
        "A page is shared with a child. One CPU stores to it, and so copies it; a second one then "
        "stores to the copy; a third one has read the old page before and reads again. Once "
        "somebody can store to the new page, nobody may read the old one.",
    .build =
        [](Stage& s) {
          Script& copier = s.cpu("copier", [](Script& c) { c.store(page(0), 11); });
          s.cpu("writer", [](Script& c) { c.store(page(0) + 8, 22); });
          Script& reader = s.cpu("reader", [](Script& c) {
            c.load(page(0) + 8);
            c.load(page(0));
          });
          copier.map(page(0), 1);
          copier.store(page(0), 10);
          copier.fork(1);
          reader.load(page(0));
        },
    .planted = kOldAndNewPlanted,
    .preemptions = 1,
};

// The same with the page of zeroes, in one space.
constexpr Scene kZeroPageBesideReader{
    .name = "copy-of-the-zero-page-beside-its-reader",
    .ids = "B64 B26 I5",
    .story =
        "All CPUs have read an empty page, and so map the page of zeroes. One stores to it, which "
        "makes a page of its own; a second one stores to that; a third one reads, and may not "
        "find zeroes after the second store.",
    .build =
        [](Stage& s) {
          Script& copier = s.cpu("copier", [](Script& c) { c.store(page(0), 11); });
          s.cpu("writer", [](Script& c) { c.store(page(0) + 8, 22); });
          Script& reader = s.cpu("reader", [](Script& c) {
            c.load(page(0) + 8);
            c.load(page(0));
          });
          copier.map(page(0), 2);
          copier.store(page(1), 1);
          reader.load(page(0));
        },
    .planted = kOldAndNewPlanted,
    .preemptions = 1,
};

constexpr Scene kTwoWritersOfTheZeroPage{
    .name = "two-first-stores-after-reads",
    .ids = "B26 B64 I16",
    .story =
        "Two CPUs have read an empty page, and both store to it for the first time. Each copies "
        "the "
        "page of zeroes; one copy is used, and both stores are in it.",
    .build =
        [](Stage& s) {
          Script& one = s.cpu("one", [](Script& c) {
            c.store(page(0), 11);
            c.load(page(0) + 8);
          });
          Script& other = s.cpu("other", [](Script& c) {
            c.store(page(0) + 8, 22);
            c.load(page(0));
          });
          one.map(page(0), 2);
          one.store(page(1), 1);
          one.load(page(0));
          other.load(page(0));
        },
};

// --- a copy beside a change of rights --------------------------------------------------------------------

constexpr Scene kCopyBesideFork{
    .name = "copy-of-one-page-beside-fork-of-another",
    .ids = "B61 B26 I5 I16",
    .story =
        "One CPU stores to two pages, the second of which it has stored to before, while another "
        "one "
        "forks. fork takes write from the second page and flushes for all at the end: a copy may "
        "not be made while anybody can still store to the page that it is made from.",
    .build =
        [](Stage& s) {
          Script& forker = s.cpu("forker", [](Script& c) { c.fork(1); });
          s.cpu("copier", [](Script& c) {
            c.store(page(1), 21);
            c.load(page(1) + 8);
          });
          Script& writer = s.cpu("writer", [](Script& c) {
            c.store(page(1) + 8, 31);
            c.load(page(1));
          });
          forker.map(page(0), 2);
          forker.store(page(0), 1);
          writer.store(page(1), 2);
        },
    .preemptions = 1,
};

constexpr const Scene* kScenes[] = {
    &kSourceOfACopy,     &kSourceComesBackScene, &kReuseAfterChild,      &kReuseBesideReader,
    &kParentAndChild,    &kForkBesideReuse,      &kForkBesideStores,     &kNewPage,
    &kNewPageTwoWriters, &kCopyBesideReader,     &kZeroPageBesideReader, &kTwoWritersOfTheZeroPage,
    &kCopyBesideFork,
};

}  // namespace

std::span<const Scene* const> copy_scenes() { return kScenes; }

}  // namespace faultpath::check
