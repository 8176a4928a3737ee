// Translations that Cpus keep, and flushes: an address range is gone when nobody can use it any more.
#include "check/scenes/scenes.h"

namespace faultpath::check {

namespace {

// --- munmap ---------------------------------------------------------------------------------------

//        page   0          1
//            [ rw, a page | rw, empty ]
//
// The frame that munmap lets go is the first that page 1 gets.
constexpr Cue kStoresAfterRelease[] = {{0, ""}, {1, ""}};
constexpr Planted kUnmapPlanted[] = {{Guard::flush_before_release, kStoresAfterRelease}};

constexpr Scene kUnmapBesideWarm{
    .name = "munmap-beside-warm-translations",
    .ids = "I4 I6",
    .story =
        "One CPU unmaps a page, looks whether it is gone, and stores to another page for the first "
        "time. A second one stores and loads through a translation that it has had all along. "
        "What it stores may not reach the frame once that is somebody else's, and nothing may "
        "succeed after munmap has returned.",
    .build =
        [](Stage& s) {
          Script& unmapper = s.cpu("unmapper", [](Script& c) {
            c.unmap(page(0), 1);
            c.load(page(0));
            c.store(page(1), 7);
            c.load(page(1));
          });
          Script& user = s.cpu("user", [](Script& c) {
            c.store(page(0), 11);
            c.load(page(0));
          });
          unmapper.map(page(0), 2);
          user.store(page(0), 10);
        },
    .planted = kUnmapPlanted,
};

// --- DONTNEED ---------------------------------------------------------------------------------------

// The second one finds nothing, and goes on with its own old translation.
constexpr Cue kReturnsTooSoon[] = {{0, "flush_range"}, {1, ""}, {0, ""}};
constexpr Planted kTwoZapsPlanted[] = {{Guard::flush_owed_by_others, kReturnsTooSoon}};

constexpr Scene kTwoDontneeds{
    .name = "two-dontneeds-of-one-page",
    .ids = "B48 B31 I4 I6",
    .story =
        "Two CPUs drop one page. The second one finds the entry clear while the first one still "
        "owes the flush; when it returns, the old content must be gone for everybody all the "
        "same, itself included.",
    .build =
        [](Stage& s) {
          Script& first = s.cpu("first", [](Script& c) { c.dontneed(page(0), 1); });
          Script& second = s.cpu("second", [](Script& c) {
            c.dontneed(page(0), 1);
            c.load(page(0));
          });
          first.map(page(0), 1);
          second.store(page(0), 10);
        },
    .planted = kTwoZapsPlanted,
};

constexpr Cue kThirdReads[] = {{0, "flush_range"}, {1, ""}, {2, ""}, {0, ""}};
constexpr Planted kThirdReadsPlanted[] = {{Guard::flush_owed_by_others, kThirdReads}};

constexpr Scene kDontneedOwedToAThird{
    .name = "dontneed-that-finds-nothing-and-a-reader",
    .ids = "B48 I4 I6",
    .story =
        "Two CPUs drop one page, and the second one then tells a third one so. The third one may "
        "not read the old content through its own translation after that, whoever owed it the "
        "flush.",
    .build =
        [](Stage& s) {
          Flag& dropped = s.flag();
          Script& first = s.cpu("first", [](Script& c) { c.dontneed(page(0), 1); });
          s.cpu("second", [&dropped](Script& c) {
            c.dontneed(page(0), 1);
            dropped.raise();
          });
          Script& reader = s.cpu("reader", [&dropped](Script& c) {
            dropped.await();
            c.load(page(0));
          });
          first.map(page(0), 1);
          reader.store(page(0), 10);
        },
    .planted = kThirdReadsPlanted,
    .preemptions = 1,
};

constexpr Scene kDontneedBesideCopy{
    .name = "dontneed-beside-a-copy",
    .ids = "B47 I4",
    .story =
        "A page is shared with a child. One CPU stores to it: the entry is clear for an instant "
        "while the copy takes its place. Another CPU drops the page at that time, and may not "
        "take the clear entry for a page that is gone: when it returns, the old content may not "
        "come back.",
    .build =
        [](Stage& s) {
          Script& copier = s.cpu("copier", [](Script& c) { c.store(page(0) + 8, 21); });
          Script& dropper = s.cpu("dropper", [](Script& c) {
            c.dontneed(page(0), 1);
            c.load(page(0));
            c.load(page(0) + 8);
          });
          copier.map(page(0), 1);
          copier.store(page(0), 10);
          copier.fork(1);
          dropper.load(page(0));
        },
};

// --- tables -----------------------------------------------------------------------------------------

// The table is there and empty: munmap clears nothing, so it owes no flush, and nothing but the grace
// period waits for the walker's section.
constexpr Cue kWalksDeadTable[] = {{1, "mmu::walk", 2}, {0, ""}, {1, ""}};
constexpr Planted kTablePlanted[] = {{Guard::retire_through_epochs, kWalksDeadTable}};

constexpr Scene kTableBesideWalk{
    .name = "table-goes-beside-a-walk",
    .ids = "B67 B29 I3",
    .story =
        "One CPU unmaps the last mapping of a page table that has no entries. Another one is on "
        "its way through the tables to that page. Tables that it has seen must stay tables until "
        "its section ends.",
    .build =
        [](Stage& s) {
          Script& unmapper = s.cpu("unmapper", [](Script& c) {
            c.unmap(kThere, 1);
            c.store(page(0), 1);
          });
          s.cpu("walker", [](Script& c) { c.load(kThere); });
          unmapper.map(kThere, 1);
          unmapper.map(page(0), 1);
          unmapper.store(kThere, 10);
          unmapper.dontneed(kThere, 1);
        },
    .planted = kTablePlanted,
};

// --- who is inside, and who is not --------------------------------------------------------------------

constexpr Scene kEnterBesideUnmap{
    .name = "cpu-enters-beside-munmap",
    .ids = "I4 I6",
    .story =
        "A CPU goes into a space while another one unmaps a page there: after that one has looked "
        "who is inside, or before. Either it is waited for, or it walks what is there now.",
    .build =
        [](Stage& s) {
          Script& unmapper = s.cpu("unmapper", [](Script& c) {
            c.unmap(page(0), 1);
            c.store(page(1), 7);
          });
          Script& entrant = s.cpu("entrant", [](Script& c) {
            c.enter(0);
            c.load(page(0));
            c.load(page(0));
          });
          unmapper.map(page(0), 2);
          unmapper.store(page(0), 10);
          entrant.leave();
        },
};

constexpr Scene kLeaveBesideUnmap{
    .name = "cpu-leaves-and-comes-back-beside-munmap",
    .ids = "I4 I6",
    .story =
        "A CPU that has a page's translation leaves the space and comes back while another one "
        "unmaps the page. Who has left is not waited for, so it may remember nothing.",
    .build =
        [](Stage& s) {
          Script& unmapper = s.cpu("unmapper", [](Script& c) {
            c.unmap(page(0), 1);
            c.store(page(1), 7);
          });
          Script& visitor = s.cpu("visitor", [](Script& c) {
            c.leave();
            c.enter(0);
            c.load(page(0));
          });
          unmapper.map(page(0), 2);
          visitor.store(page(0), 10);
        },
};

constexpr Scene kParkedCpu{
    .name = "parked-cpu-beside-dontneed",
    .ids = "B48 I4 I6",
    .story =
        "Two CPUs drop a page each, and then look at the other's. While one is in the engine, the "
        "other's flush takes it for answered; on its way out it must do what it was asked.",
    .build =
        [](Stage& s) {
          Flag& dropped = s.flag();
          Script& one = s.cpu("one", [&dropped](Script& c) {
            c.dontneed(page(0), 1);
            dropped.raise();
          });
          Script& other = s.cpu("other", [&dropped](Script& c) {
            c.dontneed(page(1), 1);
            if (dropped.raised()) c.load(page(0));
            c.load(page(0));
          });
          one.map(page(0), 2);
          other.store(page(0), 10);
          other.store(page(1), 11);
        },
};

constexpr Scene kSilentCpu{
    .name = "silent-cpu-beside-munmap",
    .ids = "I4 I6",
    .story =
        "A CPU that has a page's translation does something else, inside the space and not parked. "
        "munmap passes it by without an answer. It is told that the page is gone, and may not "
        "find it there.",
    .build =
        [](Stage& s) {
          Flag& gone = s.flag();
          Script& unmapper = s.cpu("unmapper", [&gone](Script& c) {
            c.unmap(page(0), 1);
            gone.raise();
            c.store(page(1), 7);
          });
          Script& silent = s.cpu("silent", [&gone](Script& c) {
            gone.await();
            c.load(page(0));
            c.load(page(1));
          });
          unmapper.map(page(0), 2);
          silent.store(page(0), 10);
        },
};

constexpr Scene kRequestsAddUp{
    .name = "two-flushes-of-one-cpu",
    .ids = "I4 I6",
    .story =
        "Two CPUs unmap and drop different pages at once, and both ask a third one to forget them. "
        "Its one answer is for both: it may keep neither.",
    .build =
        [](Stage& s) {
          Script& one = s.cpu("one", [](Script& c) { c.dontneed(page(0), 1); });
          s.cpu("other", [](Script& c) { c.dontneed(page(2), 1); });
          Script& user = s.cpu("user", [](Script& c) {
            c.load(page(0));
            c.load(page(2));
          });
          one.map(page(0), 3);
          user.store(page(0), 10);
          user.store(page(2), 12);
        },
    .preemptions = 1,
};

constexpr const Scene* kScenes[] = {
    &kUnmapBesideWarm, &kTwoDontneeds,     &kDontneedOwedToAThird, &kDontneedBesideCopy,
    &kTableBesideWalk, &kEnterBesideUnmap, &kLeaveBesideUnmap,     &kParkedCpu,
    &kSilentCpu,       &kRequestsAddUp,
};

}  // namespace

std::span<const Scene* const> tlb_scenes() { return kScenes; }

}  // namespace faultpath::check
