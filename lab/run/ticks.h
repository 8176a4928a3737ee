// Clocks of the lab: a cheap tick counter for single operations, and seconds for windows.
#pragma once

#include <cstdint>
#include <ctime>

namespace faultpath::lab {

inline std::uint64_t clock_ns(clockid_t clock) {
  timespec t{};
  clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

inline double now_seconds() { return static_cast<double>(clock_ns(CLOCK_MONOTONIC)) * 1e-9; }

/// The time-stamp counter on x86, else nanoseconds.
inline std::uint64_t ticks() {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_ia32_rdtsc();
#else
  return clock_ns(CLOCK_MONOTONIC);
#endif
}

/// Nanoseconds in one tick; measured at the first call (10 ms), which is to come before any fork.
double ns_per_tick();

}  // namespace faultpath::lab
