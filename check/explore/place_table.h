// What a run has done to each place.
#pragma once

#include <cstdint>
#include <vector>

#include "env/sim/world.h"

namespace faultpath::check {

/// Steps are numbered from 1; 0 is none.
struct PlaceUse {
  sim::Place place = sim::kNoPlace;
  std::uint32_t run = 0;
  std::uint32_t write = 0;                 ///< the last one
  std::uint32_t last[sim::kMaxCpus] = {};  ///< each CPU's last operation
  std::uint32_t acquired = 0;              ///< a lock: when it was last taken
  bool held = false;                       ///< a lock: it is taken
};

/// A hash table that is emptied in no time, and allocates only when it grows.
class PlaceTable {
 public:
  PlaceTable() : slots_(kFirstSize) {}

  void clear() {
    ++run_;
    used_ = 0;
  }
  PlaceUse& at(sim::Place place) {
    PlaceUse& found = slots_[slot(place)];
    if (found.run == run_) return found;
    if (2 * ++used_ > slots_.size()) {
      grow();
      return fresh(slots_[slot(place)], place);
    }
    return fresh(found, place);
  }

 private:
  static constexpr std::size_t kFirstSize = 1024;  // a power of two

  /// Where the place stands, or where it would.
  std::size_t slot(sim::Place place) const {
    const std::size_t mask = slots_.size() - 1;
    std::size_t i = (place * std::uint64_t{0x9e3779b97f4a7c15}) >> 32 & mask;
    while (slots_[i].run == run_ && slots_[i].place != place) i = (i + 1) & mask;
    return i;
  }
  PlaceUse& fresh(PlaceUse& use, sim::Place place) {
    use = PlaceUse{};
    use.place = place;
    use.run = run_;
    return use;
  }
  void grow() {
    std::vector<PlaceUse> old(2 * slots_.size());
    old.swap(slots_);
    for (const PlaceUse& use : old) {
      if (use.run == run_) slots_[slot(use.place)] = use;
    }
  }

  std::vector<PlaceUse> slots_;
  std::size_t used_ = 0;
  std::uint32_t run_ = 1;
};

}  // namespace faultpath::check
