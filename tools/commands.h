// The commands. Each gets the arguments after its name, and the whole command line for the record.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace faultpath::tools {

struct Invocation {
  int argc = 0;
  char** argv = nullptr;
  std::string command;  ///< the whole line, as it goes into results
};

int cmd_run(const Invocation& invocation);
int cmd_compare(const Invocation& invocation);
int cmd_list(const Invocation& invocation);
int cmd_bench(const Invocation& invocation);
int cmd_check(const Invocation& invocation);

}  // namespace faultpath::tools
