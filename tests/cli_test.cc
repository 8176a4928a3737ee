// native-cli no-64k: the command-line tool as its users meet it.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Finished {
  int status = -1;  // exit status, or -1 where a signal ended it
  std::string out, err;
};

std::string drained(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t n; (n = ::read(fd, buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  ::close(fd);
  return text;
}

class Tool : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("FAULTPATH_BIN");
    if (path == nullptr || *path == '\0') GTEST_SKIP() << "FAULTPATH_BIN is not set";
    binary_ = path;
    ASSERT_EQ(::access(path, X_OK), 0) << path;
    std::string name = (fs::temp_directory_path() / "faultpath-cli-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override {
    if (!dir_.empty()) fs::remove_all(dir_);
  }

  // `out_fd`: standard output goes there instead of into the answer.
  Finished tool(const std::vector<std::string>& arguments, int out_fd = -1) const {
    std::vector<std::string> words{binary_};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (auto& w : words) argv.push_back(w.data());
    argv.push_back(nullptr);
    int out[2];
    int err[2];
    if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) return {};
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::dup2(out_fd >= 0 ? out_fd : out[1], 1);
      ::dup2(err[1], 2);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    ::close(out[1]);
    ::close(err[1]);
    Finished f;
    std::thread reader([&] { f.err = drained(err[0]); });
    f.out = drained(out[0]);
    reader.join();
    int status = 0;
    ::waitpid(pid, &status, 0);
    f.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return f;
  }

  std::string binary_;
  fs::path dir_;
};

std::string shown(const std::vector<std::string>& arguments) {
  std::string text = "faultpath";
  for (const auto& a : arguments) text += " " + a;
  return text;
}

TEST_F(Tool, BadUsageIsOneLineAndStatus2) {
  struct Case {
    std::vector<std::string> arguments;
    std::vector<std::string> named;  // what the line must hold
  };
  const auto file = (dir_ / "file").string();
  std::ofstream(file) << "x";
  const std::vector<Case> cases{
      {{}, {"no command", "faultpath help"}},
      {{"compar"}, {"'compar'", "'compare'"}},
      {{"RUN"}, {"'RUN'"}},
      {{"--nosuch"}, {"'--nosuch'", "faultpath help"}},
      {{"help", "nosuch"}, {"'nosuch'"}},
      {{"run"}, {"run:", "no workload", "faultpath list"}},
      {{"run", "nosuch"}, {"run:", "'nosuch'", "faultpath list"}},
      {{"run", "page_falt1"}, {"'page_falt1'", "did you mean 'page_fault1'"}},
      {{"run", "page_fault1", "nosuch"}, {"'nosuch'"}},
      {{"run", "line\nfeed"}, {"unknown workload"}},
      {{"run", ""}, {"empty"}},
      {{"run", "page_fault1", "-t", "0"}, {"-t '0'", "from 1"}},
      {{"run", "page_fault1", "-t", "-1"}, {"-t '-1'", "from 1"}},
      {{"run", "page_fault1", "-t", "1,"}, {"-t '1,'"}},
      {{"run", "page_fault1", "-t", "two"}, {"-t 'two'"}},
      {{"run", "page_fault1", "-t", "99999999999999999999"}, {"-t '99999"}},
      {{"run", "page_fault1", "-t"}, {"--tasks", "value"}},
      {{"run", "page_fault1", "-s", "0"}, {"-s '0'"}},
      {{"run", "page_fault1", "-s", "nan"}, {"-s 'nan'"}},
      {{"run", "page_fault1", "-s", "1s"}, {"-s '1s'"}},
      {{"run", "page_fault1", "-r", "0"}, {"-r '0'"}},
      {{"run", "page_fault1", "-r", "1.5"}, {"-r '1.5'"}},
      {{"run", "page_fault1", "--mode", "thread"}, {"--mode 'thread'", "threads"}},
      {{"run", "page_fault1", "--policy", "sfp"}, {"--policy 'sfp'", "'spf'"}},
      {{"run", "page_fault1", "--policy", "spf:nosuch=on"}, {"'spf:nosuch=on'"}},
      {{"run", "page_fault1", "--policy", "spf,spf"}, {"'spf'", "twice"}},
      {{"run", "page_fault1", "--policy", ""}, {"--policy", "empty"}},
      {{"run", "page_fault1", "--dir", "/nonexistent/dir"}, {"--dir '/nonexistent/dir'"}},
      {{"run", "page_fault1", "--dir", file}, {"--dir", "directory"}},
      {{"run", "page_fault1", "--memory", "much"}, {"--memory 'much'", "512M"}},
      {{"run", "page_fault1", "--memory", "0"}, {"--memory '0'"}},
      {{"run", "page_fault1", "--memory", "99999999T"}, {"--memory '99999999T'"}},
      {{"run", "page_fault1", "--memory", "4096T"}, {"--memory '4096T'", "MiB"}},
      {{"run", "page_fault1", "--memory", "1M"}, {"page_fault1", "memory"}},
      {{"run", "page_fault1", "--json", "/nonexistent/x.json"}, {"--json '/nonexistent/x.json'"}},
      {{"run", "page_fault1", "--json", dir_.string()}, {"--json", "directory"}},
      {{"run", "page_fault1", "--json", "-"}, {"--json '-'"}},
      {{"run", "page_fault1", "--json", ""}, {"--json", "empty"}},
      {{"run", "page_fault1", "--reapeats", "3"}, {"'--reapeats'", "'--repeats'"}},
      {{"run", "page_fault1", "--base", "spf"}, {"'--base'"}},
      {{"run", "page_fault1", "--quick=3"}, {"--quick"}},
      {{"run", "page_fault1", "--ebizzy", "-mT"}, {"--ebizzy"}},
      {{"run", "ebizzy", "--ebizzy", "-m -q"}, {"--ebizzy", "'-q'"}},
      {{"run", "ebizzy", "--ebizzy", "-m -M"}, {"-m and -M"}},
      {{"run", "ebizzy", "--ebizzy", "-n"}, {"--ebizzy"}},
      {{"run", "ebizzy", "--ebizzy", "-t 4"}, {"-t"}},
      {{"run", "ebizzy", "--ebizzy", "-s 12"}, {"-s"}},
      {{"compare"}, {"compare:", "no workload"}},
      {{"compare", "page_fault1", "--base", "mmap-lock,spf"}, {"--base", "one policy"}},
      {{"compare", "page_fault1", "--head", "mmap-lock"}, {"mmap-lock", "same"}},
      {{"compare", "page_fault1", "--head", "spf", "--head", "spf:single-thread-bypass=on"},
       {"--head", "twice"}},
      {{"compare", "page_fault1", "--fail-on-regression", "much"}, {"--fail-on-regression 'much'"}},
      {{"compare", "page_fault1", "--fail-on-regression", "-5"}, {"--fail-on-regression '-5'"}},
      {{"list", "nosuch"}, {"list:", "'nosuch'"}},
      {{"list", "workloads", "more"}, {"'more'"}},
      {{"bench"}, {"bench:"}},
      {{"bench", "nosuch"}, {"'nosuch'", "fault-cost"}},
      {{"bench", "fault-cost", "--json", "/nonexistent/x.json"}, {"--json '/nonexistent/x.json'"}},
  };
  for (const auto& c : cases) {
    const auto f = tool(c.arguments);
    const auto what = shown(c.arguments) + "\n" + f.err;
    EXPECT_EQ(f.status, 2) << what;
    EXPECT_EQ(f.out, "") << what;
    EXPECT_EQ(std::count(f.err.begin(), f.err.end(), '\n'), 1) << what;
    EXPECT_TRUE(f.err.starts_with("faultpath: ")) << what;
    EXPECT_TRUE(f.err.ends_with("\n")) << what;
    for (const auto& name : c.named) EXPECT_NE(f.err.find(name), std::string::npos) << name << what;
  }
}

TEST_F(Tool, ListNamesWorkloadsAndPolicies) {
  const auto all = tool({"list"});
  EXPECT_EQ(all.status, 0);
  EXPECT_EQ(all.err, "");
  const auto workloads = tool({"list", "workloads"});
  const auto policies = tool({"list", "policies"});
  EXPECT_EQ(all.out, workloads.out + "\n" + policies.out);
  std::vector<std::string> lines;
  std::istringstream in(all.out);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  for (const char* name :
       {"page_fault1", "page_fault2", "page_fault3", "brk1", "malloc1", "ebizzy", "fault_vs_mmap",
        "lat_sig_prot", "read2", "signal1", "context_switch1", "mmap-lock", "spf", "host"}) {
    EXPECT_EQ(std::count(lines.begin(), lines.end(), name), 1) << name;
  }
  const auto verbose = tool({"list", "-v"});
  EXPECT_EQ(verbose.status, 0);
  for (const char* part :
       {"Workloads:\n", "Policies:\n", "  page_fault1 ", "will-it-scale", "(null control: "}) {
    EXPECT_NE(verbose.out.find(part), std::string::npos) << part;
  }
}

TEST_F(Tool, HelpAndVersionGoToStandardOutput) {
  const auto version = tool({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out, "faultpath " FAULTPATH_VERSION "\n");
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"--help"}, {"-h"}, {"help"}, {"help", "run"}, {"run", "--help"}, {"compare", "-h"}}) {
    const auto f = tool(arguments);
    EXPECT_EQ(f.status, 0) << shown(arguments);
    EXPECT_EQ(f.err, "") << shown(arguments);
    EXPECT_NE(f.out.find("Usage: faultpath"), std::string::npos) << f.out;
  }
  EXPECT_EQ(tool({"help", "compare"}).out, tool({"compare", "--help"}).out);
  EXPECT_NE(tool({"help", "compare"}).out.find("--fail-on-regression"), std::string::npos);
}

TEST_F(Tool, ReaderThatWentAwayIsNoFailure) {
  int gone[2];
  ASSERT_EQ(::pipe2(gone, O_CLOEXEC), 0);
  ::close(gone[0]);
  const auto f = tool({"list", "-v"}, gone[1]);
  ::close(gone[1]);
  EXPECT_EQ(f.status, 0);
  EXPECT_EQ(f.err, "");
}

TEST_F(Tool, LostOutputIsSaid) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) GTEST_SKIP() << "no /dev/full";
  const auto f = tool({"list"}, full);
  ::close(full);
  EXPECT_EQ(f.status, 2);
  EXPECT_EQ(std::count(f.err.begin(), f.err.end(), '\n'), 1) << f.err;
}

// A document that was there before must survive bad usage.
TEST_F(Tool, BadUsageTouchesNoFile) {
  const auto path = dir_ / "r.json";
  std::ofstream(path) << "before";
  EXPECT_EQ(tool({"run", "page_fault1", "-t", "0", "--json", path.string()}).status, 2);
  EXPECT_EQ(tool({"run", "nosuch", "--json", path.string()}).status, 2);
  std::ifstream in(path);
  std::string text;
  std::getline(in, text);
  EXPECT_EQ(text, "before");
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), {}), 1);
}

TEST_F(Tool, RunMeasuresAndWritesADocument) {
  const auto path = dir_ / "r.json";
  const auto f = tool({"run", "brk1", "--policy", "mmap-lock,spf", "-s", "0.02", "-r", "1",
                       "--quick", "--json", path.string(), "--dir", dir_.string()});
  EXPECT_EQ(f.status, 0) << f.err;
  EXPECT_EQ(f.err, "");
  EXPECT_NE(f.out.find("brk1.per_thread_ops"), std::string::npos) << f.out;
  EXPECT_EQ(f.out.find('\033'), std::string::npos);
  std::ifstream in(path);
  const auto document = nlohmann::json::parse(in);
  ASSERT_EQ(document.at("runs").size(), 2u);
  EXPECT_EQ(document["runs"][1]["policy"], "spf");
  EXPECT_GT(document["runs"][1]["ops_per_second"][0].get<double>(), 0);
  EXPECT_EQ(document["version"], FAULTPATH_VERSION);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir_), {}), 1);
}

TEST_F(Tool, LatSigProtIsPrintedAsLmbenchDoes) {
  const auto path = dir_ / "r.json";
  const auto f = tool({"run", "lat_sig_prot", "-s", "0.1", "-r", "1", "--quick", "--json",
                       path.string(), "--dir", dir_.string()});
  EXPECT_EQ(f.status, 0) << f.err;
  EXPECT_NE(f.out.find("lat_sig_prot.time_per_access_ns"), std::string::npos) << f.out;
  const auto at = f.out.find("\nProtection fault: 0.");
  ASSERT_NE(at, std::string::npos) << f.out;
  EXPECT_EQ(f.out.find(" microseconds\n", at),
            at + std::string("\nProtection fault: 0.1234").size());
  std::ifstream in(path);
  const auto run = nlohmann::json::parse(in).at("runs").at(0);
  EXPECT_FALSE(run["null_control"].get<bool>());
  EXPECT_GT(run["samples"][0]["access_time"]["access_ns"].get<double>(), 0);
}

TEST_F(Tool, CompareSpeaksOfProgressWhenAsked) {
  const auto f =
      tool({"compare", "brk1", "-s", "0.02", "-r", "3", "--quick", "-v", "--dir", dir_.string()});
  EXPECT_EQ(f.status, 0) << f.err;
  EXPECT_NE(f.err.find("brk1"), std::string::npos);
  EXPECT_NE(f.out.find("mmap-lock against spf"), std::string::npos);
  EXPECT_NE(f.out.find("In short"), std::string::npos);
}

}  // namespace
