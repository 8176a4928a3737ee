#include "lab/run/ticks.h"

namespace faultpath::lab {

double ns_per_tick() {
  static const double ratio = [] {
    const std::uint64_t ns_begin = clock_ns(CLOCK_MONOTONIC);
    const std::uint64_t ticks_begin = ticks();
    std::uint64_t ns_end = ns_begin;
    while (ns_end - ns_begin < 10'000'000) ns_end = clock_ns(CLOCK_MONOTONIC);
    const std::uint64_t passed = ticks() - ticks_begin;
    return passed == 0 ? 1.0 : static_cast<double>(ns_end - ns_begin) / static_cast<double>(passed);
  }();
  return ratio;
}

}  // namespace faultpath::lab
