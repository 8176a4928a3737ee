#include "check/search/search.h"

#include <algorithm>
#include <chrono>

#include "check/explore/bounded.h"
#include "check/explore/dpor.h"
#include "check/explore/random.h"
#include "check/explore/shrink.h"
#include "check/scene/by_hand.h"

namespace faultpath::check {

namespace {

/// Runs with every place taken as shared, in which the scene's shared places are learned: the
/// searches ask only there.
constexpr unsigned kLearning = 40;
constexpr unsigned kPctDepth = 3;

class Search {
 public:
  Search(Play& play, const Budget& budget) : play_(play), budget_(budget) {}

  SearchResult go() {
    const auto began = std::chrono::steady_clock::now();
    if (budget_.by_hand) by_hand();
    const bool found = learn() || random_runs() || (budget_.exhaustive && exhaustive());
    result_.runs = play_.runs();
    if (!found) result_.finding = std::move(by_hand_);
    if (result_.finding) explain_finding();
    result_.steps = play_.steps();
    result_.seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    return std::move(result_);
  }

 private:
  sim::World& world() { return sim::World::get(); }

  /// True at a violation.
  bool run(sim::Strategy& strategy, const char* how) {
    const bool fine = play_.run(strategy);
    result_.longest = std::max(result_.longest, world().steps());
    if (fine) return false;
    Finding f;
    f.how = how;
    f.runs = play_.runs();
    note(f);
    f.schedule = from_trace(world().trace());
    f.schedule.fingerprint = play_.fingerprint();
    f.switches_found = switches(f.schedule);
    result_.finding = std::move(f);
    return true;
  }

  void note(Finding& f) {
    f.detector = world().violation().detector;
    f.message = world().violation().message;
    f.steps = world().steps();
  }

  const Planted* planted() const {
    for (const Planted& p : play_.variant().scene->planted) {
      if ((play_.variant().guards_off & guard_bit(p.guard)) != 0) return &p;
    }
    return nullptr;
  }

  /// The stored schedule shows the bug: what the found one is measured by. It counts as found only
  /// if nothing else finds it.
  void by_hand() {
    const Planted* p = planted();
    if (p == nullptr || p->by_hand.empty()) return;
    ByHand strategy(p->by_hand);
    if (!run(strategy, "by hand")) return;
    by_hand_ = std::move(result_.finding);
    result_.finding.reset();
  }

  /// One CPU that nobody interrupts has one schedule.
  bool alone() const {
    const auto actors = play_.actors();
    return actors.size() == 1 && actors[0].handler == nullptr;
  }

  bool learn() {
    world().treat_all_as_shared(true);
    RandomWalk walk(budget_.seed);
    bool found = false;
    const unsigned most = alone() ? 1 : kLearning;
    for (unsigned i = 0; i < most && !found && walk.next(); ++i) found = run(walk, "random");
    world().treat_all_as_shared(false);
    return found;
  }

  bool random_runs() {
    RandomWalk walk(budget_.seed + 1);
    Pct pct(budget_.seed + 2, kPctDepth, 300);
    const std::uint64_t most =
        alone() ? std::min<std::uint64_t>(1, budget_.random_runs) : budget_.random_runs;
    for (std::uint64_t i = 0; i < most; ++i) {
      const bool odd = (i & 1) != 0;
      if (odd) {
        pct.next();
      } else {
        walk.next();
      }
      if (odd ? run(pct, "pct") : run(walk, "random")) return true;
      ++result_.random_runs;
      result_.hash = (result_.hash ^ world().trace_hash()) * 0x100000001b3;
    }
    return false;
  }

  bool exhaustive() {
    const Scene& scene = *play_.variant().scene;
    if (scene.unbounded) {
      DporSearch dpor;
      while (dpor.runs() + dpor.pruned() < budget_.search_runs && dpor.next()) {
        if (run(dpor, "dpor")) return true;
      }
      result_.claims.push_back({std::nullopt, dpor.runs(), dpor.pruned(), dpor.complete()});
      if (dpor.complete()) return false;
    }
    BoundedSearch bounded(scene.preemptions);
    Claim claim{0u, 0, 0, false};
    for (std::uint64_t runs = 0; runs < budget_.search_runs; ++runs) {
      const bool more = bounded.next();
      if (!more || bounded.level() != *claim.preemptions) {
        claim.complete = true;
        result_.claims.push_back(claim);
        if (!more) {
          if (bounded.exhausted()) result_.claims.back().preemptions.reset();
          return false;
        }
        claim = {bounded.level(), 0, 0, false};
      }
      claim.runs = bounded.runs_of_pass();
      if (run(bounded, "bounded")) return true;
    }
    result_.claims.push_back(claim);
    return false;
  }

  /// A finding may be shrunk to one of another detector only where both judge a run that has ended:
  /// a page that is in no VMA is also one that is stored to after the unmap, if somebody still does.
  static bool alike(sim::Detector a, sim::Detector b) {
    const auto at_end = [](sim::Detector d) {
      return d == sim::Detector::value || d == sim::Detector::conservation;
    };
    return a == b || (at_end(a) && at_end(b));
  }

  void explain_finding() {
    Finding& f = *result_.finding;
    if (budget_.shrink) {
      const sim::Detector wanted = f.detector;
      f.schedule = shrink(f.schedule, [&](sim::Strategy& strategy, Schedule* executed) {
        if (play_.run(strategy) || !alike(world().violation().detector, wanted)) return false;
        *executed = from_trace(world().trace());
        return true;
      });
      f.schedule.fingerprint = play_.fingerprint();
      Replay replay(f.schedule);
      play_.run(replay);
      note(f);
    }
    f.switches = switches(f.schedule);
    if (by_hand_) f.switches_by_hand = by_hand_->switches_found;
    if (f.how == "by hand") f.switches_by_hand = f.switches_found;
  }

  Play& play_;
  const Budget& budget_;
  SearchResult result_;
  std::optional<Finding> by_hand_;
};

}  // namespace

SearchResult search(Play& play, const Budget& budget) { return Search(play, budget).go(); }

}  // namespace faultpath::check
