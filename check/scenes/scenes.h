// The scenes that are written down, file by file.
#pragma once

#include "check/scene/scene.h"

namespace faultpath::check {

std::span<const Scene* const> fork_scenes();         // fork.cc
std::span<const Scene* const> speculation_scenes();  // speculation.cc
std::span<const Scene* const> table_scenes();        // tables.cc
std::span<const Scene* const> vma_scenes();          // vma.cc
std::span<const Scene* const> signal_scenes();       // signals.cc

}  // namespace faultpath::check
