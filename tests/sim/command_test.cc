// The command's manners, and that its findings can be seen again.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace {

using nlohmann::json;

struct Ended {
  int status = -1;
  std::string output;  ///< both streams
};

/// Runs the checker with these arguments, and whatever address-space layout the host gives.
Ended check(const std::string& arguments) {
  const char* program = std::getenv("FAULTPATH_CHECK");
  if (program == nullptr) return {};
  const std::string line = std::string(program) + " " + arguments + " 2>&1";
  std::FILE* pipe = popen(line.c_str(), "r");
  Ended e;
  char buffer[4096];
  while (std::size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) e.output.append(buffer, n);
  const int raw = pclose(pipe);
  e.status = WIFEXITED(raw) ? WEXITSTATUS(raw) : -1;
  return e;
}

class Command : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("FAULTPATH_CHECK") == nullptr) GTEST_SKIP() << "FAULTPATH_CHECK is not set";
  }
  static std::string file(const char* name) { return testing::TempDir() + name; }
  static json read(const std::string& path) { return json::parse(std::ifstream(path)); }
};

int lines(const std::string& s) { return static_cast<int>(std::count(s.begin(), s.end(), '\n')); }

TEST_F(Command, BadWordsGetOneLineAndTwo) {
  for (const char* arguments :
       {"no-such-scene", "Z99", "--policy nosuch", "--without nosuch", "--schedules x",
        "--schedules -1", "generated-x", "--replay 1.0.0x1", "--json /no/such/place/x.json B26",
        "fork-against-speculative-copy --policy spf --replay garbage",
        "fork-against-speculative-copy --policy spf --replay 1.00000000.0x",
        "fork-against-speculative-copy --policy spf --replay 1.00000000.0x5",
        "fork-against-speculative-copy --policy spf --replay 9.00000000.0x5", "--nosuch"}) {
    const Ended e = check(arguments);
    EXPECT_EQ(e.status, 2) << arguments << "\n" << e.output;
    EXPECT_EQ(lines(e.output), 1) << arguments << "\n" << e.output;
    EXPECT_NE(e.output.find("check"), std::string::npos) << e.output;
  }
}

TEST_F(Command, AnotherVersionIsCalledSo) {
  const Ended e = check("fork-against-speculative-copy --policy spf --replay 9.00000000.0x5");
  EXPECT_NE(e.output.find("version"), std::string::npos) << e.output;
  const Ended f = check("fork-against-speculative-copy --policy spf --replay 1.00000000.0x5");
  EXPECT_NE(f.output.find("version"), std::string::npos) << f.output;
}

TEST_F(Command, OneSeedGivesOneHashInTwoProcesses) {
  const std::string arguments = "B26 --schedules 200 --search 2000 --seed 5 --json ";
  ASSERT_EQ(check(arguments + file("one.json")).status, 0);
  ASSERT_EQ(check(arguments + file("two.json") + " --jobs 1").status, 0);
  ASSERT_EQ(check("B26 --schedules 200 --search 2000 --seed 6 --json " + file("three.json")).status,
            0);
  const json one = read(file("one.json"));
  const json two = read(file("two.json"));
  const json three = read(file("three.json"));
  EXPECT_EQ(one.at("trace_hash"), two.at("trace_hash"));
  EXPECT_EQ(one.at("steps"), two.at("steps"));
  EXPECT_NE(one.at("trace_hash"), three.at("trace_hash"));
}

TEST_F(Command, APlantedBugIsFoundAndItsCommandShowsItAgain) {
  const Ended found =
      check("fork-against-speculative-copy --policy spf --without fork_marks_parent --json " +
            file("found.json"));
  EXPECT_EQ(found.status, 1) << found.output;
  const json f = read(file("found.json")).at("results").at(0).at("finding");
  const std::string command = f.at("replay").get<std::string>();
  const std::string prefix = "faultpath check ";
  ASSERT_EQ(command.substr(0, prefix.size()), prefix);
  const Ended again = check(command.substr(prefix.size()));
  EXPECT_EQ(again.status, 1) << again.output;
  const std::string message = f.at("message").get<std::string>();
  const std::string last = message.substr(message.rfind('\n') + 1);
  EXPECT_NE(again.output.find(last), std::string::npos) << again.output;
  EXPECT_NE(again.output.find(command), std::string::npos) << again.output;
  EXPECT_LE(f.at("switches").get<unsigned>(), 2 * f.at("switches_by_hand").get<unsigned>());
}

TEST_F(Command, VersionElevenIsFoundWanting) {
  const Ended e = check("B26 --policy spf-v11");
  EXPECT_EQ(e.status, 1) << e.output;
}

TEST_F(Command, TheListNamesScenesAndIds) {
  const Ended e = check("--list");
  EXPECT_EQ(e.status, 0);
  EXPECT_NE(e.output.find("fork-against-speculative-copy"), std::string::npos);
  EXPECT_NE(e.output.find("B26"), std::string::npos);
}

TEST_F(Command, HelpIsHelp) {
  const Ended e = check("--help");
  EXPECT_EQ(e.status, 0);
  EXPECT_NE(e.output.find("--policy"), std::string::npos);
}

}  // namespace
