// Survey: what there is on a stage at a moment, found without trust in any of it.
//
// A report is about structures that are broken. So every pointer is looked at before it is followed,
// every list and tree is walked for a bounded number of steps, and what makes no sense is left out.
#pragma once

#include <string>
#include <vector>

#include "cache/file_object.h"
#include "check/scene/stage.h"
#include "memory/machine_core.h"
#include "vma/mm.h"

namespace faultpath::check {

class Survey {
 public:
  using Pfn = memory::Pfn;
  using Pte = pagetable::Pte;

  struct Space {
    std::string name;  ///< `mm0`; `mm?` for one that the stage has no handle for
    vma::Mm* mm;
  };
  struct Listed {
    vma::Vma* vma;
    unsigned space;
    Addr start;  ///< of its slot in the tree
    Addr end;
  };
  struct Table {
    Pfn pfn;
    unsigned level;
    unsigned space;
    Addr base;  ///< first address that it covers
  };
  struct Leaf {
    unsigned space;
    Addr address;
    Pte pte;
  };

  explicit Survey(Stage& stage);

  Stage& stage;
  memory::MachineCore& core;
  const Pfn frames;  ///< frames of the machine
  std::vector<Space> spaces;
  std::vector<Listed> vmas;  ///< by space, then by address
  std::vector<Table> tables;
  std::vector<Leaf>
      leaves;  ///< entries of leaf tables that are not empty, by space, then by address
  std::vector<std::string> broken;  ///< what made no sense

  memory::Frame& frame(Pfn pfn) const { return core.frame(pfn); }
  memory::FrameKind kind(Pfn pfn) const { return core.frame(pfn).kind.load(env::relaxed); }
  const Table* table(Pfn pfn) const;
  /// The entry of the leaf table, or none.
  Pte pte(unsigned space, Addr a) const;
  /// Which of `spaces`; their number if it is none of them.
  unsigned space_of(const void* mm) const;
  /// 0: not one of the stage's files.
  unsigned file_number(const void* object) const;
  memory::Cpu& cpu(const Script& script) const {
    return static_cast<memory::Cpu&>(*script.soft().block());
  }
  /// `cpu1`, `director`, `system cpu`; `cpu slot 6` if it is nobody's.
  std::string cpu_name(std::uint32_t id) const;

  /// A whole T lies there.
  template <class T>
  static bool sound(const T* at) {
    const sim::World& world = sim::World::get();
    const auto* const last = reinterpret_cast<const std::byte*>(at) + sizeof(T) - 1;
    return at != nullptr && reinterpret_cast<std::uintptr_t>(at) % alignof(T) == 0 &&
           world.contains(at) && world.contains(last);
  }

 private:
  void find_spaces();
  void walk_tree(unsigned space, const vma::TreeNode* node, unsigned levels_left);
  void walk_table(unsigned space, Pfn pfn, unsigned level, Addr base);

  unsigned budget_ = 0;  ///< nodes that may still be visited
};

const char* name_of(memory::FrameKind kind);

}  // namespace faultpath::check
