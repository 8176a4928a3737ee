// will-it-scale's signal1, a null control: real signals of the host, whatever the target.
#pragma once

#include <optional>

#include "lab/targets/signals.h"
#include "lab/workloads/resident_word.h"

namespace faultpath::lab {

/// One operation raises SIGUSR1, whose handler only counts, and touches a resident word.
template <MemoryTarget T>
class Signal1 : public WithResidentWord<T> {
 public:
  struct Shared {};
  Signal1(const Seat<T>& seat, Shared&) : WithResidentWord<T>(seat) {}

  bool set_up() {
    use_.emplace(SIGUSR1, count_signal);
    before_ = signals_counted();
    return (use_->ok() || this->broken("sigaction")) && this->map_word();
  }
  void run() {
    Meter& m = this->meter();
    while (m.running()) {
      if (raise(SIGUSR1) != 0) {
        m.fail("raise failed");
        return;
      }
      if (!this->touch()) return;
      m.count();
    }
  }
  void check() {
    if (!this->check_word()) return;
    const std::uint64_t called = signals_counted() - before_;
    if (called == this->meter().ops()) return;
    this->meter().fail("the handler was called %llu times, not %llu",
                       static_cast<unsigned long long>(called),
                       static_cast<unsigned long long>(this->meter().ops()));
  }

 private:
  std::optional<SignalUse> use_;
  std::uint64_t before_ = 0;
};

}  // namespace faultpath::lab
