#include <vector>

#include "check/scenes/scenes.h"

namespace faultpath::check {

std::span<const Scene* const> all_scenes() {
  static const std::vector<const Scene*> all = [] {
    std::vector<const Scene*> v;
    for (const auto part :
         {fork_scenes(), speculation_scenes(), table_scenes(), vma_scenes(), vma_lock_scenes(),
          bad_access_scenes(), signal_scenes(), tlb_scenes(), copy_scenes(), file_scenes(),
          writeback_scenes(), epoch_scenes(), lock_scenes()}) {
      v.insert(v.end(), part.begin(), part.end());
    }
    return v;
  }();
  return all;
}

}  // namespace faultpath::check
