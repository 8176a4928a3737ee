// The report of a violation, for a person.
#pragma once

#include <string>
#include <string_view>

#include "check/explore/schedule.h"
#include "check/scene/play.h"

namespace faultpath::check {

/// Replays the schedule, and tells: what was found, the scene's story, the stage before the run, the
/// run, the stage at its end, and as the last line `replay_command`. Plain text, 100 columns wide. The
/// world is left with the stage as it is before a run.
std::string report(Play& play, const Schedule& schedule, std::string_view replay_command);

}  // namespace faultpath::check
