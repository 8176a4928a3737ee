// docs/SCENARIOS.md and the scenes say the same: who plays which scenario.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

#include "check/scene/scene.h"

namespace faultpath::check {
namespace {

/// The last column of each scenario's row.
std::map<std::string, std::string> scene_column() {
  std::map<std::string, std::string> rows;
  std::ifstream in(FAULTPATH_SOURCE_DIR "/docs/SCENARIOS.md");
  for (std::string line; std::getline(in, line);) {
    if (line.size() < 8 || line.compare(0, 3, "| B") != 0) continue;
    const std::size_t end = line.rfind('|');
    const std::size_t begin = line.rfind('|', end - 1);
    rows[line.substr(2, 3)] = line.substr(begin + 1, end - begin - 1);
  }
  return rows;
}

TEST(Scenarios, EverySceneIsInTheRowsOfItsScenarios) {
  const auto rows = scene_column();
  ASSERT_EQ(rows.size(), 70u);
  std::map<std::string, std::set<std::string>> played;
  for (const Scene* s : all_scenes()) {
    std::istringstream ids{std::string(s->ids)};
    for (std::string id; ids >> id;) {
      if (!id.empty() && id.back() == ',') id.pop_back();
      if (id.size() != 3 || id[0] != 'B') continue;
      ASSERT_TRUE(rows.contains(id)) << s->name << " plays " << id;
      EXPECT_NE(rows.at(id).find("`" + std::string(s->name) + "`"), std::string::npos)
          << id << " does not name " << s->name;
      played[id].insert(std::string(s->name));
    }
  }
  for (const auto& [id, text] : rows) {
    std::istringstream in(text);
    for (std::string word; std::getline(in, word, '`');) {
      if (!std::getline(in, word, '`')) break;
      EXPECT_TRUE(played[id].contains(word)) << id << " names " << word;
    }
  }
}

TEST(Scenarios, NamesAreUniqueAndReadable) {
  std::set<std::string_view> names;
  for (const Scene* s : all_scenes()) {
    EXPECT_TRUE(names.insert(s->name).second) << s->name;
    EXPECT_EQ(s->name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-"),
              std::string_view::npos)
        << s->name;
    EXPECT_FALSE(s->story.empty()) << s->name;
    EXPECT_FALSE(s->ids.empty()) << s->name;
  }
}

}  // namespace
}  // namespace faultpath::check
