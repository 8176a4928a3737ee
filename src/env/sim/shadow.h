// Shadow memory: what the detectors know about each byte of the arena that is a field.
#pragma once

#include <array>
#include <cstdint>

#include "arena.h"

namespace faultpath::sim {

/// A vector clock: how much of each CPU's past happened before.
using Clock = std::array<std::uint32_t, kMaxCpus>;

inline void join(Clock& a, const Clock& b) {
  for (unsigned i = 0; i < kMaxCpus; ++i) {
    if (a[i] < b[i]) a[i] = b[i];
  }
}

/// One field, known by its first byte. A cell of an earlier run counts as empty, so that nothing
/// has to be cleared between runs.
struct alignas(64) Cell {
  std::uint32_t run;         ///< the run that it belongs to
  std::uint32_t write_step;  ///< number of the last step that wrote it; 0: none
  std::uint32_t other_step;  ///< of the last one by a CPU other than last_writer
  std::uint32_t wrote;       ///< clock of the last plain write; 0: none
  std::uint8_t last_writer;
  std::uint8_t writer;  ///< of the last plain write
  std::uint8_t holder;  ///< of a lock: its CPU
  Clock read;           ///< clocks of the last plain reads
  Clock released;       ///< what an acquiring load of the word gets
};
static_assert(sizeof(Cell) == 64);

/// What is known about a place over all runs of a scene.
struct Sharing {
  std::uint8_t cpus;  ///< who accessed it
  bool written;
  bool shared;
};

class Shadow {
 public:
  Shadow();
  Cell& cell(std::uint64_t offset) {
    Cell& c = cells_[offset];
    if (c.run != run_) {
      c = Cell{};
      c.run = run_;
      c.last_writer = c.holder = kNoCpu;
    }
    return c;
  }
  Sharing& sharing(std::uint64_t offset) { return sharing_[offset]; }
  void next_run() { ++run_; }
  void forget_sharing();

 private:
  Cell* cells_;
  Sharing* sharing_;
  std::uint32_t run_ = 0;
};

}  // namespace faultpath::sim
