// One scene under one policy, searched in a process of its own; results travel as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "check/command/options.h"
#include "check/search/search.h"

namespace faultpath::check {

/// Searches, and explains what was found: {"scene", "policy", "claims", "runs", ..., "finding"}.
nlohmann::json search_job(const Options& options, const Scene& scene, const PolicyChoice& policy,
                          const Budget& budget);

/// The command that shows a finding again.
std::string replay_command(const Scene& scene, const PolicyChoice& policy,
                           const std::string& without, const std::string& schedule);

/// Puts the document at `path` as a whole or not at all. Throws tools::UsageError.
void write_json(const std::string& path, const nlohmann::json& document);

/// 12,345,678 and 1.2 M.
std::string grouped(std::uint64_t n);
std::string short_count(double n);

}  // namespace faultpath::check
