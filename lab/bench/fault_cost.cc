#include "lab/bench/fault_cost.h"

#include <faultpath/faultpath.h>
#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "memory/machine_core.h"
#include "pagetable/page_table.h"
#include "vma/mm.h"

namespace faultpath::lab {

namespace {

using Clock = std::chrono::steady_clock;

double ns_since(Clock::time_point from) {
  return std::chrono::duration<double, std::nano>(Clock::now() - from).count();
}

struct Touched {
  double fault_ns = 0;
  double unmap_ns = 0;
  std::vector<memory::Pfn> frames;  // in the order in which the faults got them
};

void touch_all(SoftCpu& cpu, Addr at, std::uint64_t bytes) {
  for (std::uint64_t o = 0; o < bytes; o += kPageSize) {
    if (!cpu.store<std::uint8_t>(at + o, 1)) return;
  }
}

MapRequest anonymous(std::uint64_t bytes) {
  return {.length = bytes, .prot = Prot::read | Prot::write};
}

Touched touch_once(AddressSpace& space, SoftCpu& cpu, std::uint64_t bytes) {
  Touched t;
  const Addr at = space.map(cpu, anonymous(bytes)).value();
  auto began = Clock::now();
  touch_all(cpu, at, bytes);
  t.fault_ns = ns_since(began);
  // The page table knows which frame went where.
  const auto& tables = space.mm().tables;
  t.frames.reserve(bytes / kPageSize);
  for (std::uint64_t o = 0; o < bytes; o += kPageSize) {
    const pagetable::Table leaf = tables.find_leaf(at + o);
    t.frames.push_back(pagetable::Pte(leaf.at(at + o, 0).load(env::acquire)).pfn());
  }
  began = Clock::now();
  space.unmap(cpu, at, bytes).value();
  t.unmap_ns = ns_since(began);
  return t;
}

// The frames are free now and nobody allocates: writing them harms nobody.
double zero_all(memory::MachineCore& core, const std::vector<memory::Pfn>& frames) {
  const auto began = Clock::now();
  for (const memory::Pfn pfn : frames) env::payload_zero(core.payload(pfn));
  return ns_since(began);
}

void pin(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // best effort
}

/// Wall nanoseconds until `spaces.size()` threads have each mapped, touched and unmapped `bytes`
/// `times` times; thread i works in spaces[i].
double run_threads(Machine& machine, const std::vector<AddressSpace*>& spaces, std::uint64_t bytes,
                   int times) {
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < spaces.size(); ++i) {
    threads.emplace_back([&, i] {
      pin(static_cast<int>(i));
      SoftCpu cpu(machine);
      cpu.enter(*spaces[i]);
      ready.fetch_add(1);
      while (!go.load(std::memory_order_acquire)) std::this_thread::yield();
      for (int n = 0; n < times; ++n) {
        const Addr at = spaces[i]->map(cpu, anonymous(bytes)).value();
        touch_all(cpu, at, bytes);
        spaces[i]->unmap(cpu, at, bytes).value();
      }
    });
  }
  while (ready.load() != static_cast<int>(spaces.size())) std::this_thread::yield();
  const auto began = Clock::now();
  go.store(true, std::memory_order_release);
  for (auto& t : threads) t.join();
  return ns_since(began);
}

}  // namespace

std::vector<BenchRow> measure_fault_cost(const FaultCostOptions& options) {
  const std::uint64_t bytes = options.bytes;
  const double pages = static_cast<double>(bytes / kPageSize);
  auto machine =
      Machine::create({.memory_bytes = bytes * 2 + (std::uint64_t{48} << 20), .prefault = true})
          .value();

  struct Rows {
    PolicySpec policy;
    BenchRow fault, unmap, zero, ratio, ascending, two_spaces, one_space;
  };
  std::vector<Rows> all;
  for (const std::string& text : options.policies) {
    Rows r;
    r.policy = parse_policy(text).value();
    const auto row = [&](const char* name, const char* unit) {
      return BenchRow{name, text, unit, {}, {}, {}};
    };
    r.fault = row("anon write fault with zeroing", "ns");
    r.zero = row("zeroing the same frame, same order", "ns");
    r.ratio = row("fault / zeroing", "ratio");
    r.ratio.at_most = 4;
    r.ascending = row("fault / zeroing in ascending order", "ratio");
    r.unmap = row("unmap, a page", "ns");
    r.two_spaces = row("2 threads in 2 spaces / 1 thread", "ratio");
    r.two_spaces.at_least = 1.7;
    r.one_space = row("2 threads in 1 space / 1 thread", "ratio");
    all.push_back(std::move(r));
  }

  const int rounds = std::max(1, options.rounds);
  for (int round = -1; round < rounds; ++round) {  // the first one warms up and is dropped
    for (Rows& r : all) {
      auto space = machine.new_space({.policy = r.policy}).value();
      Touched t;
      {
        SoftCpu cpu(machine);
        cpu.enter(space);
        t = touch_once(space, cpu, bytes);
      }
      const double zero_ns = zero_all(machine.core(), t.frames);
      std::sort(t.frames.begin(), t.frames.end());
      const double ascending_ns = zero_all(machine.core(), t.frames);

      auto other = machine.new_space({.policy = r.policy}).value();
      constexpr int kTimes = 2;
      // Taking turns at being the first: what comes first finds the frames in the order in which the
      // rows above left them, and pays for it.
      double one = 0;
      double two_spaces = 0;
      double one_space = 0;
      for (int turn = 0; turn < 3; ++turn) {
        switch ((turn + round + 1) % 3) {
          case 0: one = run_threads(machine, {&space}, bytes, kTimes); break;
          case 1: two_spaces = run_threads(machine, {&space, &other}, bytes, kTimes); break;
          case 2: one_space = run_threads(machine, {&space, &space}, bytes, kTimes); break;
        }
      }
      if (round < 0) continue;
      r.fault.samples.push_back(t.fault_ns / pages);
      r.unmap.samples.push_back(t.unmap_ns / pages);
      r.zero.samples.push_back(zero_ns / pages);
      r.ratio.samples.push_back(t.fault_ns / zero_ns);
      r.ascending.samples.push_back(t.fault_ns / ascending_ns);
      r.two_spaces.samples.push_back(2 * one / two_spaces);
      r.one_space.samples.push_back(2 * one / one_space);
    }
  }
  std::vector<BenchRow> rows;
  for (Rows& r : all) {
    for (BenchRow* row :
         {&r.fault, &r.zero, &r.ratio, &r.ascending, &r.unmap, &r.two_spaces, &r.one_space}) {
      rows.push_back(std::move(*row));
    }
  }
  return rows;
}

}  // namespace faultpath::lab
