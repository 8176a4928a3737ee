// The names of policies, and that a space has the policy and the machine the size asked for.
#include <string>
#include <string_view>
#include <utility>

#include "tests/support/arena.h"

namespace faultpath::test {
namespace {

TEST(PolicyText, EveryPolicyHasANameThatIsReadBack) {
  for (Policy p : kAllPolicies) {
    const Result<PolicySpec> read = parse_policy(name_of(p));
    ASSERT_TRUE(read) << name_of(p);
    EXPECT_TRUE(read.value() == PolicySpec(p));
    EXPECT_TRUE(read.value().single_thread_bypass);
  }
  EXPECT_EQ(name_of(Policy::mmap_lock), "mmap-lock");
  EXPECT_EQ(name_of(Policy::spf), "spf");
}

TEST(PolicyText, Switches) {
  const auto bypass = [](std::string_view text) {
    const Result<PolicySpec> read = parse_policy(text);
    if (!read) return std::string("error");
    EXPECT_EQ(read.value().policy, Policy::spf);
    return std::string(read.value().single_thread_bypass ? "on" : "off");
  };
  EXPECT_EQ(bypass("spf"), "on");
  EXPECT_EQ(bypass("spf:single-thread-bypass=on"), "on");
  EXPECT_EQ(bypass("spf:single-thread-bypass=off"), "off");
  EXPECT_EQ(bypass("spf:single-thread-bypass=off,single-thread-bypass=on"), "on");
  EXPECT_EQ(bypass("spf:single-thread-bypass=on,single-thread-bypass=off"), "off");
}

TEST(PolicyText, WhatIsPrintedIsReadBack) {
  for (std::string_view text : {"mmap-lock", "spf", "spf:single-thread-bypass=off", "vma-lock",
                                "vma-lock:bad-access=slow"}) {
    const Result<PolicySpec> read = parse_policy(text);
    ASSERT_TRUE(read) << text;
    EXPECT_EQ(to_string(read.value()), text);
  }
  EXPECT_EQ(to_string(parse_policy("vma-lock:bad-access=fast").value()), "vma-lock");
  EXPECT_FALSE(parse_policy("vma-lock:bad-access=slow").value().bad_access_fast);
  EXPECT_FALSE(parse_policy("spf:bad-access=slow"));
  EXPECT_FALSE(parse_policy("vma-lock:single-thread-bypass=off"));
}

TEST(PolicyText, EverythingElseIsAnError) {
  for (std::string_view text : {"",
                                " ",
                                "SPF",
                                "spf ",
                                " spf",
                                "mmap_lock",
                                "mmaplock",
                                "mmap-lock:",
                                "spf:",
                                "spf:,",
                                "spf:single-thread-bypass",
                                "spf:single-thread-bypass=",
                                "spf:single-thread-bypass=yes",
                                "spf:single-thread-bypass=off,",
                                "spf:,single-thread-bypass=off",
                                "spf:other=on",
                                "spf::single-thread-bypass=off",
                                "spf,single-thread-bypass=off",
                                "mmap-lock:single-thread-bypass=off",
                                ":single-thread-bypass=off",
                                "spf:off",
                                "?"}) {
    const Result<PolicySpec> read = parse_policy(text);
    ASSERT_FALSE(read) << '"' << text << '"';
    EXPECT_EQ(read.error(), Errno::einval) << '"' << text << '"';
  }
  EXPECT_FALSE(parse_policy(std::string_view("spf\0", 4)));
}

TEST(PolicyText, Equality) {
  PolicySpec a(Policy::spf);
  PolicySpec b = a;
  EXPECT_TRUE(a == b);
  b.single_thread_bypass = false;
  EXPECT_FALSE(a == b);
  EXPECT_TRUE(PolicySpec() == PolicySpec(Policy::mmap_lock));
}

using SpacePolicy = ArenaTest;
FP_FOR_ALL_POLICIES(SpacePolicy);

TEST_P(SpacePolicy, ASpaceSaysItsPolicyAndPassesItOn) {
  EXPECT_TRUE(space().policy() == GetParam());
  Process child = fork();
  EXPECT_TRUE(child.space().policy() == GetParam());
}

TEST_P(SpacePolicy, SpacesOfAllPoliciesInOneMachine) {
  const TestFile f = file(1);
  for (const PolicySpec& policy : all_policies()) {
    Process other(world(), space_under(policy));
    other.map(0, 1, "rw", "sf", f);
    other.map(1, 1, "rw", "pa");
    map(0, 1, "rw", "sf", f);
    map(1, 1, "rw", "pa");
    other.w(0, 0x11);
    other.w(1, 0x22);
    EXPECT_EQ(r(0), "11");
    EXPECT_EQ(r(1), "00");
  }
}

TEST_P(SpacePolicy, MovingASpace) {
  Result<AddressSpace> made = machine.new_space(space_under(GetParam()));
  ASSERT_TRUE(made);
  MapRequest request;
  request.address = at(0);
  request.length = kPage;
  request.prot = Prot::read | Prot::write;
  request.placement = Placement::fixed;
  AddressSpace first = std::move(made).value();
  ASSERT_TRUE(first.map(softcpu(), request));
  AddressSpace second = std::move(first);
  EXPECT_EQ(second.info(softcpu()).map_count, 1u);
  Result<AddressSpace> another = machine.new_space(space_under(GetParam()));
  ASSERT_TRUE(another);
  second = std::move(another).value();
  EXPECT_EQ(second.info(softcpu()).map_count, 0u);
}

TEST(MachineOptionsTest, NonsenseIsAnError) {
  MachineOptions options;
  options.memory_bytes = 0;
  Result<Machine> none = Machine::create(options);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error(), Errno::einval);
  options.memory_bytes = (1 << 20) - 1;
  Result<Machine> small = Machine::create(options);
  ASSERT_FALSE(small);
  EXPECT_EQ(small.error(), Errno::einval);
  options = {};
  options.max_cpus = 0;
  Result<Machine> no_cpus = Machine::create(options);
  ASSERT_FALSE(no_cpus);
  EXPECT_EQ(no_cpus.error(), Errno::einval);
}

TEST(MachineOptionsTest, MemoryAsAsked) {
  MachineOptions options;
  options.memory_bytes = 1024 * kPage + kPage / 2;  // rounded down
  const Result<Machine> made = Machine::create(options);
  ASSERT_TRUE(made);
  const MemoryInfo memory = made.value().memory();
  EXPECT_LE(memory.frames, 1024u);
  EXPECT_GE(memory.frames, 1016u);  // a few may be the engine's for good
  EXPECT_EQ(memory.in_use,
            memory.frames - memory.free - memory.cached - memory.retired - memory.slab);
  EXPECT_GE(made.value().memory_fd(), 0);
}

}  // namespace
}  // namespace faultpath::test
