// The calls of a run in words: what was asked, and what came of it.
#pragma once

#include <span>
#include <string>

#include "check/model/history.h"
#include "env/sim/world.h"

namespace faultpath::check {

/// `store 0x400008 = 21`, `map 0x400000, 2 pages, rw- private, file1 page 0`.
std::string asked(const Event& e);
/// `= 30`, `SIGSEGV (MAPERR)`, `ENOMEM`; empty for a call that just succeeded.
std::string result(const Event& e);
/// The same for a call that did not come to its end, judged by where its steps stand: `fork`. Empty if
/// they do not tell.
std::string asked(std::span<const sim::Site> sites);

}  // namespace faultpath::check
