#include "check/report/fold.h"

#include <fmt/format.h>

#include <algorithm>

#include "check/report/text.h"

namespace faultpath::check {

namespace {

/// Files whose functions every path goes through.
bool is_plumbing(std::string_view file) {
  static constexpr std::string_view kFiles[] = {
      "",       "cpu_block.h", "vma.h",   "tree.h",      "tree.cc",        "mm.h",
      "slab.h", "slab.cc",     "buddy.h", "buddy.cc",    "machine_core.h", "machine_core.cc",
      "pte.h",  "epoch.h",     "flush.h", "soft_cpu.cc", "engine_entry.h", "entry_lock.h",
  };
  return std::find(std::begin(kFiles), std::end(kFiles), file) != std::end(kFiles);
}

}  // namespace

std::string functions_text(std::span<const sim::Site> sites, std::size_t room) {
  std::vector<std::string> functions;
  std::vector<std::string> plumbing;
  unsigned from = ~0u;
  unsigned to = 0;
  for (const sim::Site& site : sites) {
    std::vector<std::string>& into = is_plumbing(file_of(site)) ? plumbing : functions;
    std::string f = function_of(site);
    if (std::find(into.begin(), into.end(), f) == into.end()) into.push_back(std::move(f));
    from = std::min(from, static_cast<unsigned>(site.line()));
    to = std::max(to, static_cast<unsigned>(site.line()));
  }
  if (functions.size() + plumbing.size() == 1) {
    const std::string& only = functions.empty() ? plumbing[0] : functions[0];
    return from == to ? fmt::format("{} ({})", only, line_of(sites.front()))
                      : fmt::format("{} ({}:{}-{})", only, file_of(sites.front()), from, to);
  }
  if (functions.empty()) functions = std::move(plumbing);
  std::string text;
  for (std::size_t k = 0; k < functions.size(); ++k) {
    if (text.size() + functions[k].size() + 6 > room) return text + " ...";
    text += (k == 0 ? "" : ", ") + functions[k];
  }
  return text;
}

std::vector<std::string> without_repeats(std::vector<std::string> lines, std::size_t gutter) {
  constexpr std::size_t kLongest = 6;
  const auto same = [&](std::size_t a, std::size_t b) {
    return std::string_view(lines[a]).substr(gutter) == std::string_view(lines[b]).substr(gutter);
  };
  std::vector<std::string> out;
  std::size_t i = 0;
  while (i < lines.size()) {
    std::size_t length = 0;
    std::size_t times = 0;
    for (std::size_t p = 1; p <= kLongest && length == 0; ++p) {
      std::size_t end = i + p;
      while (end < lines.size() && same(end - p, end)) ++end;
      times = (end - i) / p;
      if (times >= 3) length = p;
    }
    if (length == 0) {
      out.push_back(std::move(lines[i++]));
      continue;
    }
    const std::size_t body = lines[i].find_first_not_of(' ', gutter);
    for (std::size_t k = 0; k < length; ++k) out.push_back(std::move(lines[i + k]));
    out.push_back(std::string(body, ' ') + fmt::format("... and so again, {} times", times - 1));
    i += times * length;
  }
  return out;
}

}  // namespace faultpath::check
