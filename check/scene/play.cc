#include "check/scene/play.h"

#include <algorithm>

#include "check/explore/replay.h"
#include "check/model/at_rest.h"
#include "check/model/page_model.h"

namespace faultpath::check {

namespace {

void run_script(void* context) {
  auto& s = *static_cast<Script*>(context);
  if (s.body) s.body(s);
}
void run_handler(void* context) {
  auto& s = *static_cast<Script*>(context);
  s.handler(s);
}

}  // namespace

Play::Play(const Variant& variant) : variant_(variant) {
  sim::World& world = sim::World::get();
  world.set_guards_off(0);
  world.set_structural(variant.structural);
  stage_.emplace(variant.policy, variant.scene->seed);
  variant.scene->build(*stage_);
  stage_->finish();
  setup_events_ = stage_->history().size();
  for (Script& s : stage_->scripts()) {
    actors_.push_back({s.name(), run_script, &s, s.handler ? run_handler : nullptr});
  }
  limits_.injections = variant.scene->injections;
  limits_.call_steps = variant.scene->call_steps;
  limits_.steps = std::max(limits_.steps, limits_.call_steps);
  world.freeze();

  Replay in_turn{Schedule{}};
  const unsigned injections = limits_.injections;
  limits_.injections = 0;
  run(in_turn);
  limits_.injections = injections;
  const std::uint64_t hash = world.trace_hash();
  fingerprint_ = static_cast<std::uint32_t>(hash ^ (hash >> 32));
  runs_ = steps_ = 0;
}

Play::~Play() { sim::World::get().set_guards_off(0); }

bool Play::run(sim::Strategy& strategy) {
  sim::World& world = sim::World::get();
  stage_->history().keep(setup_events_);
  for (Script& s : stage_->scripts()) s.rewind();
  world.set_guards_off(variant_.guards_off);
  const bool fine = world.run(actors_, strategy, limits_);
  world.set_guards_off(0);
  ++runs_;
  steps_ += world.steps();
  if (!fine) return false;
  judge();
  return !world.violation();
}

void Play::look_at_rest() {
  // The engine's structures may be broken beyond walking: a crash in here is a finding too.
  struct Look {
    Play& play;
    bool fine = false;
    std::string why;
  } look{*this, false, {}};
  const bool walked = sim::World::get().guarded(
      [](void* context) {
        auto& l = *static_cast<Look*>(context);
        l.fine = at_rest(l.play.rest_of_stage(), &l.why);
      },
      &look);
  if (!walked) look.why = "the engine's structures cannot be walked";
  if (!walked || !look.fine) {
    sim::World::get().violate(sim::Detector::conservation, std::move(look.why));
  }
}

Rest Play::rest_of_stage() {
  spaces_.clear();
  for (unsigned i = 0; i < Stage::kSpaces; ++i) {
    if (stage_->has_space(i)) spaces_.push_back(&stage_->space(i).mm());
  }
  files_.clear();
  for (unsigned i = 1; i <= stage_->file_count(); ++i) {
    files_.push_back({stage_->file(i).object(), 1, &stage_->store(i)});
  }
  static constexpr Range kWindows[] = {{page(0), page(16)}, {kThere, kThere + 16 * kPageSize}};
  return {&stage_->machine().core(), spaces_, files_, kWindows};
}

void Play::judge() {
  sim::World& world = sim::World::get();
  if (!stage_->bare) {
    std::string why;
    if (stage_->history().overflowed()) {
      world.violate(sim::Detector::value, "more calls than a history holds");
    } else if (!explain(stage_->model_state(), stage_->history(), &why)) {
      world.violate(sim::Detector::value, std::move(why));
    }
    if (world.violation()) return;
    look_at_rest();
  }
  if (world.violation() || !stage_->at_rest) return;
  std::string wrong = stage_->at_rest();
  if (!wrong.empty()) world.violate(sim::Detector::conservation, std::move(wrong));
}

}  // namespace faultpath::check
