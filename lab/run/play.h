// One task's way through a run, the same for each target and workload.
#pragma once

#include <atomic>

#include "lab/run/roles.h"
#include "lab/workloads/workload.h"

namespace faultpath::lab {

/// What the tasks of one space share on the lab's side.
template <class W>
struct SpaceShared {
  std::atomic<std::uint32_t> prepared{0};  ///< 1: it is; 2: it could not be
  typename W::Shared shared;
};

struct PlayOptions {
  std::uint64_t limit = ~std::uint64_t{0};  ///< operations a counting task
  bool deep = false;
  Plant plant = Plant::none;
  std::uint32_t run_number = 0;
};

template <class W, MemoryTarget T>
void play(const Role& role, T& target, const typename T::File* file, SpaceShared<W>& space,
          Control& control, TaskSlot& slot, const BenchSpec& spec, const PlayOptions& options) {
  pin_to(role.cpu);
  // Faults of the slot itself belong before the loop.
  slot.latency.clear();
  target.enter();
  Meter meter(control, slot, role.mapper ? ~std::uint64_t{0} : options.limit, options.deep);
  const Seat<T> seat{target,
                     meter,
                     spec.ebizzy,
                     file,
                     role.index,
                     role.tasks,
                     options.run_number * 131u + role.id + 1,
                     options.plant};
  W workload(seat, space.shared);
  if (role.first) {
    const bool prepared = workload.prepare_space();
    space.prepared.store(prepared ? 1 : 2, std::memory_order_release);
  } else {
    wait_for(control, [&] { return space.prepared.load(std::memory_order_acquire) != 0; });
  }
  const bool usable = space.prepared.load(std::memory_order_acquire) == 1 && workload.set_up();

  control.ready.fetch_add(1, std::memory_order_release);
  if (wait_for(control,
               [&] { return control.phase.load(std::memory_order_acquire) != Phase::set_up; })) {
    const std::uint64_t faults = target.faults();
    if (usable) {
      if (role.mapper) {
        workload.run_mapper();
      } else {
        workload.run();
      }
    }
    slot.loop_faults = target.faults() - faults;
    slot.calls = target.calls();
    if (!role.mapper) control.counted_done.fetch_add(1, std::memory_order_release);
    control.loops_done.fetch_add(1, std::memory_order_release);
    // Nobody looks at memory before all have stopped changing it.
    if (wait_for(control,
                 [&] { return control.phase.load(std::memory_order_acquire) == Phase::stop; }) &&
        usable && !role.mapper) {
      workload.check();
    }
  }
  target.leave();
  control.ended.fetch_add(1, std::memory_order_release);
}

}  // namespace faultpath::lab
