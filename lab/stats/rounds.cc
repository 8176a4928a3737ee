#include "lab/stats/rounds.h"

#include <algorithm>

namespace faultpath::lab {

Rounds::Rounds() : kept_(kMost) { kept_.clear(); }

void Rounds::add(const Round& round) {
  if (seen_++ % stride_ != 0) return;
  if (kept_.size() == kMost) {
    for (std::size_t i = 0; i < kMost / 2; ++i) kept_[i] = kept_[2 * i];
    kept_.resize(kMost / 2);
    stride_ *= 2;
  }
  kept_.push_back(round);
}

PartTimes middle_half(std::vector<Round> rounds, std::uint64_t block) {
  PartTimes times;
  if (rounds.empty() || block == 0) return times;
  std::sort(rounds.begin(), rounds.end(), [](const Round& a, const Round& b) {
    return a.prot + a.caught + a.plain < b.prot + b.caught + b.plain;
  });
  const std::size_t cut = rounds.size() / 4;
  for (std::size_t i = cut; i < rounds.size() - cut; ++i) {
    times.prot += static_cast<double>(rounds[i].prot);
    times.caught += static_cast<double>(rounds[i].caught);
    times.plain += static_cast<double>(rounds[i].plain);
    ++times.rounds;
  }
  const double operations = static_cast<double>(times.rounds) * static_cast<double>(block);
  times.prot /= operations;
  times.caught /= operations;
  times.plain /= operations;
  return times;
}

AccessTime subtract(const PartTimes& parts, double ns_per_tick) {
  AccessTime t;
  t.rounds = parts.rounds;
  if (parts.rounds == 0) return t;
  t.prot_ns = parts.prot * ns_per_tick;
  t.catch_ns = std::max(0.0, (parts.caught - parts.plain) * ns_per_tick);
  t.access_ns = std::max(0.0, t.prot_ns - t.catch_ns);
  return t;
}

}  // namespace faultpath::lab
