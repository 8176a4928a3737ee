// The sequential model on histories made by hand: right ones are accepted, wrong ones refused; and on
// histories made by a small machine that takes each step at a known instant. The laws at rest: they
// hold after calls on the engine, and name what breaks them.
#include <faultpath/faultpath.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "cache/file_object.h"
#include "check/model/at_rest.h"
#include "check/model/history.h"
#include "check/model/page_account.h"
#include "check/model/page_model.h"
#include "env/sim/world.h"
#include "memory/machine_core.h"
#include "vma/mm.h"

namespace faultpath::check {
namespace {

constexpr Addr kA = 0x10000;
constexpr Addr kB = kA + kPageSize;
constexpr Prot kRw = Prot::read | Prot::write;

/// Writes a history down in few words.
struct ModelTest : testing::Test {
  State state;
  History history;
  std::string why;

  /// What comes next happened before the run.
  void SetUp() override { history.reset(); }

  Event& last_added(const Event& e) {
    history.add(e);
    return const_cast<Event&>(history[history.size() - 1]);
  }
  Event event(Kind kind, unsigned cpu, std::uint64_t begin, std::uint64_t end) {
    Event e;
    e.kind = kind;
    e.cpu = static_cast<std::uint8_t>(cpu);
    e.begin = begin;
    e.end = end;
    return e;
  }
  Event& map(unsigned cpu, std::uint64_t begin, std::uint64_t end, Addr a, Prot prot,
             unsigned pages = 1) {
    Event e = event(Kind::map, cpu, begin, end);
    e.address = a;
    e.length = pages * kPageSize;
    e.prot = prot;
    return last_added(e);
  }
  Event& range(Kind kind, unsigned cpu, std::uint64_t begin, std::uint64_t end, Addr a,
               unsigned pages = 1) {
    Event e = event(kind, cpu, begin, end);
    e.address = a;
    e.length = pages * kPageSize;
    return last_added(e);
  }
  Event& unmap(unsigned cpu, std::uint64_t begin, std::uint64_t end, Addr a) {
    return range(Kind::unmap, cpu, begin, end, a);
  }
  Event& dontneed(unsigned cpu, std::uint64_t begin, std::uint64_t end, Addr a) {
    return range(Kind::dontneed, cpu, begin, end, a);
  }
  Event& protect(unsigned cpu, std::uint64_t begin, std::uint64_t end, Addr a, Prot prot) {
    Event& e = range(Kind::protect, cpu, begin, end, a);
    e.prot = prot;
    return e;
  }
  Event& fork(unsigned cpu, std::uint64_t begin, std::uint64_t end, unsigned child) {
    Event e = event(Kind::fork, cpu, begin, end);
    e.child = static_cast<std::uint8_t>(child);
    return last_added(e);
  }
  Event& access(Kind kind, unsigned cpu, std::uint64_t instant, Addr a, std::uint64_t value) {
    Event e = event(kind, cpu, instant, instant);
    e.address = a;
    e.length = 8;
    e.instant = instant;
    e.value = value;
    if (kind == Kind::store) e.access = Access::write;
    return last_added(e);
  }
  Event& load(unsigned cpu, std::uint64_t instant, Addr a, std::uint64_t value) {
    return access(Kind::load, cpu, instant, a, value);
  }
  Event& store(unsigned cpu, std::uint64_t instant, Addr a, std::uint64_t value) {
    return access(Kind::store, cpu, instant, a, value);
  }
  Event& fault(unsigned cpu, std::uint64_t begin, std::uint64_t end, Addr a, Access access,
               std::uint8_t signal, std::uint8_t code) {
    Event e = event(Kind::fault, cpu, begin, end);
    e.address = a;
    e.access = access;
    e.signal = signal;
    e.code = code;
    return last_added(e);
  }
  Event& maperr(unsigned cpu, std::uint64_t begin, std::uint64_t end, Addr a,
                Access access = Access::read) {
    return fault(cpu, begin, end, a, access, kSigSegv, kSegvMapErr);
  }
  Event& accerr(unsigned cpu, std::uint64_t begin, std::uint64_t end, Addr a, Access access) {
    return fault(cpu, begin, end, a, access, kSigSegv, kSegvAccErr);
  }
  Event& sigbus(unsigned cpu, std::uint64_t begin, std::uint64_t end, Addr a) {
    return fault(cpu, begin, end, a, Access::read, kSigBus, kBusAdrErr);
  }
  Event& write_at(unsigned cpu, std::uint64_t begin, std::uint64_t end, std::uint64_t page,
                  unsigned word, std::uint64_t value) {
    Event e = event(Kind::file_write, cpu, begin, end);
    e.file = 1;
    e.file_page = page;
    e.address = word * 8;
    e.value = value;
    return last_added(e);
  }
  /// A file of `pages` pages; word w of page p holds 100 * p + 10 + w.
  void file(unsigned pages) {
    state.files[1].size = pages * kPageSize;
    for (unsigned p = 0; p < pages; ++p) {
      for (unsigned w = 0; w < kWords; ++w) state.files[1].words[p][w] = 100 * p + 10 + w;
    }
  }

  bool right() {
    why.clear();
    return explain(state, history, &why);
  }
  void expect_right() { EXPECT_TRUE(right()) << why; }
  /// Refused, with an account that says `part`.
  void expect_wrong(const std::string& part) {
    EXPECT_FALSE(right());
    EXPECT_NE(why.find(part), std::string::npos) << why;
  }
};

// --- values -------------------------------------------------------------------------------------

TEST_F(ModelTest, AnEmptyHistoryIsRight) { expect_right(); }

TEST_F(ModelTest, AFreshPageIsZero) {
  map(0, 0, 0, kA, kRw);
  load(0, 5, kA + 8, 0);
  expect_right();
}

TEST_F(ModelTest, AFreshPageIsNothingElse) {
  map(0, 0, 0, kA, kRw);
  load(0, 5, kA + 8, 3);
  expect_wrong("cpu 0 loaded 3 at step 5; word 1 then held 0. Nobody stored 3.");
}

TEST_F(ModelTest, ALoadReturnsTheLastStore) {
  map(0, 0, 0, kA, kRw);
  store(1, 3, kA, 7);
  store(2, 9, kA, 8);
  load(0, 6, kA, 7);
  load(0, 10, kA, 8);
  expect_right();
}

TEST_F(ModelTest, AnOldValueIsWrong) {
  map(0, 0, 0, kA, kRw);
  store(1, 3, kA, 7);
  store(2, 9, kA, 8);
  load(2, 95, kA, 7);
  expect_wrong("cpu 2 loaded 7 at step 95; word 0 then held 8.");
}

TEST_F(ModelTest, WordsAreApart) {
  map(0, 0, 0, kA, kRw);
  store(1, 3, kA, 7);
  load(2, 4, kA + 16, 0);
  expect_right();
  load(2, 5, kA + 16, 7);
  expect_wrong("word 2");
}

TEST_F(ModelTest, AnotherPagesValueIsNamed) {
  map(0, 0, 0, kA, kRw, 2);
  store(1, 3, kA, 7);
  load(2, 5, kB, 7);
  expect_wrong("7 was stored by cpu 1 to 0x10000 in space 0 at step 3.");
}

TEST_F(ModelTest, TheSetUpCounts) {
  map(0, 0, 0, kA, kRw);
  store(0, 0, kA, 7);
  store(0, 0, kA, 8);
  load(1, 5, kA, 8);
  expect_right();
  load(1, 6, kA, 7);
  expect_wrong("then held 8");
}

TEST_F(ModelTest, TheSetUpIsJudgedToo) {
  map(0, 0, 0, kA, kRw);
  store(0, 0, kA, 7);
  load(0, 0, kA, 6);
  expect_wrong("Nobody stored 6");
}

// --- rights and mappings ------------------------------------------------------------------------

TEST_F(ModelTest, NothingMappedGivesMapErr) {
  maperr(1, 3, 9, kA);
  expect_right();
}

TEST_F(ModelTest, SomethingMappedDoesNot) {
  map(0, 0, 0, kA, kRw);
  maperr(1, 3, 9, kA);
  expect_wrong("at no instant of steps 3..9 was the page not mapped");
}

TEST_F(ModelTest, AStoreNeedsWrite) {
  map(0, 0, 0, kA, Prot::read);
  accerr(1, 3, 9, kA, Access::write);
  expect_right();
  store(1, 10, kA, 1);
  expect_wrong("cpu 1 stored 1 at step 10; the page was then without the right to write");
}

TEST_F(ModelTest, AnyRightReads) {
  map(0, 0, 0, kA, Prot::exec);
  map(0, 0, 0, kB, Prot::write);
  load(1, 3, kA, 0);
  store(1, 4, kB, 5);
  load(1, 5, kB, 5);
  expect_right();
  accerr(1, 6, 8, kA, Access::read);
  expect_wrong("did a mapped page forbid it");
}

TEST_F(ModelTest, NoRightReadsNot) {
  map(0, 0, 0, kA, Prot::none);
  accerr(1, 3, 9, kA, Access::read);
  expect_right();
  load(1, 10, kA, 0);
  expect_wrong("without any right");
}

TEST_F(ModelTest, TheCodeIsPartOfTheSignal) {
  map(0, 0, 0, kA, Prot::read);
  maperr(1, 3, 9, kA, Access::write);  // B35
  expect_wrong("SIGSEGV (MAPERR) for a write");
}

TEST_F(ModelTest, AnUnmapFloatsInItsInterval) {
  map(0, 0, 0, kA, kRw);
  unmap(0, 10, 20, kA);
  load(1, 15, kA, 0);
  maperr(2, 12, 18, kA);  // may have come after the load
  expect_right();
}

TEST_F(ModelTest, AnUnmapHasOneInstant) {
  map(0, 0, 0, kA, kRw);
  unmap(0, 10, 20, kA);
  maperr(2, 12, 14, kA);
  load(1, 15, kA, 0);  // too late: another CPU has met it unmapped before
  expect_wrong("cpu 1 loaded 0 at step 15; the page was then not mapped");
}

TEST_F(ModelTest, NoAccessAfterTheUnmapEnded) {
  map(0, 0, 0, kA, kRw);
  unmap(0, 10, 20, kA);
  store(1, 21, kA, 4);
  expect_wrong("not mapped");
}

TEST_F(ModelTest, NoFaultBeforeTheUnmapBegan) {
  map(0, 0, 0, kA, kRw);
  maperr(1, 3, 9, kA);
  unmap(0, 10, 20, kA);
  expect_wrong("MAPERR");
}

TEST_F(ModelTest, WhatTouchesAtAStepOverlaps) {
  map(0, 0, 0, kA, kRw);
  maperr(1, 3, 10, kA);
  unmap(0, 10, 20, kA);
  expect_right();
}

TEST_F(ModelTest, AProtectFloatsInItsInterval) {
  map(0, 0, 0, kA, kRw);
  protect(0, 10, 80, kA, Prot::read);
  store(1, 30, kA, 4);
  accerr(2, 40, 60, kA, Access::write);
  load(1, 70, kA, 4);
  expect_right();
}

TEST_F(ModelTest, AProtectHasOneInstant) {
  map(0, 0, 0, kA, kRw);
  protect(0, 10, 80, kA, Prot::read);
  accerr(2, 15, 20, kA, Access::write);
  store(1, 30, kA, 4);  // through a translation that should have been kept out
  expect_wrong("cpu 1 stored 4 at step 30; the page was then without the right to write");
}

TEST_F(ModelTest, ARightTakenAndGivenBack) {
  map(0, 0, 0, kA, kRw);
  protect(0, 10, 20, kA, Prot::none);
  protect(0, 30, 40, kA, kRw);
  accerr(1, 18, 32, kA, Access::read);
  store(2, 35, kA, 4);
  expect_right();
  accerr(1, 41, 45, kA, Access::read);
  expect_wrong("ACCERR");
}

TEST_F(ModelTest, AProtectThatFailedMayHaveHappened) {
  map(0, 0, 0, kA, kRw);
  Event& e = protect(0, 10, 20, kA, Prot::read);
  e.ok = false;
  e.error = Errno::enomem;
  store(1, 30, kA, 4);
  expect_right();
  accerr(1, 31, 40, kA, Access::write);  // but not at a time of its own choice
  expect_wrong("ACCERR");
}

TEST_F(ModelTest, AProtectThatFailedDidHappen) {
  map(0, 0, 0, kA, kRw);
  Event& e = protect(0, 10, 20, kA, Prot::read);
  e.ok = false;
  e.error = Errno::enomem;
  accerr(1, 31, 40, kA, Access::write);
  expect_right();
}

TEST_F(ModelTest, AProtectThatFailedMayHaveComeAfterAMap) {
  map(0, 0, 0, kA, kRw);
  map(1, 10, 30, kA, Prot::read).fixed = true;
  Event& e = protect(0, 12, 28, kA, kRw);
  e.ok = false;
  e.error = Errno::enomem;
  store(1, 40, kA, 4);
  expect_right();
}

TEST_F(ModelTest, AProtectRefusedForItsArgumentsDidNothing) {
  map(0, 0, 0, kA, kRw);
  Event& e = protect(0, 10, 20, kA, Prot::read);
  e.ok = false;
  e.error = Errno::einval;
  accerr(1, 31, 40, kA, Access::write);
  expect_wrong("ACCERR");
}

TEST_F(ModelTest, AProtectOverAHoleFails) {
  protect(0, 10, 20, kA, Prot::read);
  maperr(1, 30, 40, kA);
  expect_wrong("protect found no hole");
}

TEST_F(ModelTest, AMapReplacesInOneInstant) {
  map(0, 0, 0, kA, kRw);
  store(0, 0, kA, 7);
  map(0, 10, 30, kA, kRw).fixed = true;
  load(1, 15, kA, 7);
  load(2, 20, kA, 0);
  load(1, 25, kA, 0);
  expect_right();
  load(1, 26, kA, 7);
  expect_wrong("cpu 1 loaded 7 at step 26; word 0 then held 0");
}

TEST_F(ModelTest, AReplacedPageHasNoHole) {
  map(0, 0, 0, kA, kRw);
  map(0, 10, 30, kA, kRw).fixed = true;
  maperr(1, 12, 28, kA);
  expect_wrong("MAPERR");
}

TEST_F(ModelTest, AReplacedPageTakesNoStoreAlong) {
  map(0, 0, 0, kA, kRw);
  map(0, 10, 30, kA, kRw).fixed = true;
  load(2, 12, kA, 0);
  store(1, 20, kA, 5);
  load(2, 25, kA, 5);
  load(2, 40, kA, 5);
  expect_right();  // the new page came before the store
  load(2, 41, kA, 0);
  expect_wrong("held 5");
}

TEST_F(ModelTest, AMapThatChoseGoesIntoAGap) {
  map(0, 0, 0, kA, kRw);
  unmap(1, 10, 30, kA);
  map(2, 20, 40, kA, kRw);
  load(1, 50, kA, 0);
  expect_right();
}

TEST_F(ModelTest, AMapThatChoseDoesNotReplace) {
  map(0, 0, 0, kA, kRw);
  map(2, 20, 40, kA, kRw);
  load(1, 50, kA, 0);
  expect_wrong("cpu 2's map chose 0x10000");
}

TEST_F(ModelTest, AMapThatFailedDidNothing) {
  map(0, 0, 0, kA, kRw);
  store(0, 0, kA, 7);
  Event& e = map(2, 20, 40, kA, kRw);
  e.fixed = true;
  e.ok = false;
  e.error = Errno::enomem;
  load(1, 50, kA, 7);
  expect_right();
}

// --- DONTNEED -----------------------------------------------------------------------------------

TEST_F(ModelTest, DontneedReachesEachCpuAtItsOwnInstant) {
  map(0, 0, 0, kA, kRw);
  store(0, 0, kA, 7);
  dontneed(0, 10, 50, kA);
  load(1, 20, kA, 0);
  load(2, 30, kA, 7);  // a translation that has not been flushed
  store(2, 35, kA, 8);
  load(1, 40, kA, 0);
  load(2, 60, kA, 0);
  expect_right();
}

TEST_F(ModelTest, NobodyGoesBackBeforeADontneed) {
  map(0, 0, 0, kA, kRw);
  store(0, 0, kA, 7);
  dontneed(0, 10, 50, kA);
  load(1, 20, kA, 0);
  load(1, 30, kA, 7);
  expect_wrong("cpu 1 loaded 7 at step 30; word 0 then held 0");
}

TEST_F(ModelTest, AfterADontneedEveryCpuHasMovedOn) {
  map(0, 0, 0, kA, kRw);
  store(0, 0, kA, 7);
  dontneed(0, 10, 50, kA);
  load(2, 51, kA, 7);
  expect_wrong("cpu 2 loaded 7 at step 51");
}

TEST_F(ModelTest, AStoreMayGoDownWithTheOldPage) {
  map(0, 0, 0, kA, kRw);
  dontneed(0, 10, 50, kA);
  load(1, 20, kA, 0);
  store(1, 25, kA, 3);
  store(2, 30, kA, 8);
  load(1, 60, kA, 3);
  expect_right();
}

TEST_F(ModelTest, AStoreToTheNewPageStays) {
  map(0, 0, 0, kA, kRw);
  store(0, 0, kA, 7);
  dontneed(0, 10, 50, kA);
  load(1, 20, kA, 0);
  store(1, 25, kA, 3);
  load(1, 60, kA, 0);
  expect_wrong("cpu 1 loaded 0 at step 60; word 0 then held 3");
}

TEST_F(ModelTest, TwoDontneedsAtOnce) {
  map(0, 0, 0, kA, kRw);
  store(0, 0, kA, 7);
  dontneed(0, 10, 50, kA);
  dontneed(3, 12, 40, kA);
  load(1, 20, kA, 0);
  store(1, 22, kA, 5);
  load(2, 30, kA, 7);
  load(1, 31, kA, 5);
  load(2, 45, kA, 0);
  expect_right();
}

TEST_F(ModelTest, TheFirstDontneedToEndHasFlushedForBoth) {  // B48
  map(0, 0, 0, kA, kRw);
  store(0, 0, kA, 7);
  dontneed(0, 10, 90, kA);
  dontneed(3, 12, 40, kA);
  load(2, 50, kA, 0);
  expect_right();
  history.keep(4);
  load(1, 20, kA, 0);
  load(2, 50, kA, 7);
  expect_wrong("cpu 2 loaded 7 at step 50");
}

TEST_F(ModelTest, DontneedLeavesAHoleAHole) {
  Event& e = dontneed(0, 10, 50, kA);
  e.ok = false;
  e.error = Errno::enomem;
  maperr(1, 60, 70, kA);
  expect_right();
  e.ok = true;
  expect_wrong("dontneed found no hole");
}

TEST_F(ModelTest, DontneedOverAHoleDropsTheRest) {
  map(0, 0, 0, kA, kRw);
  store(0, 0, kA, 7);
  Event& e = dontneed(0, 10, 50, kA);
  e.length = 2 * kPageSize;
  e.ok = false;
  e.error = Errno::enomem;
  load(1, 60, kA, 0);
  expect_right();
  load(1, 61, kA, 7);
  expect_wrong("held 0");
}

TEST_F(ModelTest, AProtectIsBeforeADontneedOrAfterIt) {
  map(0, 0, 0, kA, kRw);
  store(0, 0, kA, 7);
  dontneed(0, 10, 90, kA);
  load(1, 20, kA, 0);
  protect(3, 15, 60, kA, Prot::read);
  accerr(1, 30, 40, kA, Access::write);
  load(2, 70, kA, 0);
  expect_right();
  load(2, 71, kA, 7);  // the protect waited for the flush, so nobody has the old page
  expect_wrong("cpu 2 loaded 7");
}

// --- files --------------------------------------------------------------------------------------

TEST_F(ModelTest, AFilesPageHoldsWhatTheStoreHolds) {
  file(2);
  Event& e = map(0, 0, 0, kA, Prot::read, 2);
  e.file = 1;
  load(1, 5, kA + 8, 11);
  load(1, 6, kB + 16, 112);
  expect_right();
  load(1, 7, kB + 16, 12);
  expect_wrong("then held 112");
}

TEST_F(ModelTest, BeyondTheEndOfTheFile) {
  file(1);
  map(0, 0, 0, kA, kRw, 2).file = 1;
  sigbus(1, 5, 9, kB);
  load(1, 10, kA, 10);
  expect_right();
  sigbus(1, 15, 19, kA);
  expect_wrong("SIGBUS (ADRERR)");
}

TEST_F(ModelTest, NoAccessBeyondTheEndOfTheFile) {
  file(1);
  map(0, 0, 0, kA, kRw, 2).file = 1;
  load(1, 10, kB, 0);
  expect_wrong("beyond the end of its file");
}

TEST_F(ModelTest, AMissingRightComesBeforeTheEndOfTheFile) {
  file(1);
  map(0, 0, 0, kA, Prot::none, 2).file = 1;
  accerr(1, 2, 4, kB, Access::read);
  expect_right();
  sigbus(1, 5, 9, kB);
  expect_wrong("SIGBUS");
}

TEST_F(ModelTest, TwoMappingsOfAFileSeeEachOther) {
  file(1);
  Event& a = map(0, 0, 0, kA, kRw);
  a.file = 1;
  a.shared = true;
  Event& b = map(0, 0, 0, kB, kRw);
  b.file = 1;
  b.shared = true;
  store(1, 5, kA, 70);
  load(2, 6, kB, 70);
  expect_right();
  load(2, 7, kB, 10);
  expect_wrong("cpu 2 loaded 10 at step 7; word 0 then held 70");
}

TEST_F(ModelTest, WriteAtIsSeenThroughMappings) {
  file(1);
  Event& a = map(0, 0, 0, kA, Prot::read);
  a.file = 1;
  write_at(1, 10, 20, 0, 2, 70);
  load(2, 12, kA + 16, 12);
  load(2, 15, kA + 16, 70);
  load(2, 18, kA + 16, 70);
  expect_right();
  load(2, 19, kA + 16, 12);
  expect_wrong("then held 70");
}

TEST_F(ModelTest, APrivateStoreStaysPrivate) {
  file(1);
  map(0, 0, 0, kA, kRw).file = 1;
  Event& b = map(0, 0, 0, kB, Prot::read);
  b.file = 1;
  b.shared = true;
  store(1, 5, kA, 70);
  load(1, 6, kA, 70);
  load(2, 7, kB, 10);
  expect_right();
  load(2, 8, kB, 70);
  expect_wrong("then held 10");
}

TEST_F(ModelTest, APrivatePageSeesTheFileUntilItsFirstStore) {
  file(1);
  map(0, 0, 0, kA, kRw).file = 1;
  write_at(1, 2, 3, 0, 1, 50);
  load(2, 5, kA + 8, 50);
  store(2, 10, kA, 70);
  write_at(1, 12, 13, 0, 1, 51);
  load(2, 15, kA + 8, 50);
  expect_right();
  load(2, 16, kA + 8, 51);
  expect_wrong("held 50");
}

TEST_F(ModelTest, TheCopyWasReadDuringTheStore) {
  file(1);
  map(0, 0, 0, kA, kRw).file = 1;
  write_at(1, 22, 23, 0, 1, 50);
  store(2, 30, kA, 70).begin = 20;
  load(2, 35, kA + 8, 11);
  expect_right();
  load(2, 36, kA + 8, 50);  // the load before has told which it was
  expect_wrong("held 11");
}

TEST_F(ModelTest, TheCopyMayHaveTheNewValue) {
  file(1);
  map(0, 0, 0, kA, kRw).file = 1;
  write_at(1, 22, 23, 0, 1, 50);
  store(2, 30, kA, 70).begin = 20;
  load(2, 35, kA + 8, 50);
  expect_right();
}

TEST_F(ModelTest, TheCopyIsNotOlderThanTheStore) {
  file(1);
  map(0, 0, 0, kA, kRw).file = 1;
  write_at(1, 12, 13, 0, 1, 50);
  store(2, 30, kA, 70).begin = 20;
  load(2, 35, kA + 8, 11);
  expect_wrong("held 50");
}

TEST_F(ModelTest, AnothersStoreMayHaveMadeTheCopy) {
  file(1);
  map(0, 0, 0, kA, kRw).file = 1;
  store(2, 40, kA, 70).begin = 10;  // copied early, stored late
  write_at(1, 22, 23, 0, 1, 50);
  load(3, 25, kA + 8, 11);  // sees the copy before either store
  store(1, 30, kA, 71).begin = 28;
  load(3, 45, kA + 8, 11);
  expect_right();
}

TEST_F(ModelTest, AFaultMayHaveMadeTheCopy) {
  file(1);
  map(0, 0, 0, kA, kRw).file = 1;
  accerr(2, 5, 30, kA, Access::write);  // copied, and then the right was gone
  write_at(1, 22, 23, 0, 1, 50);
  protect(0, 24, 28, kA, Prot::read);
  load(3, 40, kA + 8, 11);
  expect_right();
  history.keep(3);
  load(3, 40, kA + 8, 50);
  expect_wrong("ACCERR");
}

TEST_F(ModelTest, WithoutAnAccessThatWritesThereIsNoCopy) {
  file(1);
  map(0, 0, 0, kA, kRw).file = 1;
  write_at(1, 22, 23, 0, 1, 50);
  load(3, 40, kA + 8, 11);
  expect_wrong("held 50");
}

TEST_F(ModelTest, DontneedShowsThePrivatePageTheFileAgain) {
  file(1);
  map(0, 0, 0, kA, kRw).file = 1;
  store(2, 5, kA, 70);
  dontneed(1, 10, 20, kA);
  load(2, 25, kA, 10);
  expect_right();
  load(2, 26, kA, 0);
  expect_wrong("held 10");
}

TEST_F(ModelTest, DontneedLeavesSharedPagesAlone) {
  map(0, 0, 0, kA, kRw).shared = true;
  store(2, 5, kA, 70);
  dontneed(1, 10, 20, kA);
  load(3, 15, kA, 70);
  load(2, 25, kA, 70);
  expect_right();
  load(2, 26, kA, 0);
  expect_wrong("held 70");
}

TEST_F(ModelTest, ASharedMappingEndsAndTheFileKeepsTheStore) {
  file(1);
  Event& a = map(0, 0, 0, kA, kRw);
  a.file = 1;
  a.shared = true;
  unmap(1, 10, 20, kA);
  store(2, 15, kA, 70);
  Event& b = map(1, 30, 40, kB, Prot::read);
  b.file = 1;
  load(2, 50, kB, 70);
  expect_right();
}

TEST_F(ModelTest, AStoreGoesWhereThePageWasMappedThen) {
  file(1);
  Event& a = map(0, 0, 0, kA, kRw);
  a.file = 1;
  a.shared = true;
  Event& b = map(0, 0, 0, kB, Prot::read);
  b.file = 1;
  b.shared = true;
  map(1, 10, 20, kA, kRw).fixed = true;  // anonymous memory over it
  store(2, 15, kA, 70);
  load(3, 25, kB, 10);  // so the store came after the map
  load(2, 30, kA, 70);
  expect_right();
  load(2, 31, kA, 0);
  expect_wrong("held 70");
}

// --- fork ---------------------------------------------------------------------------------------

TEST_F(ModelTest, TheChildHasTheParentsPage) {
  map(0, 0, 0, kA, kRw);
  store(0, 0, kA, 7);
  fork(0, 10, 20, 1);
  load(1, 30, kA, 7).space = 1;
  expect_right();
  load(1, 31, kA, 0).space = 1;
  expect_wrong("cpu 1 loaded 0 at step 31; word 0 then held 7");
}

TEST_F(ModelTest, AStoreBesideAForkIsInTheChildOrNot) {
  map(0, 0, 0, kA, kRw);
  store(0, 0, kA, 7);
  fork(0, 10, 20, 1);
  store(2, 15, kA, 8);
  load(1, 30, kA, 8).space = 1;
  expect_right();
  history.keep(4);
  load(1, 30, kA, 7).space = 1;
  expect_right();
}

TEST_F(ModelTest, WhatThePageHeldBeforeTheForkIsInTheChild) {
  map(0, 0, 0, kA, kRw);
  store(2, 5, kA, 8);
  fork(0, 10, 20, 1);
  load(1, 30, kA, 0).space = 1;
  expect_wrong("then held 8");
}

TEST_F(ModelTest, WhatComesAfterTheForkIsNot) {
  map(0, 0, 0, kA, kRw);
  fork(0, 10, 20, 1);
  store(2, 25, kA, 8);
  load(1, 30, kA, 8).space = 1;
  expect_wrong("held 0");
}

TEST_F(ModelTest, NoStoreIsLostBesideAFork) {  // B26
  map(0, 0, 0, kA, kRw);
  fork(0, 10, 40, 1);
  store(2, 15, kA, 8);
  store(3, 20, kA + 8, 9);
  load(2, 50, kA, 0);
  expect_wrong("cpu 2 loaded 0 at step 50; word 0 then held 8");
}

TEST_F(ModelTest, AForkCopiesAPageAtOneInstant) {
  map(0, 0, 0, kA, kRw);
  fork(0, 10, 40, 1);
  store(2, 15, kA, 8);
  store(2, 20, kA + 8, 9);
  load(1, 50, kA, 8).space = 1;
  load(1, 51, kA + 8, 0).space = 1;
  expect_right();
  load(1, 52, kA + 8, 9).space = 1;
  expect_wrong("cpu 1 loaded 9");
  history.keep(4);
  load(1, 50, kA, 0).space = 1;
  load(1, 51, kA + 8, 9).space = 1;
  expect_wrong("loaded");
}

TEST_F(ModelTest, TwoPagesMayBeCopiedAtTwoInstants) {  // B62
  map(0, 0, 0, kA, kRw, 2);
  fork(0, 10, 40, 1);
  store(2, 15, kA, 8);
  store(2, 20, kB, 9);
  load(1, 50, kA, 0).space = 1;
  load(1, 51, kB, 9).space = 1;
  expect_right();
}

TEST_F(ModelTest, ParentAndChildAreApart) {
  map(0, 0, 0, kA, kRw);
  fork(0, 10, 20, 1);
  store(1, 25, kA, 8).space = 1;
  load(2, 30, kA, 0);
  expect_right();
  load(2, 31, kA, 8);
  expect_wrong("then held 0. 8 was stored by cpu 1 to 0x10000 in space 1 at step 25.");
}

TEST_F(ModelTest, SharedPagesStaySharedOverAFork) {
  map(0, 0, 0, kA, kRw).shared = true;
  fork(0, 10, 20, 1);
  store(1, 25, kA, 8).space = 1;
  load(2, 30, kA, 8);
  expect_right();
  load(2, 31, kA, 0);
  expect_wrong("held 8");
}

TEST_F(ModelTest, TheChildHasTheRightsToo) {
  map(0, 0, 0, kA, Prot::read);
  fork(0, 10, 20, 1);
  accerr(1, 25, 27, kA, Access::write).space = 1;
  expect_right();
  protect(2, 30, 40, kA, kRw);
  store(1, 45, kA, 8).space = 1;
  expect_wrong("without the right to write");
}

TEST_F(ModelTest, NoChildBeforeTheFork) {
  map(0, 0, 0, kA, kRw);
  load(1, 5, kA, 0).space = 1;
  fork(0, 10, 20, 1);
  expect_wrong("not mapped");
}

TEST_F(ModelTest, AGrandchildHasItAll) {
  map(0, 0, 0, kA, kRw);
  store(0, 0, kA, 7);
  fork(0, 10, 20, 1);
  fork(1, 30, 40, 2).space = 1;
  load(2, 50, kA, 7).space = 2;
  expect_right();
  load(2, 51, kA, 0).space = 2;
  expect_wrong("held 7");
}

TEST_F(ModelTest, AForkAfterADontneedHasTheNewPage) {
  map(0, 0, 0, kA, kRw);
  store(0, 0, kA, 7);
  dontneed(2, 5, 30, kA);
  load(3, 8, kA, 0);
  fork(0, 10, 20, 1);
  load(1, 35, kA, 0).space = 1;
  expect_right();
  load(1, 36, kA, 7).space = 1;
  expect_wrong("held 0");
}

// --- limits and accounts ------------------------------------------------------------------------

TEST_F(ModelTest, AHistoryThatDoesNotFitIsNotRight) {
  for (unsigned i = 0; i <= History::kMost; ++i) load(0, i + 1, kA, 0);
  expect_wrong("no room for so many events of a run");
}

TEST_F(ModelTest, TheAccountNamesEventsInOrder) {
  map(0, 0, 0, kA, kRw);
  load(2, 95, kA, 7);
  protect(1, 12, 80, kA, Prot::read);
  expect_wrong(
      "page 0x10000 of space 0: no order of these events gives every result\n"
      "   before the run cpu 0 map 0x10000, 1 page, rw-, private\n"
      "   step 12..80 cpu 1 protect 0x10000, 1 page, r--\n"
      " > step 95 cpu 2 load 0x10000 word 0 = 7\n"
      "cpu 2 loaded 7 at step 95; word 0 then held 0. Nobody stored 7.");
}

TEST_F(ModelTest, SeveralPossibleValuesAreAllNamed) {
  file(1);
  map(0, 0, 0, kA, kRw).file = 1;
  write_at(1, 22, 23, 0, 1, 50);
  store(2, 30, kA, 70).begin = 20;
  load(2, 35, kA + 8, 60);
  expect_wrong("held 11 or 50");
}

TEST_F(ModelTest, PoisonIsCalledSo) {
  map(0, 0, 0, kA, kRw);
  load(2, 35, kA + 8, 0xcccccccccccccccc);
  expect_wrong("cpu 2 loaded the poison of a freed frame");
}

TEST_F(ModelTest, ManyThatFloatAtOnceAreStillJudged) {
  map(0, 0, 0, kA, kRw);
  for (unsigned i = 0; i < 10; ++i) {
    protect(i % 4, 10, 100, kA, i % 2 == 0 ? Prot::read : kRw);
  }
  store(1, 50, kA, 5);
  accerr(2, 20, 40, kA, Access::write);
  load(3, 120, kA, 5);
  expect_right();
  load(3, 121, kA, 6);
  expect_wrong("Nobody stored 6");
}

// --- a machine that knows the instants ----------------------------------------------------------

// Every CPU goes through calls of several phases, in a random order of steps; each effect happens at
// a step of its own within the call, as the model's rules have it. So every history that comes out
// has an order. It is written without the model's means: whole copies of pages, no search.
class Reference {
 public:
  explicit Reference(std::uint64_t seed) : random_(seed) {}

  static constexpr unsigned kCpus = 4;
  static constexpr unsigned kPages = 2;
  static constexpr unsigned kUsedWords = 2;

  void run(History& history, State& state, unsigned calls) {
    history.reset();
    state.files[1].size = kPageSize;
    for (unsigned w = 0; w < kUsedWords; ++w) state.files[1].words[0][w] = file_[w] = 1000 + w;
    for (unsigned p = 0; p < kPages; ++p) {
      Event e = make(Kind::map, 0, p);
      e.prot = kRw;
      e.begin = e.end = 0;
      e.file = pick(2) == 0 ? 1 : 0;
      e.shared = pick(3) == 0;
      apply_map(page(0, p), e);
      history.add(e);
    }
    step_ = 1;
    unsigned left = calls;
    for (unsigned busy = 1; busy != 0 || left != 0;) {
      const unsigned c = pick(kCpus);
      Call& call = calls_[c];
      ++step_;
      if (!call.running) {
        if (left != 0) {
          --left;
          begin(c);
        }
      } else {
        advance(c, history);
      }
      // Any translation may be lost at any time.
      if (pick(4) == 0) refresh(pick(kCpus));
      busy = 0;
      for (const Call& other : calls_) busy += other.running ? 1 : 0;
    }
  }

 private:
  struct Content {
    bool copy = true;
    std::array<std::uint64_t, kUsedWords> words{};
  };
  struct Page {
    bool mapped = false;
    Prot prot = Prot::none;
    bool shared = false;
    bool file = false;
    int object = 0;
    std::vector<Content> generations{1};
    std::array<unsigned, kCpus> at{};
    unsigned zaps_open = 0;
    unsigned mapped_times = 0;
  };
  struct Call {
    bool running = false;
    unsigned phase = 0;
    Event event;
    unsigned copied_of = 0;  ///< the mapping whose file's page is being copied
    std::array<std::uint64_t, kUsedWords> copied{};
  };

  unsigned pick(unsigned n) { return static_cast<unsigned>(random_() % n); }
  Page& page(unsigned space, unsigned p) { return pages_[space][p]; }
  Page& page_of(const Event& e) {
    return page(e.space, static_cast<unsigned>((e.address - kA) >> kPageShift));
  }

  Event make(Kind kind, unsigned cpu, unsigned p) {
    Event e;
    e.kind = kind;
    e.cpu = static_cast<std::uint8_t>(cpu);
    e.address = kA + p * kPageSize;
    e.length = kPageSize;
    e.begin = step_;
    return e;
  }

  void begin(unsigned cpu) {
    Call& call = calls_[cpu];
    call.running = true;
    call.phase = 0;
    static constexpr Kind kKinds[] = {
        Kind::load,     Kind::load,       Kind::load,  Kind::store,   Kind::store,
        Kind::store,    Kind::map,        Kind::unmap, Kind::protect, Kind::dontneed,
        Kind::dontneed, Kind::file_write, Kind::fork};
    Kind kind = kKinds[pick(std::size(kKinds))];
    if (kind == Kind::fork && forked_) kind = Kind::load;
    call.event = make(kind, cpu, pick(kPages));
    Event& e = call.event;
    if (child_alive_) e.space = static_cast<std::uint8_t>(pick(2));
    switch (kind) {
      case Kind::load:
      case Kind::store:
        e.address += 8 * pick(kUsedWords);
        e.access = kind == Kind::store ? Access::write : Access::read;
        e.value = ++values_;
        break;
      case Kind::map:
        e.fixed = true;
        e.prot = pick(4) == 0 ? Prot::read : kRw;
        e.file = static_cast<std::uint8_t>(pick(2));
        e.shared = pick(3) == 0;
        break;
      case Kind::protect:
        e.prot = pick(2) == 0 ? Prot::read : kRw;
        if (e.address == kA && pick(2) == 0) e.length = 2 * kPageSize;
        break;
      case Kind::file_write:
        e.file = 1;
        e.address = 8 * pick(kUsedWords);
        e.value = ++values_;
        break;
      case Kind::fork:
        forked_ = true;
        e.space = 0;
        e.child = 1;
        break;
      default: break;
    }
  }

  void refresh(unsigned cpu) {
    for (auto& space : pages_) {
      for (Page& p : space) p.at[cpu] = static_cast<unsigned>(p.generations.size()) - 1;
    }
  }
  void everybody_moves(Page& p) { p.at.fill(static_cast<unsigned>(p.generations.size()) - 1); }
  void apply_map(Page& p, const Event& e) {
    everybody_moves(p);
    p.mapped = true;
    p.mapped_times = ++maps_;
    p.prot = e.prot;
    p.shared = e.shared;
    p.file = e.file != 0;
    p.object = e.file != 0 ? 0 : static_cast<int>(objects_.size());
    if (e.shared && e.file == 0) objects_.push_back({});
    p.generations.push_back({!p.file, {}});
    everybody_moves(p);
  }
  std::uint64_t& object_word(const Page& p, unsigned w) {
    return p.file ? file_[w] : objects_[static_cast<unsigned>(p.object)][w];
  }

  void finish(Call& call, History& history) {
    call.running = false;
    call.event.end = step_;
    history.add(call.event);
  }

  void advance(unsigned cpu, History& history) {
    Call& call = calls_[cpu];
    Event& e = call.event;
    switch (e.kind) {
      case Kind::load:
      case Kind::store: advance_access(call, history); return;
      case Kind::dontneed: {
        Page& p = page_of(e);
        if (call.phase == 0) {
          e.ok = p.mapped;
          if (!e.ok) e.error = Errno::enomem;
          if (p.mapped && !p.shared) p.generations.push_back({!p.file, {}});
          ++p.zaps_open;
          call.phase = 1;
        } else if (pick(2) == 0) {
          everybody_moves(p);
          --p.zaps_open;
          finish(call, history);
        }
        return;
      }
      case Kind::file_write:
        if (call.phase++ == 0) {
          file_[e.address / 8] = e.value;
        } else {
          finish(call, history);
        }
        return;
      case Kind::fork:
        // Page by page, an instant each.
        if (call.phase < kPages) {
          Page& from = page(0, call.phase);
          if (from.zaps_open != 0) return;
          everybody_moves(from);
          page(1, call.phase) = from;
          ++call.phase;
        } else {
          child_alive_ = true;
          finish(call, history);
        }
        return;
      default: break;
    }
    Page& p = page_of(e);
    if (call.phase == 1) {
      finish(call, history);
      return;
    }
    for (unsigned i = 0; i < e.length / kPageSize; ++i) {
      if ((&p)[i].zaps_open != 0) return;  // waits for the DONTNEEDs
    }
    call.phase = 1;
    if (e.kind == Kind::map) {
      apply_map(p, e);
    } else if (e.kind == Kind::unmap) {
      everybody_moves(p);
      p.mapped = false;
    } else {
      // Page by page, up to a hole.
      for (unsigned i = 0; i < e.length / kPageSize && e.ok; ++i) {
        Page& part = (&p)[i];
        e.ok = part.mapped;
        if (!e.ok) e.error = Errno::enomem;
        everybody_moves(part);
        if (part.mapped) part.prot = e.prot;
      }
    }
  }

  void advance_access(Call& call, History& history) {
    Event& e = call.event;
    Page& p = page_of(e);
    const unsigned w = static_cast<unsigned>(e.address & ~kPageMask) / 8;
    const bool store = e.kind == Kind::store;
    const bool right = store ? has(p.prot, Prot::write) : p.prot != Prot::none;
    if (!p.mapped || !right) {
      e.kind = Kind::fault;
      e.signal = kSigSegv;
      e.code = p.mapped ? kSegvAccErr : kSegvMapErr;
      e.value = 0;
      finish(call, history);
      return;
    }
    if (p.shared) {
      std::uint64_t& word = object_word(p, w);
      (store ? word : e.value) = store ? e.value : word;
      e.instant = step_;
      finish(call, history);
      return;
    }
    Content& seen = p.generations[p.at[e.cpu]];
    if (!seen.copy && store) {
      // A fault looks at the newest page; the copy is read a word a step, and then put there.
      if (call.phase == 0 || call.copied_of != p.mapped_times) {
        call.phase = 0;
        call.copied_of = p.mapped_times;
      }
      if (call.phase < kUsedWords) {
        call.copied[call.phase] = file_[call.phase];
        ++call.phase;
        return;
      }
      call.phase = 0;
      p.at[e.cpu] = static_cast<unsigned>(p.generations.size()) - 1;
      Content& newest = p.generations.back();
      if (!newest.copy && p.file) {
        newest.copy = true;
        newest.words = call.copied;
      }
      return;
    }
    if (store) {
      seen.words[w] = e.value;
    } else {
      e.value = seen.copy ? seen.words[w] : file_[w];
    }
    e.instant = step_;
    finish(call, history);
  }

  std::mt19937_64 random_;
  std::uint64_t step_ = 0;
  std::uint64_t values_ = 0;
  unsigned maps_ = 0;
  bool forked_ = false;
  bool child_alive_ = false;
  std::array<std::uint64_t, kUsedWords> file_{};
  std::vector<std::array<std::uint64_t, kUsedWords>> objects_;
  Page pages_[2][kPages];
  Call calls_[kCpus];
};

TEST(ModelReference, EveryHistoryWithKnownInstantsIsRight) {
  History history;
  std::string why;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    State state;
    Reference reference(seed);
    reference.run(history, state, 14);
    ASSERT_TRUE(explain(state, history, &why)) << "seed " << seed << "\n" << why;
  }
}

// A load that returns what was never in its word, or what is long gone, is found.
TEST(ModelReference, AWrongValueIsNot) {
  History history;
  std::mt19937_64 random(1);
  unsigned tried = 0;
  unsigned never_stored = 0;
  unsigned stale = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    State state;
    Reference reference(seed);
    reference.run(history, state, 14);
    std::vector<unsigned> loads;
    for (unsigned i = 0; i < history.size(); ++i) {
      if (history[i].kind == Kind::load) loads.push_back(i);
    }
    if (loads.empty()) continue;
    ++tried;
    Event& e = const_cast<Event&>(history[loads[random() % loads.size()]]);
    const std::uint64_t right = e.value;
    e.value = 999'999;
    never_stored += explain(state, history, nullptr) ? 0 : 1;
    e.value = right == 0 ? 1 : 0;  // the first store's value, or a fresh page
    stale += explain(state, history, nullptr) ? 0 : 1;
  }
  EXPECT_EQ(never_stored, tried);
  EXPECT_GT(stale, tried / 2);
}

// --- laws at rest -------------------------------------------------------------------------------

// A machine with two Cpus in one space: private memory, a shared and a private mapping of a file,
// shared memory. Everything lies in the arena, and goes with the next reset.
struct RestTest : testing::TestWithParam<const char*> {
  template <class T, class... Args>
  static T& make(Args&&... args) {
    return *::new (sim::World::get().state(sizeof(T))) T(std::forward<Args>(args)...);
  }

  static constexpr Addr kPrivate = 0x400000;
  static constexpr Addr kShared = kPrivate + 16 * kPageSize;
  static constexpr Addr kFile = kPrivate + 32 * kPageSize;
  static constexpr Addr kCopy = kPrivate + 48 * kPageSize;

  Machine* machine = nullptr;
  AddressSpace* space = nullptr;
  MemoryStore* store = nullptr;
  File* file = nullptr;
  SoftCpu* a = nullptr;
  SoftCpu* b = nullptr;
  std::vector<vma::Mm*> spaces;
  std::string why;

  void SetUp() override {
    sim::World::get().reset();
    machine = &make<Machine>(Machine::create({.memory_bytes = 1 << 20, .max_cpus = 3}).value());
    space = &make<AddressSpace>(
        machine->new_space({.policy = parse_policy(GetParam()).value()}).value());
    store = &make<MemoryStore>(2u);
    file = &make<File>(machine->new_file(*store, {true, true}).value());
    a = &make<SoftCpu>(*machine);
    b = &make<SoftCpu>(*machine);
    a->enter(*space);
    b->enter(*space);
    spaces = {&space->mm()};
    map(kPrivate, 3, false, false);
    map(kShared, 2, true, false);
    map(kFile, 2, true, true);
    map(kCopy, 2, false, true);
    for (const Addr page : {kPrivate, kShared, kFile, kCopy}) {
      EXPECT_TRUE(a->store<std::uint64_t>(page, 5));
      EXPECT_TRUE(b->load<std::uint64_t>(page));
      EXPECT_TRUE(b->load<std::uint64_t>(page + kPageSize));
    }
  }

  void map(Addr at, unsigned pages, bool shared, bool of_file) {
    ASSERT_TRUE(space->map(*a, {.address = at,
                                .length = pages * kPageSize,
                                .prot = kRw,
                                .shared = shared,
                                .placement = Placement::fixed,
                                .file = of_file ? file : nullptr}));
  }

  memory::MachineCore& core() { return machine->core(); }
  vma::Mm& mm() { return space->mm(); }
  vma::Vma& vma(Addr at) { return *mm().tree.covering(at).vma; }
  pagetable::Entry& entry(Addr at) { return mm().tables.find_leaf(at).at(at, 0); }
  memory::Pfn pfn(Addr at) { return pagetable::Pte(entry(at).load(env::relaxed)).pfn(); }
  memory::Frame& frame(Addr at) { return core().frame(pfn(at)); }
  memory::Cpu& cpu(SoftCpu& soft) { return static_cast<memory::Cpu&>(*soft.block()); }

  bool look() {
    const Rest::File files[] = {{file->object(), 1, store}};
    static constexpr Range kWindows[] = {{kPrivate, kPrivate + 64 * kPageSize}};
    return at_rest({&core(), spaces, files, kWindows}, &why);
  }
  void expect_holds() {
    // Once as it mostly is, and once with every entry read.
    for (int i = 0; i < 65; ++i) ASSERT_TRUE(look()) << why;
  }
  void expect_broken(const std::string& part) {
    EXPECT_FALSE(look());
    EXPECT_NE(why.find(part), std::string::npos)
        << "\"" << why << "\" should say \"" << part << '"';
  }
  template <class... Args>
  static std::string text(fmt::format_string<Args...> format, Args&&... args) {
    return fmt::format(format, std::forward<Args>(args)...);
  }
};

INSTANTIATE_TEST_SUITE_P(Policies, RestTest, testing::Values("mmap-lock", "spf"),
                         [](const auto& policy) {
                           return std::string(policy.param) == "spf" ? "Spf" : "MmapLock";
                         });

TEST_P(RestTest, HoldAfterCalls) {
  expect_holds();
  ASSERT_TRUE(space->protect(*a, kPrivate, kPageSize, Prot::none));
  ASSERT_TRUE(space->protect(*a, kPrivate + kPageSize, kPageSize, Prot::read));
  expect_holds();
  ASSERT_TRUE(space->advise(*b, kPrivate, 3 * kPageSize, Advice::dontneed));
  ASSERT_TRUE(space->advise(*b, kCopy, 2 * kPageSize, Advice::dontneed));
  expect_holds();
  ASSERT_TRUE(space->unmap(*a, kFile + kPageSize, kPageSize));
  expect_holds();
  ASSERT_TRUE(file->sync());
  expect_holds();
  ASSERT_TRUE(b->store<std::uint64_t>(kFile + 8, 9));
  expect_holds();
  ASSERT_TRUE(space->unmap(*a, kPrivate, 64 * kPageSize));
  expect_holds();
  machine->quiesce();
  expect_holds();
}

TEST_P(RestTest, HoldBesideAChild) {
  AddressSpace& child = make<AddressSpace>(space->fork(*a).value());
  spaces.push_back(&child.mm());
  expect_holds();
  ASSERT_TRUE(a->store<std::uint64_t>(kPrivate, 6));
  b->leave();
  b->enter(child);
  ASSERT_TRUE(b->store<std::uint64_t>(kPrivate, 7));
  ASSERT_TRUE(b->store<std::uint64_t>(kCopy, 7));
  expect_holds();
  b->leave();
  {
    AddressSpace gone(std::move(child));
  }
  spaces.pop_back();
  expect_holds();
}

TEST_P(RestTest, ALeftMarkIsNamed) {
  if (mm().marking != vma::Marking::sequence) return;  // such a space's sequences mean nothing
  vma(kPrivate).sequence.begin_write();
  expect_broken("space 0 VMA 0x400000-0x403000 rw-: its sequence is");
}

TEST_P(RestTest, VmasAreWhereTheTreeHasThem) {
  vma::Vma& v = vma(kPrivate);
  [&]() FP_NO_THREAD_SAFETY_ANALYSIS {
    mm().lock_sequence.fetch_add(1, env::relaxed);
    mm().mark(v);
    v.set_bounds(kPrivate, kPrivate + 2 * kPageSize, v.pgoff());
    mm().unmark(v);
    mm().lock_sequence.fetch_add(1, env::relaxed);
  }();
  expect_broken("the tree has it at 0x400000-0x403000");
}

TEST_P(RestTest, AVmaHasTheTreesReferenceAlone) {
  vma(kPrivate).refs.fetch_add(1, env::relaxed);
  expect_broken("VMA 0x400000-0x403000 rw-: it has 2 references");
}

TEST_P(RestTest, ALostVmaIsNamed) {
  void* const lost = core().allocate_object(cpu(*a), memory::SlabKind::vma);
  ASSERT_NE(lost, nullptr);
  expect_broken("VMAs are out of their slab");
  EXPECT_NE(why.find("no tree has it, and it was never retired"), std::string::npos) << why;
}

TEST_P(RestTest, ALostObjectIsCounted) {
  ASSERT_NE(core().allocate_object(cpu(*a), memory::SlabKind::tree_node), nullptr);
  expect_broken("tree nodes are out of their slab");
}

TEST_P(RestTest, HeldLocksAreNamed) {
  mm().mmap_lock.lock_read();
  expect_broken("space 0: the mmap lock is held");
  mm().mmap_lock.unlock_read();
  frame(kFile).page_lock.lock();
  expect_broken("page 0 of a file is locked");
  frame(kFile).page_lock.unlock();
  mm().tables.find_leaf(kPrivate).meta->lock.lock();
  expect_broken("its lock is held");
  mm().tables.find_leaf(kPrivate).meta->lock.unlock();
  cpu(*a).flush.lock.lock();
  expect_broken("the lock of its flush box is held");
  cpu(*a).flush.lock.unlock();
  expect_holds();
}

TEST_P(RestTest, ALostFrameIsNamedWithItsKind) {
  const memory::Pfn lost = core().allocate_frame(cpu(*a), memory::FrameKind::anon, true);
  expect_broken(text("frame {} (anon, 1 reference): it is lost, no entry names it", lost));
}

TEST_P(RestTest, AReferenceTooManyIsNamed) {
  frame(kShared).refs.fetch_add(1, env::relaxed);
  expect_broken(
      text("frame {} (cache, 3 references): its file's index and 1 entry name it", pfn(kShared)));
}

TEST_P(RestTest, AReferenceTooFewIsNamed) {
  frame(kFile).refs.fetch_sub(1, env::relaxed);
  expect_broken(text("frame {} (cache, ", pfn(kFile)));
}

TEST_P(RestTest, AFreedFrameThatIsStillMappedIsNamed) {
  const memory::Pfn freed = pfn(kPrivate);
  core().free_frame(cpu(*a), freed);
  expect_broken(text("space 0 entry 0x400000 (frame {}): its frame is free", freed));
}

TEST_P(RestTest, AFrameFreedTwiceIsNamed) {
  const memory::Pfn twice = core().allocate_frame(cpu(*a), memory::FrameKind::anon, true);
  core().free_frame(cpu(*a), twice);
  core().free_frame(cpu(*b), twice);
  expect_broken("a Cpu's cache has it, and a Cpu's cache too");
}

TEST_P(RestTest, AnEntryGrantsNoMoreThanItsVma) {
  ASSERT_TRUE(space->protect(*a, kPrivate, kPageSize, Prot::read));
  entry(kPrivate).fetch_or(pagetable::Pte::kWrite, env::relaxed);
  expect_broken("space 0 entry 0x400000");
  EXPECT_NE(why.find("it grants write, in space 0 VMA 0x400000-0x401000 r--"), std::string::npos)
      << why;
}

TEST_P(RestTest, AWritablePrivatePageIsNobodyElses) {
  frame(kPrivate).refs.fetch_add(1, env::relaxed);
  expect_broken("it can be written, and the frame has 2 references");
}

TEST_P(RestTest, AnEntryWithoutAVmaIsFoundByItsTablesCount) {
  const pagetable::Table table = mm().tables.find_leaf(kPrivate);
  const std::uint64_t word = entry(kPrivate).exchange(0, env::relaxed);
  table.at(kPrivate + 100 * kPageSize, 0).store(word, env::relaxed);
  for (int i = 0; i < 64; ++i) {
    expect_broken(text("space 0 entry {:#x}", kPrivate + 100 * kPageSize));
  }
}

TEST_P(RestTest, TablesCountTheirEntries) {
  const pagetable::Table table = mm().tables.find_leaf(kPrivate);
  ++table.meta->occupied;
  expect_broken("entries are not empty");
  --table.meta->occupied;
  table.meta->dead.store(1, env::relaxed);
  expect_broken("it is linked, and called dead");
}

TEST_P(RestTest, AStaleTranslationIsNamed) {
  // The right goes, and nobody is asked to forget it.
  ASSERT_TRUE(a->store<std::uint64_t>(kPrivate, 1));
  entry(kPrivate).fetch_and(~pagetable::Pte::kWrite, env::relaxed);
  expect_broken("its TLB lets stores to 0x400000 through, whose entry is not writable");
}

TEST_P(RestTest, AStaleTranslationIsRightWhileItsFlushIsPosted) {
  ASSERT_TRUE(a->store<std::uint64_t>(kPrivate, 1));
  ASSERT_TRUE(space->advise(*b, kPrivate, kPageSize, Advice::dontneed));
  EXPECT_NE(cpu(*a).flush.posted.load(env::relaxed), cpu(*a).flush.answered.load(env::relaxed));
  expect_holds();
  cpu(*a).attention.store(0, env::relaxed);
  expect_broken("but attention is 0");
}

TEST_P(RestTest, AFileListsEachVmaOnce) {
  file->object()->remove_mapping(vma(kCopy));
  expect_broken("VMA 0x430000-0x432000 rw-: its file does not list it");
  file->object()->add_mapping(vma(kCopy));
  expect_holds();
  [this]() FP_NO_THREAD_SAFETY_ANALYSIS { mm().map_count += 1; }();
  expect_broken("map_count is 5, the tree has 4 VMAs");
}

TEST_P(RestTest, AFileHasAsManyReferencesAsNames) {
  file->object()->get();
  expect_broken("file 1: it has 4 references, and 3 handles and VMAs name it");
}

TEST_P(RestTest, ACleanPageHoldsWhatTheStoreHolds) {
  ASSERT_TRUE(file->sync());
  expect_holds();
  ASSERT_TRUE(a->store<std::uint64_t>(kFile, 77));
  frame(kFile).flags.fetch_and(~memory::kPageDirty, env::relaxed);
  expect_broken("it is writable, and the file's page is called clean");
  entry(kFile).fetch_and(~(pagetable::Pte::kWrite | pagetable::Pte::kDirty), env::relaxed);
  pagetable::drop_translations(cpu(*a), 0, ~Addr{0});
  expect_broken("is clean and holds 77 in word 0; the store has 5");
}

TEST_P(RestTest, CountersObeyTheirLaws) {
  cpu(*a).count(Counter::faults);
  expect_broken("counters: faults is");
  cpu(*a).count(Counter::fault_signals);
  expect_broken("spf + spf_vma_access + vma_lock_success + classic_settled");
}

TEST_P(RestTest, SmallCountsAreLookedAt) {
  mm().flush_pending.fetch_add(1, env::relaxed);
  expect_broken("flush_pending is 1");
  mm().flush_pending.fetch_sub(1, env::relaxed);
  mm().users.fetch_add(1, env::relaxed);
  expect_broken("users is 3, 2 Cpus are inside");
  mm().users.fetch_sub(1, env::relaxed);
  detail::open_section(cpu(*a));
  expect_broken("its section is still open");
}

}  // namespace
}  // namespace faultpath::check
