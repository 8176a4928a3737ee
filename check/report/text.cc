#include "check/report/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace faultpath::check {

std::string_view file_of(const sim::Site& site) {
  const std::string_view path = site.file_name();
  const std::size_t slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

std::string line_of(const sim::Site& site) {
  return fmt::format("{}:{}", file_of(site), site.line());
}

namespace {

void erase_all(std::string& text, std::string_view what) {
  for (std::size_t at; (at = text.find(what)) != std::string::npos;) text.erase(at, what.size());
}

/// The parts between `::`, without their template arguments.
std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> parts(1);
  int depth = 0;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const char c = name[i];
    if (c == '<') ++depth;
    if (depth == 0 && name.substr(i, 2) == "::") {
      parts.emplace_back();
      ++i;
    } else if (depth == 0) {
      parts.back() += c;
    }
    if (c == '>') --depth;
  }
  return parts;
}

}  // namespace

std::string function_of(const sim::Site& site) {
  std::string text = site.function_name();
  erase_all(text, "{anonymous}::");
  erase_all(text, "(anonymous namespace)::");
  // The arguments begin at the first bracket that is in no template argument; the result ends at the
  // last blank before it.
  int depth = 0;
  std::size_t from = 0;
  std::size_t end = text.size();
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '<') ++depth;
    if (text[i] == '>') --depth;
    if (depth != 0) continue;
    if (text[i] == ' ') from = i + 1;
    if (text[i] == '(') {
      end = i;
      break;
    }
  }
  while (from < end && (text[from] == '*' || text[from] == '&')) ++from;
  const std::vector<std::string> parts = parts_of(std::string_view(text).substr(from, end - from));
  std::string name = parts.back();
  if (parts.size() > 1) {
    const std::string& scope = parts[parts.size() - 2];
    // Classes begin with a capital; namespaces do not matter to a reader.
    if (!scope.empty() && scope[0] >= 'A' && scope[0] <= 'Z' && scope != name &&
        "~" + scope != name) {
      name = fmt::format("{}::{}", scope, name);
    }
  }
  return name;
}

std::string number(std::uint64_t v) { return v < 1'000'000 ? fmt::format("{}", v) : hex(v); }

std::string numbers(std::span<const std::uint64_t> values) {
  std::string out;
  for (std::size_t i = 0; i < values.size();) {
    std::size_t equal = 1;
    while (i + equal < values.size() && values[i + equal] == values[i]) ++equal;
    std::size_t rising = 1;
    while (i + rising < values.size() && values[i + rising] == values[i] + rising) ++rising;
    if (!out.empty()) out += ' ';
    out += number(values[i]);
    if (equal >= 3) {
      out += fmt::format(" ({} times)", equal);
      i += equal;
    } else if (rising >= 4) {
      out += " to " + number(values[i] + rising - 1);
      i += rising;
    } else {
      ++i;
    }
  }
  return out;
}

std::string hex(std::uint64_t v) { return fmt::format("{:#x}", v); }

std::string rights(Prot prot) {
  std::string s = "---";
  if (has(prot, Prot::read)) s[0] = 'r';
  if (has(prot, Prot::write)) s[1] = 'w';
  if (has(prot, Prot::exec)) s[2] = 'x';
  return s;
}

std::string wrap(std::string_view text, std::string_view indent) {
  std::string out;
  while (!text.empty()) {
    const std::size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    text = newline == std::string_view::npos ? std::string_view() : text.substr(newline + 1);
    std::string lead(indent);
    const std::size_t blanks = std::min(line.find_first_not_of(' '), line.size());
    while (lead.size() + line.size() > kWidth) {
      const std::size_t at = line.rfind(' ', kWidth - lead.size());
      if (at == std::string_view::npos || at <= blanks) break;
      out.append(lead).append(line.substr(0, at)) += '\n';
      line = line.substr(at + 1);
      // What was indented goes on indented.
      lead = std::string(indent) + std::string(blanks == 0 ? 0 : blanks + 2, ' ');
    }
    out.append(lead).append(line) += '\n';
  }
  return out;
}

std::string cut(std::string text, std::size_t width) {
  if (text.size() > width) {
    text.resize(width > 3 ? width - 3 : 0);
    text += "...";
  }
  return text;
}

}  // namespace faultpath::check
