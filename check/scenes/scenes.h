// The scenes that are written down, file by file.
#pragma once

#include "check/scene/scene.h"

namespace faultpath::check {

std::span<const Scene* const> fork_scenes();         // fork.cc
std::span<const Scene* const> speculation_scenes();  // speculation.cc
std::span<const Scene* const> table_scenes();        // tables.cc
std::span<const Scene* const> vma_scenes();          // vma.cc
std::span<const Scene* const> vma_lock_scenes();     // vma_lock.cc
std::span<const Scene* const> bad_access_scenes();   // bad_access.cc
std::span<const Scene* const> signal_scenes();       // signals.cc
std::span<const Scene* const> tlb_scenes();          // tlb.cc
std::span<const Scene* const> copy_scenes();         // copy.cc
std::span<const Scene* const> file_scenes();         // files.cc
std::span<const Scene* const> writeback_scenes();    // writeback.cc
std::span<const Scene* const> epoch_scenes();        // epochs.cc
std::span<const Scene* const> lock_scenes();         // locks.cc

}  // namespace faultpath::check
