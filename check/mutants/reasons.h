// Guards whose absence no schedule of this world can show, and why. Under review: an entry that is
// not true hides a hole.
#pragma once

#include "base/guards.h"

namespace faultpath::check {

/// A guard that only weak memory can show: every operation takes effect at once here, so a fence
/// orders nothing. Null for others.
const char* awaits_weak_memory(Guard guard);

/// Why every schedule is right without it, in today's engine. Null: it has to be killed.
const char* why_it_survives(Guard guard);

}  // namespace faultpath::check
