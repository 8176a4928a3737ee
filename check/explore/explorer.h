// What all strategies that make many runs of a scene have in common.
#pragma once

#include <cstdint>

#include "env/sim/world.h"

namespace faultpath::check {

/// Use: `while (e.next()) world.run(actors, e, limits);`
class Explorer : public sim::Strategy {
 public:
  /// Prepares the next run; false when there is none left.
  virtual bool next() = 0;
  /// Runs prepared so far.
  std::uint64_t runs() const { return runs_; }
  /// Nothing is left to be tried.
  virtual bool complete() const { return false; }

 protected:
  std::uint64_t runs_ = 0;
};

}  // namespace faultpath::check
