// Scene: a name, the scenarios it plays, and how its stage is set.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/guards.h"
#include "check/scene/stage.h"

namespace faultpath::check {

/// One switch or guard line of a schedule that a person wrote down: `cpu` runs until it is about to
/// do something in a function (or file) whose name contains `until`, for the `nth` time; empty: to
/// its end. `lock@Gather::` asks for that kind of operation besides.
struct Cue {
  unsigned cpu = 0;
  std::string_view until{};
  unsigned nth = 1;
};

/// A bug that is known to be found: a guard switched off, and a schedule by hand that shows it.
struct Planted {
  Guard guard{};
  std::span<const Cue> by_hand{};
};

struct Scene {
  std::string_view name;   ///< `fork-against-speculative-copy`
  std::string_view ids;    ///< scenarios, invariants and rules it plays: `B26 I5`
  std::string_view story;  ///< who does what, and what would go wrong
  void (*build)(Stage& stage);
  std::span<const Planted> planted{};  ///< guards that this scene kills
  std::optional<Policy> only{};        ///< plays under one policy alone
  /// Every schedule with at most so many preemptions is tried.
  unsigned preemptions = 2;
  /// Every schedule at all is tried (small scenes).
  bool unbounded = false;
  unsigned injections = 0;  ///< nested handlers in a run
  std::uint64_t call_steps = 4000;
  std::uint64_t seed = 0;  ///< of a generated scene
};

inline bool plays_under(const Scene& scene, Policy policy) {
  return !scene.only || *scene.only == policy;
}

/// All scenes that are written down, in the order of their numbers.
std::span<const Scene* const> all_scenes();

}  // namespace faultpath::check
