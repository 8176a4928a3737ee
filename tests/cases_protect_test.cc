// Verified cases, group D: changes of protection.
#include "tests/support/arena.h"

namespace faultpath::test {
namespace {

using ProtectCases = ArenaTest;
FP_FOR_ALL_POLICIES(ProtectCases);

TEST_P(ProtectCases, D11HoleInTheRangePrefixIsChanged) {
  map(0, 2, "rw", "pa");
  map(3, 1, "rw", "pa");

  EXPECT_EQ(protect(0, 4, "r"), "ENOMEM");
  EXPECT_EQ(vmas(), "[0,2)r [3,4)rw");
  EXPECT_EQ(w(0, 1), "ACCERR");
  EXPECT_EQ(w(1, 1), "ACCERR");
  EXPECT_EQ(w(3, 1), "ok");

  EXPECT_EQ(protect(2, 2, "none"), "ENOMEM");
  EXPECT_EQ(vmas(), "[0,2)r [3,4)rw");
}

TEST_P(ProtectCases, D12VmasThatMergeWhileTheCallIterates) {
  map(0, 2, "rw", "pa");
  w(0, 1);
  w(1, 2);
  protect(1, 1, "r");
  EXPECT_EQ(protect(0, 2, "r"), "0");
  EXPECT_EQ(vmas(), "[0,2)r");
  EXPECT_EQ(r(0), "01");
  EXPECT_EQ(r(1), "02");
  EXPECT_EQ(w(0, 1), "ACCERR");

  fresh();
  map(8, 6, "rw", "pa");
  for (long k = 8; k < 14; ++k) w(k, static_cast<unsigned>(k - 8));
  protect(9, 1, "r");
  protect(11, 1, "none");
  protect(13, 1, "rx");
  EXPECT_EQ(count(), 6u);
  EXPECT_EQ(protect(8, 6, "rw"), "0");
  EXPECT_EQ(count(), 1u);
  for (long k = 8; k < 14; ++k) {
    EXPECT_EQ(r(k), hex(static_cast<unsigned>(k - 8)));
    EXPECT_EQ(w(k, 1), "ok");
  }
}

TEST_P(ProtectCases, D13NoAccessMeansNoAccessAndContentSurvives) {
  map(0, 3, "rw", "pa");
  w(0, 0x5a);
  protect(0, 1, "none");
  EXPECT_EQ(r(0), "ACCERR");
  EXPECT_EQ(w(0, 1), "ACCERR");

  protect(0, 1, "rw");
  EXPECT_EQ(r(0), "5a");
  protect(0, 1, "r");
  EXPECT_EQ(r(0), "5a");
  EXPECT_EQ(w(0, 1), "ACCERR");

  unmap(2, 1);
  EXPECT_EQ(r(2), "MAPERR");
  EXPECT_EQ(w(2, 1), "MAPERR");

  map(4, 1, "none", "pa");
  EXPECT_EQ(r(4), "ACCERR");
  for (int i = 0; i < 100; ++i) {
    const Result<Addr> a = mmap(0, kPage, "rw", "pa");
    ASSERT_TRUE(a) << text(a);
    EXPECT_NE(a.value(), at(4));
  }
  protect(4, 1, "rw");
  EXPECT_EQ(r(4), "00");

  // System calls' accesses.
  protect(4, 1, "none");
  std::uint8_t byte = 0x77;
  const Copied in = cpu().copy_in(&byte, at(4), 1);
  EXPECT_EQ(in.bytes, 0u);
  EXPECT_STREQ(name(in.outcome), "ACCERR");
  EXPECT_EQ(byte, 0x77);
  const Copied out = cpu().copy_out(at(0), &byte, 1);
  EXPECT_EQ(out.bytes, 0u);
  EXPECT_STREQ(name(out.outcome), "ACCERR");
  EXPECT_EQ(r(0), "5a");
}

TEST_P(ProtectCases, D14SplitRefusedAtTheLimitLeavesProtections) {
  constexpr std::uint32_t kLimit = 65;
  fresh_with_limit(kLimit);
  map(0, 4096, "rw", "pa");
  for (long k = 1; count() < kLimit; k += 2) protect(k, 1, "r");
  constexpr long kMiddle = 1000;

  EXPECT_EQ(protect(kMiddle, 1, "r"), "ENOMEM");
  EXPECT_EQ(w(kMiddle, 1), "ok");
  EXPECT_EQ(count(), kLimit);

  EXPECT_EQ(protect(5, 1, "none"), "0");
  EXPECT_EQ(r(5), "ACCERR");
  EXPECT_EQ(count(), kLimit);

  EXPECT_EQ(protect(5, 1, "rw"), "0");  // as its neighbours are
  EXPECT_EQ(w(5, 1), "ok");
  EXPECT_EQ(count(), kLimit - 2);
}

TEST_P(ProtectCases, WideningRightsOfWrittenReadOnlyAndUntouchedPages) {
  map(0, 3, "r", "pa");
  EXPECT_EQ(r(0), "00");
  protect(0, 3, "rw");
  EXPECT_EQ(w(0, 1), "ok");  // held the zero page
  EXPECT_EQ(w(1, 2), "ok");
  EXPECT_EQ(r(0), "01");
  EXPECT_EQ(r(0, 1), "00");
  protect(0, 3, "r");
  protect(0, 3, "rw");
  EXPECT_EQ(w(0, 3), "ok");
  EXPECT_EQ(r(0), "03");
  EXPECT_EQ(r(1), "02");
  EXPECT_EQ(r(2), "00");
}

}  // namespace
}  // namespace faultpath::test
