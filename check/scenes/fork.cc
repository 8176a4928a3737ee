// fork beside faults and stores.
#include "check/scenes/scenes.h"

namespace faultpath::check {

namespace {

// The forker takes write from the entry and owes the flush. The copier faults, sees the entry
// read-only, and copies; the writer still stores to the old page through its translation.
constexpr Cue kB26[] = {{0, "flush_range"}, {1, "flush_range"}, {2, ""}, {1, ""}, {0, ""}};
constexpr Planted kPlanted[] = {{Guard::fork_marks_parent, kB26}};

constexpr Scene kAgainstSpeculativeCopy{
    .name = "fork-against-speculative-copy",
    .ids = "B26 B01 I5 I6",
    .story =
        "One CPU forks; a second one writes to a page, and so copies it if fork has taken write "
        "away; a third one stores to the same page through a translation it has had all along. "
        "No store may end up in the child alone.",
    .build =
        [](Stage& s) {
          Script& forker = s.cpu("forker", [](Script& c) { c.fork(1); });
          s.cpu("copier", [](Script& c) {
            c.store(page(0) + 8, 21);
            c.load(page(0));
          });
          Script& writer = s.cpu("writer", [](Script& c) {
            c.store(page(0), 31);
            c.load(page(0) + 8);
          });
          forker.map(page(0), 1);
          writer.store(page(0), 30);
        },
    .planted = kPlanted,
    .preemptions = 1,
};

//        parent   page 0 [ read-only entry, one reference ]     a former child is gone
constexpr Scene kAgainstReuse{
    .name = "fork-against-reuse",
    .ids = "B01 B60 I5",
    .story =
        "A page has been shared with a child that is gone, so that the next store takes it back "
        "instead of copying it. While a CPU does that, another one forks again. Either the page "
        "is taken back first, and then fork takes write from it again, or fork is first, and then "
        "it is not the parent's alone.",
    .build =
        [](Stage& s) {
          Script& forker = s.cpu("forker", [](Script& c) {
            c.fork(2);
            c.enter(2);
            c.load(page(0));
          });
          s.cpu("reuser", [](Script& c) {
            c.store(page(0), 20);
            c.store(page(0), 21);
          });
          forker.map(page(0), 1);
          forker.store(page(0), 1);
          forker.fork(1);
          forker.destroy(1);
        },
};

constexpr Scene kAgainstFirstFault{
    .name = "fork-against-a-first-fault",
    .ids = "B01 I5 I16",
    .story =
        "A CPU stores to an empty page while another one forks. Fork finds the entry filled, and "
        "shares the page, or empty, and then the child never sees the store.",
    .build =
        [](Stage& s) {
          Script& forker = s.cpu("forker", [](Script& c) {
            c.fork(1);
            c.enter(1);
            c.load(page(0));
          });
          s.cpu("faulter", [](Script& c) {
            c.store(page(0), 20);
            c.store(page(0) + 8, 21);
            c.load(page(0));
          });
          forker.map(page(0), 2);
          forker.store(page(1), 1);
        },
};

constexpr Scene kNoSnapshot{
    .name = "fork-copies-each-page-at-its-own-instant",
    .ids = "B01 B62 I5",
    .story =
        "A CPU stores to two pages, one after the other, through translations that it has, while "
        "another one forks. The child may have the second store without the first: a fork is no "
        "snapshot. But each page is whole, and no store is in the child alone.",
    .build =
        [](Stage& s) {
          Script& forker = s.cpu("forker", [](Script& c) {
            c.fork(1);
            c.enter(1);
            c.load(page(0));
            c.load(page(1));
          });
          Script& writer = s.cpu("writer", [](Script& c) {
            c.store(page(0), 20);
            c.store(page(1), 21);
          });
          forker.map(page(0), 2);
          writer.store(page(0), 1);
          writer.store(page(1), 2);
        },
};

//        parent   page 0 [ read-only ]--+
//                                       +-- one page, two references
//        child    page 0 [ read-only ]--+
//
// The copier has seen that the page is shared and let the table's lock go. Both entries are zapped.
constexpr Cue kSourceFreed[] = {{0, "allocate_frame"}, {1, ""}, {0, ""}};
constexpr Planted kSourcePlanted[] = {{Guard::copy_holds_reference, kSourceFreed}};

constexpr Scene kCopySource{
    .name = "copy-of-a-page-that-goes",
    .ids = "B56 B59 I7 I16, rule: copy source",
    .story =
        "A CPU copies a page that parent and child share; meanwhile another one zaps it in the "
        "parent and in the child, and so drops both references. The copier holds one of its own "
        "from before it let the table's lock go until the copy is in place: what it reads is the "
        "page that it saw.",
    .build =
        [](Stage& s) {
          Script& copier = s.cpu("copier", [](Script& c) {
            c.store(page(0), 10);
            c.load(page(0) + 8);
          });
          s.cpu("zapper", [](Script& c) {
            c.dontneed(page(0), 1);
            c.enter(1);
            c.dontneed(page(0), 1);
            c.load(page(0));
          });
          copier.map(page(0), 1);
          copier.store(page(0), 1);
          copier.store(page(0) + 8, 2);
          copier.fork(1);
        },
    .planted = kSourcePlanted,
};

constexpr const Scene* kScenes[] = {&kAgainstSpeculativeCopy, &kAgainstReuse, &kAgainstFirstFault,
                                    &kNoSnapshot, &kCopySource};

}  // namespace

std::span<const Scene* const> fork_scenes() { return kScenes; }

}  // namespace faultpath::check
