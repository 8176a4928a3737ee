// Verified cases, group A: arguments.
#include <vector>

#include "tests/support/arena.h"

namespace faultpath::test {
namespace {

using ArgumentCases = ArenaTest;
FP_FOR_ALL_POLICIES(ArgumentCases);

// Left out: mremap and mlock of zero length.
TEST_P(ArgumentCases, D01ZeroLengthInEveryCall) {
  map(0, 4, "rw", "pa");
  w(0, 7);

  EXPECT_EQ(text(mmap(0, 0, "rw", "pa")), "EINVAL");
  EXPECT_EQ(text(mmap(at(8), 0, "rw", "pa", Placement::fixed)), "EINVAL");

  EXPECT_EQ(munmap(at(0), 0), "EINVAL");
  EXPECT_EQ(munmap(at(8), 0), "EINVAL");

  EXPECT_EQ(mprotect(at(0), 0, "none"), "0");
  EXPECT_EQ(mprotect(at(8), 0, "r"), "0");
  EXPECT_EQ(mprotect(at(0) + 1, 0, "r"), "EINVAL");  // alignment comes before the early exit

  EXPECT_EQ(madvise(at(0), 0, Advice::dontneed), "0");
  EXPECT_EQ(madvise(at(8), 0, Advice::dontneed), "0");
  EXPECT_EQ(madvise(at(0), 0, static_cast<Advice>(0xee)), "EINVAL");  // and so does the advice

  EXPECT_EQ(msync(at(0), 0), "0");

  EXPECT_EQ(r(0), "07");
  EXPECT_EQ(vmas(), "[0,4)rw");
}

// Left out: mremap.
TEST_P(ArgumentCases, D02LengthsNear2To64AndAboveTheUserRange) {
  constexpr std::uint64_t kW1 = 0 - kPage;  // these three wrap,
  constexpr std::uint64_t kW2 = ~std::uint64_t{0};
  constexpr std::uint64_t kW3 = 0 - std::uint64_t{256};
  constexpr std::uint64_t kN1 = std::uint64_t{1} << 63;  // and these do not
  constexpr std::uint64_t kN2 = std::uint64_t{1} << 47;
  constexpr std::uint64_t kN3 = kN2 - kPage;
  constexpr std::uint64_t kWrapping[] = {kW1, kW2, kW3};
  constexpr std::uint64_t kOthers[] = {kN1, kN2, kN3};
  constexpr std::uint64_t kAll[] = {kW1, kW2, kW3, kN1, kN2, kN3};

  map(0, 2, "rw", "pa");
  w(0, 9);

  for (const std::uint64_t length : kAll) {
    SCOPED_TRACE(length);
    EXPECT_EQ(text(mmap(0, length, "rw", "pa")), "ENOMEM");
    EXPECT_EQ(text(mmap(at(64), length, "rw", "pa", Placement::fixed)), "ENOMEM");
    EXPECT_EQ(munmap(at(64), length), "EINVAL");
  }

  for (const std::uint64_t length : kWrapping) {
    SCOPED_TRACE(length);
    EXPECT_EQ(mprotect(at(0), length, "r"), "ENOMEM");
    EXPECT_EQ(vmas(), "[0,2)rw");
    EXPECT_EQ(w(0, 9), "ok");
  }
  for (const std::uint64_t length : kOthers) {  // the mapped prefix is changed
    SCOPED_TRACE(length);
    map(0, 2, "rw", "pa");
    w(0, 9);
    EXPECT_EQ(mprotect(at(0), length, "r"), "ENOMEM");
    EXPECT_EQ(vmas(), "[0,2)r");
    EXPECT_EQ(w(0, 9), "ACCERR");
    EXPECT_EQ(r(0), "09");
  }

  for (const std::uint64_t length : kWrapping) {
    SCOPED_TRACE(length);
    EXPECT_EQ(madvise(at(0), length, Advice::normal), "EINVAL");
  }
  for (const std::uint64_t length : kOthers) {
    SCOPED_TRACE(length);
    EXPECT_EQ(madvise(at(0), length, Advice::normal), "ENOMEM");
  }

  const TestFile f = file(1);
  const auto far = [&](std::uint64_t offset, std::uint64_t length) {
    return text(mmap(0, length, "r", "pf", Placement::hint, f, offset));
  };
  EXPECT_EQ(far(kN1 - kPage, 2 * kPage), "EOVERFLOW");
  EXPECT_EQ(far(0 - kPage, kPage), "EOVERFLOW");
}

TEST_P(ArgumentCases, MisalignedAddresses) {
  map(0, 4, "rw", "pa");
  EXPECT_EQ(text(mmap(at(8) + 1, kPage, "rw", "pa", Placement::fixed)), "EINVAL");
  EXPECT_EQ(munmap(at(0) + 1, kPage), "EINVAL");
  EXPECT_EQ(mprotect(at(0) + 1, kPage, "r"), "EINVAL");
  EXPECT_EQ(madvise(at(0) + 1, kPage, Advice::dontneed), "EINVAL");
  EXPECT_EQ(msync(at(0) + 1, kPage), "EINVAL");
  EXPECT_EQ(vmas(), "[0,4)rw");
}

TEST_P(ArgumentCases, LengthsAreRoundedUpToPages) {
  EXPECT_EQ(text(mmap(at(0), 1, "rw", "pa", Placement::fixed)), "A");
  EXPECT_EQ(vmas(), "[0,1)rw");
  map(0, 4, "rw", "pa");
  EXPECT_EQ(mprotect(at(0), kPage + 1, "r"), "0");
  EXPECT_EQ(vmas(), "[0,2)r [2,4)rw");
  EXPECT_EQ(munmap(at(3), 1), "0");
  EXPECT_EQ(vmas(), "[0,2)r [2,3)rw");
}

TEST_P(ArgumentCases, SyncAndAdviceOverHoles) {
  map(0, 1, "rw", "pa");
  map(2, 1, "rw", "pa");
  w(0, 1);
  w(2, 2);
  EXPECT_EQ(sync(0, 1), "0");
  EXPECT_EQ(sync(0, 3), "ENOMEM");
  EXPECT_EQ(sync(8, 1), "ENOMEM");
  EXPECT_EQ(madvise(at(0), kPage, Advice::normal), "0");
  EXPECT_EQ(dontneed(0, 3), "ENOMEM");  // after the mapped parts were dropped
  EXPECT_EQ(r(0), "00");
  EXPECT_EQ(r(2), "00");
}

TEST_P(ArgumentCases, Brk) {
  SpaceOptions options = space_under(GetParam());
  options.brk_start = at(100);
  fresh(options);
  const auto brk = [&](Addr wish) { return text(Result<Addr>(space().brk(cpu(), wish))); };

  EXPECT_EQ(brk(0), "A+100P");
  EXPECT_EQ(info().brk, at(100));
  EXPECT_EQ(vmas(), "");
  EXPECT_EQ(brk(at(102)), "A+102P");
  EXPECT_EQ(vmas(), "[100,102)rw");
  EXPECT_EQ(w(101, 5), "ok");
  EXPECT_EQ(brk(at(102) + 17), "A+102P+17");
  EXPECT_EQ(vmas(), "[100,103)rw");
  EXPECT_EQ(brk(at(99)), "A+102P+17");  // below the start: no
  map(104, 1, "rw", "pa");
  EXPECT_EQ(brk(at(106)), "A+102P+17");  // something is in the way: no
  EXPECT_EQ(brk(at(101)), "A+101P");
  EXPECT_EQ(vmas(), "[100,101)rw [104,105)rw");
  EXPECT_EQ(r(101), "MAPERR");
  EXPECT_EQ(brk(at(102)), "A+102P");
  EXPECT_EQ(r(101), "00");
  EXPECT_EQ(info().brk, at(102));
}

// Bits of PROT_* that do not exist: mmap ignores them, mprotect refuses them.
TEST_P(ArgumentCases, UnknownRights) {
  const auto odd = static_cast<Prot>(8 | 32 | 128);
  const auto mapped = space().map(
      cpu(),
      {.address = at(0), .length = kPage, .prot = Prot::read | odd, .placement = Placement::fixed});
  ASSERT_TRUE(mapped);
  EXPECT_EQ(r(0), "00");
  EXPECT_EQ(name(cpu().store<int>(at(0), 1)), std::string("ACCERR"));
  EXPECT_EQ(maps(), "[0,1)r--p");
  EXPECT_EQ(space().protect(cpu(), at(0), kPage, Prot::write | odd).error(), Errno::einval);
  EXPECT_EQ(maps(), "[0,1)r--p");
}

TEST_P(ArgumentCases, ThingsOfAnotherMachine) {
  auto other = Machine::create({.memory_bytes = std::uint64_t{2} << 20}).value();
  SoftCpu stranger(other);
  EXPECT_EQ(space().map(stranger, {.length = kPage}).error(), Errno::einval);
  stranger.enter(space());
  EXPECT_EQ(stranger.load<int>(at(0)).outcome().reason(), RefusedReason::not_entered);
}

}  // namespace
}  // namespace faultpath::test
