// What all commands share: exit statuses, output, complaints, reading of values.
#pragma once

#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace faultpath::tools {

inline constexpr int kDone = 0;
inline constexpr int kWrong = 1;      ///< a result was wrong or a check failed
inline constexpr int kBadUsage = 2;   ///< bad usage or input
inline constexpr int kThreshold = 3;  ///< a threshold asked for was crossed
inline constexpr int kSkipped = 4;    ///< this machine or build lacks what it needs

/// Bad usage: one line that names what, where and what to do, without the command's name.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// "faultpath: TEXT" on standard error, in one line whatever is in TEXT.
void complain(std::string_view text);

/// Writes to standard output. A reader that went away (a pipe into `head`) is no failure: the rest
/// is dropped. After any other error the first one is kept for finish_output().
void print(std::string_view text);

/// Flushes; the exit status to end with: `status`, or 2 with a complaint where output was lost.
int finish_output(int status);

/// Color on standard output: it is a terminal, and NO_COLOR is unset or empty.
bool wants_color();

/// One line on standard error that is rewritten; lines of their own where that is no terminal but
/// `verbose`; else nothing. Cleared on destruction.
class Progress {
 public:
  explicit Progress(bool verbose);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(std::string_view text);

 private:
  bool terminal_;
  bool lines_;
  bool shown_ = false;
};

/// The name nearest to `word`, if it is near enough to be meant.
std::string nearest(std::string_view word, std::span<const std::string> names);

/// "; did you mean 'spf'?", or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string> names);

/// Values; `option` names the place in the complaint. Each throws UsageError.
std::vector<int> parse_tasks(std::string_view option, std::string_view text, int most);
double parse_seconds(std::string_view option, std::string_view text);
int parse_count(std::string_view option, std::string_view text, int least, int most);
double parse_percent(std::string_view option, std::string_view text);
/// Bytes with an optional K, M, G or T, which are powers of 1024.
std::uint64_t parse_size(std::string_view option, std::string_view text);

/// Splits `spf:a=b,c=d,host` into policies: a comma may also divide one policy's switches.
std::vector<std::string> split_policies(std::string_view text);

/// Parses a command's arguments (argv from the first after its name). True: go on. False: help was
/// printed. Throws UsageError.
bool parse_arguments(CLI::App& app, int argc, char** argv);

/// The command line as one string, quoted where a shell would need it.
std::string command_line(int argc, char** argv);

}  // namespace faultpath::tools
