// Laws of spaces, VMAs and their entries.
#include "check/model/inspection.h"
#include "check/model/page_account.h"

namespace faultpath::check {

using vma::Mm;
using vma::Vma;

std::string Inspection::text_of(unsigned space, const Vma& v) const {
  return fmt::format("space {} VMA {:#x}-{:#x} {}{}", space, v.start(), v.end(),
                     check::text_of(v.prot()), v.shared() ? " shared" : "");
}

Inspection::KnownFile* Inspection::known(cache::FileObject* file) {
  for (unsigned i = 0; i < files_; ++i) {
    if (file_[i].file == file) return &file_[i];
  }
  return nullptr;
}

void Inspection::Ranges::add(Range r) {
  // Sorted and apart; what touches is joined.
  unsigned first = 0;
  while (first < count && range[first].end < r.start) ++first;
  unsigned last = first;
  while (last < count && range[last].start <= r.end) ++last;
  if (first != last) {
    if (range[first].start < r.start) r.start = range[first].start;
    if (range[last - 1].end > r.end) r.end = range[last - 1].end;
  } else if (count == kMostRanges) {
    all = true;
    return;
  }
  const unsigned moved = count - last;
  if (first == last) {
    for (unsigned i = moved; i-- > 0;) range[last + 1 + i] = range[last + i];
  } else {
    for (unsigned i = 0; i < moved; ++i) range[first + 1 + i] = range[last + i];
  }
  range[first] = r;
  count = first + 1 + moved;
}

// --- spaces and VMAs --------------------------------------------------------------------------

void Inspection::spaces() {
  for (unsigned s = 0; s < rest_->spaces.size(); ++s) {
    const Mm& mm = *rest_->spaces[s];
    if (mm.mmap_lock.is_locked()) wrong("space {}: the mmap lock is held", s);
    if (mm.mmap_lock.has_waiters()) wrong("space {}: somebody waits for the mmap lock", s);
    if (mm.tree_lock.is_locked()) wrong("space {}: the tree lock is held", s);
    if (mm.anon_lock.is_locked()) wrong("space {}: the anon lock is held", s);
    const std::uint32_t pending = mm.flush_pending.load(env::relaxed);
    if (pending != 0) wrong("space {}: flush_pending is {}", s, pending);
    std::uint32_t users = 0;
    for (std::uint32_t id = 0; id < cpus(); ++id) {
      const bool inside = core().cpu(id).space == &mm;
      users += inside ? 1 : 0;
      if (mm.cpus.has(id) != inside) {
        wrong("space {}: Cpu {} is {}, its bit says {}", s, id, inside ? "inside" : "outside",
              inside ? "outside" : "inside");
      }
    }
    if (mm.users.load(env::relaxed) != users) {
      wrong("space {}: users is {}, {} Cpus are inside", s, mm.users.load(env::relaxed), users);
    }
    vmas(s);
  }
  for (std::uint32_t id = 0; id < cpus(); ++id) {
    const void* const space = core().cpu(id).space;
    bool found = space == nullptr;
    for (const Mm* mm : rest_->spaces) found = found || mm == space;
    if (!found) nonsense("Cpu {}: it is inside a space that is gone", id);
  }
  for (unsigned i = 0; i < roots_; ++i) {
    const std::uint32_t refs = root_[i].root->refs.load(env::relaxed);
    if (refs != root_[i].refs) {
      wrong("an anon root has {} references, and {} VMAs name it", refs, root_[i].refs);
    }
  }
}

void Inspection::vmas(unsigned s) {
  Mm& mm = *rest_->spaces[s];
  const char* broken = "";
  if (!mm.tree.check(&broken)) {
    nonsense("space {}: the VMA tree: {}", s, broken);
    return;
  }
  const vma::TreeView view = mm.tree.view();
  nodes_ += nodes_below(Inspect::root(view));
  std::uint32_t slots = 0;
  view.for_each(0, ~Addr{0}, [&](const vma::TreeSlot& slot) {
    Vma& v = *slot.vma;
    ++slots;
    if (vmas_ == kMostVmas) {
      nonsense("there are too many VMAs to be looked at");
      return false;
    }
    vma_[vmas_++] = {&v, static_cast<std::uint8_t>(s), false};
    if (v.start() != slot.start || v.end() != slot.end) {
      wrong("{}: the tree has it at {:#x}-{:#x}", text_of(s, v), slot.start, slot.end);
    }
    if (v.mm != &mm) wrong("{}: its mm is another", text_of(s, v));
    const std::uint64_t sequence = v.sequence.read_begin();
    if (mm.marking == vma::Marking::sequence && (sequence & 1) != 0) {
      wrong("{}: its sequence is {}: it is still marked", text_of(s, v), sequence);
    }
    if (mm.marking == vma::Marking::vma_lock) {
      if (mm.is_marked(v)) wrong("{}: it is still locked for write", text_of(s, v));
      const std::uint32_t count = v.lock.count.load(env::relaxed);
      if (count != 1) wrong("{}: its lock's count is {:#x}, and should be 1", text_of(s, v), count);
    }
    const std::uint32_t refs = v.refs.load(env::relaxed);
    if (refs != 1)
      wrong("{}: it has {} references, and the tree's is the one", text_of(s, v), refs);
    if (v.file() != nullptr) {
      KnownFile* file = known(v.file());
      if (file == nullptr && files_ < kMostFiles) {
        file_[files_] = {v.file(), 0, nullptr};
        file = &file_[files_++];
      }
      if (file == nullptr) {
        nonsense("there are too many files to be looked at");
      } else {
        ++file->refs;
      }
    }
    vma::AnonRoot* const root = v.anon_root();
    if ((root == nullptr) != v.shared()) {
      wrong("{}: it has {} anon root", text_of(s, v), root == nullptr ? "no" : "an");
    }
    if (root == nullptr) return true;
    unsigned at = 0;
    while (at < roots_ && root_[at].root != root) ++at;
    if (at == roots_) root_[roots_++] = {root, 0};
    ++root_[at].refs;
    return true;
  });
  if (mm.map_count != slots) {
    wrong("space {}: map_count is {}, the tree has {} VMAs", s, std::uint32_t{mm.map_count}, slots);
  }
}

std::uint64_t Inspection::nodes_below(const vma::TreeNode* node) {
  if (node == nullptr) return 0;
  std::uint64_t sum = 1;
  if (node->level == 0) return sum;
  for (std::uint32_t i = 0; i < node->count; ++i) {
    void* const child = node->item[i];
    sum += nodes_below(static_cast<const vma::TreeNode*>(child));
  }
  return sum;
}

// Each VMA with a file is in its file's list, once; nothing else is.
void Inspection::reverse_maps() {
  for (unsigned i = 0; i < files_; ++i) {
    const cache::FileObject& file = *file_[i].file;
    if (file.rmap_lock.is_locked()) wrong("file {}: the reverse-map lock is held", i + 1);
    if (Inspect::index_locked(file)) wrong("file {}: the index lock is held", i + 1);
    if (Inspect::refs(file) != file_[i].refs) {
      wrong("file {}: it has {} references, and {} handles and VMAs name it", i + 1,
            Inspect::refs(file), file_[i].refs);
    }
    const Vma* prev = nullptr;
    unsigned length = 0;
    for (Vma* v = Inspect::first_mapping(file); v != nullptr; v = v->rmap_next) {
      if (++length > kMostVmas) {
        nonsense("file {}: its reverse map has no end", i + 1);
        break;
      }
      if (v->rmap_prev != prev) wrong("file {}: its reverse map is linked wrongly", i + 1);
      prev = v;
      Listed* listed = nullptr;
      for (unsigned j = 0; j < vmas_; ++j) {
        if (vma_[j].vma == v) listed = &vma_[j];
      }
      if (listed == nullptr) {
        wrong("file {}: its reverse map has a VMA {:#x}-{:#x} that no tree has", i + 1, v->start(),
              v->end());
        break;
      }
      if (v->file() != &file) {
        wrong("{}: it is in the reverse map of file {}, which it does not map",
              text_of(listed->space, *v), i + 1);
      }
      if (listed->in_rmap) {
        wrong("{}: its file lists it twice", text_of(listed->space, *v));
        break;
      }
      listed->in_rmap = true;
    }
  }
  for (unsigned j = 0; j < vmas_; ++j) {
    if (vma_[j].vma->file() != nullptr && !vma_[j].in_rmap) {
      wrong("{}: its file does not list it", text_of(vma_[j].space, *vma_[j].vma));
    }
  }
}

// --- page tables ------------------------------------------------------------------------------

void Inspection::page_tables() {
  for (unsigned s = 0; s < rest_->spaces.size(); ++s) {
    const Mm& mm = *rest_->spaces[s];
    ranges_.count = 0;
    ranges_.all = full_;
    for (const Range& r : rest_->windows) ranges_.add(r);
    for (unsigned i = 0; i < vmas_; ++i) {
      if (vma_[i].space == s) ranges_.add({vma_[i].vma->start(), vma_[i].vma->end()});
    }
    at_ = {};
    tables_ = 0;
    walk(s, core().pfn_of(*mm.tables.root().meta), pagetable::kLevels - 1, 0, ranges_.all);
    all_tables_ += tables_;
    if (mm.tables.table_pages() != tables_) {
      wrong("space {}: it counts {} page tables, and has {}", s, mm.tables.table_pages(), tables_);
    }
  }
}

// Returns how many entries are not empty.
std::uint32_t Inspection::walk(unsigned space, Pfn pfn, unsigned level, Addr base, bool all) {
  const Frame& f = frame(pfn);
  const std::uint64_t span = pagetable::span_of(level);
  const auto name = [&] {
    return fmt::format("space {} table {:#x}-{:#x} (frame {})", space, base,
                       base + span * pagetable::kEntries, pfn);
  };
  ++tables_;
  if (named_[pfn].holder != Holder::none) held_twice(pfn, Holder::table);
  named_[pfn].holder = Holder::table;
  if (f.kind.load(env::relaxed) != FrameKind::table || f.level != level) {
    nonsense("{}: the frame is {}, level {}", name(), text_of(f.kind.load(env::relaxed)),
             std::uint8_t{f.level});
    return 0;
  }
  if (f.lock.is_locked()) wrong("{}: its lock is held", name());
  if (f.dead.load(env::relaxed) != 0) wrong("{}: it is linked, and called dead", name());

  std::uint32_t count = 0;
  const auto pass = [&](bool inside) {
    // The indices that the ranges name, or all others.
    unsigned next = 0;
    const auto until = [&](unsigned stop) {
      for (; next < stop; ++next) count += visit(space, pfn, level, base, next, all || !inside);
    };
    for (unsigned r = 0; r < ranges_.count; ++r) {
      const Range& range = ranges_.range[r];
      if (range.end <= base || range.start >= base + span * pagetable::kEntries) continue;
      const unsigned first =
          range.start <= base ? 0 : static_cast<unsigned>((range.start - base) / span);
      const Addr last = (range.end - 1 - base) / span;
      const unsigned stop =
          last >= pagetable::kEntries ? pagetable::kEntries : static_cast<unsigned>(last) + 1;
      if (inside) {
        if (next < first) next = first;
        until(stop);
      } else {
        until(first);
        if (next < stop) next = stop;
      }
    }
    if (!inside) until(pagetable::kEntries);
  };
  if (all) {
    for (unsigned i = 0; i < pagetable::kEntries; ++i) {
      count += visit(space, pfn, level, base, i, true);
    }
  } else {
    pass(true);
    if (count != f.occupied) pass(false);
  }
  if (count != f.occupied) {
    wrong("{}: occupied is {}, {} entries are not empty", name(), std::uint32_t{f.occupied}, count);
  }
  return count;
}

std::uint32_t Inspection::visit(unsigned space, Pfn pfn, unsigned level, Addr base, unsigned index,
                                bool all) {
  const pagetable::Table table = rest_->spaces[space]->tables.table(pfn);
  const Pte entry(table.entries[index].load(env::relaxed));
  if (entry.none()) return 0;
  const Addr a = base + index * pagetable::span_of(level);
  if (entry.pfn() >= frames_ || (level > 0 && !entry.present())) {
    nonsense("space {}: the entry of level {} for {:#x} is nonsense ({:#x})", space, level, a,
             entry.word());
  } else if (level > 0) {
    walk(space, entry.pfn(), level - 1, a, all);
  } else {
    leaf(space, a, entry);
  }
  return 1;
}

void Inspection::leaf(unsigned space, Addr a, Pte entry) {
  if (at_.vma == nullptr || a < at_.start || a >= at_.end) {
    at_ = rest_->spaces[space]->tree.view().covering(a);
  }
  const auto name = [&] {
    return fmt::format("space {} entry {:#x} (frame {})", space, a, entry.pfn());
  };
  if (at_.vma == nullptr) {
    wrong("{}: it lies in no VMA", name());
    return;
  }
  const Vma& v = *at_.vma;
  const Prot prot = v.prot();
  if (!entry.has_frame()) {
    wrong("{}: it is not empty, and names no frame", name());
    return;
  }
  if (entry.present() != (prot != Prot::none)) {
    wrong("{}: it is {}, in {}", name(), entry.present() ? "present" : "hidden", text_of(space, v));
  }
  if (entry.writable() && !has(prot, Prot::write)) {
    wrong("{}: it grants write, in {}", name(), text_of(space, v));
  }
  if (entry.executable() && !has(prot, Prot::exec)) {
    wrong("{}: it grants exec, in {}", name(), text_of(space, v));
  }
  const Pfn pfn = entry.pfn();
  const Frame& f = frame(pfn);
  const FrameKind kind = f.kind.load(env::relaxed);
  const cache::FileObject* const file = v.file();
  if (entry.special()) {
    if (pfn != core().zero_pfn()) wrong("{}: it is special, and not the page of zeroes", name());
    if (entry.writable()) wrong("{}: the page of zeroes can be written", name());
    if (file != nullptr)
      wrong("{}: the page of zeroes, in {} of a file", name(), text_of(space, v));
    return;
  }
  ++named_[pfn].refs;
  const std::uint32_t refs = f.refs.load(env::relaxed);
  if (kind == FrameKind::anon) {
    if (v.shared()) wrong("{}: a private page, in {}", name(), text_of(space, v));
    if (!v.ever_faulted())
      wrong("{}: a private page, though {} says that it never had one", name(), text_of(space, v));
    if (entry.writable() && refs != 1) {
      wrong("{}: it can be written, and the frame has {} references", name(), refs);
    }
    return;
  }
  if (kind != FrameKind::cache) {
    wrong("{}: its frame is {}, with {} references", name(), text_of(kind), refs);
    return;
  }
  const std::uint64_t page = v.page_index(a);
  if (file == nullptr || f.owner.load(env::relaxed) != file || f.index.load(env::relaxed) != page) {
    wrong("{}: the frame is page {} of a file, the VMA wants {}", name(),
          f.index.load(env::relaxed),
          file == nullptr ? "private memory" : fmt::format("page {} of its own", page));
    return;
  }
  const std::uint32_t flags = f.flags.load(env::relaxed);
  if ((flags & memory::kPageUptodate) == 0) wrong("{}: the file's page was never read", name());
  if (!v.shared() && entry.writable()) {
    wrong("{}: a private mapping may write the file's own page", name());
  }
  if (v.shared() && (entry.writable() || entry.dirty()) && (flags & memory::kPageDirty) == 0) {
    wrong("{}: it is {}, and the file's page is called clean", name(),
          entry.writable() ? "writable" : "dirty");
  }
}

}  // namespace faultpath::check
