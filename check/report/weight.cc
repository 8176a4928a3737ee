#include "check/report/weight.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

namespace faultpath::check {

namespace {

using sim::OpKind;
using sim::Step;

/// A word, or the payload of a frame as a whole.
struct Unit {
  std::vector<std::size_t> steps;
  std::uint32_t cpus = 0;
  bool written = false;

  bool conflict() const { return written && (cpus & (cpus - 1)) != 0; }
};

class Scale {
 public:
  Scale(std::span<const Step> steps, std::span<const std::uint64_t> left, const Names& names)
      : steps_(steps), left_(left), names_(names), out_(steps.size()) {}

  std::vector<Weighed> weigh() {
    find_values();
    find_writes();
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Step& s = steps_[i];
      if (s.place == sim::kNoPlace) continue;
      Unit& u = units_[key(s.place)];
      u.steps.push_back(i);
      u.cpus |= 1u << s.cpu;
      u.written = u.written || out_[i].wrote;
    }
    for (const auto& [k, u] : units_) {
      if (u.conflict()) ends(u);
    }
    find_deaths();
    spread_over_copies();
    return std::move(out_);
  }

 private:
  std::uint64_t key(sim::Place place) const {
    const About a = names_.about(place);
    return a.meaning == Meaning::payload ? (std::uint64_t{1} << 32) + a.frame : place;
  }

  std::uint64_t cut_to_size(std::size_t i, std::uint64_t v) const {
    const unsigned bytes = names_.about(steps_[i].place).bytes;
    return bytes < 8 ? v & ((std::uint64_t{1} << bytes * 8) - 1) : v;
  }

  // Read-modify-writes are recorded with the old value.
  void find_values() {
    std::unordered_map<sim::Place, std::size_t> open;
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Step& s = steps_[i];
      if (s.place == sim::kNoPlace) continue;
      if (i < left_.size()) {
        if (s.kind == OpKind::rmw) out_[i].left = cut_to_size(i, left_[i]);
        continue;
      }
      if (const auto it = open.find(s.place); it != open.end()) {
        if (s.kind == OpKind::load || s.kind == OpKind::rmw) out_[it->second].left = s.value;
        open.erase(it);
      }
      if (s.kind == OpKind::rmw) open[s.place] = i;
    }
    for (const auto& [place, i] : open) {
      std::uint64_t v = 0;
      std::memcpy(&v, sim::World::get().address_of(place), sizeof v);
      out_[i].left = cut_to_size(i, v);
    }
  }
  void find_writes() {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Step& s = steps_[i];
      out_[i].wrote = sim::writes(s.kind) && !(s.kind == OpKind::rmw && out_[i].left == s.value) &&
                      !(s.kind == OpKind::try_lock && s.value == 0);
    }
  }

  Weight of_end(std::size_t i) const {
    const About a = names_.about(steps_[i].place);
    switch (a.meaning) {
      case Meaning::payload: return Weight::essential;
      case Meaning::entry: return out_[i].wrote ? Weight::essential : Weight::telling;
      case Meaning::sequence:
      case Meaning::mmap_lock:
      case Meaning::page_flags: return Weight::telling;
      case Meaning::section:
      case Meaning::signal: return Weight::chatter;
      default: return Weight::exchanged;
    }
  }
  void raise(std::size_t i, Weight w) { out_[i].weight = std::max(out_[i].weight, w); }

  // Both ends of each pair of steps of different CPUs that conflict and have no such pair between.
  void ends(const Unit& u) {
    constexpr std::size_t kNone = ~std::size_t{0};
    std::size_t write = kNone;        // the last one
    std::size_t last[sim::kMaxCpus];  // each CPU's last step since that write, itself included
    std::fill(std::begin(last), std::end(last), kNone);
    for (const std::size_t i : u.steps) {
      const unsigned cpu = steps_[i].cpu;
      raise(i, Weight::shared);
      if (write != kNone && steps_[write].cpu != cpu && last[cpu] == kNone) {
        raise(write, of_end(write));
        raise(i, of_end(i));
      }
      if (out_[i].wrote) {
        for (unsigned c = 0; c < sim::kMaxCpus; ++c) {
          if (c != cpu && last[c] != kNone) {
            raise(last[c], of_end(last[c]));
            raise(i, of_end(i));
          }
        }
        std::fill(std::begin(last), std::end(last), kNone);
        write = i;
        // An entry that others look at: every change of it.
        if (names_.about(steps_[i].place).meaning == Meaning::entry) raise(i, Weight::essential);
      }
      last[cpu] = i;
    }
  }

  // A frame that becomes free, while other CPUs touch it in this run.
  void find_deaths() {
    std::unordered_map<memory::Pfn, std::uint32_t> cpus;
    for (const Step& s : steps_) {
      if (s.place == sim::kNoPlace) continue;
      if (const About a = names_.about(s.place); a.frame != memory::kNoPfn) {
        cpus[a.frame] |= 1u << s.cpu;
      }
    }
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      if (steps_[i].place == sim::kNoPlace || steps_[i].kind != OpKind::store) continue;
      const About a = names_.about(steps_[i].place);
      if (a.meaning != Meaning::frame_kind ||
          steps_[i].value != static_cast<std::uint64_t>(memory::FrameKind::free)) {
        continue;
      }
      if ((cpus[a.frame] & ~(1u << steps_[i].cpu)) != 0) raise(i, Weight::essential);
    }
  }

  // A page that is copied word by word is seen as a whole.
  void spread_over_copies() {
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t k = 1; k < steps_.size(); ++k) {
        const std::size_t i = pass == 0 ? k : steps_.size() - k;
        const std::size_t from = pass == 0 ? i - 1 : i;
        const std::size_t to = pass == 0 ? i : i - 1;
        if (same_copy(steps_[i - 1], steps_[i])) raise(to, out_[from].weight);
      }
    }
  }
  bool same_copy(const Step& a, const Step& b) const {
    if (a.cpu != b.cpu || a.kind != b.kind || a.site.line() != b.site.line()) return false;
    const About x = names_.about(a.place);
    const About y = names_.about(b.place);
    return x.meaning == Meaning::payload && y.meaning == Meaning::payload && x.frame == y.frame;
  }

  std::span<const Step> steps_;
  std::span<const std::uint64_t> left_;
  const Names& names_;
  std::vector<Weighed> out_;
  std::unordered_map<std::uint64_t, Unit> units_;
};

}  // namespace

std::vector<Weighed> weigh(std::span<const Step> steps, std::span<const std::uint64_t> left,
                           const Names& names) {
  return Scale(steps, left, names).weigh();
}

}  // namespace faultpath::check
