// A run as a list of numbered steps, CPU by CPU.
#pragma once

#include <span>
#include <string>

#include "check/report/names.h"
#include "check/scene/stage.h"
#include "env/sim/world.h"

namespace faultpath::check {

/// A run whose schedule has been shrunk is shown in about so many lines.
inline constexpr std::size_t kInterleavingLines = 60;

/// The run that the world has just done on the stage. Each CPU has its indentation, and a rule where
/// it takes over. A line is a step: number, what it did to which place, where in the sources. `--` is
/// a call of the scene's. `*` behind the number: a nested handler's step.
///
/// Steps that no other CPU can notice are folded. If that leaves too many lines, so are those that say
/// least (weight.h), first those that are far from a switch.
///
std::string interleaving(Stage& stage, std::span<const sim::Step> steps,
                         const sim::Violation& violation);
/// The same with names from elsewhere, and with what each step left at its place (Witness::left): then
/// it does not matter how the world stands.
std::string interleaving(Stage& stage, std::span<const sim::Step> steps,
                         const sim::Violation& violation, const Names& names,
                         std::span<const std::uint64_t> left);

}  // namespace faultpath::check
