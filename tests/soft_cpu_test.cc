// SoftCpu: widths, alignment, read-modify-write, bulk copies, context switches, and that no
// translation outlives the call that took it away.
#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <type_traits>
#include <vector>

#include "tests/support/arena.h"

namespace faultpath::test {
namespace {

using SoftCpuTest = ArenaTest;
FP_FOR_ALL_POLICIES(SoftCpuTest);

template <class T>
T pattern(unsigned seed) {
  unsigned char bytes[sizeof(T)];
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    bytes[i] = static_cast<unsigned char>(0x21 + seed * 16 + i);
  }
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

template <class T>
void expect_same_bytes(const Loaded<T>& loaded, T expected) {
  ASSERT_TRUE(loaded) << name(loaded.outcome());
  const T value = loaded.value();
  EXPECT_EQ(std::memcmp(&value, &expected, sizeof(T)), 0);
}

/// Stores and loads at every offset from 24 bytes before the end of page 0 to 24 bytes after it.
template <class T>
void all_offsets(SoftCpu& cpu) {
  for (int offset = -24; offset < 24; ++offset) {
    SCOPED_TRACE("width " + std::to_string(sizeof(T)) + ", offset " + std::to_string(offset));
    const Addr a = at(1) + static_cast<Addr>(offset);
    const std::vector<std::uint8_t> filler(64, 0xee);
    ASSERT_TRUE(cpu.copy_out(at(1) - 32, filler.data(), 64).ok());
    const T value = pattern<T>(1);
    ASSERT_TRUE(cpu.store<T>(a, value));
    expect_same_bytes<T>(cpu.load<T>(a), value);
    std::vector<std::uint8_t> around(64);
    ASSERT_TRUE(cpu.copy_in(around.data(), at(1) - 32, 64).ok());
    std::vector<std::uint8_t> expected = filler;
    std::memcpy(expected.data() + 32 + offset, &value, sizeof value);
    EXPECT_EQ(around, expected);
  }
}

struct Vec2 {
  float x;
  float y;
};

TEST_P(SoftCpuTest, AllWidthsAtAllOffsets) {
  map(0, 2, "rw", "pa");
  all_offsets<std::uint8_t>(cpu());
  all_offsets<std::uint16_t>(cpu());
  all_offsets<std::uint32_t>(cpu());
  all_offsets<std::uint64_t>(cpu());
  all_offsets<float>(cpu());
  all_offsets<double>(cpu());
  all_offsets<Vec2>(cpu());
}

TEST_P(SoftCpuTest, ByteOrderIsTheHosts) {
  map(0, 1, "rw", "pa");
  ASSERT_TRUE(cpu().store<std::uint32_t>(at(0, 4), 0x44332211));
  const std::uint32_t value = 0x44332211;
  std::uint8_t bytes[4];
  std::memcpy(bytes, &value, 4);
  for (std::uint64_t i = 0; i < 4; ++i) EXPECT_EQ(r(0, 4 + i), hex(bytes[i]));
}

TEST_P(SoftCpuTest, CrossingIntoAnUnmappedPageWritesNothing) {
  map(0, 1, "rw", "pa");
  for (std::uint64_t i = 1; i < 8; ++i) w(0, 0xee, kPage - i);
  for (std::uint64_t inside = 1; inside < 8; ++inside) {
    SCOPED_TRACE(inside);
    const Outcome stored = cpu().store<std::uint64_t>(at(1) - inside, 0x1111111111111111);
    EXPECT_STREQ(name(stored), "MAPERR");
    EXPECT_EQ(page_floor(stored.address()), at(1));
    EXPECT_EQ(to_string(stored.access()), std::string("write"));
    const Loaded<std::uint64_t> loaded = cpu().load<std::uint64_t>(at(1) - inside);
    EXPECT_STREQ(name(loaded.outcome()), "MAPERR");
    EXPECT_EQ(page_floor(loaded.outcome().address()), at(1));
    for (std::uint64_t i = 1; i < 8; ++i) EXPECT_EQ(r(0, kPage - i), "ee");
  }
}

TEST_P(SoftCpuTest, CrossingFromAnUnmappedPageWritesNothing) {
  map(1, 1, "rw", "pa");
  w(1, 0xee);
  const Outcome stored = cpu().store<std::uint32_t>(at(1) - 2, 0x11111111);
  EXPECT_STREQ(name(stored), "MAPERR");
  EXPECT_EQ(stored.address(), at(1) - 2);
  EXPECT_EQ(r(1), "ee");
}

TEST_P(SoftCpuTest, CrossingIntoAReadOnlyPage) {
  map(0, 2, "rw", "pa");
  w(0, 0xee, kPage - 1);
  w(1, 0xdd);
  protect(1, 1, "r");
  const Outcome stored = cpu().store<std::uint16_t>(at(1) - 1, 0x1111);
  EXPECT_STREQ(name(stored), "ACCERR");
  EXPECT_EQ(page_floor(stored.address()), at(1));
  EXPECT_EQ(r(0, kPage - 1), "ee");
  EXPECT_EQ(r(1), "dd");
  const std::uint8_t bytes[] = {0xee, 0xdd};
  std::uint16_t expected;
  std::memcpy(&expected, bytes, 2);
  expect_same_bytes<std::uint16_t>(cpu().load<std::uint16_t>(at(1) - 1), expected);
}

// ---- read-modify-write --------------------------------------------------------------------------

template <class T>
void read_modify_write(SoftCpu& cpu) {
  SCOPED_TRACE("width " + std::to_string(sizeof(T)));
  const Addr a = at(0, 64);
  const T first = static_cast<T>(0x1122334455667781);
  const T second = static_cast<T>(0x0f1e2d3c4b5a6978);
  ASSERT_TRUE(cpu.store<std::uint64_t>(a, ~std::uint64_t{0}));
  ASSERT_TRUE(cpu.store<std::uint64_t>(a + 8, ~std::uint64_t{0}));

  EXPECT_EQ(cpu.exchange<T>(a, first).value(), static_cast<T>(~T{0}));
  EXPECT_EQ(cpu.compare_exchange<T>(a, second, second).value(), first);  // not equal: stays
  EXPECT_EQ(cpu.load<T>(a).value(), first);
  EXPECT_EQ(cpu.compare_exchange<T>(a, first, second).value(), first);
  EXPECT_EQ(cpu.load<T>(a).value(), second);
  EXPECT_EQ(cpu.fetch_add<T>(a, first).value(), second);
  const T sum =
      static_cast<T>(static_cast<std::uint64_t>(second) + static_cast<std::uint64_t>(first));
  EXPECT_EQ(cpu.fetch_and<T>(a, first).value(), sum);
  const T both = static_cast<T>(sum & first);
  EXPECT_EQ(cpu.fetch_or<T>(a, second).value(), both);
  const T either = static_cast<T>(both | second);
  EXPECT_EQ(cpu.fetch_xor<T>(a, first).value(), either);
  EXPECT_EQ(cpu.load<T>(a).value(), static_cast<T>(either ^ first));

  // Its neighbours were not touched.
  for (std::uint64_t i = sizeof(T); i < 16; ++i) {
    EXPECT_EQ(cpu.load<std::uint8_t>(a + i).value(), 0xff) << i;
  }
}

TEST_P(SoftCpuTest, ReadModifyWriteOfAllWidths) {
  map(0, 1, "rw", "pa");
  read_modify_write<std::uint8_t>(cpu());
  read_modify_write<std::uint16_t>(cpu());
  read_modify_write<std::uint32_t>(cpu());
  read_modify_write<std::uint64_t>(cpu());
  read_modify_write<std::int32_t>(cpu());
  read_modify_write<std::int64_t>(cpu());
}

TEST_P(SoftCpuTest, ReadModifyWriteFaultsAsAWrite) {
  map(0, 1, "rw", "pa");
  map(1, 1, "r", "pa");
  EXPECT_EQ(cpu().fetch_add<std::uint32_t>(at(0), 5).value(), 0u);  // first touch
  EXPECT_EQ(cpu().load<std::uint32_t>(at(0)).value(), 5u);

  // The right to write is needed even where nothing would be replaced.
  EXPECT_EQ(cpu().compare_exchange<std::uint32_t>(at(1), 1, 2).outcome(),
            Outcome::signal(kSigSegv, kSegvAccErr, at(1), Access::write));
  EXPECT_EQ(cpu().fetch_or<std::uint8_t>(at(2), 0).outcome(),
            Outcome::signal(kSigSegv, kSegvMapErr, at(2), Access::write));
  EXPECT_EQ(cpu().exchange<std::uint64_t>(at(2), 0).outcome(),
            Outcome::signal(kSigSegv, kSegvMapErr, at(2), Access::write));
}

TEST_P(SoftCpuTest, ReadModifyWriteAcrossAPageIsABusError) {
  map(0, 2, "rw", "pa");
  const auto expected = [](Addr a) {
    return Outcome::signal(kSigBus, kBusAdrAln, a, Access::write);
  };
  const Addr a = at(1) - 4;
  EXPECT_EQ(cpu().compare_exchange<std::uint64_t>(a, 0, 1).outcome(), expected(a));
  EXPECT_EQ(cpu().exchange<std::uint64_t>(a, 1).outcome(), expected(a));
  EXPECT_EQ(cpu().fetch_add<std::uint64_t>(a, 1).outcome(), expected(a));
  EXPECT_EQ(cpu().fetch_and<std::uint64_t>(a, 1).outcome(), expected(a));
  EXPECT_EQ(cpu().fetch_or<std::uint64_t>(a, 1).outcome(), expected(a));
  EXPECT_EQ(cpu().fetch_xor<std::uint64_t>(a, 1).outcome(), expected(a));
  EXPECT_EQ(cpu().fetch_add<std::uint32_t>(at(1) - 1, 1).outcome(), expected(at(1) - 1));
  EXPECT_STREQ(name(expected(a)), "BUS_ADRALN");
  EXPECT_EQ(cpu().load<std::uint64_t>(a).value(), 0u);
  EXPECT_EQ(cpu().fetch_add<std::uint32_t>(a, 1).value(), 0u);  // ends with the page: no crossing
}

TEST_P(SoftCpuTest, CompareExchangeOf16Bytes) {
  map(0, 1, "rw", "pa");
  map(1, 1, "r", "pa");
  const GuestPair zero{};
  const GuestPair one{.low = 0x1111111111111111, .high = 0x2222222222222222};
  const GuestPair two{.low = 0x3333333333333333, .high = 0x4444444444444444};
  const GuestPair half{.low = one.low, .high = 0};
  const Addr a = at(0, kPage - 16);
  EXPECT_TRUE(cpu().compare_exchange(a, zero, one).value() == zero);
  EXPECT_EQ(cpu().load<std::uint64_t>(a).value(), one.low);
  EXPECT_EQ(cpu().load<std::uint64_t>(a + 8).value(), one.high);
  EXPECT_TRUE(cpu().compare_exchange(a, half, two).value() == one);  // half of it is not enough
  EXPECT_EQ(cpu().load<std::uint64_t>(a).value(), one.low);
  EXPECT_TRUE(cpu().compare_exchange(a, one, two).value() == one);
  EXPECT_EQ(cpu().load<std::uint64_t>(a).value(), two.low);
  EXPECT_EQ(cpu().load<std::uint64_t>(a + 8).value(), two.high);

  const Loaded<GuestPair> skewed = cpu().compare_exchange(at(0, 8), zero, one);
  ASSERT_FALSE(skewed);
  EXPECT_TRUE(skewed.outcome().is_signal());
  EXPECT_EQ(skewed.outcome().signal_number(), kSigSegv);
  EXPECT_EQ(cpu().load<std::uint64_t>(at(0, 8)).value(), 0u);
  EXPECT_STREQ(name(cpu().compare_exchange(at(1), one, two).outcome()), "ACCERR");
  EXPECT_STREQ(name(cpu().compare_exchange(at(2), one, two).outcome()), "MAPERR");
}

// Atomic across threads: increments are not lost, pairs are not torn.
TEST_P(SoftCpuTest, ReadModifyWriteOfManyThreads) {
  constexpr int kThreads = 4;
  constexpr std::uint64_t kRounds = 5000;
  map(0, 1, "rw", "pa");
  AddressSpace& shared_space = space();
  world().leave();
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      SoftCpu mine(machine);
      mine.enter(shared_space);
      for (std::uint64_t i = 0; i < kRounds; ++i) {
        (void)mine.fetch_add<std::uint64_t>(at(0), 1);
        for (std::uint32_t seen = mine.load<std::uint32_t>(at(0, 8)).value();;) {
          const std::uint32_t was =
              mine.compare_exchange<std::uint32_t>(at(0, 8), seen, seen + 1).value();
          if (was == seen) break;
          seen = was;
        }
        for (GuestPair seen{};;) {
          const GuestPair was =
              mine.compare_exchange(at(0, 16), seen, {seen.low + 1, seen.high + 2}).value();
          if (was == seen) break;
          seen = was;
        }
      }
      mine.leave();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cpu().load<std::uint64_t>(at(0)).value(), kThreads * kRounds);
  EXPECT_EQ(cpu().load<std::uint32_t>(at(0, 8)).value(), kThreads * kRounds);
  EXPECT_EQ(cpu().load<std::uint64_t>(at(0, 16)).value(), kThreads * kRounds);
  EXPECT_EQ(cpu().load<std::uint64_t>(at(0, 24)).value(), 2 * kThreads * kRounds);
}

// ---- bulk copies --------------------------------------------------------------------------------

TEST_P(SoftCpuTest, CopiesStopExactlyAtAHole) {
  map(0, 2, "rw", "pa");
  map(3, 1, "rw", "pa");
  std::vector<std::uint8_t> out(4 * kPage);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint8_t>(i * 13 + 1);

  const Copied written = cpu().copy_out(at(0, kPage / 2 + 3), out.data(), 3 * kPage);
  EXPECT_EQ(written.bytes, kPage + kPage / 2 - 3);
  EXPECT_FALSE(written.ok());
  EXPECT_EQ(written.outcome, Outcome::signal(kSigSegv, kSegvMapErr, at(2), Access::write));

  std::vector<std::uint8_t> in(4 * kPage, 0xcd);
  const Copied read = cpu().copy_in(in.data(), at(0, kPage / 2 + 3), 3 * kPage);
  EXPECT_EQ(read.bytes, kPage + kPage / 2 - 3);
  EXPECT_EQ(read.outcome, Outcome::signal(kSigSegv, kSegvMapErr, at(2), Access::read));
  EXPECT_EQ(std::memcmp(in.data(), out.data(), read.bytes), 0);
  EXPECT_EQ(in[read.bytes], 0xcd);
  EXPECT_EQ(r(0, kPage / 2 + 2), "00");
  EXPECT_EQ(r(3), "00");

  const Copied none = cpu().copy_in(in.data(), at(2, 5), 10);
  EXPECT_EQ(none.bytes, 0u);
  EXPECT_EQ(none.outcome, Outcome::signal(kSigSegv, kSegvMapErr, at(2, 5), Access::read));
  const Copied nothing = cpu().copy_out(at(2, 5), out.data(), 0);
  EXPECT_EQ(nothing.bytes, 0u);
  EXPECT_TRUE(nothing.ok());
}

TEST_P(SoftCpuTest, CopiesOverManyPagesAndRights) {
  map(0, 8, "rw", "pa");
  std::vector<std::uint8_t> out(8 * kPage - 10);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint8_t>(i / 3);
  const Copied written = cpu().copy_out(at(0, 5), out.data(), out.size());
  EXPECT_TRUE(written.ok());
  EXPECT_EQ(written.bytes, out.size());
  std::vector<std::uint8_t> in(out.size());
  const Copied read = cpu().copy_in(in.data(), at(0, 5), in.size());
  EXPECT_TRUE(read.ok());
  EXPECT_EQ(read.bytes, in.size());
  EXPECT_EQ(in, out);
  EXPECT_EQ(r(0, 4), "00");
  EXPECT_EQ(r(7, kPage - 5), "00");

  protect(4, 1, "r");
  const Copied stopped = cpu().copy_out(at(3, 1), out.data(), 2 * kPage);
  EXPECT_EQ(stopped.bytes, kPage - 1);
  EXPECT_EQ(stopped.outcome, Outcome::signal(kSigSegv, kSegvAccErr, at(4), Access::write));
  EXPECT_TRUE(cpu().copy_in(in.data(), at(3, 1), 2 * kPage).ok());

  const TestFile f = file(1);
  map(5, 2, "rw", "sf", f);
  const Copied bus = cpu().copy_in(in.data(), at(5), 2 * kPage);
  EXPECT_EQ(bus.bytes, kPage);
  EXPECT_EQ(bus.outcome, Outcome::signal(kSigBus, kBusAdrErr, at(6), Access::read));
  EXPECT_EQ(in[kPage - 1], 0x40);
}

// ---- inside and outside -------------------------------------------------------------------------

TEST_P(SoftCpuTest, OutsideASpaceEveryAccessIsRefused) {
  map(0, 1, "rw", "pa");
  w(0, 7);
  SoftCpu& outside = softcpu();
  world().leave();
  const Counters before = outside.counters();
  const Outcome refused = Outcome::refused(RefusedReason::not_entered, at(0));
  EXPECT_EQ(outside.load<std::uint8_t>(at(0)).outcome(), refused);
  EXPECT_EQ(outside.store<std::uint8_t>(at(0), 1), refused);
  EXPECT_EQ(outside.fetch_add<std::uint32_t>(at(0), 1).outcome(), refused);
  EXPECT_STREQ(name(outside.compare_exchange(at(0), GuestPair{}, GuestPair{}).outcome()),
               "REFUSED");
  std::uint8_t bytes[4] = {};
  const Copied in = outside.copy_in(bytes, at(0), 4);
  EXPECT_EQ(in.bytes, 0u);
  EXPECT_STREQ(name(in.outcome), "REFUSED");
  EXPECT_STREQ(name(outside.copy_out(at(0), bytes, 4).outcome), "REFUSED");
  Counters gained = outside.counters();
  gained -= before;
  EXPECT_EQ(gained.refused, 6u);
  EXPECT_EQ(gained.faults, 0u);

  // A call needs no SoftCpu inside.
  SoftCpu& same = cpu();
  world().leave();
  Process other(world(), space_under(GetParam()));
  AddressSpace& other_space = other.space();
  world().leave();
  MapRequest request;
  request.address = at(5);
  request.length = kPage;
  request.placement = Placement::fixed;
  EXPECT_EQ(text(other_space.map(same, request)), "A+5P");
  EXPECT_EQ(r(0), "07");
}

TEST_P(SoftCpuTest, NeverEnteredAndLeaveWithoutEnter) {
  SoftCpu& mine = softcpu();
  world().leave();
  mine.leave();
  mine.leave();
  EXPECT_STREQ(name(mine.load<std::uint64_t>(at(0)).outcome()), "REFUSED");
}

TEST_P(SoftCpuTest, WithoutASlot) {
  MachineOptions options = test_machine();
  options.max_cpus = 2;
  World small(options);  // its SoftCpu is the first
  Process p(small, space_under(GetParam()));
  p.map(0, 1, "rw", "pa");
  {
    SoftCpu second(small.machine);
    SoftCpu third(small.machine);
    EXPECT_TRUE(second.attached());
    EXPECT_FALSE(third.attached());
    third.enter(p.space());
    EXPECT_EQ(third.load<std::uint64_t>(at(0)).outcome(),
              Outcome::refused(RefusedReason::not_entered, at(0)));
    EXPECT_EQ(third.store<std::uint64_t>(at(0), 1),
              Outcome::refused(RefusedReason::not_entered, at(0)));
    EXPECT_STREQ(name(third.fetch_add<std::uint64_t>(at(0), 1).outcome()), "REFUSED");
    std::uint8_t byte = 0;
    EXPECT_STREQ(name(third.copy_in(&byte, at(0), 1).outcome), "REFUSED");
    EXPECT_STREQ(name(third.copy_out(at(0), &byte, 1).outcome), "REFUSED");
    MapRequest request;
    request.length = kPage;
    EXPECT_EQ(text(p.space().map(third, request)), "EMFILE");
    EXPECT_EQ(text(p.space().unmap(third, at(0), kPage)), "EMFILE");
    EXPECT_EQ(text(p.space().protect(third, at(0), kPage, Prot::none)), "EMFILE");
    EXPECT_EQ(third.counters().faults, 0u);
    third.leave();
  }
  SoftCpu again(small.machine);
  EXPECT_TRUE(again.attached());
}

TEST_P(SoftCpuTest, SwitchingBetweenTwoSpaces) {
  Process& a = *this;
  Process b(world(), space_under(GetParam()));
  a.map(0, 1, "rw", "pa");
  b.map(0, 1, "rw", "pa");
  b.map(1, 1, "r", "pa");
  for (unsigned round = 0; round < 50; ++round) {
    EXPECT_EQ(a.w(0, round), "ok");  // each step switches
    EXPECT_EQ(b.w(0, round + 100), "ok");
    EXPECT_EQ(a.r(0), hex(round));
    EXPECT_EQ(b.r(0), hex(round + 100));
    EXPECT_EQ(a.r(1), "MAPERR");
    EXPECT_EQ(b.r(1), "00");
  }
}

TEST_P(SoftCpuTest, TwoPagesOfOneTlbSlot) {
  constexpr long kFar = static_cast<long>(detail::kTlbEntries);
  map(0, 1, "rw", "pa");
  map(kFar, 1, "rw", "pa");
  for (unsigned round = 0; round < 20; ++round) {
    w(0, round);
    w(kFar, round + 100);
    EXPECT_EQ(r(0), hex(round));
    EXPECT_EQ(r(kFar), hex(round + 100));
  }
}

TEST_P(SoftCpuTest, OwnChangesAreSeenAtOnce) {
  map(0, 1, "rw", "pa");
  w(0, 1);
  protect(0, 1, "r");
  EXPECT_EQ(w(0, 2), "ACCERR");
  EXPECT_EQ(r(0), "01");
  protect(0, 1, "none");
  EXPECT_EQ(r(0), "ACCERR");
  protect(0, 1, "rw");
  EXPECT_EQ(w(0, 3), "ok");
  dontneed(0, 1);
  EXPECT_EQ(r(0), "00");
  map(0, 1, "r", "pa");
  EXPECT_EQ(w(0, 1), "ACCERR");
  unmap(0, 1);
  EXPECT_EQ(r(0), "MAPERR");
}

TEST_P(SoftCpuTest, CountersOfOneAndOfAll) {
  map(0, 4, "rw", "pa");
  const Counters all_before = machine.counters();
  const Counters own_before = softcpu().counters();
  for (long k = 0; k < 4; ++k) w(k, 1);
  Counters own = softcpu().counters();
  own -= own_before;
  EXPECT_EQ(own.faults, 4u);
  EXPECT_GE(own.tlb_misses, 4u);
  EXPECT_GE(own.pgalloc, 4u);
  {
    AddressSpace& shared_space = space();
    world().leave();
    std::thread([&] {
      SoftCpu mine(machine);
      mine.enter(shared_space);
      for (long k = 0; k < 4; ++k) (void)mine.load<std::uint8_t>(at(k));  // misses, no faults
      (void)mine.load<std::uint8_t>(at(9));
      EXPECT_EQ(mine.counters().faults, 1u);
      EXPECT_EQ(mine.counters().fault_signals, 1u);
      EXPECT_GE(mine.counters().tlb_misses, 5u);
      mine.leave();
    }).join();
  }
  Counters all = machine.counters();  // with those of the SoftCpu that is gone
  all -= all_before;
  EXPECT_EQ(all.faults, 5u);
  EXPECT_EQ(all.fault_signals, 1u);
}

// ---- other SoftCpus' translations ---------------------------------------------------------------

/// One thread that stores to a page as fast as it can, and what it saw.
class Storer {
 public:
  Storer(Machine& machine, AddressSpace& space, Addr target)
      : thread_([this, &machine, &space, target] { run(machine, space, target); }) {}
  ~Storer() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }

  void wait_until_it_stores() const {
    while (stored_.load() < 100 && !finished_) std::this_thread::yield();
  }
  /// No store may succeed from now on, until it is allowed again.
  void forbid() { ++period_; }
  void allow() { ++period_; }
  std::uint64_t refused() const { return refused_; }
  void wait_for_refusals(std::uint64_t more) const {
    const std::uint64_t until = refused_ + more;
    while (refused_ < until) std::this_thread::yield();
  }
  void finish() {
    stop_ = true;
    thread_.join();
  }
  bool stored_when_forbidden() const { return wrong_; }
  const char* last_refusal() const { return last_refusal_; }

 private:
  void run(Machine& machine, AddressSpace& space, Addr target) {
    SoftCpu cpu(machine);
    cpu.enter(space);
    for (std::uint64_t i = 1; !stop_; ++i) {
      const unsigned period = period_;
      const Outcome outcome = cpu.store<std::uint64_t>(target, i);
      if (outcome) {
        if (period % 2 == 1 && period_ == period) wrong_ = true;
        ++stored_;
      } else {
        last_refusal_ = name(outcome);
        ++refused_;
      }
    }
    finished_ = true;
    cpu.leave();
  }

  std::atomic<bool> stop_{false};
  std::atomic<bool> finished_{false};
  std::atomic<unsigned> period_{0};  // odd: forbidden
  std::atomic<bool> wrong_{false};
  std::atomic<std::uint64_t> stored_{0};
  std::atomic<std::uint64_t> refused_{0};
  std::atomic<const char*> last_refusal_{""};
  std::thread thread_;
};

TEST_P(SoftCpuTest, NoStoreAfterAnotherThreadUnmapped) {
  constexpr std::uint64_t kOwn = 0xb0b0b0b0b0b0b0b0;
  for (int round = 0; round < 20; ++round) {
    map(0, 1, "rw", "pa");
    w(0, 1, 128);  // the frame is there, other words of it are ours
    Storer storer(machine, space(), at(0, 8));
    storer.wait_until_it_stores();
    EXPECT_EQ(unmap(0, 1), "0");
    storer.forbid();

    // Whoever gets the frame next sees nothing of it.
    map(16, 8, "rw", "pa");
    for (long k = 16; k < 24; ++k) {
      for (std::uint64_t i = 0; i < 16; i += 8) {
        ASSERT_TRUE(cpu().store<std::uint64_t>(at(k, i), kOwn));
      }
    }
    storer.wait_for_refusals(1000);
    storer.finish();
    EXPECT_FALSE(storer.stored_when_forbidden());
    EXPECT_STREQ(storer.last_refusal(), "MAPERR");
    for (long k = 16; k < 24; ++k) {
      for (std::uint64_t i = 0; i < 16; i += 8) {
        ASSERT_EQ(cpu().load<std::uint64_t>(at(k, i)).value(), kOwn);
      }
      EXPECT_EQ(r(k, 128), "00");
    }
    unmap(16, 8);
  }
}

TEST_P(SoftCpuTest, NoStoreAfterAnotherThreadTookTheRight) {
  map(0, 1, "rw", "pa");
  w(0, 1);
  Storer storer(machine, space(), at(0, 8));
  storer.wait_until_it_stores();
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(protect(0, 1, "r"), "0");
    storer.forbid();
    const std::uint64_t value = cpu().load<std::uint64_t>(at(0, 8)).value();
    storer.wait_for_refusals(100);
    EXPECT_EQ(cpu().load<std::uint64_t>(at(0, 8)).value(), value);
    EXPECT_STREQ(storer.last_refusal(), "ACCERR");
    storer.allow();
    EXPECT_EQ(protect(0, 1, "rw"), "0");
    while (cpu().load<std::uint64_t>(at(0, 8)).value() == value) std::this_thread::yield();
  }
  storer.finish();
  EXPECT_FALSE(storer.stored_when_forbidden());
}

TEST_P(SoftCpuTest, NoStoreIntoTheChildsPagesAfterFork) {
  map(0, 1, "rw", "pa");
  w(0, 1);
  Storer storer(machine, space(), at(0, 8));
  storer.wait_until_it_stores();
  for (int round = 0; round < 20; ++round) {
    Process child = fork();
    const std::uint64_t value = child.cpu().load<std::uint64_t>(at(0, 8)).value();
    // The parent goes on storing, to pages of its own.
    const std::uint64_t now = cpu().load<std::uint64_t>(at(0, 8)).value();
    while (cpu().load<std::uint64_t>(at(0, 8)).value() == now) std::this_thread::yield();
    EXPECT_EQ(child.cpu().load<std::uint64_t>(at(0, 8)).value(), value);
  }
  storer.finish();
}

TEST_P(SoftCpuTest, OldContentIsGoneAfterAnotherThreadsDontneed) {
  map(0, 1, "rw", "pa");
  AddressSpace& shared_space = space();
  std::atomic<std::uint64_t> dropped{0};  // values up to this one were dropped
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> stale{0};
  std::thread reader([&] {
    SoftCpu mine(machine);
    mine.enter(shared_space);
    while (!stop) {
      const std::uint64_t floor = dropped;
      const Loaded<std::uint64_t> loaded = mine.load<std::uint64_t>(at(0));
      if (!loaded || (loaded.value() != 0 && loaded.value() <= floor)) ++stale;
    }
    mine.leave();
  });
  for (std::uint64_t i = 1; i <= 500; ++i) {
    ASSERT_TRUE(cpu().store<std::uint64_t>(at(0), i));
    dontneed(0, 1);
    dropped = i;
  }
  stop = true;
  reader.join();
  EXPECT_EQ(stale, 0u);
}

// The tables hold 36 bits of page number; what lies beyond must not come back in at the bottom.
TEST_P(SoftCpuTest, AddressesDoNotAlias) {
  map(0, 1, "rw", "pa");
  w(0, 0x11);
  for (unsigned bit = 47; bit < 64; ++bit) {
    const Addr a = at(0) + (Addr{1} << bit);
    EXPECT_EQ(cpu().load<std::uint8_t>(a).outcome(),
              Outcome::signal(kSigSegv, kSegvMapErr, a, Access::read));
    EXPECT_FALSE(cpu().store<std::uint8_t>(a, 0x22));
  }
  EXPECT_EQ(r(0), "11");
  // Across the end of the user range: the first byte that cannot be there is named.
  EXPECT_EQ(cpu().load<std::uint32_t>(kUserEnd - 2).outcome().address(), kUserEnd);
}

}  // namespace
}  // namespace faultpath::test
