// Every planted bug: its stored schedule shows it, the search finds it, and what the search prints is
// not much longer than what a person wrote.
#include <gtest/gtest.h>

#include <string>

#include "check/scene/by_hand.h"
#include "check/search/search.h"

namespace faultpath::check {
namespace {

struct Bug {
  const Scene* scene;
  const Planted* planted;
};

std::vector<Bug> bugs() {
  std::vector<Bug> v;
  for (const Scene* s : all_scenes()) {
    for (const Planted& p : s->planted) v.push_back({s, &p});
  }
  return v;
}

std::string name_of_bug(const testing::TestParamInfo<Bug>& info) {
  std::string s = std::string(info.param.scene->name) + "_" + name_of(info.param.planted->guard);
  for (char& c : s) {
    if (c == '-') c = '_';
  }
  return s;
}

void PrintTo(const Bug& bug, std::ostream* out) {
  *out << bug.scene->name << " without " << name_of(bug.planted->guard);
}

class PlantedBug : public testing::TestWithParam<Bug> {
 protected:
  Variant without(Policy policy) const {
    return {GetParam().scene, PolicySpec(policy), guard_bit(GetParam().planted->guard), false};
  }
  std::vector<Policy> policies() const {
    if (GetParam().scene->only) return {*GetParam().scene->only};
    return {Policy::spf, Policy::vma_lock, Policy::mmap_lock};
  }
};

TEST_P(PlantedBug, IsShownByHandAndFound) {
  bool by_hand = false;
  bool found = false;
  for (const Policy policy : policies()) {
    Play play(without(policy));
    Budget budget;
    budget.search_runs = 60'000;
    const SearchResult r = search(play, budget);
    if (!r.finding) continue;
    found = found || r.finding->how != "by hand";
    EXPECT_TRUE(sim::semantic(r.finding->detector)) << sim::name_of(r.finding->detector);
    if (!r.finding->switches_by_hand) continue;
    by_hand = true;
    EXPECT_LE(r.finding->switches, 2 * *r.finding->switches_by_hand) << r.finding->message;
    break;
  }
  EXPECT_TRUE(found);
  EXPECT_TRUE(by_hand) << "the stored schedule shows nothing";
}

INSTANTIATE_TEST_SUITE_P(All, PlantedBug, testing::ValuesIn(bugs()), name_of_bug);

}  // namespace
}  // namespace faultpath::check
