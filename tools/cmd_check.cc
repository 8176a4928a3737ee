// check: hands over to the checker, an executable of its own, as one binary holds one world.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <vector>

#include "tools/cli.h"
#include "tools/commands.h"

namespace faultpath::tools {

int cmd_check(const Invocation& invocation) {
  std::error_code error;
  const auto self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string checker =
      error ? "faultpath-check" : (self.parent_path() / "faultpath-check").string();
  std::vector<char*> arguments{const_cast<char*>(checker.c_str())};
  arguments.insert(arguments.end(), invocation.argv, invocation.argv + invocation.argc);
  arguments.push_back(nullptr);
  execv(checker.c_str(), arguments.data());
  complain(fmt::format("check: '{}' cannot be run: {}", checker, std::strerror(errno)));
  return kSkipped;
}

}  // namespace faultpath::tools
