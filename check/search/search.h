// Searching one scene: what is tried, in which order, and what was found.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check/scene/play.h"

namespace faultpath::check {

/// How much is tried. Counts, not times, so that the same seed tries the same.
struct Budget {
  std::uint64_t seed = 1;
  std::uint64_t random_runs = 2000;     ///< half RandomWalk, half Pct
  std::uint64_t search_runs = 100'000;  ///< most runs of the exhaustive part; it is cut off there
  bool exhaustive = true;
  bool by_hand = true;  ///< first the schedules that are stored beside planted bugs
  bool shrink = true;
};

/// What was found, and how to see it again.
struct Finding {
  sim::Detector detector{};
  std::string message;
  std::string how;          ///< `random`, `pct`, `bounded`, `dpor`, `by hand`
  std::uint64_t runs = 0;   ///< until it was found
  std::uint64_t steps = 0;  ///< of the shrunk run
  unsigned switches_found = 0;
  unsigned switches = 0;  ///< after shrinking
  std::optional<unsigned>
      switches_by_hand;  ///< of the stored schedule, where there is one and it works
  Schedule schedule;
};

/// One exhaustive claim: every schedule with at most so many preemptions, or all (dpor).
struct Claim {
  std::optional<unsigned> preemptions;  ///< none: unbounded
  std::uint64_t runs = 0;
  std::uint64_t pruned = 0;
  bool complete = false;
};

struct SearchResult {
  std::vector<Claim> claims;
  std::uint64_t runs = 0;
  std::uint64_t steps = 0;
  std::uint64_t random_runs = 0;
  std::uint64_t longest = 0;  ///< steps of the longest run
  std::uint64_t hash = 0;     ///< over the trace hashes of the random runs
  double seconds = 0;
  std::optional<Finding> finding;
};

/// Up to the first violation.
SearchResult search(Play& play, const Budget& budget);

}  // namespace faultpath::check
