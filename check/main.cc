// faultpath-check: the simulated world's executable, which `faultpath check` runs.
#include <csignal>
#include <exception>

#include "check/command/options.h"
#include "tools/cli.h"

namespace fp = faultpath::check;
namespace tools = faultpath::tools;

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    fp::Options options;
    if (!fp::read_options(argc - 1, argv + 1, &options)) return tools::finish_output(tools::kDone);
    int status = 0;
    if (options.list) {
      status = fp::list_scenes(options);
    } else if (!options.replay.empty()) {
      status = fp::replay(options);
    } else if (options.mutants) {
      status = fp::run_mutants(options);
    } else {
      status = fp::run_scenes(options);
    }
    return tools::finish_output(status);
  } catch (const tools::UsageError& e) {
    tools::complain(std::string("check: ") + e.what());
    return tools::kBadUsage;
  } catch (const std::exception& e) {
    tools::complain(std::string("check: ") + e.what());
    return tools::kSkipped;
  }
}
