// Frames, the buddy allocator, slabs, and grace periods.
#include <faultpath/faultpath.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "memory/buddy.h"
#include "memory/machine_core.h"
#include "pagetable/flush.h"

namespace faultpath {
namespace {

using memory::Buddy;
using memory::Cpu;
using memory::Frame;
using memory::FrameKind;
using memory::kMaxOrder;
using memory::kNoPfn;
using memory::MachineCore;
using memory::Pfn;

struct BuddyTest : testing::Test {
  static constexpr std::uint32_t kFrames = 1000;  // not a power of two
  std::unique_ptr<Frame[]> frames = std::make_unique<Frame[]>(kFrames);
  Buddy buddy;
  void SetUp() override { buddy.init(frames.get(), kFrames); }
};

TEST_F(BuddyTest, EveryFrameOnceThenNone) {
  std::set<Pfn> seen;
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    const Pfn pfn = buddy.allocate(0);
    ASSERT_LT(pfn, kFrames);
    EXPECT_TRUE(seen.insert(pfn).second);
  }
  EXPECT_EQ(buddy.allocate(0), kNoPfn);
  EXPECT_EQ(buddy.free_frames(), 0u);
}

TEST_F(BuddyTest, BlocksAreAlignedAndDisjoint) {
  std::vector<bool> used(kFrames);
  for (unsigned order : {9u, 3u, 0u, 5u, 1u, 8u}) {
    const Pfn pfn = buddy.allocate(order);
    ASSERT_NE(pfn, kNoPfn);
    EXPECT_EQ(pfn % (1u << order), 0u);
    for (Pfn i = pfn; i < pfn + (1u << order); ++i) {
      EXPECT_FALSE(used[i]);
      used[i] = true;
    }
  }
}

TEST_F(BuddyTest, FreedBlocksJoinAgain) {
  std::vector<Pfn> all(kFrames);
  for (Pfn& pfn : all) pfn = buddy.allocate(0);
  std::shuffle(all.begin(), all.end(), std::mt19937(7));
  for (const Pfn pfn : all) buddy.release(pfn, 0);
  EXPECT_EQ(buddy.free_frames(), kFrames);
  // 1000 = 512 + 256 + 128 + 64 + 32 + 8: the largest block can be had again only if all joined.
  EXPECT_NE(buddy.allocate(kMaxOrder), kNoPfn);
  EXPECT_NE(buddy.allocate(8), kNoPfn);
  EXPECT_EQ(buddy.allocate(kMaxOrder), kNoPfn);
}

TEST_F(BuddyTest, BatchLeavesTheReserve) {
  std::vector<Pfn> out(kFrames);
  EXPECT_EQ(buddy.allocate_batch(out.data(), kFrames, 8), kFrames - 8);
  EXPECT_EQ(buddy.allocate_batch(out.data(), 1, 8), 0u);
  EXPECT_NE(buddy.allocate(0), kNoPfn);
}

struct CoreTest : testing::Test {
  Machine machine = Machine::create({.memory_bytes = std::uint64_t{8} << 20}).value();
  MachineCore& core = machine.core();
};

TEST_F(CoreTest, RetiredFrameIsNotReusedWhileASectionIsOpen) {
  Cpu* reader = core.attach();
  Cpu* writer = core.attach();
  const Pfn pfn = core.allocate_frame(*writer, FrameKind::table, false);
  const auto retired = [&] { return machine.memory().retired; };

  core.epochs().enter(reader->epoch);  // a reader that may still see the frame
  memory::RetireBatch batch;
  batch.add_frame(core.frame_table(), pfn);
  core.retire(*writer, batch);
  for (int i = 0; i < 10; ++i) core.try_advance(*writer);
  EXPECT_EQ(retired(), 1u);
  EXPECT_EQ(core.frame(pfn).kind.load(env::relaxed), FrameKind::table);
  core.epochs().leave(reader->epoch);

  core.detach(*reader);
  core.detach(*writer);
  machine.quiesce();
  EXPECT_EQ(retired(), 0u);
  EXPECT_EQ(core.frame(pfn).kind.load(env::relaxed), FrameKind::free);
}

TEST_F(CoreTest, AnOpenAccessSectionHoldsUpTheEpoch) {
  Cpu* walker = core.attach();
  Cpu* other = core.attach();
  const std::uint64_t before = core.epochs().now();
  const std::uint64_t section = detail::open_section(*walker);
  EXPECT_FALSE(core.try_advance(*other));
  EXPECT_EQ(core.epochs().now(), before);
  detail::close_section(*walker, section);
  EXPECT_TRUE(core.try_advance(*other));
  EXPECT_EQ(core.epochs().now(), before + 1);
  core.detach(*walker);
  core.detach(*other);
}

TEST_F(CoreTest, SlotsRunOutAndComeBack) {
  auto small = Machine::create({.memory_bytes = std::uint64_t{1} << 20, .max_cpus = 2}).value();
  auto a = std::make_unique<SoftCpu>(small);
  SoftCpu b(small);
  SoftCpu none(small);
  EXPECT_TRUE(a->attached());
  EXPECT_TRUE(b.attached());
  EXPECT_FALSE(none.attached());
  EXPECT_EQ(none.load<int>(0x10000).outcome().reason(), RefusedReason::not_entered);
  a.reset();
  SoftCpu again(small);
  EXPECT_TRUE(again.attached());
}

TEST(MachineCreate, RefusesNonsense) {
  EXPECT_EQ(Machine::create({.memory_bytes = 4096}).error(), Errno::einval);
  EXPECT_EQ(Machine::create({.max_cpus = 0}).error(), Errno::einval);
  EXPECT_EQ(Machine::create({.memory_bytes = ~std::uint64_t{0}}).error(), Errno::einval);
  // More than an address space has: the host says no, and nothing is left behind.
  EXPECT_EQ(Machine::create({.memory_bytes = kPageSize << 31}).error(), Errno::enomem);
}

// With every frame that guests may have in use, unmapping still works: the nodes of the new tree come
// from the reserve.
TEST(OutOfMemory, UnmapStillWorks) {
  auto machine = Machine::create({.memory_bytes = std::uint64_t{4} << 20}).value();
  auto space = machine.new_space().value();
  SoftCpu cpu(machine);
  cpu.enter(space);
  const std::uint64_t pages = (std::uint64_t{8} << 20) / kPageSize;
  const Addr at =
      space.map(cpu, {.length = pages * kPageSize, .prot = Prot::read | Prot::write}).value();
  std::uint64_t got = 0;
  while (got < pages && cpu.store<int>(at + got * kPageSize, 1)) ++got;
  ASSERT_LT(got, pages);
  EXPECT_EQ(cpu.store<int>(at + got * kPageSize, 1).kind(), Outcome::Kind::out_of_memory);
  // The fault's own caches are drained; now cut a hole, then everything.
  ASSERT_TRUE(space.unmap(cpu, at + 3 * kPageSize, kPageSize));
  EXPECT_TRUE(cpu.store<int>(at + got * kPageSize, 1));
  ASSERT_TRUE(space.unmap(cpu, at, pages * kPageSize));
  cpu.leave();
}

}  // namespace
}  // namespace faultpath
