// EngineEntry: a Cpu goes from guest code into the engine, and back.
#pragma once

#include "memory/cpu.h"
#include "pagetable/flush.h"

namespace faultpath::space {

/// While it lives the Cpu touches no guest memory through its TLB. It is parked, so flushes count as
/// answered for it; unless Parking::later, as faults have it: then whoever is about to wait for
/// anything parks first (pagetable::ensure_parked), and a fault that never does saves the fence of
/// coming back. Flushers wait for its answer meanwhile, as for a Cpu in guest code. A second entry on the same Cpu can only come from a signal handler that
/// interrupted the first: it gets nothing, since whatever it would wait for may be held below it on
/// its own stack.
class EngineEntry {
 public:
  enum class Parking : std::uint8_t { now, later };

  explicit EngineEntry(memory::Cpu& cpu, Parking parking = Parking::now)
      : cpu_(cpu),
        entered_(cpu.depth.load(env::relaxed) == 0 && (cpu.section.load(env::relaxed) & 1) == 0) {
    if (!entered_) return;
    cpu_.depth.store(1, env::relaxed);
    env::
        signal_fence();  // a handler sees `depth` raised before anything is done, and until it is done
    inside_ = cpu_.space != nullptr;
    if (inside_ && parking == Parking::now) pagetable::park_cpu(cpu_);
  }
  ~EngineEntry() {
    if (!entered_) return;
    if (inside_ && cpu_.parked.load(env::relaxed) != 0) pagetable::unpark_cpu(cpu_);
    env::signal_fence();
    cpu_.depth.store(0, env::relaxed);
  }
  EngineEntry(const EngineEntry&) = delete;
  EngineEntry& operator=(const EngineEntry&) = delete;

  explicit operator bool() const { return entered_; }

 private:
  memory::Cpu& cpu_;
  bool entered_;
  bool inside_ = false;
};

}  // namespace faultpath::space
