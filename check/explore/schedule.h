// A schedule: who runs for how many steps. From the same snapshot it gives the same run.
#pragma once

#include <cstdint>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "env/sim/world.h"

namespace faultpath::check {

/// Changes when a schedule of before would no longer give the same run.
inline constexpr unsigned kScheduleVersion = 1;

/// `cpu` takes `steps` steps, no other CPU in between.
struct Segment {
  std::uint8_t cpu = 0;
  bool inject = false;  ///< its first step starts a nested handler
  std::uint32_t steps = 0;
  friend bool operator==(const Segment&, const Segment&) = default;
};

struct Schedule {
  /// Of the scene that it belongs to, so that it is not taken for another's.
  std::uint32_t fingerprint = 0;
  std::vector<Segment> segments;
  friend bool operator==(const Schedule&, const Schedule&) = default;

  /// Adds steps at the end; makes a segment only where one is needed.
  void append(unsigned cpu, bool inject, std::uint32_t steps);
};

/// Steps of all segments.
std::uint64_t steps(const Schedule& schedule);
/// Changes of CPU.
unsigned switches(const Schedule& schedule);

/// `VERSION.FINGERPRINT.SEGMENTS`: `1.7f3a9c02.0x14-2x30-1i5` is CPU 0 for 14 steps, CPU 2 for 30,
/// and CPU 1 for 5 that begin with a nested handler. No character that a shell would touch.
std::string to_string(const Schedule& schedule);
/// The error is one line: what is wrong, and where.
std::expected<Schedule, std::string> parse_schedule(std::string_view text);

/// The schedule of a run that was recorded.
Schedule from_trace(std::span<const sim::Step> trace);

}  // namespace faultpath::check
