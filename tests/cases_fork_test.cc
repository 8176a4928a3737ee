// Verified cases of group J: what a fork shares and copies. P is the parent, C1, C2, ... its
// descendants.
#include <optional>

#include "tests/support/arena.h"

namespace faultpath::test {
namespace {

using ForkCases = ArenaTest;
FP_FOR_ALL_POLICIES(ForkCases);

TEST_P(ForkCases, D37ChainedForkWithoutWrites) {
  Process& p = *this;
  p.map(0, 1, "rw", "pa");
  p.w(0, 0x11);
  Process c1 = p.fork();
  Process c2 = c1.fork();

  EXPECT_EQ(c2.w(0, 0xc2), "ok");
  EXPECT_EQ(c2.r(0), "c2");
  EXPECT_EQ(c1.r(0), "11");
  EXPECT_EQ(c1.w(0, 0xc1), "ok");
  EXPECT_EQ(c1.r(0), "c1");
  EXPECT_EQ(p.r(0), "11");
  p.w(0, 0x12);
  Process c3 = p.fork();
  EXPECT_EQ(c3.r(0), "12");
}

// Left out: mlock of C1's page 0 before its fork; C1 forks without it.
TEST_P(ForkCases, D38TheChildTakesThePrivateCopy) {
  Process& p = *this;
  TestFile f = file(3);
  p.map(0, 3, "rw", "pf", f);
  p.w(0, 0xaa);
  Process c1 = p.fork();
  Process c2 = c1.fork();
  EXPECT_EQ(c2.r(0), "aa");
  EXPECT_EQ(c2.r(1), "41");
  EXPECT_EQ(c2.r(2), "42");

  c1.w(0, 0x33);
  Process c3 = c1.fork();
  EXPECT_EQ(c3.r(0), "33");

  const std::uint8_t written[] = {0x99, 0x98};
  ASSERT_EQ(f.file.write_at(0, &written[0], 1).value(), 1u);
  ASSERT_EQ(f.file.write_at(kPage, &written[1], 1).value(), 1u);
  Process c4 = p.fork();
  EXPECT_EQ(c4.r(0), "aa");
  EXPECT_EQ(c4.r(1), "98");
}

TEST_P(ForkCases, D39FileMappingsStayFileMappingsInTheChild) {
  Process& p = *this;
  std::optional<TestFile> f = file(4);
  MemoryStore& store = *f->store;
  p.map(0, 4, "r", "pf", *f);
  p.map(8, 4, "rw", "sf", *f);
  f.reset();
  Process child = p.fork();

  EXPECT_EQ(child.r(0), "40");
  EXPECT_EQ(child.r(1), "41");
  EXPECT_EQ(child.r(2), "42");
  EXPECT_EQ(child.r(3), "43");
  EXPECT_EQ(child.r(8), "40");
  EXPECT_EQ(child.r(9), "41");
  EXPECT_EQ(child.r(10), "42");
  EXPECT_EQ(child.r(11), "43");
  EXPECT_EQ(child.w(9, 0x66), "ok");

  EXPECT_EQ(p.r(9), "66");
  child.exit();
  EXPECT_EQ(p.r(0), "40");
  EXPECT_EQ(p.r(1), "66");  // page 1 was not copied, so the shared store shows
  EXPECT_EQ(p.r(2), "42");
  EXPECT_EQ(p.r(3), "43");

  machine.quiesce();
  EXPECT_EQ(store.closes, 0);
  p.exit();
  machine.quiesce();
  EXPECT_EQ(store.closes, 1);
  EXPECT_EQ(store.byte(kPage), 0x66u);
  fresh();
}

TEST_P(ForkCases, SharedAnonymousMemoryStaysShared) {
  Process& p = *this;
  p.map(0, 2, "rw", "sa");
  p.w(0, 1);
  Process child = p.fork();
  EXPECT_EQ(child.r(0), "01");
  child.w(0, 2);
  child.w(1, 3);  // touched by nobody before the fork
  EXPECT_EQ(p.r(0), "02");
  EXPECT_EQ(p.r(1), "03");
  child.exit();
  EXPECT_EQ(p.r(1), "03");
}

TEST_P(ForkCases, TheChildHasTheSameVmasAndItsOwnOnesFromThenOn) {
  Process& p = *this;
  const TestFile f = file(4);
  p.map(0, 2, "rw", "pa");
  p.map(4, 1, "none", "pa");
  p.map(6, 2, "r", "sf", f, 2 * kPage);
  Process child = p.fork();
  EXPECT_EQ(child.vmas_at_offsets(), "[0,2)rw@0 [4,5)none@0 [6,8)r@2");
  EXPECT_EQ(child.maps(), p.maps());
  EXPECT_EQ(child.space().policy(), p.space().policy());

  child.unmap(0, 1);
  p.protect(4, 1, "r");
  EXPECT_EQ(child.vmas(), "[1,2)rw [4,5)none [6,8)r");
  EXPECT_EQ(p.vmas(), "[0,2)rw [4,5)r [6,8)r");
  EXPECT_EQ(child.r(0), "MAPERR");
  EXPECT_EQ(p.r(0), "00");
}

TEST_P(ForkCases, TheChildHasTheParentsLimits) {
  Process& p = *this;
  fresh_with_limit(3);
  p.map(0, 1, "rw", "pa");
  p.map(2, 1, "rw", "pa");
  p.map(4, 1, "rw", "pa");
  p.map(6, 1, "rw", "pa");
  Process child = p.fork();
  EXPECT_EQ(child.count(), 4u);
  EXPECT_EQ(child.map(8, 1, "rw", "pa"), "ENOMEM");
}

}  // namespace
}  // namespace faultpath::test
