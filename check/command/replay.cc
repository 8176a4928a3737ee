// One schedule, shown.
#include <fmt/format.h>

#include "check/command/job.h"
#include "check/explore/replay.h"
#include "check/report/report.h"
#include "tools/cli.h"

namespace faultpath::check {

int replay(const Options& options) {
  const auto schedule = parse_schedule(options.replay);
  if (!schedule) throw tools::UsageError("--replay: " + schedule.error());
  const Scene& scene = *options.scenes.front();
  const PolicyChoice& policy = options.policies.front();
  Play play(options.variant(scene, policy));
  if (schedule->fingerprint != play.fingerprint()) {
    throw tools::UsageError(fmt::format(
        "--replay: the schedule is of another version of {} under {} ({:08x}; this one is {:08x})",
        scene.name, policy.name, schedule->fingerprint, play.fingerprint()));
  }
  Replay strategy(*schedule);
  const bool fine = play.run(strategy);
  if (strategy.diverged()) {
    throw tools::UsageError("--replay: the schedule cannot be followed to its end in this scene");
  }
  tools::print(report(play, *schedule,
                      replay_command(scene, policy, options.without, to_string(*schedule))));
  return fine ? tools::kDone : tools::kWrong;
}

}  // namespace faultpath::check
