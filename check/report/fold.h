// How lines that say little are made few.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "env/sim/world.h"

namespace faultpath::check {

/// Where steps that are not shown were: `copy_entries, flush_range`, or `post (flush.cc:22-31)`. In
/// `room` characters, and so many functions as fit; those that tell nobody what a CPU is about only
/// if there are no others.
std::string functions_text(std::span<const sim::Site> sites, std::size_t room);

/// Blocks of lines that come again and again, but for the first `gutter` characters: once, and how
/// often.
std::vector<std::string> without_repeats(std::vector<std::string> lines, std::size_t gutter);

}  // namespace faultpath::check
