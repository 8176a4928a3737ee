// Verified cases, group B: where mappings go.
#include "tests/support/arena.h"

namespace faultpath::test {
namespace {

using PlacementCases = ArenaTest;
FP_FOR_ALL_POLICIES(PlacementCases);

TEST_P(PlacementCases, D03FixedOverSeveralVmasAndHoles) {
  map(0, 1, "r", "pa");
  map(1, 1, "rw", "pa");
  map(2, 1, "r", "pa");
  map(3, 1, "rw", "pa");
  w(1, 0x11);
  w(3, 0x33);

  EXPECT_EQ(text(mmap(at(1), 2 * kPage + 5, "rwx", "pa", Placement::fixed)), "A+1P");
  EXPECT_EQ(vmas(), "[0,1)r [1,4)rwx");
  EXPECT_EQ(r(1), "00");
  EXPECT_EQ(r(2), "00");
  EXPECT_EQ(r(3), "00");
  EXPECT_EQ(w(0, 1), "ACCERR");
  EXPECT_EQ(r(4), "MAPERR");

  fresh();
  map(8, 1, "rw", "pa");
  map(10, 1, "rw", "sa");
  map(12, 2, "rw", "pa");
  w(8, 1);
  w(10, 2);
  w(12, 3);
  w(13, 4);

  map(7, 6, "rw", "pa");
  for (long k = 7; k <= 12; ++k) EXPECT_EQ(r(k), "00") << k;
  EXPECT_EQ(r(13), "04");
  EXPECT_EQ(vmas(), "[7,14)rw");
}

TEST_P(PlacementCases, D04AnAddressHintIsNotFixed) {
  map(0, 4, "rw", "pa");
  w(0, 5);
  w(1, 6);

  EXPECT_EQ(text(mmap(at(0), kPage, "rw", "pa")), "elsewhere");
  EXPECT_EQ(r(0), "05");
  EXPECT_EQ(text(mmap(at(-1), 2 * kPage, "rw", "pa")), "elsewhere");  // half of it is taken
  EXPECT_EQ(r(0), "05");
  EXPECT_EQ(text(mmap(at(16), 2 * kPage, "rw", "pa")), "A+16P");
  EXPECT_EQ(text(mmap(at(32) + 123, kPage, "rw", "pa")), "A+32P");
  EXPECT_EQ(text(mmap(Addr{1} << 47, kPage, "rw", "pa")), "elsewhere");
  EXPECT_EQ(r(1), "06");
}

// The second group stacks as the first does. Left out: that its maps start at multiples of 2 MiB,
// which Linux has for the sake of huge pages.
TEST_P(PlacementCases, D05BigMapsOfOddSizeStackAndMerge) {
  const auto stack = [&](std::uint64_t bytes) {
    Addr lowest = ~Addr{0};
    Addr highest = 0;
    for (int i = 0; i < 16; ++i) {
      const Result<Addr> a = mmap(0, bytes, "rw", "pa");
      ASSERT_TRUE(a) << text(a);
      lowest = std::min(lowest, a.value());
      highest = std::max(highest, a.value() + bytes);
    }
    EXPECT_EQ(highest - lowest, 16 * bytes);
    EXPECT_EQ(count(), 1u);
  };
  if (4632 * 1024 % kPage == 0) stack(4632 * 1024);  // not a whole number of pages of 64 KiB
  fresh();
  stack(4 << 20);
}

TEST_P(PlacementCases, D06RangesAcross4GiBAndAtTheTop) {
  constexpr Addr k4GiB = Addr{1} << 32;
  constexpr Addr kTop = Addr{1} << 47;
  ASSERT_TRUE(mmap(k4GiB - kPage, 2 * kPage, "rw", "pa", Placement::fixed));
  EXPECT_EQ(write(k4GiB - kPage, 1), "ok");
  EXPECT_EQ(write(k4GiB, 2), "ok");

  EXPECT_EQ(munmap(0xff000000, 0x2000000), "0");
  EXPECT_EQ(read(k4GiB - kPage), "MAPERR");
  EXPECT_EQ(read(k4GiB), "MAPERR");

  EXPECT_EQ(munmap(kTop - 2 * kPage, 3 * kPage), "EINVAL");
  EXPECT_EQ(munmap(kTop - 2 * kPage, kPage), "0");
  EXPECT_EQ(munmap(kTop, kPage), "EINVAL");
  EXPECT_EQ(munmap(0xffff800000000000, kPage), "EINVAL");

  EXPECT_EQ(mprotect(kTop, kPage, "r"), "ENOMEM");
  EXPECT_EQ(mprotect(0xffff800000000000, kPage, "r"), "ENOMEM");
}

TEST_P(PlacementCases, FixedNoreplaceTakesNothingAway) {
  map(4, 2, "rw", "pa");
  w(4, 0x44);
  const auto try_at = [&](long page, std::uint64_t pages) {
    return text(mmap(at(page), pages * kPage, "r", "pa", Placement::fixed_noreplace));
  };
  EXPECT_EQ(try_at(4, 1), "EEXIST");
  EXPECT_EQ(try_at(3, 2), "EEXIST");
  EXPECT_EQ(try_at(5, 4), "EEXIST");
  EXPECT_EQ(try_at(0, 16), "EEXIST");
  EXPECT_EQ(vmas(), "[4,6)rw");
  EXPECT_EQ(r(4), "44");
  EXPECT_EQ(try_at(2, 2), "A+2P");
  EXPECT_EQ(try_at(6, 1), "A+6P");
  EXPECT_EQ(vmas(), "[2,4)r [4,6)rw [6,7)r");
}

TEST_P(PlacementCases, TopDownBelowTheBase) {
  SpaceOptions options = space_under(GetParam());
  options.mmap_base = at(64);
  fresh(options);
  EXPECT_EQ(text(mmap(0, 2 * kPage, "rw", "pa")), "A+62P");
  EXPECT_EQ(text(mmap(0, kPage, "r", "pa")), "A+61P");
  EXPECT_EQ(text(mmap(0, 3 * kPage, "rw", "pa")), "A+58P");
  unmap(61, 1);
  EXPECT_EQ(text(mmap(0, 2 * kPage, "rw", "pa")), "A+56P");  // the hole is too small
  EXPECT_EQ(text(mmap(0, kPage, "rw", "pa")), "A+61P");
  EXPECT_EQ(vmas(), "[56,64)rw");
}

TEST_P(PlacementCases, NothingBelowTheLowestAddressOrAboveTheTop) {
  SpaceOptions options = space_under(GetParam());
  options.lowest_address = at(10);
  fresh(options);
  EXPECT_EQ(text(mmap(at(9), kPage, "rw", "pa", Placement::fixed)), "EPERM");
  EXPECT_EQ(text(mmap(at(10), kPage, "rw", "pa", Placement::fixed)), "A+10P");
  EXPECT_NE(text(mmap(at(4), kPage, "rw", "pa")), "A+4P");  // a hint moves up or is dropped
  EXPECT_EQ(text(mmap(kUserEnd, kPage, "rw", "pa", Placement::fixed)), "ENOMEM");
  const Result<Addr> last = mmap(kUserEnd - kPage, kPage, "rw", "pa", Placement::fixed);
  ASSERT_TRUE(last) << text(last);
  EXPECT_EQ(write(kUserEnd - 1, 9), "ok");
  EXPECT_EQ(read(kUserEnd - 1), "09");
  EXPECT_EQ(read(kUserEnd), "MAPERR");
  EXPECT_EQ(read(0xffff800000000000), "MAPERR");
}

}  // namespace
}  // namespace faultpath::test
