// Results as one JSON document; docs/results.schema.json is its schema.
#pragma once

#include <string>
#include <string_view>

#include "lab/result.h"

namespace faultpath::lab {

inline constexpr int kResultsFormatVersion = 1;

/// The document, ending in a line end. With `compared`, every head's metrics against the base's are
/// part of it. What is unknown or no finite number is null.
std::string results_json(const ResultSet& results, bool compared);

}  // namespace faultpath::lab
