// Words for people: why a page's events have no order.
#pragma once

#include <string>

#include "check/model/page_search.h"

namespace faultpath::check {

/// "rw-" and its kin.
const char* text_of(Prot prot);
/// A value that a word holds; small ones in decimal, and the poison of a freed frame by name.
std::string text_of_value(std::uint64_t value);
/// One event, with its steps: "step 12..80 cpu 1 protect 0x10000, 1 page, r--".
std::string text_of(const Event& e);

/// The pages, their events in order, and one sentence on where it got stuck.
std::string account(const Problem& problem, const Stuck& stuck);

}  // namespace faultpath::check
