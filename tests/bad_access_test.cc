// Forbidden accesses are refused in the same words on every path, for six machines. no-64k
// The whole table of codes, rights, keys and pages (I13, B17), and what one counts as.
#include "check/tables/bad_access.h"

#include <string>

#include "check/tables/fault_codes.h"
#include "tests/support/arena.h"

namespace faultpath::test {
namespace {

PolicySpec spec(std::string_view text) { return parse_policy(text).value(); }

class BadAccess : public testing::TestWithParam<Arch> {
 protected:
  check::BadAccessTable compare(std::string_view one, std::string_view other) {
    Machine machine = Machine::create().value();
    SoftCpu cpu(machine);
    return check::compare_bad_access(machine, cpu, GetParam(), spec(one), spec(other));
  }
};

TEST_P(BadAccess, FastIsSlow) {
  const check::BadAccessTable t = compare("vma-lock:bad-access=fast", "vma-lock:bad-access=slow");
  EXPECT_EQ(t.difference, "");
  EXPECT_GT(t.rows, 32u);
  EXPECT_GT(t.refusals, 16u);
  EXPECT_LT(t.refusals, t.rows);
}

TEST_P(BadAccess, EveryPolicySaysWhatTheMmapLockSays) {
  for (const PolicySpec& p : all_policies()) {
    EXPECT_EQ(compare(to_string(p), "mmap-lock").difference, "") << to_string(p);
  }
}

INSTANTIATE_TEST_SUITE_P(Archs, BadAccess, testing::ValuesIn(kAllArchs),
                         [](const auto& p) { return std::string(name_of(p.param)); });

// One fault, no minor or major one, and one success of the VMA lock; before the fast exit no VMA-lock
// counter moved.
TEST(BadAccessCounts, AsTheKernelCounts) {
  for (const bool fast : {true, false}) {
    Machine machine = Machine::create().value();
    PolicySpec policy(Policy::vma_lock);
    policy.bad_access_fast = fast;
    AddressSpace space = machine.new_space({.policy = policy}).value();
    SoftCpu cpu(machine);
    cpu.enter(space);
    const Addr a = space.map(cpu, {.length = kPageSize, .prot = Prot::read}).value();
    ASSERT_TRUE(cpu.load<int>(a).has_value());
    Counters c = cpu.counters();
    const Counters before = c;
    EXPECT_EQ(to_string(cpu.store<int>(a, 1)),
              to_string(Outcome::signal(kSigSegv, kSegvAccErr, a, Access::write)));
    c = cpu.counters();
    c -= before;
    EXPECT_EQ(c.faults, 1u);
    EXPECT_EQ(c.minor_faults + c.major_faults, 0u);
    EXPECT_EQ(c.fault_signals, 1u);
    EXPECT_EQ(c.vma_lock_success, fast ? 1u : 0u);
    EXPECT_EQ(c.vma_lock_abort + c.vma_lock_retry + c.vma_lock_miss, 0u);
    EXPECT_EQ(c.mmap_lock_read, fast ? 0u : 1u);
  }
}

// A fault of kernel mode never uses the VMA lock.
TEST(BadAccessCounts, KernelModeTakesTheMmapLock) {
  Machine machine = Machine::create().value();
  AddressSpace space = machine.new_space({.policy = Policy::vma_lock}).value();
  SoftCpu cpu(machine);
  cpu.enter(space);
  const Addr a = space.map(cpu, {.length = kPageSize, .prot = Prot::read}).value();
  Decoded d = arch::x86::decode({.error_code = 0, .cr2 = a, .user_mode = false, .ac = true});
  ASSERT_EQ(d.kind, Decoded::Kind::access) << d.impossible;
  EXPECT_TRUE(cpu.fault(d).ok());
  EXPECT_EQ(cpu.counters().vma_lock_success, 0u);
  EXPECT_EQ(cpu.counters().mmap_lock_read, 1u);
}

TEST(GuestFaults, ImpossibleCodesAndSignalsWithoutAVma) {
  Machine machine = Machine::create().value();
  AddressSpace space = machine.new_space({.policy = Policy::vma_lock}).value();
  SoftCpu cpu(machine);
  cpu.enter(space);
  const Decoded odd = arch::x86::decode({.error_code = 0x24, .cr2 = 0x1000});  // PK without PROT
  ASSERT_EQ(odd.kind, Decoded::Kind::impossible);
  const Outcome refused = cpu.fault(odd);
  EXPECT_EQ(refused.kind(), Outcome::Kind::refused);
  EXPECT_EQ(refused.reason(), RefusedReason::impossible);
  EXPECT_EQ(cpu.counters().faults, 0u);
  EXPECT_EQ(cpu.counters().refused, 1u);
}

// ---- protection keys ----------------------------------------------------------------------------

class Keys : public testing::TestWithParam<PolicySpec> {};
FP_FOR_ALL_POLICIES(Keys);

TEST_P(Keys, PkruDeniesWhatItSays) {
  Machine machine = Machine::create().value();
  AddressSpace space = machine.new_space({.policy = GetParam()}).value();
  SoftCpu cpu(machine);
  cpu.enter(space);
  const Prot rw = Prot::read | Prot::write;
  const Addr a = space.map(cpu, {.length = 2 * kPageSize, .prot = rw}).value();
  ASSERT_TRUE(space.protect(cpu, a, kPageSize, rw, 3));
  ASSERT_TRUE(cpu.store<int>(a, 7).ok());
  const auto signal = [&](Access access) {
    return Outcome::signal(kSigSegv, kSegvPkuErr, a, access, 3);
  };

  cpu.set_pkru(2u << 6);  // key 3: no write
  EXPECT_EQ(cpu.load<int>(a).value(), 7);
  EXPECT_EQ(cpu.store<int>(a, 8), signal(Access::write));
  cpu.set_pkru(1u << 6);  // key 3: nothing
  EXPECT_EQ(cpu.load<int>(a).outcome(), signal(Access::read));
  EXPECT_EQ(cpu.store<int>(a, 8), signal(Access::write));
  EXPECT_TRUE(cpu.store<int>(a + kPageSize, 9).ok()) << "another key";
  cpu.set_pkru(0);
  EXPECT_EQ(cpu.load<int>(a).value(), 7);

  // The key is the VMA's, whether there is a page or not, and mprotect keeps it.
  ASSERT_TRUE(space.advise(cpu, a, kPageSize, Advice::dontneed));
  ASSERT_TRUE(space.protect(cpu, a, kPageSize, Prot::read));
  cpu.set_pkru(1u << 6);
  EXPECT_EQ(cpu.load<int>(a).outcome(), signal(Access::read));
  unsigned keys = 0;
  space.for_each_vma(cpu, [&](const VmaInfo& v) { keys = keys * 16 + v.pkey; });
  EXPECT_EQ(keys, 0x30u);
  EXPECT_EQ(space.protect(cpu, a, kPageSize, rw, 16).error(), Errno::einval);
  EXPECT_EQ(space.protect(cpu, a, kPageSize, rw, -1).error(), Errno::einval);
}

TEST_P(Keys, ANewSoftCpuIsDeniedNothing) {
  Machine machine = Machine::create().value();
  AddressSpace space = machine.new_space({.policy = GetParam()}).value();
  Addr a = 0;
  {
    SoftCpu before(machine);
    a = space.map(before, {.length = kPageSize, .prot = Prot::read}).value();
    ASSERT_TRUE(space.protect(before, a, kPageSize, Prot::read, 3));
    before.set_pkru(1u << 6);
  }
  SoftCpu cpu(machine);  // in the slot of the other
  cpu.enter(space);
  EXPECT_TRUE(cpu.load<int>(a).has_value());
}

TEST_P(Keys, ChangingTheKeyTakesRightsAway) {
  Machine machine = Machine::create().value();
  AddressSpace space = machine.new_space({.policy = GetParam()}).value();
  SoftCpu cpu(machine);
  cpu.enter(space);
  const Prot rw = Prot::read | Prot::write;
  const Addr a = space.map(cpu, {.length = kPageSize, .prot = rw}).value();
  cpu.set_pkru(3u << 4);  // key 2: nothing
  ASSERT_TRUE(cpu.store<int>(a, 7).ok());
  ASSERT_TRUE(space.protect(cpu, a, kPageSize, rw, 2));
  EXPECT_EQ(cpu.load<int>(a).outcome().signal_code(), kSegvPkuErr);
}

// ---- fetches, and memory that is only executable ------------------------------------------------

TEST_P(Keys, FetchesAndExecOnlyMemoryAsTheMachineHasThem) {
  for (const Arch arch : kAllArchs) {
    Machine machine = Machine::create().value();
    AddressSpace space = machine.new_space({.policy = GetParam(), .arch = arch}).value();
    SoftCpu cpu(machine);
    cpu.enter(space);
    const Addr x = space.map(cpu, {.length = kPageSize, .prot = Prot::exec}).value();
    const Addr r = space.map(cpu, {.length = kPageSize, .prot = Prot::read}).value();
    EXPECT_TRUE(cpu.fetch(x).ok()) << name_of(arch);
    EXPECT_EQ(cpu.fetch(r).signal_code(), kSegvAccErr) << name_of(arch);
    ASSERT_TRUE(cpu.load<int>(r).has_value());
    EXPECT_EQ(cpu.fetch(r), Outcome::signal(kSigSegv, kSegvAccErr, r, Access::exec))
        << name_of(arch) << ", the page is there";
    const bool reads = arch == Arch::x86 || arch == Arch::arm || arch == Arch::s390;
    EXPECT_EQ(cpu.load<int>(x).has_value(), reads) << name_of(arch) << ", the page is there";
    ASSERT_TRUE(space.advise(cpu, x, kPageSize, Advice::dontneed));
    EXPECT_EQ(cpu.load<int>(x).has_value(), reads) << name_of(arch) << ", empty";
  }
}

// ---- stacks that grow ---------------------------------------------------------------------------

class Stack : public testing::TestWithParam<PolicySpec> {
 protected:
  static constexpr Addr kTop = 0x10000000;
  Stack() { cpu.enter(space); }
  Addr map(Addr at, std::uint64_t pages, bool stack) {
    return space
        .map(cpu, {.address = at,
                   .length = pages * kPageSize,
                   .prot = Prot::read | Prot::write,
                   .placement = Placement::fixed,
                   .grows_down = stack})
        .value();
  }
  std::string vmas() {
    std::string s;
    space.for_each_vma(
        cpu, [&](const VmaInfo& v) { s += std::to_string((v.end - v.start) / kPageSize) + " "; });
    return s;
  }
  Machine machine = Machine::create().value();
  AddressSpace space =
      machine.new_space({.policy = GetParam(), .stack_limit = 512 * kPageSize}).value();
  SoftCpu cpu{machine};
};
FP_FOR_ALL_POLICIES(Stack);

TEST_P(Stack, GrowsToTheFault) {
  map(kTop, 1, true);
  const Counters before = cpu.counters();
  EXPECT_TRUE(cpu.store<int>(kTop - 3 * kPageSize + 8, 5).ok());
  Counters c = cpu.counters();
  c -= before;
  EXPECT_EQ(c.faults, 1u);
  EXPECT_EQ(c.minor_faults, 1u);
  EXPECT_EQ(c.classic_entered, 1u);
  EXPECT_EQ(c.classic_settled, 1u);
  EXPECT_EQ(vmas(), "4 ");
  EXPECT_EQ(cpu.load<int>(kTop - 3 * kPageSize + 8).value(), 5);
  EXPECT_EQ(cpu.load<int>(kTop - 2 * kPageSize).value(), 0);
}

TEST_P(Stack, OnlyAStackGrows) {
  map(kTop, 1, false);
  EXPECT_EQ(cpu.store<int>(kTop - 8, 5),
            Outcome::signal(kSigSegv, kSegvMapErr, kTop - 8, Access::write));
  EXPECT_EQ(vmas(), "1 ");
}

TEST_P(Stack, ItsLimitIsAMapError) {
  map(kTop, 1, true);
  EXPECT_TRUE(cpu.store<int>(kTop - 511 * kPageSize, 5).ok());
  EXPECT_EQ(cpu.store<int>(kTop - 512 * kPageSize, 5),
            Outcome::signal(kSigSegv, kSegvMapErr, kTop - 512 * kPageSize, Access::write));
  EXPECT_EQ(vmas(), "512 ");
}

TEST_P(Stack, KeepsItsGuardGap) {
  map(kTop, 1, true);
  map(kTop - 300 * kPageSize, 1, false);
  EXPECT_TRUE(cpu.store<int>(kTop - 43 * kPageSize, 5).ok()) << "256 pages stay free";
  EXPECT_EQ(cpu.store<int>(kTop - 44 * kPageSize, 5).signal_code(), kSegvMapErr);
  EXPECT_EQ(vmas(), "1 44 ");
}

TEST_P(Stack, ASharedOneIsAnError) {
  const auto r =
      space.map(cpu, {.length = kPageSize, .prot = Prot::read, .shared = true, .grows_down = true});
  EXPECT_EQ(r.error(), Errno::einval);
}

}  // namespace
}  // namespace faultpath::test
