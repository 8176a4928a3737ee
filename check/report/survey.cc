#include "check/report/survey.h"

#include <fmt/format.h>

#include <algorithm>

#include "check/report/layout.h"

namespace faultpath::check {

using memory::FrameKind;
using memory::Pfn;
using pagetable::Pte;

namespace {

constexpr unsigned kMostNodes = 500;
constexpr std::size_t kMostLeaves = 400;

// The Cpus lie behind the frame table.
Pfn count_frames(memory::MachineCore& core) {
  return static_cast<Pfn>((reinterpret_cast<std::uintptr_t>(&core.cpu(0)) -
                           reinterpret_cast<std::uintptr_t>(core.frame_table())) /
                          sizeof(memory::Frame));
}

}  // namespace

Survey::Survey(Stage& s)
    : stage(s), core(s.machine().core()), frames(count_frames(s.machine().core())) {
  find_spaces();
  for (unsigned i = 0; i < spaces.size(); ++i) {
    const vma::Mm& mm = *spaces[i].mm;
    budget_ = kMostNodes;
    walk_tree(i, layout::read<const vma::TreeNode*>(&mm.tree, layout::kTreeRoot),
              vma::kTreeMaxLevels);
    walk_table(i, layout::read<Pfn>(&mm.tables, layout::kPageTableRoot), pagetable::kLevels - 1, 0);
  }
}

void Survey::find_spaces() {
  for (unsigned i = 0; i < Stage::kSpaces; ++i) {
    if (!stage.has_space(i)) continue;
    vma::Mm* const mm = &stage.space(i).mm();
    if (sound(mm)) spaces.push_back({fmt::format("mm{}", i), mm});
  }
  // A child whose fork has not returned, or a space that is being destroyed.
  const std::uint32_t bytes = layout::slab_bytes(memory::SlabKind::mm);
  for (Pfn p = 0; p < frames; ++p) {
    if (kind(p) != FrameKind::slab ||
        frame(p).slab_kind != static_cast<std::uint8_t>(memory::SlabKind::mm)) {
      continue;
    }
    for (std::uint32_t k = 0; (k + 1) * bytes <= kPageSize; ++k) {
      auto* const mm = reinterpret_cast<vma::Mm*>(core.object_memory(p) + k * bytes);
      if (mm->core != &core || space_of(mm) != spaces.size()) continue;
      const Pfn root = layout::read<Pfn>(&mm->tables, layout::kPageTableRoot);
      if (root >= frames || kind(root) != FrameKind::table ||
          frame(root).level != pagetable::kLevels - 1) {
        continue;
      }
      bool known = false;
      for (const Space& space : spaces) {
        known = known || layout::read<Pfn>(&space.mm->tables, layout::kPageTableRoot) == root;
      }
      if (!known) spaces.push_back({"mm?", mm});
    }
  }
}

void Survey::walk_tree(unsigned space, const vma::TreeNode* node, unsigned levels_left) {
  if (node == nullptr) return;
  if (!sound(node) || levels_left == 0 || budget_ == 0 || node->count > vma::kTreeFanout) {
    broken.push_back(fmt::format("the tree of {} is broken", spaces[space].name));
    return;
  }
  --budget_;
  for (std::uint32_t i = 0; i < node->count; ++i) {
    void* const item = node->item[i];
    if (node->level != 0) {
      walk_tree(space, static_cast<const vma::TreeNode*>(item), levels_left - 1);
    } else if (auto* const v = static_cast<vma::Vma*>(item); sound(v)) {
      vmas.push_back({v, space, node->low[i], node->high[i]});
    } else {
      broken.push_back(fmt::format("the tree of {} has no VMA at {:#x}", spaces[space].name,
                                   static_cast<Addr>(node->low[i])));
    }
  }
}

void Survey::walk_table(unsigned space, Pfn pfn, unsigned level, Addr base) {
  if (pfn >= frames || kind(pfn) != FrameKind::table || frame(pfn).level != level ||
      table(pfn) != nullptr) {
    broken.push_back(fmt::format("the level {} table of {} for {:#x} is not one (frame {})", level,
                                 spaces[space].name, base, pfn));
    return;
  }
  tables.push_back({pfn, level, space, base});
  const auto* const entries = reinterpret_cast<const pagetable::Entry*>(core.object_memory(pfn));
  for (unsigned i = 0; i < pagetable::kEntries; ++i) {
    const Pte e(entries[i].load(env::relaxed));
    if (e.none()) continue;
    const Addr a = base + i * pagetable::span_of(level);
    if (level != 0) {
      walk_table(space, e.pfn(), level - 1, a);
    } else if (leaves.size() < kMostLeaves) {
      leaves.push_back({space, a, e});
    }
  }
}

const Survey::Table* Survey::table(Pfn pfn) const {
  const auto it =
      std::find_if(tables.begin(), tables.end(), [pfn](const Table& t) { return t.pfn == pfn; });
  return it == tables.end() ? nullptr : &*it;
}

Pte Survey::pte(unsigned space, Addr a) const {
  for (const Leaf& leaf : leaves) {
    if (leaf.space == space && leaf.address == page_floor(a)) return leaf.pte;
  }
  return {};
}

unsigned Survey::space_of(const void* mm) const {
  unsigned i = 0;
  while (i < spaces.size() && spaces[i].mm != mm) ++i;
  return i;
}

unsigned Survey::file_number(const void* object) const {
  for (unsigned i = stage.file_count(); i > 0; --i) {
    if (object != nullptr && stage.file(i).object() == object) return i;
  }
  return 0;
}

std::string Survey::cpu_name(std::uint32_t id) const {
  for (const Script& s : stage.scripts()) {
    if (cpu(s).id == id) return fmt::format("cpu{}", s.cpu());
  }
  if (id == 0) return "system cpu";
  return cpu(stage.director()).id == id ? "director" : fmt::format("cpu slot {}", id);
}

const char* name_of(FrameKind kind) {
  switch (kind) {
    case FrameKind::free: return "free";
    case FrameKind::anon: return "anon";
    case FrameKind::cache: return "cache";
    case FrameKind::table: return "table";
    case FrameKind::index: return "index";
    case FrameKind::slab: return "slab";
    case FrameKind::zero: return "zero page";
  }
  return "?";
}

}  // namespace faultpath::check
