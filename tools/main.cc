// faultpath: measures page-fault policies.
#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "tools/cli.h"
#include "tools/commands.h"

namespace faultpath::tools {
namespace {

struct Command {
  const char* name;
  const char* summary;
  int (*run)(const Invocation&);
};

constexpr Command kCommands[] = {
    {"run", "measure workloads under one or several policies", cmd_run},
    {"compare", "measure, and compare policies with a base", cmd_compare},
    {"list", "name the workloads and the policies", cmd_list},
    {"bench", "small benchmarks of single things", cmd_bench},
    {"check", "try interleavings of the engine's own code, and judge each", cmd_check},
};

std::string help_text() {
  std::string text =
      "faultpath measures how page-fault policies of a virtual-memory engine behave.\n"
      "\n"
      "Usage: faultpath COMMAND [ARGUMENT...]\n"
      "       faultpath help COMMAND\n"
      "       faultpath --version\n"
      "\n"
      "Commands:\n";
  for (const auto& c : kCommands) text += fmt::format("  {:<9} {}\n", c.name, c.summary);
  text +=
      "\n"
      "For a start: faultpath compare fault_vs_mmap page_fault1 --base mmap-lock --head spf -t "
      "1,2\n"
      "\n"
      "Results go to standard output, progress and warnings to standard error.\n"
      "Exit status: 0 done; 1 a result was wrong or a check failed; 2 bad usage or input; 3 a\n"
      "threshold asked for was crossed; 4 skipped, this machine or build lacks what it needs.\n";
  return text;
}

const Command* find_command(std::string_view name) {
  for (const auto& c : kCommands) {
    if (name == c.name) return &c;
  }
  return nullptr;
}

UsageError unknown_command(std::string_view word) {
  std::vector<std::string> names{"help"};
  for (const auto& c : kCommands) names.emplace_back(c.name);
  const auto hint = did_you_mean(word, names);
  return UsageError(fmt::format("unknown command '{}'{} 'faultpath help' lists them", word,
                                hint.empty() ? ";" : hint));
}

int dispatch(int argc, char** argv) {
  if (argc < 2) throw UsageError("no command given; 'faultpath help' lists them");
  const std::string_view word = argv[1];
  if (word == "--version") {
    print("faultpath " FAULTPATH_VERSION "\n");
    return kDone;
  }
  if (word == "help" || word == "--help" || word == "-h") {
    if (argc < 3) {
      print(help_text());
      return kDone;
    }
    const auto* command = find_command(argv[2]);
    if (command == nullptr) throw unknown_command(argv[2]);
    char help[] = "--help";
    char* arguments[] = {help, nullptr};
    return command->run({1, arguments, ""});
  }
  if (word.starts_with('-')) {
    throw UsageError(
        fmt::format("unknown option '{}' before a command; 'faultpath help' lists commands", word));
  }
  const auto* command = find_command(word);
  if (command == nullptr) throw unknown_command(word);
  return command->run({argc - 2, argv + 2, command_line(argc, argv)});
}

}  // namespace
}  // namespace faultpath::tools

int main(int argc, char** argv) {
  using namespace faultpath::tools;
  // A reader that has gone shows as an error of the write.
  std::signal(SIGPIPE, SIG_IGN);
  int status = kBadUsage;
  try {
    status = dispatch(argc, argv);
  } catch (const UsageError& e) {
    complain(argc > 1 && find_command(argv[1]) ? fmt::format("{}: {}", argv[1], e.what())
                                               : std::string(e.what()));
  } catch (const std::bad_alloc&) {
    complain("out of memory");
  } catch (const std::system_error& e) {
    // fmt::print() throws where the reader of standard output has gone.
    const bool gone = e.code().value() == EPIPE;
    if (gone) status = kDone;
    if (!gone) complain(e.what());
  } catch (const std::exception& e) {
    complain(e.what());
  }
  return finish_output(status);
}
