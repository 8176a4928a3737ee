// Results as text for people.
#pragma once

#include <string>
#include <vector>

#include "lab/result.h"

namespace faultpath::lab {

struct TableStyle {
  bool color = false;
  bool all_counters = false;  ///< also those that do not explain a fault policy's speed
};

/// Machine block, how to read it, one LKP-shaped block for each mode and task count, the counters
/// behind it, and a summary: everything `faultpath compare` prints.
std::string compare_table(const ResultSet& results, const TableStyle& style = {});

/// The same without comparison: one column for each policy.
std::string run_table(const ResultSet& results, const TableStyle& style = {});

/// One line for each cell whose results were wrong; empty if all were right.
std::vector<std::string> wrong_results(const ResultSet& results);

}  // namespace faultpath::lab
