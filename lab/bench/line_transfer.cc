#include "lab/bench/line_transfer.h"

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>

namespace faultpath::lab {

namespace {

constexpr std::uint64_t kTrips = 20'000;

void play(std::atomic<std::uint64_t>& ball, int cpu, std::uint64_t mine) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // best effort
  for (std::uint64_t at = mine; at < 2 * kTrips; at += 2) {
    while (ball.load(std::memory_order_acquire) != at) {
    }
    ball.store(at + 1, std::memory_order_release);
  }
}

}  // namespace

BenchRow measure_line_transfer(int rounds) {
  BenchRow row{"a cache line there and back", "2 CPUs", "ns", {}, {}, {}};
  if (std::thread::hardware_concurrency() < 2) return row;
  for (int round = -1; round < rounds; ++round) {
    alignas(64) std::atomic<std::uint64_t> ball{~std::uint64_t{0}};
    std::thread even([&] { play(ball, 0, 0); });
    std::thread odd([&] { play(ball, 1, 1); });
    const auto began = std::chrono::steady_clock::now();
    ball.store(0, std::memory_order_release);
    even.join();
    odd.join();
    const double ns =
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - began).count();
    if (round >= 0) row.samples.push_back(ns / static_cast<double>(kTrips));
  }
  return row;
}

}  // namespace faultpath::lab
