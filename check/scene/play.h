// Play: a scene set up under one policy, ready to be run as often as one likes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/explore/schedule.h"
#include "check/model/at_rest.h"
#include "check/scene/scene.h"
#include "env/sim/world.h"

namespace faultpath::check {

/// What of a scene is played: the same three always give the same runs.
struct Variant {
  const Scene* scene = nullptr;
  PolicySpec policy{};
  std::uint64_t guards_off = 0;  ///< bit g: Guard g
  /// Race, assertion and unmarked-write detectors too. Mutants are to be killed without them.
  bool structural = true;
};

constexpr std::uint64_t guard_bit(Guard g) { return std::uint64_t{1} << static_cast<unsigned>(g); }

/// One at a time: it owns the simulated world.
class Play {
 public:
  explicit Play(const Variant& variant);
  Play(const Play&) = delete;
  Play& operator=(const Play&) = delete;
  ~Play();

  /// One run, judged. False: sim::World::get().violation() says what is wrong.
  bool run(sim::Strategy& strategy);

  /// Of the run in which each CPU runs to its end before the next one starts: another version of
  /// the engine or of the scene gives another.
  std::uint32_t fingerprint() const { return fingerprint_; }

  const Variant& variant() const { return variant_; }
  Stage& stage() { return *stage_; }
  std::span<const sim::Actor> actors() const { return actors_; }
  const sim::Limits& limits() const { return limits_; }

  std::uint64_t runs() const { return runs_; }
  std::uint64_t steps() const { return steps_; }

 private:
  void judge();
  void look_at_rest();
  Rest rest_of_stage();

  Variant variant_;
  std::optional<Stage> stage_;
  unsigned setup_events_ = 0;
  std::vector<sim::Actor> actors_;
  sim::Limits limits_;
  std::vector<vma::Mm*> spaces_;
  std::vector<Rest::File> files_;
  std::uint32_t fingerprint_ = 0;
  std::uint64_t runs_ = 0;
  std::uint64_t steps_ = 0;
};

}  // namespace faultpath::check
