#include "tools/cli.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace faultpath::tools {
namespace {

int output_error = 0;
bool reader_gone = false;

std::string in_one_line(std::string_view text) {
  std::string line(text);
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return line;
}

// Steps from one word to the other: a letter changed, put in, left out, or two neighbours swapped.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min(
          {d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0u : 1u)});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

template <class T>
bool read_whole(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

void complain(std::string_view text) {
  const auto line = fmt::format("faultpath: {}\n", in_one_line(text));
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void print(std::string_view text) {
  if (reader_gone || output_error != 0) return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size()) return;
  if (errno == EPIPE) {
    reader_gone = true;
  } else {
    output_error = errno;
  }
}

int finish_output(int status) {
  if (!reader_gone && output_error == 0 && std::fflush(stdout) != 0) {
    if (errno == EPIPE) {
      reader_gone = true;
    } else {
      output_error = errno;
    }
  }
  if (output_error == 0) return status;
  complain(
      fmt::format("standard output: {}; the results are incomplete", std::strerror(output_error)));
  return status == kDone ? kBadUsage : status;
}

bool wants_color() {
  const char* no_color = std::getenv("NO_COLOR");
  return (no_color == nullptr || *no_color == '\0') && ::isatty(STDOUT_FILENO) == 1;
}

Progress::Progress(bool verbose)
    : terminal_(::isatty(STDERR_FILENO) == 1), lines_(!terminal_ && verbose) {}

Progress::~Progress() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void Progress::show(std::string_view text) {
  auto line = in_one_line(text);
  if (lines_) {
    std::fprintf(stderr, "%s\n", line.c_str());
  } else if (terminal_) {
    // One column less than there are, so that the line does not wrap and can be rewritten.
    winsize size{};
    std::size_t columns = 80;
    if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1) columns = size.ws_col;
    line.resize(std::min(line.size(), columns - 1));
    std::fprintf(stderr, "\r\033[K%s", line.c_str());
    std::fflush(stderr);
    shown_ = true;
  }
}

std::string nearest(std::string_view word, std::span<const std::string> names) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const auto& name : names) {
    const auto d = distance(word, name);
    // As many steps as there are letters is another word.
    if (d < best_distance && d < std::max(word.size(), name.size())) {
      best = name;
      best_distance = d;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<const std::string> names) {
  const auto name = nearest(word, names);
  return name.empty() ? "" : fmt::format("; did you mean '{}'?", name);
}

int parse_count(std::string_view option, std::string_view text, int least, int most) {
  int value = 0;
  if (!read_whole(text, value) || value < least || value > most) {
    throw UsageError(
        fmt::format("{} '{}': give a whole number from {} to {}", option, text, least, most));
  }
  return value;
}

std::vector<int> parse_tasks(std::string_view option, std::string_view text, int most) {
  std::vector<int> tasks;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(',', at), text.size());
    int value = 0;
    const auto item = text.substr(at, end - at);
    if (!read_whole(item, value) || value < 1 || value > most) {
      throw UsageError(fmt::format(
          "{} '{}': give numbers of tasks from 1 to {}, separated by commas", option, text, most));
    }
    if (std::find(tasks.begin(), tasks.end(), value) == tasks.end()) tasks.push_back(value);
    at = end + 1;
  }
  return tasks;
}

double parse_seconds(std::string_view option, std::string_view text) {
  double value = 0;
  if (!read_whole(text, value) || !(value >= 0.01) || !(value <= 3600)) {
    throw UsageError(fmt::format("{} '{}': give seconds from 0.01 to 3600", option, text));
  }
  return value;
}

double parse_percent(std::string_view option, std::string_view text) {
  double value = 0;
  if (text.ends_with('%')) text.remove_suffix(1);
  if (!read_whole(text, value) || !(value >= 0) || !(value <= 100)) {
    throw UsageError(fmt::format("{} '{}': give a percentage from 0 to 100", option, text));
  }
  return value;
}

std::uint64_t parse_size(std::string_view option, std::string_view text) {
  const UsageError bad(fmt::format(
      "{} '{}': give bytes, or a number with K, M, G or T, such as 512M", option, text));
  auto digits = text;
  if (digits.ends_with("iB")) {
    digits.remove_suffix(2);
  } else if (digits.ends_with('B')) {
    digits.remove_suffix(1);
  }
  std::uint64_t unit = 1;
  if (!digits.empty()) {
    constexpr std::string_view kUnits = "KMGT";
    const auto i =
        kUnits.find(static_cast<char>(std::toupper(static_cast<unsigned char>(digits.back()))));
    if (i != std::string_view::npos) {
      unit = std::uint64_t{1} << (10 * (i + 1));
      digits.remove_suffix(1);
    }
  }
  std::uint64_t value = 0;
  std::uint64_t bytes = 0;
  if (!read_whole(digits, value) || value == 0 || __builtin_mul_overflow(value, unit, &bytes)) {
    throw bad;
  }
  return bytes;
}

std::vector<std::string> split_policies(std::string_view text) {
  std::vector<std::string> policies;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(',', at), text.size());
    const auto item = text.substr(at, end - at);
    const bool is_switch = item.find('=') != std::string_view::npos &&
                           item.find(':') == std::string_view::npos && !policies.empty() &&
                           policies.back().find(':') != std::string::npos;
    if (is_switch) {
      policies.back() += ',';
      policies.back() += item;
    } else {
      policies.emplace_back(item);
    }
    at = end + 1;
  }
  return policies;
}

bool parse_arguments(CLI::App& app, int argc, char** argv) {
  const auto command = app.get_name();
  const auto see = fmt::format("see 'faultpath help {}'", command.substr(command.rfind(' ') + 1));
  std::vector<std::string> reversed(argv, argv + argc);
  std::reverse(reversed.begin(), reversed.end());
  try {
    app.parse(std::move(reversed));
    for (const auto* option : app.get_options()) {
      for (const auto& value : option->results()) {
        if (value.empty()) {
          throw UsageError(fmt::format("{}: the value is empty; {}", option->get_name(), see));
        }
      }
    }
    return true;
  } catch (const CLI::CallForHelp&) {
    print(app.help());
    return false;
  } catch (const CLI::ExtrasError&) {
    std::vector<std::string> names;
    for (const auto* option : app.get_options()) {
      for (const auto& name : option->get_lnames()) names.push_back("--" + name);
    }
    const auto rest = app.remaining();
    std::string word = rest.empty() ? "?" : rest.front();
    // An unknown option is more to the point than a value that it left over.
    for (const auto& r : rest) {
      if (r.starts_with('-')) {
        word = r;
        break;
      }
    }
    if (word.starts_with('-')) {
      const auto hint = did_you_mean(word.substr(0, word.find('=')), names);
      throw UsageError(
          fmt::format("unknown option '{}'{} {}", word, hint.empty() ? ";" : hint, see));
    }
    throw UsageError(fmt::format("unexpected argument '{}'; {}", word, see));
  } catch (const CLI::ArgumentMismatch& e) {
    const std::string_view what = e.what();
    if (what.find("flag override") != std::string_view::npos) {  // "quick was given a ..."
      throw UsageError(fmt::format("--{} takes no value; {}", what.substr(0, what.find(' ')), see));
    }
    // "--tasks: 1 required ..."
    throw UsageError(fmt::format("{} needs a value; {}", what.substr(0, what.find(':')), see));
  } catch (const CLI::ParseError& e) {
    throw UsageError(fmt::format("{}; {}", e.what(), see));
  }
}

std::string command_line(int argc, char** argv) {
  std::string text = "faultpath";
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    constexpr std::string_view kSafe =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:%@";
    text += ' ';
    if (!word.empty() && word.find_first_not_of(kSafe) == std::string_view::npos) {
      text += word;
      continue;
    }
    text += '\'';
    for (char c : word) {
      if (c == '\'') {
        text += "'\\''";
      } else {
        text += c;
      }
    }
    text += '\'';
  }
  return text;
}

}  // namespace faultpath::tools
