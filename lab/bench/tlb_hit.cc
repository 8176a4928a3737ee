#include "lab/bench/tlb_hit.h"

#include <faultpath/faultpath.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <string>

namespace faultpath::lab {

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kNodes = 256;  // one a cache line: both chains fit the first-level cache
constexpr std::uint64_t kLine = 64;

/// A random cycle through kNodes lines: order[i] is followed by order[i + 1].
std::vector<std::uint64_t> cycle() {
  std::vector<std::uint64_t> order(kNodes);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(1);
  std::shuffle(order.begin(), order.end(), random);
  return order;
}

struct Guest {
  Machine machine = Machine::create({.memory_bytes = std::uint64_t{4} << 20}).value();
  AddressSpace space = machine.new_space().value();
  SoftCpu cpu{machine};
  Addr first = 0;

  Guest() {
    cpu.enter(space);
    const auto order = cycle();
    const Addr at =
        space.map(cpu, {.length = kNodes * kLine, .prot = Prot::read | Prot::write}).value();
    for (std::uint64_t i = 0; i < kNodes; ++i) {
      (void)cpu.store<std::uint64_t>(at + order[i] * kLine, at + order[(i + 1) % kNodes] * kLine);
    }
    first = at + order[0] * kLine;
  }
};

struct alignas(kLine) Node {
  Node* next;
};

double ns_per(Clock::time_point began, std::uint64_t steps) {
  return std::chrono::duration<double, std::nano>(Clock::now() - began).count() /
         static_cast<double>(steps);
}

[[gnu::noinline]] Addr chase_guest(SoftCpu& cpu, Addr at, std::uint64_t steps) {
  for (std::uint64_t i = 0; i < steps; ++i) at = cpu.load<std::uint64_t>(at).value();
  return at;
}

[[gnu::noinline]] Node* chase_plain(Node* at, std::uint64_t steps) {
  for (std::uint64_t i = 0; i < steps; ++i) {
    at = __atomic_load_n(&at->next, __ATOMIC_RELAXED);  // a load that the compiler must make
  }
  return at;
}

/// Instructions that callgrind counts for the whole loop process.
double callgrind_total(std::uint64_t steps, const std::filesystem::path& out) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const std::string command = fmt::format(
      "FAULTPATH_TLB_HIT_STEPS={} valgrind --tool=callgrind --callgrind-out-file='{}' '{}' bench "
      "tlb-hit-loop >/dev/null 2>&1",
      steps, out.string(), self);
  if (std::system(command.c_str()) != 0) return -1;
  std::ifstream in(out);
  std::string line;
  while (std::getline(in, line)) {
    if (line.rfind("totals:", 0) == 0) return std::strtod(line.c_str() + 7, nullptr);
    if (line.rfind("summary:", 0) == 0) return std::strtod(line.c_str() + 8, nullptr);
  }
  return -1;
}

}  // namespace

std::uint64_t run_tlb_hit_loop(std::uint64_t steps) {
  Guest guest;
  return chase_guest(guest.cpu, guest.first, steps);
}

std::vector<BenchRow> measure_tlb_hit(int rounds) {
  constexpr std::uint64_t kSteps = 4'000'000;
  Guest guest;
  std::vector<Node> nodes(kNodes);
  const auto order = cycle();
  for (std::uint64_t i = 0; i < kNodes; ++i) {
    nodes[order[i]].next = &nodes[order[(i + 1) % kNodes]];
  }
  BenchRow hit{"dependent load, TLB hit", "", "ns", {}, {}, {}};
  BenchRow plain{"dependent load, plain", "", "ns", {}, {}, {}};
  BenchRow ratio{"TLB hit / plain", "", "ratio", {}, 6.0, {}};
  Addr at = guest.first;
  Node* node = &nodes[order[0]];
  for (int round = -1; round < rounds; ++round) {
    auto began = Clock::now();
    at = chase_guest(guest.cpu, at, kSteps);
    const double guest_ns = ns_per(began, kSteps);
    began = Clock::now();
    node = chase_plain(node, kSteps);
    const double plain_ns = ns_per(began, kSteps);
    if (round < 0) continue;
    hit.samples.push_back(guest_ns);
    plain.samples.push_back(plain_ns);
    ratio.samples.push_back(guest_ns / plain_ns);
  }
  if (at == 0 || node == nullptr) std::abort();  // keeps both chains alive
  return {hit, plain, ratio};
}

std::vector<BenchRow> count_tlb_hit_instructions(std::string* why) {
  if (std::system("command -v valgrind >/dev/null 2>&1") != 0) {
    *why = "valgrind is not installed";
    return {};
  }
  namespace fs = std::filesystem;
  const fs::path out = fs::temp_directory_path() / fmt::format("faultpath-callgrind.{}", getpid());
  constexpr std::uint64_t kFew = 100'000;
  constexpr std::uint64_t kMany = 200'000;
  const double few = callgrind_total(kFew, out);
  const double many = callgrind_total(kMany, out);
  std::error_code ignored;
  fs::remove(out, ignored);
  if (few < 0 || many < 0) {
    *why = "valgrind could not run this program";
    return {};
  }
  return {{"load with TLB hit, its loop included",
           "",
           "instructions",
           {(many - few) / static_cast<double>(kMany - kFew)},
           {},
           {}}};
}

}  // namespace faultpath::lab
