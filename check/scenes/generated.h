// Scenes that nobody wrote: a function of their seed.
#pragma once

#include <cstdint>

#include "check/scene/scene.h"

namespace faultpath::check {

/// The scene `generated-SEED`: 2 or 3 CPUs that load and store, 1 or 2 that map, unmap, protect,
/// zap, fork and write back; 2 to 4 pages in 1 to 3 mappings. Lives for ever.
const Scene* generated_scene(std::uint64_t seed);

}  // namespace faultpath::check
