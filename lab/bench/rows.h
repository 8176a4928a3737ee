// Rows of a benchmark: a quantity, its samples from one interleaved run, and a target if it has one.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace faultpath::lab {

struct BenchRow {
  std::string name;     ///< "anon-write-fault / zeroing"
  std::string variant;  ///< policy or lock; empty where there is none
  std::string unit;     ///< "ratio", "ns", "instructions"
  std::vector<double> samples;
  std::optional<double> at_most;
  std::optional<double> at_least;

  double median() const;
  double lowest() const;
  double highest() const;
  /// Target met by the median; true where there is none.
  bool met() const;
};

}  // namespace faultpath::lab
