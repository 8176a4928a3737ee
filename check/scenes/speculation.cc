// Speculative faults beside what they may not overlook: each check of theirs, and what it is for.
#include "check/scenes/scenes.h"

namespace faultpath::check {

namespace {

// --- a VMA that changes between the checks and the entry -----------------------------------------

//        page   0          1
//            [ rw, empty | rw, has a page ]
//
// Page 1 makes the VMA one that has had pages, and keeps the table: munmap of page 0 clears no
// entry and owes no flush, so nothing waits for the fault's section.
constexpr Cue kInstallsAfterUnmap[] = {{0, "try_lock@EntryLock::"}, {1, ""}, {0, ""}};
constexpr Planted kUnmapPlanted[] = {{Guard::recheck_under_table_lock, kInstallsAfterUnmap}};

constexpr Scene kUnmapBeforeInstall{
    .name = "unmap-before-a-speculative-install",
    .ids = "B05 B09 B29 B40 I1 I4",
    .story =
        "One CPU stores to an empty page; a second one unmaps the page and looks whether it is "
        "gone. A fault that compared the VMA's sequence before it had the table's lock must "
        "compare again: its page may not come into an address range that is unmapped.",
    .build =
        [](Stage& s) {
          Script& faulter = s.cpu("faulter", [](Script& c) { c.store(page(0), 10); });
          s.cpu("unmapper", [](Script& c) {
            c.unmap(page(0), 1);
            c.load(page(0));
          });
          faulter.map(page(0), 2);
          faulter.store(page(1), 1);
        },
    .planted = kUnmapPlanted,
};

constexpr Cue kInstallsOldRights[] = {{0, "try_lock@EntryLock::"}, {1, ""}, {0, ""}};
constexpr Planted kProtectPlanted[] = {{Guard::recheck_under_table_lock, kInstallsOldRights}};

constexpr Scene kProtectBeforeInstall{
    .name = "protect-before-a-speculative-install",
    .ids = "B09 B40 I2",
    .story =
        "One CPU stores to an empty page while a second one takes the right to write from the "
        "whole mapping, and then tries to store there itself. The entry is empty, so protect has "
        "nothing to change and nothing to flush; a fault that still knows the old rights must "
        "not install them.",
    .build =
        [](Stage& s) {
          Script& faulter = s.cpu("faulter", [](Script& c) { c.store(page(0), 10); });
          s.cpu("protector", [](Script& c) {
            c.protect(page(0), 2, Prot::read);
            c.store(page(0), 20);
          });
          faulter.map(page(0), 2);
          faulter.load(page(1));
          faulter.store(page(1), 1);
        },
    .planted = kProtectPlanted,
};

// --- two faults on one entry ---------------------------------------------------------------------

constexpr Cue kFillsTwice[] = {{0, "EntryLock::lock"}, {1, ""}, {0, ""}};
constexpr Planted kSameEntryPlanted[] = {{Guard::pte_still_as_expected, kFillsTwice}};

constexpr Scene kTwoFirstFaults{
    .name = "two-first-faults-on-one-page",
    .ids = "B56 I16",
    .story =
        "Two CPUs store to different words of one empty page. Both find the entry empty and both "
        "have a new page at hand; the one that comes second to the table's lock must see that "
        "the entry is taken, or the first one's store is lost.",
    .build =
        [](Stage& s) {
          Script& one = s.cpu("first", [](Script& c) {
            c.store(page(0), 10);
            c.load(page(0) + 8);
          });
          s.cpu("second", [](Script& c) {
            c.store(page(0) + 8, 20);
            c.load(page(0));
          });
          one.map(page(0), 2);
          one.store(page(1), 1);
        },
    .planted = kSameEntryPlanted,
    .unbounded = true,
};

constexpr Scene kReadAndWriteFault{
    .name = "read-fault-beside-a-write-fault",
    .ids = "B59 B64 I16",
    .story =
        "One CPU reads an empty page, which maps the page of zeroes; another one stores to it at "
        "the same time, on a page of its own or as a copy of the zeroes. The reader must not put "
        "the zeroes over the store, nor go on reading them after it has seen the store.",
    .build =
        [](Stage& s) {
          s.cpu("reader", [](Script& c) {
            c.load(page(0));
            c.load(page(0));
          });
          Script& writer = s.cpu("writer", [](Script& c) {
            c.store(page(0), 10);
            c.load(page(0));
          });
          writer.map(page(0), 2);
          writer.store(page(1), 1);
        },
    .planted = kSameEntryPlanted,
};

// --- a refusal -----------------------------------------------------------------------------------

//        page   0          1
//   first    [ rw, has a page | rw ]
//   unmap    [ rw            ]
//   protect  [ --            ]
//
// Whoever read the bounds at first and the rights at last sees a page 1 that may not be written.
// There never was one.
constexpr Cue kTornCopy[] = {{0, "Vma::pgoff"}, {1, ""}, {0, ""}};
constexpr Planted kTornPlanted[] = {{Guard::access_recheck_sequence, kTornCopy}};

constexpr Scene kTornRefusal{
    .name = "refusal-from-a-torn-copy",
    .ids = "D9 B35 I13",
    .story =
        "A CPU stores to page 1 while another one unmaps page 1 and then takes all rights from "
        "page 0, which is the same VMA. A copy of the VMA made across both says that page 1 is "
        "there and forbidden; that was never true, so the refusal must not be final.",
    .build =
        [](Stage& s) {
          Script& faulter = s.cpu("faulter", [](Script& c) { c.store(page(1), 10); });
          s.cpu("changer", [](Script& c) {
            c.unmap(page(1), 1);
            c.protect(page(0), 1, Prot::none);
          });
          faulter.map(page(0), 2);
          faulter.store(page(0), 1);
        },
    .planted = kTornPlanted,
};

constexpr Cue kAnyOrder[] = {{0, ""}};
constexpr Planted kCodePlanted[] = {{Guard::spf_access_code, kAnyOrder}};

constexpr Scene kSignalCodes{
    .name = "signals-of-both-paths-agree",
    .ids = "B17 B35 I13",
    .story =
        "A CPU makes every kind of forbidden access: to a page without rights, a store to a "
        "read-only page, to a page that is not mapped. Whichever path answers, number, code, "
        "address and kind of access are those of the classic one. A second CPU, which takes "
        "rights and gives them, makes both paths answer.",
    .build =
        [](Stage& s) {
          Script& faulter = s.cpu("faulter", [](Script& c) {
            c.store(page(0), 1);
            c.load(page(1) + 8);
            c.load(page(5));
          });
          s.cpu("protector", [](Script& c) { c.protect(page(1), 1, Prot::read); });
          faulter.map(page(0), 1);
          faulter.map(page(1), 1);
          faulter.store(page(0), 5);
          faulter.store(page(1), 6);
          faulter.protect(page(0), 1, Prot::read);
          faulter.protect(page(1), 1, Prot::none);
        },
    .planted = kCodePlanted,
    .unbounded = true,
};

// --- the table's lock ----------------------------------------------------------------------------

// The zapper stands inside the table's lock.
constexpr Cue kSpins[] = {{1, "Gather::take"}, {0, ""}};
constexpr Planted kTrylockPlanted[] = {{Guard::trylock_bounded, kSpins}};

constexpr Scene kTrylockConvoy{
    .name = "table-lock-taken-again-and-again",
    .ids = "B38 I10 I11",
    .story =
        "One CPU faults while another one zaps pages of the same table, and holds its lock again "
        "and again. The fault may try for the lock a few times with interrupts off, and must "
        "then pass on to the path that queues for it: its own steps stay bounded however long "
        "the lock is held.",
    .build =
        [](Stage& s) {
          s.cpu("faulter", [](Script& c) { c.store(page(0), 10); });
          Script& zapper = s.cpu("zapper", [](Script& c) {
            c.dontneed(page(1), 1);
            c.dontneed(page(1), 2);
          });
          zapper.map(page(0), 3);
          zapper.store(page(1), 1);
          zapper.store(page(2), 2);
        },
    .planted = kTrylockPlanted,
    .call_steps = 300,
};

//        page   0                 1
//            [ rw, read-only entry | rw ]
//
// do_wp_page holds the table's lock while it waits for the flush that takes the old page from
// everybody: also from the CPU that tries for that lock.
constexpr Scene kLockHeldOverFlush{
    .name = "table-lock-held-over-a-flush",
    .ids = "B38 B64 I11",
    .story =
        "A CPU replaces the page of zeroes by a page of its own and waits, with the table's lock "
        "held, for the flush to be answered. Another CPU, which has the old translation, faults "
        "in the same table and tries for the lock. Neither may wait for the other for ever.",
    .build =
        [](Stage& s) {
          Script& copier = s.cpu("copier", [](Script& c) { c.store(page(0), 10); });
          Script& faulter = s.cpu("faulter", [](Script& c) {
            c.load(page(0));
            c.store(page(1), 20);
            c.load(page(0));
          });
          copier.map(page(0), 3);
          copier.store(page(2), 1);
          faulter.load(page(0));
        },
    .call_steps = 300,
};

// --- zaps under the shared lock ------------------------------------------------------------------

// Both read the same count before either writes it: it goes up by three in all.
constexpr Cue kOddForEver[] = {{0, "store@change::advise"}, {1, "Gather::zap"}, {0, ""}, {1, ""}};
constexpr Planted kZapPlanted[] = {{Guard::zap_does_not_mark, kOddForEver}};

constexpr Scene kTwoZaps{
    .name = "two-zaps-in-one-mapping",
    .ids = "B31 I1",
    .story =
        "Two CPUs zap different pages of one VMA, both under the shared lock, and a fault in it "
        "goes on. If zaps marked the VMA, two of them would make an odd count even while they "
        "are at work, or leave it odd for ever.",
    .build =
        [](Stage& s) {
          Script& one = s.cpu("first", [](Script& c) { c.dontneed(page(0), 1); });
          s.cpu("second", [](Script& c) {
            c.dontneed(page(1), 1);
            c.store(page(0), 10);
            c.load(page(1));
          });
          one.map(page(0), 2);
          one.store(page(0), 1);
          one.store(page(1), 2);
        },
    .planted = kZapPlanted,
};

constexpr const Scene* kScenes[] = {
    &kUnmapBeforeInstall, &kProtectBeforeInstall, &kTwoFirstFaults,
    &kReadAndWriteFault,  &kTornRefusal,          &kSignalCodes,
    &kTrylockConvoy,      &kLockHeldOverFlush,    &kTwoZaps,
};

}  // namespace

std::span<const Scene* const> speculation_scenes() { return kScenes; }

}  // namespace faultpath::check
