// Makes a failing schedule short enough to be read.
#pragma once

#include <functional>

#include "check/explore/schedule.h"

namespace faultpath::check {

/// Runs the scene under the strategy. True if it still fails, with the schedule of what was
/// executed (from_trace) in `executed`.
using StillFails = std::function<bool(sim::Strategy& strategy, Schedule* executed)>;

inline constexpr unsigned kShrinkTries = 3000;

/// A schedule that fails with fewer switches, nested handlers and steps, in this order; an exact
/// one, as it was executed. Tries until nothing helps any more, at most `tries` runs. `failing`
/// itself if it does not fail.
Schedule shrink(const Schedule& failing, const StillFails& still_fails,
                unsigned tries = kShrinkTries);

}  // namespace faultpath::check
