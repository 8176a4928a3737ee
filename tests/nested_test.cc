// A signal handler uses the SoftCpu that it interrupted, at whatever point that was.
#include <faultpath/faultpath.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

namespace faultpath {
namespace {

struct Handler {
  SoftCpu* cpu = nullptr;
  AddressSpace* space = nullptr;
  Addr mailbox = 0;  // always mapped; the handler alone counts in it
  Addr scratch = 0;  // mapped, unmapped and protected by the interrupted code
  std::uint64_t counted = 0;
  std::uint64_t refused = 0;
  std::uint64_t busy = 0;
  std::uint64_t wrong = 0;
};
Handler handler_state;

void on_signal(int) {
  Handler& h = handler_state;
  const auto old = h.cpu->load<std::uint64_t>(h.mailbox);
  if (old) {
    if (old.value() != h.counted) ++h.wrong;
    const Outcome stored = h.cpu->store<std::uint64_t>(h.mailbox, h.counted + 1);
    if (stored) {
      ++h.counted;
    } else if (stored.kind() == Outcome::Kind::refused) {
      ++h.refused;
    } else {
      ++h.wrong;
    }
  } else if (old.outcome().reason() == RefusedReason::nested) {
    ++h.refused;
  } else {
    ++h.wrong;
  }
  // What the interrupted code is working on: its value, zero, a signal, or a refusal.
  const auto seen = h.cpu->load<std::uint64_t>(h.scratch);
  if (seen && seen.value() != 0 && seen.value() != 0x5eed) ++h.wrong;
  // A call is turned away while the engine is interrupted, else it is carried out.
  auto r = h.space->advise(*h.cpu, h.mailbox, kPageSize, Advice::normal);
  if (!r && r.error() == Errno::ebusy) {
    ++h.busy;
  } else if (!r) {
    ++h.wrong;
  }
}

class Nested : public testing::TestWithParam<Policy> {};

TEST_P(Nested, HandlerOnTheSameCpu) {
  auto machine = Machine::create({.memory_bytes = std::uint64_t{16} << 20}).value();
  auto space = machine.new_space({.policy = GetParam()}).value();
  SoftCpu cpu(machine);
  cpu.enter(space);
  Handler& h = handler_state = Handler{};
  h.cpu = &cpu;
  h.space = &space;
  h.mailbox = space.map(cpu, {.length = kPageSize, .prot = Prot::read | Prot::write}).value();
  ASSERT_TRUE(cpu.store<std::uint64_t>(h.mailbox, 0));
  h.scratch = Addr{0x100000000000};

  struct sigaction action{};
  struct sigaction before{};
  action.sa_handler = on_signal;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  std::atomic<bool> stop{false};
  const pthread_t target = pthread_self();
  // A second Cpu in the space flushes, so that requests wait to be answered too.
  std::thread flusher([&] {
    SoftCpu other(machine);
    other.enter(space);
    const Addr own =
        space.map(other, {.length = kPageSize, .prot = Prot::read | Prot::write}).value();
    while (!stop.load()) {
      (void)other.store<int>(own, 1);
      (void)space.advise(other, own, kPageSize, Advice::dontneed);
    }
  });
  std::thread sender([&] {
    while (!stop.load()) {
      pthread_kill(target, SIGUSR1);
      std::this_thread::yield();
    }
  });

  std::uint64_t wrong = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
  for (std::uint64_t n = 0; std::chrono::steady_clock::now() < end; ++n) {
    const MapRequest request{.address = h.scratch,
                             .length = 4 * kPageSize,
                             .prot = Prot::read | Prot::write,
                             .placement = Placement::fixed};
    if (!space.map(cpu, request)) ++wrong;
    for (Addr a = h.scratch; a < h.scratch + 4 * kPageSize; a += kPageSize) {
      if (!cpu.store<std::uint64_t>(a, 0x5eed)) ++wrong;
    }
    for (int i = 0; i < 50; ++i) {
      const auto v = cpu.load<std::uint64_t>(h.scratch);
      if (!v || v.value() != 0x5eed) ++wrong;
    }
    if (n % 2 == 0) (void)space.protect(cpu, h.scratch, kPageSize, Prot::none);
    if (!space.unmap(cpu, h.scratch, 4 * kPageSize)) ++wrong;
  }
  stop.store(true);
  sender.join();
  flusher.join();
  sigaction(SIGUSR1, &before, nullptr);

  EXPECT_EQ(wrong, 0u);
  EXPECT_EQ(h.wrong, 0u);
  EXPECT_EQ(cpu.load<std::uint64_t>(h.mailbox).value(), h.counted);
  EXPECT_GT(h.counted, 0u);           // hits are served
  EXPECT_GT(h.refused + h.busy, 0u);  // and the engine was interrupted at least once
}

INSTANTIATE_TEST_SUITE_P(Policies, Nested, testing::ValuesIn(kAllPolicies), [](const auto& param) {
  std::string said(name_of(param.param));
  std::replace(said.begin(), said.end(), '-', '_');
  return said;
});

}  // namespace
}  // namespace faultpath
