// What faults do: zero page, anonymous memory, copy on write, files, signals, DONTNEED, shortage of
// memory; and the laws that their counters keep.
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/arena.h"

namespace faultpath::test {
namespace {

/// What the counters gained since this was made.
class Gained {
 public:
  explicit Gained(SoftCpu& cpu) : cpu_(&cpu), before_(cpu.counters()) {}
  explicit Gained(Machine& machine) : machine_(&machine), before_(machine.counters()) {}
  Counters operator()() const {
    Counters now = cpu_ ? cpu_->counters() : machine_->counters();
    now -= before_;
    return now;
  }

 private:
  SoftCpu* cpu_ = nullptr;
  Machine* machine_ = nullptr;
  Counters before_;
};

/// The laws for faults of spaces that are all under `policy`.
void expect_counters_add_up(const Counters& c, const PolicySpec& policy) {
  EXPECT_EQ(c.faults, c.minor_faults + c.major_faults + c.fault_signals + c.fault_oom);

  const std::uint64_t passed_on = c.spf_vma_changed + c.spf_vma_noanon + c.spf_vma_notsup +
                                  c.spf_pmd_changed + c.spf_pte_lock + c.spf_no_vma +
                                  c.spf_no_memory;
  const std::uint64_t settled = c.spf + c.spf_vma_access;
  EXPECT_EQ(c.classic_entered, c.classic_settled);
  EXPECT_EQ(c.faults, settled + c.vma_lock_success + c.classic_settled);
  EXPECT_EQ(c.spf_entered, settled + passed_on);
  if (policy.policy == Policy::spf) {
    EXPECT_EQ(c.faults, c.spf_entered + c.spf_bypassed);
    EXPECT_EQ(c.classic_entered, c.spf_bypassed + passed_on);
    if (!policy.single_thread_bypass) {
      EXPECT_EQ(c.spf_bypassed, 0u);
    }
    return;
  }
  EXPECT_EQ(c.spf_entered + c.spf_bypassed, 0u);
  const std::uint64_t vma_lock = c.vma_lock_success + c.vma_lock_abort + c.vma_lock_retry;
  if (policy.policy == Policy::vma_lock) {
    // The kernel's identity; before its bad-access exit a forbidden access was in no counter.
    EXPECT_EQ(c.faults, vma_lock + c.vma_lock_bad_access);
    EXPECT_EQ(c.classic_entered, c.vma_lock_abort + c.vma_lock_retry + c.vma_lock_bad_access);
    if (policy.bad_access_fast) {
      EXPECT_EQ(c.vma_lock_bad_access, 0u);
    }
    return;
  }
  EXPECT_EQ(vma_lock + c.vma_lock_miss + c.vma_lock_bad_access, 0u);
  EXPECT_EQ(c.classic_entered, c.faults);
}

class Faults : public ArenaTest {
 protected:
  void TearDown() override { expect_counters_add_up(machine.counters(), GetParam()); }
};
FP_FOR_ALL_POLICIES(Faults);

// ---- anonymous memory ---------------------------------------------------------------------------

TEST_P(Faults, AnonymousReadThenWrite) {
  map(0, 4, "rw", "pa");
  Gained gained(softcpu());
  EXPECT_EQ(r(0, 17), "00");
  EXPECT_EQ(gained().faults, 1u);
  EXPECT_EQ(gained().minor_faults, 1u);
  EXPECT_EQ(gained().zero_page_maps, 1u);
  EXPECT_EQ(info().anon_pages, 0u);

  r(0);  // no fault
  EXPECT_EQ(gained().faults, 1u);

  EXPECT_EQ(w(0, 7), "ok");
  EXPECT_EQ(gained().faults, 2u);
  EXPECT_EQ(gained().minor_faults, 2u);
  EXPECT_EQ(info().anon_pages, 1u);
  EXPECT_EQ(r(0), "07");
  EXPECT_EQ(r(0, kPage - 1), "00");
  EXPECT_EQ(w(0, 8, kPage - 1), "ok");
  EXPECT_EQ(gained().faults, 2u);

  r(1);
  r(2);
  EXPECT_EQ(gained().zero_page_maps, 3u);
  EXPECT_EQ(gained().fault_signals, 0u);
  EXPECT_EQ(gained().major_faults, 0u);
}

TEST_P(Faults, AnonymousWriteFirst) {
  map(0, 4, "rw", "pa");
  Gained gained(softcpu());
  for (long k = 0; k < 4; ++k) w(k, 0xa0 + static_cast<unsigned>(k), 5);
  EXPECT_EQ(gained().faults, 4u);
  EXPECT_EQ(gained().minor_faults, 4u);
  EXPECT_EQ(gained().zero_page_maps, 0u);
  EXPECT_EQ(gained().cow_copies, 0u);
  EXPECT_EQ(info().anon_pages, 4u);
  std::vector<std::uint8_t> page(kPage, 0xff);
  for (long k = 0; k < 4; ++k) {
    ASSERT_TRUE(cpu().copy_in(page.data(), at(k), kPage).ok());
    for (std::uint64_t i = 0; i < kPage; ++i) {
      ASSERT_EQ(page[i], i == 5 ? 0xa0 + k : 0) << "page " << k << ", byte " << i;
    }
  }
  EXPECT_EQ(gained().faults, 4u);
}

TEST_P(Faults, NewPagesAreZeroThoughTheirFramesWereUsed) {
  std::vector<std::uint8_t> page(kPage, 0xee);
  for (int round = 0; round < 4; ++round) {
    map(0, 16, "rw", "pa");
    for (long k = 0; k < 16; ++k) {
      w(k, 0, kPage / 2);
      ASSERT_TRUE(cpu().copy_in(page.data(), at(k), kPage).ok());
      for (std::uint64_t i = 0; i < kPage; ++i) ASSERT_EQ(page[i], 0u) << "byte " << i;
      page.assign(kPage, 0xee);
      ASSERT_TRUE(cpu().copy_out(at(k), page.data(), kPage).ok());
    }
    unmap(0, 16);
  }
}

TEST_P(Faults, SharedAnonymousMemory) {
  map(0, 2, "rw", "sa");
  EXPECT_EQ(r(0), "00");
  EXPECT_EQ(w(0, 1), "ok");
  EXPECT_EQ(w(1, 2), "ok");
  EXPECT_EQ(dontneed(0, 2), "0");  // the memory is the object's, not the mapping's
  EXPECT_EQ(r(0), "01");
  EXPECT_EQ(r(1), "02");
  EXPECT_EQ(info().anon_pages, 0u);
}

// ---- copy on write ------------------------------------------------------------------------------

TEST_P(Faults, ParentCopiesChildReuses) {
  Process& parent = *this;
  parent.map(0, 1, "rw", "pa");
  parent.w(0, 1);
  Process child = parent.fork();
  Gained gained(softcpu());
  EXPECT_EQ(parent.w(0, 2), "ok");
  EXPECT_EQ(gained().cow_copies, 1u);
  EXPECT_EQ(gained().cow_reuses, 0u);
  EXPECT_EQ(child.r(0), "01");
  EXPECT_EQ(child.w(0, 3), "ok");
  EXPECT_EQ(gained().cow_copies, 1u);
  EXPECT_EQ(gained().cow_reuses, 1u);
  EXPECT_EQ(parent.r(0), "02");
  EXPECT_EQ(child.r(0), "03");
}

TEST_P(Faults, ChildCopiesParentReuses) {
  Process& parent = *this;
  parent.map(0, 1, "rw", "pa");
  parent.w(0, 1);
  Process child = parent.fork();
  Gained gained(softcpu());
  EXPECT_EQ(child.w(0, 3), "ok");
  EXPECT_EQ(gained().cow_copies, 1u);
  EXPECT_EQ(gained().cow_reuses, 0u);
  EXPECT_EQ(parent.r(0), "01");
  EXPECT_EQ(parent.w(0, 2), "ok");
  EXPECT_EQ(gained().cow_copies, 1u);
  EXPECT_EQ(gained().cow_reuses, 1u);
  EXPECT_EQ(parent.r(0), "02");
  EXPECT_EQ(child.r(0), "03");
}

TEST_P(Faults, TheParentReusesWhatADeadChildShared) {
  Process& parent = *this;
  parent.map(0, 4, "rw", "pa");
  for (long k = 0; k < 4; ++k) parent.w(k, 1);
  parent.fork().exit();
  Gained gained(softcpu());
  for (long k = 0; k < 4; ++k) EXPECT_EQ(parent.w(k, 2), "ok");
  EXPECT_EQ(gained().cow_copies, 0u);
  EXPECT_EQ(gained().cow_reuses, 4u);
}

TEST_P(Faults, ForkedPagesKeepTheirContentAroundTheWrittenByte) {
  Process& parent = *this;
  parent.map(0, 1, "rw", "pa");
  std::vector<std::uint8_t> page(kPage);
  for (std::uint64_t i = 0; i < kPage; ++i) page[i] = static_cast<std::uint8_t>(i * 7);
  ASSERT_TRUE(parent.cpu().copy_out(at(0), page.data(), kPage).ok());
  Process child = parent.fork();
  child.w(0, 0x99, 100);
  std::vector<std::uint8_t> copy(kPage);
  ASSERT_TRUE(child.cpu().copy_in(copy.data(), at(0), kPage).ok());
  page[100] = 0x99;
  EXPECT_EQ(copy, page);
}

TEST_P(Faults, ForkOfAReadOnlyMappingThatIsWidenedLater) {
  Process& parent = *this;
  parent.map(0, 1, "rw", "pa");
  parent.w(0, 1);
  parent.protect(0, 1, "r");
  Process child = parent.fork();
  child.protect(0, 1, "rw");
  child.w(0, 2);
  EXPECT_EQ(parent.r(0), "01");
  parent.protect(0, 1, "rw");
  parent.w(0, 3);
  EXPECT_EQ(child.r(0), "02");
}

// ---- files --------------------------------------------------------------------------------------

TEST_P(Faults, PrivateFile) {
  TestFile f = file(3);
  map(0, 3, "rw", "pf", f);
  map(8, 3, "r", "pf", f);
  EXPECT_EQ(r(0), "40");
  EXPECT_EQ(r(2, kPage - 1), "42");
  EXPECT_EQ(w(0, 0xaa), "ok");  // after a read
  EXPECT_EQ(w(1, 0xbb), "ok");  // without one
  EXPECT_EQ(r(0), "aa");
  EXPECT_EQ(r(0, 1), "40");
  EXPECT_EQ(r(1), "bb");
  EXPECT_EQ(r(1, 1), "41");
  EXPECT_EQ(r(8), "40");
  EXPECT_EQ(r(9), "41");
  EXPECT_EQ(info().anon_pages, 2u);

  std::uint8_t byte = 0;
  ASSERT_EQ(f.file.read_at(0, &byte, 1).value(), 1u);
  EXPECT_EQ(byte, 0x40);
  ASSERT_TRUE(f.file.sync());
  EXPECT_EQ(f.store->byte(0), 0x40u);
  EXPECT_EQ(f.store->byte(kPage), 0x41u);
}

TEST_P(Faults, FirstTouchOfAFileIsMajorTheNextMinor) {
  TestFile f = file(2);
  map(0, 1, "r", "pf", f);
  map(8, 1, "r", "pf", f);
  Gained gained(softcpu());
  r(0);
  EXPECT_EQ(gained().major_faults, 1u);
  EXPECT_EQ(gained().minor_faults, 0u);
  EXPECT_GE(gained().file_reads, 1u);
  r(8);
  EXPECT_EQ(gained().major_faults, 1u);
  EXPECT_EQ(gained().minor_faults, 1u);
  EXPECT_EQ(gained().faults, 2u);
}

TEST_P(Faults, SharedFileReachesTheStoreBySync) {
  TestFile f = file(2);
  map(0, 2, "rw", "sf", f);
  EXPECT_EQ(r(0), "40");
  EXPECT_EQ(w(0, 0xaa), "ok");
  EXPECT_EQ(w(1, 0xbb), "ok");
  EXPECT_EQ(sync(0, 1), "0");
  EXPECT_EQ(f.store->byte(0), 0xaau);
  ASSERT_TRUE(f.file.sync());
  EXPECT_EQ(f.store->byte(kPage), 0xbbu);
  EXPECT_EQ(f.store->byte(kPage + 1), 0x41u);

  // A clean page becomes dirty again.
  EXPECT_EQ(w(0, 0xac), "ok");
  ASSERT_TRUE(f.file.sync());
  EXPECT_EQ(f.store->byte(0), 0xacu);

  // What is clean is not written again.
  const int writes = f.store->writes;
  ASSERT_TRUE(f.file.sync());
  EXPECT_EQ(f.store->writes, writes);

  // And what was dirty when its mapping went is not forgotten.
  EXPECT_EQ(w(0, 0xad), "ok");
  unmap(0, 2);
  ASSERT_TRUE(f.file.sync());
  EXPECT_EQ(f.store->byte(0), 0xadu);
}

TEST_P(Faults, TwoMappingsOfOneFileSeeEachOther) {
  const TestFile f = file(3);
  map(0, 2, "rw", "sf", f);
  map(8, 2, "rw", "sf", f, kPage);
  map(16, 3, "r", "pf", f);
  w(1, 0x77);
  EXPECT_EQ(r(8), "77");
  EXPECT_EQ(r(17), "77");
  w(8, 0x78);
  EXPECT_EQ(r(1), "78");
  EXPECT_EQ(r(17), "78");
  EXPECT_EQ(r(9), "42");
}

TEST_P(Faults, BeyondTheEndOfTheFile) {
  for (const char* type : {"sf", "pf"}) {
    SCOPED_TRACE(type);
    fresh();
    const std::uint64_t half = kPage / 2;
    TestFile f = file_of(kPage + half);
    map(0, 4, "rw", type, f);
    EXPECT_EQ(r(0), "40");
    EXPECT_EQ(r(1, half - 1), "41");
    EXPECT_EQ(r(1, half), "00");
    EXPECT_EQ(r(1, kPage - 1), "00");
    EXPECT_EQ(w(1, 0xee, half + 5), "ok");  // memory only
    EXPECT_EQ(w(1, 0xdd, half - 1), "ok");
    EXPECT_EQ(r(2), "BUS");
    EXPECT_EQ(w(2, 1), "BUS");
    EXPECT_EQ(r(3, 123), "BUS");
    EXPECT_EQ(w(3, 1, kPage - 1), "BUS");
    EXPECT_EQ(sync(0, 4), "0");
    EXPECT_EQ(f.store->overruns, 0);
    EXPECT_EQ(f.store->byte(kPage + half - 1), type[0] == 's' ? 0xddu : 0x41u);
    EXPECT_EQ(f.file.size(), kPage + half);
  }
}

TEST_P(Faults, MappingBeyondTheEndAltogether) {
  const TestFile f = file(1);
  EXPECT_EQ(map(0, 1, "r", "sf", f, 4 * kPage), "ok");
  EXPECT_EQ(r(0), "BUS");
  const TestFile empty = file_of(0);
  EXPECT_EQ(map(1, 1, "r", "pf", empty), "ok");
  EXPECT_EQ(r(1), "BUS");
}

// ---- signals ------------------------------------------------------------------------------------

TEST_P(Faults, SignalsNameCodeAddressAndAccess) {
  map(0, 1, "r", "pa");
  const TestFile f = file(1);
  map(4, 2, "rw", "sf", f);
  Gained gained(softcpu());

  EXPECT_EQ(cpu().store<std::uint32_t>(at(0, 8), 1),
            Outcome::signal(kSigSegv, kSegvAccErr, at(0, 8), Access::write));
  EXPECT_EQ(cpu().store<std::uint32_t>(at(1, 12), 1),
            Outcome::signal(kSigSegv, kSegvMapErr, at(1, 12), Access::write));
  EXPECT_EQ(cpu().load<std::uint64_t>(at(2, 24)).outcome(),
            Outcome::signal(kSigSegv, kSegvMapErr, at(2, 24), Access::read));
  EXPECT_EQ(cpu().load<std::uint16_t>(at(5, 2)).outcome(),
            Outcome::signal(kSigBus, kBusAdrErr, at(5, 2), Access::read));
  EXPECT_EQ(cpu().load<std::uint8_t>(0).outcome(),
            Outcome::signal(kSigSegv, kSegvMapErr, 0, Access::read));
  EXPECT_EQ(gained().faults, 5u);
  EXPECT_EQ(gained().fault_signals, 5u);
}

TEST_P(Faults, RightsAsX86HasThem) {
  const TestFile f = file(1);
  for (const char* type : {"pa", "sa"}) {
    SCOPED_TRACE(type);
    fresh();
    map(0, 1, "w", type);  // write implies read
    EXPECT_EQ(r(0), "00");
    EXPECT_EQ(w(0, 1), "ok");
    EXPECT_EQ(r(0), "01");
    map(1, 1, "x", type);  // and so does exec
    EXPECT_EQ(r(1), "00");
    EXPECT_EQ(w(1, 1), "ACCERR");
    map(2, 1, "wx", type);
    EXPECT_EQ(r(2), "00");
    EXPECT_EQ(w(2, 1), "ok");
    map(3, 1, "rx", type);
    EXPECT_EQ(r(3), "00");
    EXPECT_EQ(w(3, 1), "ACCERR");
    map(4, 1, "none", type);
    EXPECT_EQ(r(4), "ACCERR");
    EXPECT_EQ(w(4, 1), "ACCERR");
  }
  map(8, 1, "w", "sf", f);
  EXPECT_EQ(r(8), "40");
  map(9, 1, "x", "pf", f);
  EXPECT_EQ(r(9), "40");
  EXPECT_EQ(w(9, 1), "ACCERR");
}

TEST_P(Faults, TakingRightsFromTouchedPages) {
  map(0, 2, "rw", "pa");
  w(0, 1);
  r(1);
  protect(0, 2, "none");
  EXPECT_EQ(r(0), "ACCERR");
  EXPECT_EQ(r(1), "ACCERR");
  EXPECT_EQ(w(0, 2), "ACCERR");
  protect(0, 2, "x");
  EXPECT_EQ(r(0), "01");
  EXPECT_EQ(w(0, 2), "ACCERR");
  protect(0, 2, "w");
  EXPECT_EQ(r(0), "01");
  EXPECT_EQ(w(0, 2), "ok");
  EXPECT_EQ(w(1, 3), "ok");
}

// ---- DONTNEED and unmap -------------------------------------------------------------------------

TEST_P(Faults, DontneedGivesZeroOrTheFileAgain) {
  const TestFile f = file(2);
  map(0, 4, "rw", "pa");
  map(8, 2, "rw", "pf", f);
  map(16, 2, "rw", "sf", f);
  for (long k = 0; k < 4; ++k) w(k, 0x10 + static_cast<unsigned>(k));
  w(8, 0xaa);
  w(17, 0xbb);
  EXPECT_EQ(info().anon_pages, 5u);

  EXPECT_EQ(dontneed(1, 2), "0");
  EXPECT_EQ(info().anon_pages, 3u);
  EXPECT_EQ(r(0), "10");
  EXPECT_EQ(r(1), "00");
  EXPECT_EQ(w(2, 5), "ok");
  EXPECT_EQ(r(2), "05");
  EXPECT_EQ(r(2, 1), "00");
  EXPECT_EQ(r(3), "13");

  EXPECT_EQ(dontneed(8, 2), "0");
  EXPECT_EQ(r(8), "40");
  EXPECT_EQ(r(9), "bb");  // the shared store shows through
  EXPECT_EQ(dontneed(16, 2), "0");
  EXPECT_EQ(r(17), "bb");  // not lost
  EXPECT_EQ(info().map_count, 3u);
}

TEST_P(Faults, TablesAndPagesGoWithTheirMappings) {
  const std::uint64_t before = info().table_pages;
  map(0, 64, "rw", "pa");
  for (long k = 0; k < 64; ++k) w(k, 1);
  EXPECT_EQ(info().anon_pages, 64u);
  EXPECT_GT(info().table_pages, before);
  unmap(0, 64);
  EXPECT_EQ(info().anon_pages, 0u);
  EXPECT_EQ(info().file_pages, 0u);
  EXPECT_EQ(info().map_count, 0u);
}

// ---- spf ----------------------------------------------------------------------------------------

TEST_P(Faults, TheBypassIsForSpacesWithOneTask) {
  map(0, 64, "rw", "pa");
  Gained gained(softcpu());
  for (long k = 0; k < 64; ++k) w(k, 1);
  EXPECT_EQ(gained().faults, 64u);
  if (GetParam().policy == Policy::vma_lock) {
    EXPECT_EQ(gained().vma_lock_success, 64u);
    EXPECT_EQ(gained().mmap_lock_read, 1u) << "for the VMA's first page alone: its anon root";
  } else if (GetParam().policy != Policy::spf) {
    EXPECT_EQ(gained().classic_settled, 64u);
  } else if (GetParam().single_thread_bypass) {
    EXPECT_EQ(gained().spf_bypassed, 64u);
    EXPECT_EQ(gained().spf, 0u);
  } else {
    EXPECT_EQ(gained().spf_entered, 64u);
    EXPECT_GE(gained().spf, 32u);  // all but the first ones, which bring tables and the like
    EXPECT_LT(gained().mmap_lock_read, 32u);
  }
}

// ---- shortage of memory -------------------------------------------------------------------------

class Shortage : public testing::TestWithParam<PolicySpec> {
 protected:
  static constexpr std::uint64_t kFrames = 512;
  static MachineOptions small() {
    MachineOptions options = test_machine();
    options.memory_bytes = kFrames * kPage;
    return options;
  }
  /// Writes to pages from `first` on until memory runs out; returns how many could be written.
  static long write_until_out_of_memory(Process& p, long first, long pages) {
    for (long k = 0; k < pages; ++k) {
      const Addr a = at(first + k, 16);
      const Outcome outcome = p.cpu().store<std::uint64_t>(a, 0x1000 + static_cast<unsigned>(k));
      if (!outcome) {
        EXPECT_EQ(outcome, Outcome::out_of_memory(a));
        return k;
      }
    }
    ADD_FAILURE() << pages << " pages fit into " << kFrames << " frames";
    return pages;
  }
};
FP_FOR_ALL_POLICIES(Shortage);

TEST_P(Shortage, TouchUntilOutOfMemoryThenUnmap) {
  World world(small());
  world.machine.quiesce();
  const std::uint64_t in_use_before = world.machine.memory().in_use;
  Gained gained(world.machine);
  {
    Process p(world, space_under(GetParam()));
    p.map(0, 2 * kFrames, "rw", "pa");
    const long written = write_until_out_of_memory(p, 0, 2 * kFrames);
    EXPECT_GT(written, static_cast<long>(kFrames / 2));
    EXPECT_GE(gained().fault_oom, 1u);

    // Nothing that was there is harmed, and the page that got no frame is still mapped.
    for (long k = 0; k < written; ++k) {
      ASSERT_EQ(p.cpu().load<std::uint64_t>(at(k, 16)).value(),
                0x1000 + static_cast<std::uint64_t>(k));
    }
    EXPECT_STREQ(name(p.cpu().store<std::uint64_t>(at(written, 16), 1)), "OOM");

    // A little room, and it goes on where it stopped.
    EXPECT_EQ(p.dontneed(0, 16), "0");
    EXPECT_EQ(p.w(written, 1), "ok");
    EXPECT_EQ(p.r(16, 16), "10");

    EXPECT_EQ(p.unmap(0, 2 * kFrames), "0");
    EXPECT_EQ(p.vmas(), "");
    p.map(0, 2 * kFrames, "rw", "pa");
    const long again = write_until_out_of_memory(p, 0, 2 * kFrames);
    EXPECT_NEAR(static_cast<double>(again), static_cast<double>(written), 32.0);
    EXPECT_EQ(p.unmap(0, 2 * kFrames), "0");
    p.map(0, 4, "rw", "pa");
    EXPECT_EQ(p.w(0, 1), "ok");
  }
  world.machine.quiesce();
  EXPECT_EQ(world.machine.memory().in_use, in_use_before);
  expect_counters_add_up(gained(), GetParam());
}

TEST_P(Shortage, CopyOnWriteWithoutAFrame) {
  World world(small());
  {
    Process parent(world, space_under(GetParam()));
    parent.map(0, 8, "rw", "pa");
    for (long k = 0; k < 8; ++k) parent.w(k, 0x11);
    Process child = parent.fork();
    parent.map(64, 2 * kFrames, "rw", "pa");
    write_until_out_of_memory(parent, 64, 2 * kFrames);
    world.machine.quiesce();  // frames that were parked somewhere are taken too
    write_until_out_of_memory(parent, 64, 2 * kFrames);
    EXPECT_EQ(child.w(0, 0x22), "OOM");
    EXPECT_EQ(child.r(0), "11");
    EXPECT_EQ(parent.r(0), "11");
    EXPECT_EQ(parent.unmap(64, 2 * kFrames), "0");
    EXPECT_EQ(child.w(0, 0x22), "ok");
    EXPECT_EQ(parent.r(0), "11");
  }
  expect_counters_add_up(world.machine.counters(), GetParam());
}

TEST_P(Shortage, ForkAndFilesInAFullMachine) {
  World world(small());
  TestFile f = world.file(4);
  {
    Process parent(world, space_under(GetParam()));
    parent.map(0, 4, "rw", "sf", f);
    parent.map(64, 2 * kFrames, "rw", "pa");
    write_until_out_of_memory(parent, 64, 2 * kFrames);
    {
      Result<AddressSpace> child = parent.space().fork(parent.cpu());
      if (!child) {
        EXPECT_EQ(child.error(), Errno::enomem);
      }
    }
    EXPECT_EQ(parent.r(64, 16), "00");
    EXPECT_EQ(parent.w(64, 1), "ok");  // shares nothing with a child that is gone
    EXPECT_EQ(parent.unmap(64, 2 * kFrames), "0");
    EXPECT_EQ(parent.r(3), "43");
    EXPECT_EQ(parent.w(3, 0x33), "ok");
    Process child = parent.fork();
    EXPECT_EQ(child.r(3), "33");
  }
  expect_counters_add_up(world.machine.counters(), GetParam());
  EXPECT_TRUE(f.file.sync());
  EXPECT_EQ(f.store->byte(3 * kPage), 0x33u);
}

// ---- laws of the counters -----------------------------------------------------------------------

TEST_P(Faults, CountersAddUpOverAMixOfAccesses) {
  Process& p = *this;
  const TestFile f = file(4);
  Gained gained(machine);
  map(0, 8, "rw", "pa");
  map(8, 2, "r", "pa");
  map(10, 2, "none", "pa");
  map(16, 6, "rw", "sf", f);
  map(24, 6, "rw", "pf", f);
  map(32, 2, "rw", "sa");
  for (long k = -1; k < 36; ++k) {
    (void)p.cpu().load<std::uint8_t>(at(k));
    (void)p.cpu().store<std::uint8_t>(at(k, 1), 1);
  }
  {
    Process child = p.fork();
    for (long k = 0; k < 36; ++k) (void)child.cpu().store<std::uint8_t>(at(k, 1), 2);
    for (long k = 0; k < 36; ++k) (void)p.cpu().store<std::uint8_t>(at(k, 1), 3);
  }
  protect(0, 4, "r");
  EXPECT_EQ(dontneed(0, 32), "ENOMEM");  // there are holes
  for (long k = 0; k < 36; ++k) (void)p.cpu().store<std::uint64_t>(at(k, 2), 4);
  (void)p.cpu().load<std::uint64_t>(at(0, kPage - 4));  // two faults at most
  (void)p.cpu().load<std::uint64_t>(at(19, kPage - 4));

  const Counters c = gained();
  EXPECT_GT(c.minor_faults, 0u);
  EXPECT_GT(c.major_faults, 0u);
  EXPECT_GT(c.fault_signals, 0u);
  EXPECT_GT(c.cow_copies, 0u);
  expect_counters_add_up(c, GetParam());
}

TEST_P(Faults, CountersAddUpWithSeveralThreads) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 60;
  const TestFile f = file(4);
  Gained gained(machine);
  AddressSpace& shared_space = space();
  world().leave();
  std::atomic<int> unexpected{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      SoftCpu mine(machine);
      mine.enter(shared_space);
      const Addr base = at(t * 20);  // neighbours, whose VMAs merge
      for (int round = 0; round < kRounds; ++round) {
        MapRequest request;
        request.address = base;
        request.length = 20 * kPage;
        request.prot = Prot::read | Prot::write;
        request.placement = Placement::fixed;
        if (!shared_space.map(mine, request)) ++unexpected;
        for (std::uint64_t k = 0; k < 20; ++k) {
          const Addr a = base + k * kPage;
          if (k % 2 == 0 && mine.load<std::uint64_t>(a).outcome() != Outcome()) ++unexpected;
          if (!mine.store<std::uint64_t>(a, a)) ++unexpected;
        }
        request.file = f;
        request.shared = round % 2 == 0;
        request.length = 4 * kPage;
        if (!shared_space.map(mine, request)) ++unexpected;
        if (!mine.load<std::uint64_t>(base + 3 * kPage)) ++unexpected;
        if (!mine.store<std::uint64_t>(base + 2 * kPage + 8u * static_cast<unsigned>(t), 1)) {
          ++unexpected;
        }
        if (!shared_space.protect(mine, base, 8 * kPage, Prot::read)) ++unexpected;
        if (mine.store<std::uint64_t>(base + 5 * kPage, 1)) ++unexpected;
        if (!shared_space.unmap(mine, base + 6 * kPage, 6 * kPage)) ++unexpected;
        if (mine.load<std::uint64_t>(base + 7 * kPage)) ++unexpected;
        for (std::uint64_t k = 12; k < 20; ++k) {
          const Addr a = base + k * kPage;
          const Loaded<std::uint64_t> loaded = mine.load<std::uint64_t>(a);
          if (!loaded || loaded.value() != a) ++unexpected;
        }
      }
      mine.leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(unexpected, 0);
  expect_counters_add_up(gained(), GetParam());
}

}  // namespace
}  // namespace faultpath::test
