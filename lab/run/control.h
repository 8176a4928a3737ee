// What the runner and the tasks share while a run goes on. It lies in memory that forked tasks
// share with their parent: no pointers, lock-free atomics only.
#pragma once

#include <faultpath/detail/annotations.h>

#include <sched.h>

#include <atomic>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "lab/run/histogram.h"
#include "lab/run/ticks.h"
#include "lab/stats/rounds.h"

namespace faultpath::lab {

/// Rises only. Tasks poll it once per operation.
enum class Phase : std::uint32_t { set_up, warm_up, measured, stop };

/// The calls that a task made, counted by its target.
struct CallCounts {
  std::uint64_t maps = 0;
  std::uint64_t unmaps = 0;
  std::uint64_t protects = 0;
  std::uint64_t advises = 0;
  std::uint64_t breaks = 0;
  std::uint64_t breaks_refused = 0;
};

/// One task's part. The counter has 256 bytes to itself, as will-it-scale's.
struct alignas(256) TaskSlot {
  std::atomic<std::uint64_t> ops{0};
  alignas(256) std::atomic<std::uint32_t> failed{0};  ///< `error` is complete
  char error[252]{};
  CallCounts calls;
  std::uint64_t loop_faults = 0;  ///< of the whole counted loop, warm-up included
  Histogram latency;              ///< in ticks; read it when the task has ended
  PartTimes parts;                ///< of lat_sig_prot; likewise
};

struct Control {
  alignas(256) std::atomic<Phase> phase{Phase::set_up};
  alignas(256) std::atomic<std::uint32_t> ready{0};  ///< tasks waiting for the start
  std::atomic<std::uint32_t> counted_done{0};        ///< counting tasks that left their loop
  std::atomic<std::uint32_t> loops_done{0};          ///< tasks, mappers too, that left their loop
  std::atomic<std::uint32_t> ended{0};               ///< tasks that checked and are through
  std::atomic<std::uint32_t> abort{0};               ///< something died: nobody waits for others
};

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

/// Gives the processor away until `condition()`; false if the run was aborted meanwhile.
template <class F>
bool wait_for(const Control& control, F condition) {
  while (!condition()) {
    if (control.abort.load(std::memory_order_relaxed) != 0) return false;
    sched_yield();
  }
  return true;
}

/// A task's hand on its slot: counts, samples, reports. Used by one thread.
class Meter {
 public:
  /// A prime near 64: page tables and areas have powers of two of pages, and a period that divides
  /// them would see the first page of a table far too often.
  static constexpr std::uint32_t kSamplePeriod = 61;

  Meter(const Control& control, TaskSlot& slot, std::uint64_t limit, bool deep)
      : phase_(&control.phase), slot_(&slot), limit_(limit), deep_(deep) {}

  /// One more operation? Ends at the stop, or after `limit` operations.
  FP_ALWAYS_INLINE bool running() const {
    return phase_->load(std::memory_order_relaxed) != Phase::stop && ops_ < limit_;
  }
  FP_ALWAYS_INLINE void count(std::uint64_t n = 1) {
    ops_ += n;
    slot_->ops.store(ops_, std::memory_order_relaxed);
  }
  /// Runs `f`, a piece of work that may fault, and times it now and then.
  template <class F>
  FP_ALWAYS_INLINE auto sampled(F&& f) {
    if (FP_LIKELY(--until_sample_ != 0)) return f();
    return timed(f);
  }

  /// The first complaint of a task is kept. Ends its loop.
  __attribute__((format(printf, 2, 3))) void fail(const char* format, ...) {
    limit_ = 0;
    if (failed()) return;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(slot_->error, sizeof slot_->error, format, arguments);
    va_end(arguments);
    slot_->failed.store(1, std::memory_order_release);
  }
  bool failed() const { return slot_->failed.load(std::memory_order_relaxed) != 0; }

  /// The verification pass: workloads look at everything, not just at the end.
  bool deep() const { return deep_; }
  std::uint64_t ops() const { return ops_; }
  /// Operations until `limit`.
  std::uint64_t left() const { return limit_ > ops_ ? limit_ - ops_ : 0; }
  /// Inside the measured window?
  bool measured() const { return phase_->load(std::memory_order_relaxed) == Phase::measured; }
  void report(const PartTimes& parts) { slot_->parts = parts; }

 private:
  template <class F>
  FP_NOINLINE auto timed(F& f) {
    until_sample_ = kSamplePeriod;
    const std::uint64_t begin = ticks();
    const auto result = f();
    const std::uint64_t end = ticks();
    if (phase_->load(std::memory_order_relaxed) == Phase::measured && end >= begin) {
      slot_->latency.record(end - begin);
    }
    return result;
  }

  const std::atomic<Phase>* phase_;
  TaskSlot* slot_;
  std::uint64_t ops_ = 0;
  std::uint64_t limit_;
  std::uint32_t until_sample_ = kSamplePeriod;
  bool deep_;
};

}  // namespace faultpath::lab
