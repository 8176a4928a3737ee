// Refused stores on the engine: the outcome of the store is handed to a handler, as an emulator
// hands a signal to its guest.
#pragma once

#include <string>

#include "lab/targets/engine_target.h"
#include "lab/targets/refusals.h"

namespace faultpath::lab {

template <>
class Refusals<EngineTask> {
 public:
  bool open(EngineTask& task, Addr page) {
    task_ = &task;
    guest_.handler = handle;
    guest_.expected = Outcome::signal(kSigSegv, kSegvAccErr, page, Access::write);
    page_ = page;
    before_ = task.counters();
    return true;
  }

  std::uint64_t refuse(std::uint64_t n) {
    const std::uint64_t before = guest_.right;
    for (std::uint64_t i = 0; i < n; ++i) {
      const Outcome o = task_->store(page_, 0xa5);
      ++stores_;
      if (FP_UNLIKELY(!deliver_to(guest_, o))) break;
    }
    return guest_.right - before;
  }
  std::uint64_t deliver(std::uint64_t n) {
    const std::uint64_t before = guest_.right;
    for (std::uint64_t i = 0; i < n; ++i) {
      if (FP_UNLIKELY(!deliver_to(guest_, refusal_of(page_)))) break;
    }
    return guest_.right - before;
  }
  void plain(std::uint64_t) {}

  bool settled(std::string& why) const {
    Counters d = task_->counters();
    d -= before_;
    if (d.faults == stores_ && d.fault_signals == stores_ && d.minor_faults == 0 &&
        d.major_faults == 0) {
      return true;
    }
    why = std::to_string(stores_) + " stores were refused, counted are " +
          std::to_string(d.faults) + " faults, " + std::to_string(d.fault_signals) + " signals, " +
          std::to_string(d.minor_faults) + " minor and " + std::to_string(d.major_faults) +
          " major faults";
    return false;
  }
  std::string odd() const { return to_string(guest_.odd); }

 private:
  struct Guest {
    bool (*handler)(Guest&, const Outcome&) = nullptr;
    Outcome expected;
    Outcome odd;
    std::uint64_t right = 0;
  };

  static FP_NOINLINE bool handle(Guest& guest, const Outcome& o) {
    if (FP_LIKELY(o == guest.expected)) return ++guest.right, true;
    guest.odd = o;
    return false;
  }
  /// False where there is nothing to deliver, or something else than the refusal.
  static FP_NOINLINE bool deliver_to(Guest& guest, const Outcome& o) {
    if (FP_UNLIKELY(!o.is_signal())) {
      guest.odd = o;
      return false;
    }
    return guest.handler(guest, o);
  }
  /// The outcome of such a store, without a store. The asm keeps calls from being merged.
  static FP_NOINLINE Outcome refusal_of(Addr page) {
    asm volatile("" : "+r"(page));
    return Outcome::signal(kSigSegv, kSegvAccErr, page, Access::write);
  }

  EngineTask* task_ = nullptr;
  Addr page_ = 0;
  Guest guest_;
  Counters before_;
  std::uint64_t stores_ = 0;
};

}  // namespace faultpath::lab
