// Small values of the interface: Outcome, Loaded, Copied, Result, Errno, Prot, addresses, counters.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <faultpath/faultpath.h>
#include <gtest/gtest.h>

namespace faultpath {
namespace {

// ---- Outcome ------------------------------------------------------------------------------------

TEST(OutcomeTest, DoneIsTheDefault) {
  constexpr Outcome kDone;
  static_assert(kDone.ok());
  static_assert(!kDone.is_signal());
  static_assert(!kDone.major());
  static_assert(kDone == Outcome::done());
  EXPECT_TRUE(kDone);
  EXPECT_EQ(to_string(kDone), "done");
  EXPECT_TRUE(Outcome::done(true).major());
  EXPECT_EQ(to_string(Outcome::done(true)), "done (major)");
}

TEST(OutcomeTest, Signal) {
  constexpr Outcome kSignal = Outcome::signal(kSigSegv, kSegvAccErr, 0x7ffff7ffe000, Access::write);
  static_assert(!kSignal.ok());
  static_assert(kSignal.is_signal());
  static_assert(kSignal.signal_number() == 11);
  static_assert(kSignal.signal_code() == 2);
  static_assert(kSignal.address() == 0x7ffff7ffe000);
  static_assert(kSignal.access() == Access::write);
  static_assert(kSignal.pkey() == 0);
  EXPECT_FALSE(kSignal);
  EXPECT_EQ(to_string(kSignal), "Signal: SIGSEGV, SEGV_ACCERR, write at 0x7ffff7ffe000");
}

TEST(OutcomeTest, TextOfEachCode) {
  const auto said = [](std::uint8_t number, std::uint8_t code, Access access) {
    return to_string(Outcome::signal(number, code, 0x1000, access));
  };
  EXPECT_EQ(said(kSigSegv, kSegvMapErr, Access::read),
            "Signal: SIGSEGV, SEGV_MAPERR, read at 0x1000");
  EXPECT_EQ(said(kSigSegv, kSegvPkuErr, Access::read),
            "Signal: SIGSEGV, SEGV_PKUERR, read at 0x1000");
  EXPECT_EQ(said(kSigSegv, 0x80, Access::write), "Signal: SIGSEGV, code?, write at 0x1000");
  EXPECT_EQ(said(kSigBus, kBusAdrErr, Access::exec), "Signal: SIGBUS, BUS_ADRERR, exec at 0x1000");
  EXPECT_EQ(said(kSigBus, kBusAdrAln, Access::write),
            "Signal: SIGBUS, BUS_ADRALN, write at 0x1000");
  EXPECT_EQ(said(kSigBus, kBusObjErr, Access::read), "Signal: SIGBUS, BUS_OBJERR, read at 0x1000");
  EXPECT_EQ(said(kSigBus, 0, Access::read), "Signal: SIGBUS, code?, read at 0x1000");
  EXPECT_EQ(said(kSigSegv, kSegvMteSErr, Access::read),
            "Signal: SIGSEGV, SEGV_MTESERR, read at 0x1000");
  EXPECT_EQ(said(kSigKill, kSiKernel, Access::read), "Signal: SIGKILL, SI_KERNEL, read at 0x1000");
}

TEST(OutcomeTest, TextOfTheOthers) {
  EXPECT_EQ(to_string(Outcome::out_of_memory(0xabc000)), "OutOfMemory: at 0xabc000");
  EXPECT_EQ(to_string(Outcome::interrupted()), "Interrupted");
  EXPECT_EQ(to_string(Outcome::refused(RefusedReason::nested, 0x10)),
            "Refused: nested fault, at 0x10");
  EXPECT_EQ(to_string(Outcome::refused(RefusedReason::not_entered, 0x10)),
            "Refused: not inside a space, at 0x10");
}

TEST(OutcomeTest, KindsAndEquality) {
  EXPECT_EQ(Outcome::out_of_memory(1).kind(), Outcome::Kind::out_of_memory);
  EXPECT_EQ(Outcome::interrupted().kind(), Outcome::Kind::interrupted);
  EXPECT_EQ(Outcome::refused(RefusedReason::nested, 1).kind(), Outcome::Kind::refused);
  EXPECT_EQ(Outcome::refused(RefusedReason::nested, 1).reason(), RefusedReason::nested);
  EXPECT_EQ(Outcome().reason(), RefusedReason::none);
  EXPECT_TRUE(Outcome::out_of_memory(1) == Outcome::out_of_memory(1));
  EXPECT_FALSE(Outcome::out_of_memory(1) == Outcome::out_of_memory(2));
  EXPECT_FALSE(Outcome::signal(kSigSegv, kSegvMapErr, 1, Access::read) ==
               Outcome::signal(kSigSegv, kSegvAccErr, 1, Access::read));
  EXPECT_FALSE(Outcome::signal(kSigSegv, kSegvMapErr, 1, Access::read) ==
               Outcome::signal(kSigSegv, kSegvMapErr, 1, Access::write));
}

TEST(OutcomeTest, Accesses) {
  EXPECT_STREQ(to_string(Access::read), "read");
  EXPECT_STREQ(to_string(Access::write), "write");
  EXPECT_STREQ(to_string(Access::exec), "exec");
}

// ---- Loaded and Copied --------------------------------------------------------------------------

TEST(LoadedTest, ValueOrOutcome) {
  constexpr Loaded<int> kValue(7);
  static_assert(kValue.has_value());
  static_assert(kValue.value() == 7);
  static_assert(kValue.outcome().ok());
  const Loaded<int> failed(Outcome::out_of_memory(0x1000));
  EXPECT_FALSE(failed);
  EXPECT_EQ(failed.outcome().kind(), Outcome::Kind::out_of_memory);
}

TEST(LoadedDeathTest, ValueOfAFailureTraps) {
  const Loaded<int> failed(Outcome::interrupted());
  EXPECT_DEATH((void)failed.value(), "");
}

TEST(CopiedTest, Default) {
  const Copied copied;
  EXPECT_TRUE(copied.ok());
  EXPECT_EQ(copied.bytes, 0u);
}

// ---- Result -------------------------------------------------------------------------------------

TEST(ResultTest, ValueOrError) {
  Result<int> good = 5;
  EXPECT_TRUE(good);
  EXPECT_TRUE(good.has_value());
  EXPECT_EQ(good.value(), 5);
  EXPECT_EQ(*good, 5);
  *good = 6;
  EXPECT_EQ(std::as_const(good).value(), 6);
  EXPECT_EQ(std::move(good).value_or(1), 6);

  Result<int> bad = Errno::enomem;
  EXPECT_FALSE(bad);
  EXPECT_EQ(bad.error(), Errno::enomem);
  EXPECT_EQ(std::move(bad).value_or(1), 1);
}

TEST(ResultTest, MovesAndDestroysItsValue) {
  auto alive = std::make_shared<int>(1);
  {
    Result<std::shared_ptr<int>> first = alive;
    EXPECT_EQ(alive.use_count(), 2);
    Result<std::shared_ptr<int>> second = std::move(first);
    EXPECT_EQ(alive.use_count(), 2);
    const std::shared_ptr<int> taken = std::move(second).value();
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(ResultTest, OfAMoveOnlyType) {
  Result<std::unique_ptr<std::string>> result = std::make_unique<std::string>("text");
  EXPECT_EQ(*result.value(), "text");
  EXPECT_EQ((*result)->size(), 4u);
  const std::unique_ptr<std::string> taken = std::move(result).value();
  EXPECT_EQ(*taken, "text");
}

TEST(ResultTest, OfNothing) {
  constexpr Result<void> kGood;
  static_assert(kGood.has_value());
  kGood.value();
  const Result<void> bad = Errno::einval;
  EXPECT_FALSE(bad);
  EXPECT_EQ(bad.error(), Errno::einval);
}

TEST(ResultDeathTest, TheWrongQuestionTraps) {
  Result<int> good = 5;
  Result<int> bad = Errno::eio;
  const Result<void> nothing;
  const Result<void> bad_nothing = Errno::eio;
  EXPECT_DEATH((void)good.error(), "");
  EXPECT_DEATH((void)bad.value(), "");
  EXPECT_DEATH((void)nothing.error(), "");
  EXPECT_DEATH(bad_nothing.value(), "");
}

TEST(ErrnoTest, LinuxsNumbersAndNames) {
  EXPECT_EQ(static_cast<int>(Errno::enoent), 2);
  EXPECT_EQ(static_cast<int>(Errno::enomem), 12);
  EXPECT_EQ(static_cast<int>(Errno::einval), 22);
  EXPECT_EQ(static_cast<int>(Errno::eoverflow), 75);
  EXPECT_STREQ(to_string(Errno::enomem), "ENOMEM");
  EXPECT_STREQ(to_string(Errno::eacces), "EACCES");
  EXPECT_STREQ(to_string(Errno::eoverflow), "EOVERFLOW");
  EXPECT_STREQ(to_string(static_cast<Errno>(9999)), "E?");
}

// ---- rights, addresses, counters ----------------------------------------------------------------

TEST(TypesTest, Rights) {
  constexpr Prot kReadWrite = Prot::read | Prot::write;
  static_assert(has(kReadWrite, Prot::read));
  static_assert(has(kReadWrite, kReadWrite));
  static_assert(!has(Prot::read, kReadWrite));
  static_assert(has(Prot::none, Prot::none));
  static_assert((kReadWrite & Prot::write) == Prot::write);
  static_assert((kReadWrite & Prot::exec) == Prot::none);
}

TEST(TypesTest, Pages) {
  static_assert(page_floor(0) == 0);
  static_assert(page_floor(kPageSize - 1) == 0);
  static_assert(page_floor(kPageSize) == kPageSize);
  static_assert(page_ceil(0) == 0);
  static_assert(page_ceil(1) == kPageSize);
  static_assert(page_ceil(kPageSize) == kPageSize);
  static_assert(page_ceil(kPageSize + 1) == 2 * kPageSize);
  static_assert(kUserEnd % kPageSize == 0);
  static_assert((kPageMask & (kPageSize - 1)) == 0);
}

TEST(CountersTest, NamesAreUniqueAndFieldsAreVisitedInOrder) {
  Counters counters;
  counters.faults = 3;
  counters.spf = 2;
  counters.file_writes = 1;
  std::vector<std::string_view> names;
  std::uint64_t sum = 0;
  std::as_const(counters).for_each([&](std::string_view name, std::uint64_t value) {
    for (std::string_view other : names) EXPECT_NE(name, other);
    names.push_back(name);
    sum += value;
  });
  EXPECT_EQ(names.size(), kCounterCount);
  EXPECT_EQ(names.front(), "faults");
  EXPECT_EQ(names.back(), "file.pages_written");
  EXPECT_EQ(sum, 6u);
  counters.for_each([](std::string_view, std::uint64_t& value) { ++value; });
  EXPECT_EQ(counters.faults, 4u);
  EXPECT_EQ(counters.minor_faults, 1u);
}

TEST(CountersTest, SumsAndDifferences) {
  Counters a;
  a.faults = 5;
  a.minor_faults = 4;
  Counters b;
  b.faults = 2;
  b.major_faults = 1;
  Counters sum = a;
  sum += b;
  EXPECT_EQ(sum.faults, 7u);
  EXPECT_EQ(sum.minor_faults, 4u);
  EXPECT_EQ(sum.major_faults, 1u);
  sum -= a;
  EXPECT_EQ(sum.faults, 2u);
  EXPECT_EQ(sum.minor_faults, 0u);
  EXPECT_EQ(sum.major_faults, 1u);
}

}  // namespace
}  // namespace faultpath
