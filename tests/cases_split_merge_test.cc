// Verified cases, group C: VMAs that split and merge.
#include "tests/support/arena.h"

namespace faultpath::test {
namespace {

using SplitMergeCases = ArenaTest;
FP_FOR_ALL_POLICIES(SplitMergeCases);

TEST_P(SplitMergeCases, D07PartialMiddleAndMultiVmaUnmap) {
  map(0, 2, "rw", "pa");
  map(3, 1, "r", "pa");
  map(5, 3, "rw", "sa");
  w(0, 1);
  w(1, 2);
  w(7, 3);

  EXPECT_EQ(unmap(1, 6), "0");
  EXPECT_EQ(maps(), "[0,1)rw-p [7,8)rw-s");
  EXPECT_EQ(r(0), "01");
  EXPECT_EQ(r(1), "MAPERR");
  EXPECT_EQ(r(7), "03");

  EXPECT_EQ(unmap(100, 4), "0");
}

TEST_P(SplitMergeCases, D08FileOffsetAfterASplitAndAfterRefillingTheHole) {
  TestFile f = file(8);
  map(0, 8, "r", "sf", f);
  unmap(3, 2);
  EXPECT_EQ(vmas_at_offsets(), "[0,3)r@0 [5,8)r@5");

  EXPECT_EQ(r(0), "40");
  EXPECT_EQ(r(2), "42");
  EXPECT_EQ(r(5), "45");
  EXPECT_EQ(r(7), "47");
  map(3, 2, "r", "sf", f, 3 * kPage);
  EXPECT_EQ(vmas_at_offsets(), "[0,8)r@0");
  EXPECT_EQ(r(3), "43");

  unmap(3, 2);
  map(3, 2, "r", "sf", f, 0);
  EXPECT_EQ(r(3), "40");
  EXPECT_EQ(vmas_at_offsets(), "[0,3)r@0 [3,5)r@0 [5,8)r@5");

  protect(6, 1, "rw");
  w(6, 0xee);
  std::uint8_t byte = 0;
  ASSERT_EQ(f.file.read_at(6 * kPage, &byte, 1).value(), 1u);
  EXPECT_EQ(byte, 0xee);
  EXPECT_EQ(vmas_at_offsets(), "[0,3)r@0 [3,5)r@0 [5,6)r@5 [6,7)rw@6 [7,8)r@7");
}

constexpr std::uint32_t kLimit = 65;  // odd: alternating pages reach it exactly

/// Brings a space to its limit of VMAs: pages 1, 3, ... of a large mapping become read-only.
/// Returns the first page of what is left of it; it ends at page 4096.
template <class Arena>
long fill_to_limit(Arena& arena) {
  arena.map(0, 4096, "rw", "pa");
  long page = 1;
  while (arena.count() < kLimit) {
    arena.protect(page, 1, "r");
    page += 2;
  }
  EXPECT_EQ(arena.protect(page, 1, "r"), "ENOMEM");
  EXPECT_EQ(arena.count(), kLimit);
  return page - 1;
}

TEST_P(SplitMergeCases, D09LimitOfVmasUnmapInTheMiddleCanFail) {
  fresh_with_limit(kLimit);
  const long first = fill_to_limit(static_cast<Process&>(*this));
  constexpr long kEnd = 4096;
  constexpr long kMiddle = 1000;
  w(kMiddle, 0x5a);

  EXPECT_EQ(unmap(kMiddle, 1), "ENOMEM");
  EXPECT_EQ(r(kMiddle), "5a");

  EXPECT_EQ(unmap(kEnd - 1, 1), "0");  // trims need no VMA
  EXPECT_EQ(unmap(first, 1), "0");
  EXPECT_EQ(count(), kLimit);

  EXPECT_EQ(protect(kMiddle, 1, "r"), "ENOMEM");
  EXPECT_EQ(protect(first + 1, 1, "r"), "ENOMEM");
  EXPECT_EQ(w(kMiddle, 1), "ok");
  EXPECT_EQ(w(first + 1, 1), "ok");

  EXPECT_EQ(protect(1, 1, "none"), "0");
  EXPECT_EQ(count(), kLimit);

  fresh_with_limit(kLimit);
  fill_to_limit(static_cast<Process&>(*this));
  EXPECT_EQ(map(5000, 1, "rw", "pa"), "ok");  // the check is count > limit
  EXPECT_EQ(count(), kLimit + 1);
  EXPECT_EQ(map(5002, 1, "rw", "pa"), "ENOMEM");
  EXPECT_EQ(count(), kLimit + 1);
}

// Left out: DONTFORK and DOFORK, SEQUENTIAL and NORMAL, mlock and munlock in the second part.
TEST_P(SplitMergeCases, D10FragmentationByProtectionAndHealing) {
  map(0, 16, "rw", "pa");
  for (long k = 0; k < 16; ++k) w(k, static_cast<unsigned>(k));
  EXPECT_EQ(count(), 1u);
  for (long k = 0; k < 16; k += 2) protect(k, 1, "none");
  EXPECT_EQ(count(), 16u);
  for (long k = 0; k < 16; k += 2) protect(k, 1, "rw");
  EXPECT_EQ(count(), 1u);
  for (long k = 0; k < 16; ++k) EXPECT_EQ(r(k), hex(static_cast<unsigned>(k)));

  fresh();
  map(0, 4, "rw", "pa");
  EXPECT_EQ(protect(1, 1, "rw"), "0");
  EXPECT_EQ(count(), 1u);
  EXPECT_EQ(madvise(at(1), kPage, Advice::normal), "0");
  EXPECT_EQ(count(), 1u);
  EXPECT_EQ(dontneed(1, 1), "0");
  EXPECT_EQ(count(), 1u);

  fresh();
  map(0, 4, "rw", "pa");
  for (long k = 0; k < 4; ++k) w(k, 0x10 + static_cast<unsigned>(k));
  unmap(1, 1);
  EXPECT_EQ(count(), 2u);
  map(1, 1, "rw", "pa");
  EXPECT_EQ(count(), 1u);
  EXPECT_EQ(r(0), "10");
  EXPECT_EQ(r(1), "00");
  EXPECT_EQ(r(2), "12");
  EXPECT_EQ(r(3), "13");
}

TEST_P(SplitMergeCases, GrowingDownwardsPageByPage) {
  const TestFile f = file(8);
  for (std::uint64_t k = 8; k-- > 0;) {
    map(static_cast<long>(k), 1, "r", "sf", f, k * kPage);
    map(static_cast<long>(k) + 16, 1, "rw", "pa");
    w(static_cast<long>(k) + 16, static_cast<unsigned>(k));
  }
  EXPECT_EQ(vmas_at_offsets(), "[0,8)r@0 [16,24)rw@0");
  for (long k = 0; k < 8; ++k) {
    EXPECT_EQ(r(k), hex(0x40 + static_cast<unsigned>(k)));
    EXPECT_EQ(r(k + 16), hex(static_cast<unsigned>(k)));
  }
}

TEST_P(SplitMergeCases, ReplacingAPartByItsLike) {
  const TestFile f = file(8);
  map(0, 8, "rw", "sf", f);
  map(16, 8, "rw", "pa");
  for (long k = 16; k < 24; ++k) w(k, 0x55);
  for (const long k : {3L, 0L, 7L}) {  // the middle, the start, the end
    map(k, 1, "rw", "sf", f, static_cast<std::uint64_t>(k) * kPage);
    map(k + 16, 1, "rw", "pa");
    EXPECT_EQ(r(k), hex(0x40 + static_cast<unsigned>(k)));
    EXPECT_EQ(r(k + 16), "00");
    EXPECT_EQ(vmas_at_offsets(), "[0,8)rw@0 [16,24)rw@0");
  }
  map(0, 8, "rw", "sf", f);
  map(16, 8, "rw", "pa");
  EXPECT_EQ(vmas_at_offsets(), "[0,8)rw@0 [16,24)rw@0");
  for (long k = 16; k < 24; ++k) EXPECT_EQ(r(k), "00");
}

TEST_P(SplitMergeCases, OnlyEqualNeighboursMerge) {
  const TestFile f = file(4);
  const TestFile g = file(4);
  map(0, 1, "rw", "pa");
  map(1, 1, "r", "pa");                // other rights
  map(2, 1, "r", "pf", f, 0);          // a file beside none
  map(3, 1, "r", "pf", f, kPage);      // the file goes on: merges
  map(4, 1, "r", "pf", f, 3 * kPage);  // not where it goes on
  map(5, 1, "r", "pf", g, 0);          // another file
  map(6, 1, "r", "sf", g, kPage);      // shared beside private
  EXPECT_EQ(vmas_at_offsets(), "[0,1)rw@0 [1,2)r@0 [2,4)r@0 [4,5)r@3 [5,6)r@0 [6,7)r@1");
  EXPECT_EQ(r(3), "41");
  EXPECT_EQ(r(4), "43");
}

}  // namespace
}  // namespace faultpath::test
