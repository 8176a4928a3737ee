#include "check/explore/schedule.h"

#include <charconv>
#include <limits>

namespace faultpath::check {

void Schedule::append(unsigned cpu, bool inject, std::uint32_t steps) {
  if (steps == 0) return;
  if (!inject && !segments.empty() && segments.back().cpu == cpu) {
    segments.back().steps += steps;
  } else {
    segments.push_back({static_cast<std::uint8_t>(cpu), inject, steps});
  }
}

std::uint64_t steps(const Schedule& schedule) {
  std::uint64_t sum = 0;
  for (const Segment& s : schedule.segments) sum += s.steps;
  return sum;
}

unsigned switches(const Schedule& schedule) {
  unsigned n = 0;
  for (std::size_t i = 1; i < schedule.segments.size(); ++i) {
    if (schedule.segments[i].cpu != schedule.segments[i - 1].cpu) ++n;
  }
  return n;
}

std::string to_string(const Schedule& schedule) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = std::to_string(kScheduleVersion) + '.';
  for (int shift = 28; shift >= 0; shift -= 4) out += kHex[schedule.fingerprint >> shift & 15];
  char between = '.';
  for (const Segment& s : schedule.segments) {
    out += between;
    out += std::to_string(s.cpu);
    out += s.inject ? 'i' : 'x';
    out += std::to_string(s.steps);
    between = '-';
  }
  if (schedule.segments.empty()) out += '.';
  return out;
}

namespace {

/// Reads a text from left to right; the first thing that is wrong stays.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool ok() const { return problem_.empty(); }
  bool at_end() const { return at_ == text_.size(); }
  const std::string& problem() const { return problem_; }

  /// A number that fills `digits` characters (0: as many as there are).
  std::uint32_t number(int base, std::size_t digits, std::uint32_t most, const char* what) {
    if (!ok()) return 0;
    const std::size_t from = at_;
    std::uint64_t n = 0;
    while (at_ < text_.size() && (digits == 0 || at_ - from < digits)) {
      unsigned digit = 0;
      const char* const c = text_.data() + at_;
      if (std::from_chars(c, c + 1, digit, base).ec != std::errc{}) break;
      n = n * static_cast<unsigned>(base) + digit;
      ++at_;
      if (n > most) {
        at_ = from;
        fail(std::string(what) + " that is at most " + std::to_string(most));
        return 0;
      }
    }
    if (at_ == from || (digits != 0 && at_ - from != digits)) fail(what);
    return static_cast<std::uint32_t>(n);
  }

  /// One of the characters of `any`.
  char one_of(std::string_view any, const char* what) {
    if (!ok()) return 0;
    if (!at_end() && any.find(text_[at_]) != std::string_view::npos) return text_[at_++];
    fail(what);
    return 0;
  }

  void fail(std::string_view expected) {
    if (!ok()) return;
    problem_ = "schedule: at character " + std::to_string(at_ + 1) + ": ";
    if (at_end()) {
      problem_ += "it ends, but ";
    } else {
      const char c = text_[at_];
      const bool printable = c > ' ' && c <= '~';
      problem_ += printable ? std::string("'") + c + "', but " : "a strange character, but ";
    }
    problem_ += expected;
    problem_ += " should stand here";
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
  std::string problem_;
};

}  // namespace

std::expected<Schedule, std::string> parse_schedule(std::string_view text) {
  constexpr std::uint32_t kAny = std::numeric_limits<std::uint32_t>::max();
  Reader in(text);
  Schedule out;
  const std::uint32_t version = in.number(10, 0, kAny, "a version number");
  in.one_of(".", "'.' after the version");
  if (in.ok() && version != kScheduleVersion) {
    return std::unexpected("schedule of version " + std::to_string(version) +
                           "; this program replays version " + std::to_string(kScheduleVersion));
  }
  out.fingerprint = in.number(16, 8, kAny, "a fingerprint of 8 hexadecimal digits");
  in.one_of(".", "'.' after the fingerprint");
  bool more = in.ok() && !in.at_end();
  while (more) {
    Segment s;
    s.cpu = static_cast<std::uint8_t>(in.number(10, 0, sim::kMaxCpus - 1, "a CPU"));
    s.inject = in.one_of("xi", "'x' or 'i'") == 'i';
    s.steps = in.number(10, 0, kAny, "a number of steps");
    if (in.ok() && s.steps == 0) in.fail("a number of steps above 0 before what");
    if (in.ok()) out.segments.push_back(s);
    more = in.ok() && !in.at_end();
    if (more) in.one_of("-", "'-' before the next segment");
  }
  if (!in.ok()) return std::unexpected(in.problem());
  return out;
}

Schedule from_trace(std::span<const sim::Step> trace) {
  Schedule out;
  unsigned handler[sim::kMaxCpus] = {};  // in which each CPU is; 0: in none
  for (const sim::Step& s : trace) {
    const unsigned in = s.injected;
    out.append(s.cpu, in != 0 && in != handler[s.cpu], 1);
    handler[s.cpu] = in;
  }
  return out;
}

}  // namespace faultpath::check
