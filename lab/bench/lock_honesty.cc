#include "lab/bench/lock_honesty.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>

#include "sync/rw_lock.h"

namespace faultpath::lab {
namespace {

using Clock = std::chrono::steady_clock;

// Under RwLock's names.
class Pthread {
 public:
  void lock_read() { pthread_rwlock_rdlock(&lock_); }
  void unlock_read() { pthread_rwlock_unlock(&lock_); }
  void lock_write() { pthread_rwlock_wrlock(&lock_); }
  void unlock_write() { pthread_rwlock_unlock(&lock_); }

 private:
  alignas(64) pthread_rwlock_t lock_ = PTHREAD_RWLOCK_INITIALIZER;
};

struct Cell {
  double ns_per_op = 0;
  bool counted_right = false;
};

struct alignas(64) Tally {
  std::uint64_t ops = 0;
  std::uint64_t writes = 0;
};

template <class T>
void keep(const T& value) {
  asm volatile("" : : "r"(value));
}

/// The calling thread onto the n-th processor it may use, so that two threads do run at the same
/// time. Where that is refused, or there are too few, the scheduler decides.
void pin(int n) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || n-- != 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof(one), &one);
    return;
  }
}

/// One operation in `kWriteEvery` writes; 0: none does.
template <class Lock, unsigned kWriteEvery>
Cell measure_cell(int threads, double seconds) {
  constexpr unsigned kBlock = 100;  // operations between two looks at the stop flag
  struct {
    Lock lock;
    alignas(64) std::uint64_t counter = 0;
    alignas(64) std::atomic<int> ready{0};
    alignas(64) std::atomic<bool> go{false};
    alignas(64) std::atomic<bool> stop{false};
  } shared;
  std::vector<Tally> tallies(static_cast<std::size_t>(threads));

  const auto work = [&shared](int n, Tally& tally) {
    pin(n);
    shared.ready.fetch_add(1);
    while (!shared.go.load(std::memory_order_acquire)) std::this_thread::yield();
    std::uint64_t ops = 0;
    std::uint64_t writes = 0;
    while (!shared.stop.load(std::memory_order_relaxed)) {
      for (unsigned i = 0; i < kBlock; ++i) {
        if (kWriteEvery != 0 && i % std::max(kWriteEvery, 1u) == 0) {
          shared.lock.lock_write();
          shared.counter = shared.counter + 1;
          shared.lock.unlock_write();
          ++writes;
        } else {
          shared.lock.lock_read();
          keep(shared.counter);
          shared.lock.unlock_read();
        }
      }
      ops += kBlock;
    }
    tally.ops = ops;
    tally.writes = writes;
  };

  std::vector<std::thread> workers;
  for (int n = 0; n < threads; ++n) {
    workers.emplace_back(work, n, std::ref(tallies[static_cast<std::size_t>(n)]));
  }
  while (shared.ready.load() != threads) std::this_thread::yield();
  const auto start = Clock::now();
  shared.go.store(true, std::memory_order_release);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  shared.stop.store(true, std::memory_order_relaxed);
  for (std::thread& worker : workers) worker.join();
  // Until all have left: the operations in flight at the end count, and so does their time.
  const std::chrono::duration<double, std::nano> elapsed = Clock::now() - start;

  std::uint64_t ops = 0;
  std::uint64_t writes = 0;
  for (const Tally& tally : tallies) {
    ops += tally.ops;
    writes += tally.writes;
  }
  return {elapsed.count() / static_cast<double>(std::max<std::uint64_t>(ops, 1)),
          shared.counter == writes};
}

using Measure = Cell (*)(int threads, double seconds);

struct Mix {
  const char* name;
  Measure ours;
  Measure pthread;
};

constexpr Mix kMixes[] = {
    {"read", measure_cell<sync::RwLock, 0>, measure_cell<Pthread, 0>},
    {"write", measure_cell<sync::RwLock, 1>, measure_cell<Pthread, 1>},
    {"write 1 in 10", measure_cell<sync::RwLock, 10>, measure_cell<Pthread, 10>},
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

std::vector<LockRow> measure_lock_honesty(int rounds, double seconds_per_cell) {
  std::vector<LockRow> rows;
  for (const Mix& mix : kMixes) {
    for (const int threads : {1, 2}) {
      LockRow row;
      row.name = mix.name;
      row.threads = threads;
      rows.push_back(std::move(row));
    }
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      LockRow& row = rows[i];
      const Mix& mix = kMixes[i / 2];
      const Cell ours = mix.ours(row.threads, seconds_per_cell);
      const Cell pthread = mix.pthread(row.threads, seconds_per_cell);
      row.ours_ns_per_op.push_back(ours.ns_per_op);
      row.pthread_ns_per_op.push_back(pthread.ns_per_op);
      row.counted_right = row.counted_right && ours.counted_right && pthread.counted_right;
    }
  }
  for (LockRow& row : rows) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < row.ours_ns_per_op.size(); ++i) {
      ratios.push_back(row.ours_ns_per_op[i] / row.pthread_ns_per_op[i]);
    }
    if (ratios.empty()) continue;
    row.ratio_median = median(ratios);
    row.ratio_min = *std::ranges::min_element(ratios);
    row.ratio_max = *std::ranges::max_element(ratios);
  }
  return rows;
}

}  // namespace faultpath::lab
