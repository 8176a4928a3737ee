#include "check/report/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "check/report/layout.h"
#include "check/report/text.h"
#include "env/sim/arena.h"

namespace faultpath::check {

using memory::Frame;
using memory::FrameKind;
using memory::Pfn;
using memory::SlabKind;
using pagetable::Pte;
using sim::Place;

namespace {

constexpr const char* kEntryOfLevel[] = {"pte", "pmd", "pud", "pgd"};

Place place_of(const void* at) { return sim::World::get().place_of(at); }

bool is_listed(const Survey& s, const vma::Vma* v) {
  return std::any_of(s.vmas.begin(), s.vmas.end(),
                     [v](const Survey::Listed& l) { return l.vma == v; });
}

/// The first space is not named: most scenes have no other.
std::string vma_name(const Survey& s, const Survey::Listed& l) {
  const std::string& mm = s.spaces[l.space].name;
  return fmt::format("{}vma[{:#x}-{:#x}]", mm == "mm0" ? "" : mm + ".", l.start, l.end);
}

}  // namespace

std::string entry_text(Pte e) {
  if (e.none()) return "none";
  std::string s = fmt::format("frame {} {}", e.pfn(),
                              e.prot_none()  ? "PROTNONE"
                              : e.writable() ? "w"
                                             : "r");
  if (e.dirty()) s += " d";
  if (e.accessed()) s += " a";
  if (e.special()) s += " special";
  return s;
}

Names::Names(const Survey& s) {
  note_frames(s);
  note_core(s);
  note_cpus(s);
  note_spaces(s);
  note_files(s);
  note_vmas(s);
  note_roots(s);
  note_tree_nodes(s);
}

void Names::add(const void* at, std::size_t bytes, std::string name, Meaning meaning,
                bool certain) {
  const Place from = place_of(at);
  if (from == sim::kNoPlace) return;
  fields_.insert(
      {from, {from, static_cast<Place>(from + bytes), meaning, certain, std::move(name)}});
}

// --- what is noted ------------------------------------------------------------------------------

void Names::note_frames(const Survey& s) {
  frame_table_ = {place_of(s.core.frame_table()), sizeof(Frame)};
  objects_ = {place_of(s.core.object_memory(0)), kPageSize};
  payload_ = {place_of(s.core.payload(0)), env::kPayloadBytes};
  frames_.resize(s.frames);
  for (Pfn p = 0; p < s.frames; ++p) {
    FrameNote& n = frames_[p];
    const Frame& f = s.frame(p);
    n.kind = s.kind(p);
    n.what = name_of(n.kind);
    if (const Survey::Table* const t = s.table(p)) {
      const std::string& mm = s.spaces[t->space].name;
      n.what = fmt::format("table L{} of {}{:#x}", t->level, mm == "mm0" ? "" : mm + " ", t->base);
      n.entry = fmt::format("{}.{}", mm, kEntryOfLevel[t->level]);
      n.base = t->base;
      n.span = pagetable::span_of(t->level);
    } else if (n.kind == FrameKind::table) {
      n.what = fmt::format("table L{}, in no space", static_cast<unsigned>(f.level));
    } else if (n.kind == FrameKind::cache) {
      const unsigned file = s.file_number(f.owner.load(env::relaxed));
      n.what = fmt::format("{} page {}", file != 0 ? fmt::format("file{}", file) : "shmem",
                           f.index.load(env::relaxed));
    }
  }
}

void Names::note_core(const Survey& s) {
  memory::MachineCore& core = s.core;
  add(core.system_lock, "system lock", Meaning::page_lock);
  // buddy, slabs and epochs lie in this order.
  const auto* const epochs = reinterpret_cast<const std::byte*>(&core.epochs());
  const std::byte* const slabs = epochs - memory::kSlabKinds * sizeof(memory::Slab);
  const std::byte* const buddy = slabs - sizeof(memory::Buddy);
  for (const layout::Member& m : layout::kBuddy) {
    add(buddy + m.offset, m.bytes, fmt::format("buddy.{}", m.name), m.meaning);
  }
  static constexpr const char* kKinds[] = {"vma", "tree_node", "anon_root", "file", "mm"};
  static_assert(std::size(kKinds) == memory::kSlabKinds);
  for (unsigned k = 0; k < memory::kSlabKinds; ++k) {
    for (const layout::Member& m : layout::kSlab) {
      add(slabs + k * sizeof(memory::Slab) + m.offset, m.bytes,
          fmt::format("slab {}.{}", kKinds[k], m.name), m.meaning);
    }
  }
  for (const layout::Member& m : layout::kEpochs) {
    add(epochs + m.offset, m.bytes, fmt::format("epoch.{}", m.name), m.meaning);
  }
  const std::byte* const after = epochs + sizeof(sync::EpochDomain);
  add(after, 4, "attach lock", Meaning::lock);
  add(after + 4, 4, "cpu_limit", Meaning::number);
}

void Names::note_cpus(const Survey& s) FP_NO_THREAD_SAFETY_ANALYSIS {  // addresses only
  const std::uint32_t limit = std::min(s.core.cpu_limit(), memory::kMaxCpus);
  for (std::uint32_t id = 0; id < limit; ++id) {
    const memory::Cpu& cpu = s.core.cpu(id);
    const std::string n = s.cpu_name(id);
    add(cpu.section, n + ".section", Meaning::section);
    add(cpu.attention, n + ".attention", Meaning::signal);
    add(cpu.parked, n + ".parked", Meaning::signal);
    add(cpu.depth, n + ".depth");
    for (std::size_t i = 0; i < detail::kTlbEntries; ++i) {
      add(cpu.tlb[i].read_tag, fmt::format("{}.tlb[{}].read_tag", n, i), Meaning::bits);
      add(cpu.tlb[i].write_tag, fmt::format("{}.tlb[{}].write_tag", n, i), Meaning::bits);
      add(cpu.tlb[i].addend, fmt::format("{}.tlb[{}].addend", n, i), Meaning::bits);
    }
    add(cpu.epoch.word, n + ".epoch", Meaning::signal);
    add(cpu.epoch.depth, n + ".epoch.depth");
    add(cpu.attached, n + ".attached");
    add(cpu.flush.lock, n + ".flush.lock", Meaning::signal);
    add(cpu.flush.start, n + ".flush.start", Meaning::bits);
    add(cpu.flush.end, n + ".flush.end", Meaning::bits);
    add(cpu.flush.posted, n + ".flush.posted", Meaning::signal);
    add(cpu.flush.answered, n + ".flush.answered", Meaning::signal);
    add(cpu.cache_lock, n + ".cache_lock", Meaning::lock);
    add(cpu.frame_count, n + ".frame_count");
    add(cpu.retired_count, n + ".retired_count");
    for (std::uint32_t i = 0; i < memory::kFrameCache; ++i) {
      add(cpu.frames[i], fmt::format("{}.frames[{}]", n, i));
    }
    for (unsigned k = 0; k < memory::kSlabKinds; ++k) {
      add(cpu.magazine_count[k], fmt::format("{}.magazine_count[{}]", n, k));
      add(cpu.magazine[k], fmt::format("{}.magazine[{}]", n, k), Meaning::pointer);
    }
    add(cpu.retired, n + ".retired");
    add(cpu.counters, n + ".counters");
    add(cpu.baseline, n + ".counters");
  }
}

void Names::note_spaces(const Survey& s) FP_NO_THREAD_SAFETY_ANALYSIS {  // addresses only
  for (const Survey::Space& space : s.spaces) {
    const vma::Mm& mm = *space.mm;
    const std::string& n = space.name;
    add(mm.link, n + ".link", Meaning::pointer);
    const auto* const lock = reinterpret_cast<const std::byte*>(&mm.mmap_lock);
    add(lock, 8, n + ".mmap_lock", Meaning::mmap_lock);
    add(lock + layout::kRwLockQueue, sizeof(sync::RwLock) - layout::kRwLockQueue,
        n + ".mmap_lock.queue", Meaning::lock);
    for (const layout::Member& m : layout::kSpinRwLock) {
      add(reinterpret_cast<const std::byte*>(&mm.tree_lock) + m.offset, m.bytes,
          fmt::format("{}.tree_lock.{}", n, m.name),
          m.offset == 0 ? Meaning::rw_lock : Meaning::number);
    }
    add(reinterpret_cast<const std::byte*>(&mm.tree) + layout::kTreeRoot, 8, n + ".tree.root",
        Meaning::pointer);
    for (const layout::Member& m : layout::kPageTable) {
      add(reinterpret_cast<const std::byte*>(&mm.tables) + m.offset, m.bytes,
          fmt::format("{}.tables.{}", n, m.name), Meaning::number);
    }
    add(mm.map_count, n + ".map_count");
    add(mm.brk, n + ".brk", Meaning::bits);
    add(mm.anon_lock, n + ".anon_lock", Meaning::lock);
    add(mm.flush_pending, n + ".flush_pending");
    add(mm.cpus, n + ".cpus", Meaning::bits);
    add(mm.users, n + ".users");
    add(mm.lock_sequence, n + ".lock_sequence", Meaning::sequence);
    add(mm.vma_drained, n + ".vma_drained");
  }
}

template <class F>
void Names::for_each_object(const Survey& s, SlabKind kind, F&& f) {
  const std::uint32_t bytes = layout::slab_bytes(kind);
  for (Pfn p = 0; p < s.frames; ++p) {
    if (s.kind(p) != FrameKind::slab || s.frame(p).slab_kind != static_cast<std::uint8_t>(kind)) {
      continue;
    }
    for (std::uint32_t k = 0; (k + 1) * bytes <= kPageSize; ++k) {
      f(s.core.object_memory(p) + k * bytes, k);
    }
  }
}

void Names::note_vmas(const Survey& s) {
  std::map<std::string, unsigned> seen;
  const auto note = [&](const vma::Vma& v, bool listed, std::string n) {
    // Two that were removed may have had the same bounds.
    if (const unsigned nth = ++seen[n]; nth > 1) n += fmt::format("#{}", nth);
    add(v.link, n + ".link", Meaning::pointer, listed);
    add(v.sequence, n + ".sequence", Meaning::sequence, listed);
    add(v.refs, n + ".refs", Meaning::number, listed);
    add(v.lock.count, n + ".lock.count", Meaning::bits, listed);
    add(v.lock.sequence, n + ".lock.sequence", Meaning::number, listed);
    add(v.mm, n + ".mm", Meaning::pointer, listed);
    add(v.rmap_next, n + ".rmap_next", Meaning::pointer, listed);
    add(v.rmap_prev, n + ".rmap_prev", Meaning::pointer, listed);
    const auto* const behind = reinterpret_cast<const std::byte*>(&v.rmap_prev + 1);
    for (const layout::Member& m : layout::kVmaPrivate) {
      add(behind + m.offset, m.bytes, fmt::format("{}.{}", n, m.name), m.meaning, listed);
    }
  };
  for (const Survey::Listed& l : s.vmas) note(*l.vma, true, vma_name(s, l));
  for_each_object(s, SlabKind::vma, [&](const std::byte* at, unsigned k) {
    const auto& v = *reinterpret_cast<const vma::Vma*>(at);
    if (is_listed(s, &v)) return;
    note(v, false,
         v.end() == 0 ? fmt::format("unused vma {}", k)
                      : fmt::format("unlisted vma[{:#x}-{:#x}]", v.start(), v.end()));
  });
}

void Names::note_roots(const Survey& s) {
  for_each_object(s, SlabKind::anon_root, [&](const std::byte* at, unsigned k) {
    const auto& root = *reinterpret_cast<const vma::AnonRoot*>(at);
    std::string n = fmt::format("anon_root {}", k);
    bool used = false;
    for (const Survey::Listed& l : s.vmas) {
      if (l.vma->anon_root() != &root) continue;
      n = vma_name(s, l) + ".anon_root";
      used = true;
      break;
    }
    add(root.link, n + ".link", Meaning::pointer, used);
    add(root.refs, n + ".refs", Meaning::number, used);
  });
}

void Names::note_files(const Survey& s) {
  for_each_object(s, SlabKind::file, [&](const std::byte* at, unsigned k) {
    const auto& file = *reinterpret_cast<const cache::FileObject*>(at);
    const unsigned handle = s.file_number(&file);
    const std::string n = handle != 0 ? fmt::format("file{}", handle) : fmt::format("shmem {}", k);
    add(file.link, n + ".link", Meaning::pointer);
    const auto* const lock = reinterpret_cast<const std::byte*>(&file.rmap_lock);
    for (const layout::Member& m : layout::kSpinRwLock) {
      add(lock + m.offset, m.bytes, fmt::format("{}.rmap_lock.{}", n, m.name),
          m.offset == 0 ? Meaning::rw_lock : Meaning::number);
    }
    // The core pointer is aligned behind the lock.
    const std::byte* const behind = at + ((lock - at + sizeof(sync::SpinRwLock) + 7) & ~7ul);
    for (const layout::Member& m : layout::kFilePrivate) {
      add(behind + m.offset, m.bytes, fmt::format("{}.{}", n, m.name), m.meaning);
    }
    const auto root = layout::read<std::uint64_t>(behind, layout::kFileIndexRoot);
    const auto top = static_cast<Pfn>(root) - 1;
    if (root != 0 && top < s.frames && s.kind(top) == FrameKind::index) {
      frames_[top].what = n + ".index";
    }
  });
  for (unsigned i = 1; i <= s.stage.file_count(); ++i) {
    const MemoryStore& store = s.stage.store(i);
    constexpr std::size_t kStoreWords = std::size_t{MemoryStore::kPages} * 8;
    const auto* const words = reinterpret_cast<const std::byte*>(&store + 1) - kStoreWords * 8;
    for (unsigned w = 0; w < kStoreWords; ++w) {
      add(words + w * 8, 8, fmt::format("store of file {}, page {} word {}", i, w / 8, w % 8),
          Meaning::number);
    }
  }
}

void Names::note_tree_nodes(const Survey& s) {
  for_each_object(s, SlabKind::tree_node, [&](const std::byte* at, unsigned k) {
    add(at, sizeof(vma::TreeNode), fmt::format("tree node {}", k), Meaning::bits);
  });
}

// --- what is asked ------------------------------------------------------------------------------

const Names::Field* Names::field(Place place) const {
  if (before_ != nullptr) {
    if (const Field* const f = before_->field(place); f != nullptr && f->certain) return f;
  }
  auto it = fields_.upper_bound(place);
  if (it == fields_.begin()) return nullptr;
  --it;
  return place < it->second.end ? &it->second : nullptr;
}

std::string Names::name(Place place) const {
  if (place == sim::kNoPlace) return "nowhere";
  if (const Field* const f = field(place)) {
    const Place offset = place - f->from;
    return offset == 0 ? f->name : fmt::format("{}+{}", f->name, offset);
  }
  if (frame_table_.has(place, frames_.size())) return frame_field(place);
  if (objects_.has(place, frames_.size())) return object_word(place);
  if (payload_.has(place, frames_.size())) return payload_word(place);
  if (place >= sim::Arena::kDataBytes && place < sim::Arena::kBytes) return stack_name(place);
  return hex(place);
}

/// A frame that was in use before the run is what it was then.
const Names::FrameNote& Names::note(Pfn p) const {
  if (before_ == nullptr || before_->frames_[p].kind == FrameKind::free) return frames_[p];
  return before_->frames_[p];
}

std::string Names::payload_word(Place place) const {
  const Pfn p = payload_.index(place);
  const std::string n = fmt::format("frame {} word {}", p, payload_.offset(place) / 8);
  const FrameNote& what = note(p);
  return what.kind == FrameKind::anon ? n : fmt::format("{} ({})", n, what.what);
}

std::string Names::frame_field(Place place) const {
  const Pfn p = frame_table_.index(place);
  static constexpr struct {
    std::size_t offset;
    const char* name;
  } kFields[] = {
      {offsetof(Frame, refs), "refs"},         {offsetof(Frame, kind), "kind"},
      {offsetof(Frame, order), "order"},       {offsetof(Frame, level), "level"},
      {offsetof(Frame, lock), "lock"},         {offsetof(Frame, dead), "dead"},
      {offsetof(Frame, occupied), "occupied"}, {offsetof(Frame, page_lock), "page_lock"},
      {offsetof(Frame, flags), "flags"},       {offsetof(Frame, next), "next"},
      {offsetof(Frame, prev), "prev"},         {offsetof(Frame, owner), "owner"},
      {offsetof(Frame, index), "index"},
  };
  std::string field = fmt::format("+{}", frame_table_.offset(place));
  for (const auto& f : kFields) {
    if (f.offset == frame_table_.offset(place)) field = f.name;
  }
  const FrameNote& what = note(p);
  // Of a guest's own page nothing more is to be said.
  return what.kind == FrameKind::anon ? fmt::format("frame {} {}", p, field)
                                      : fmt::format("frame {} {} ({})", p, field, what.what);
}

std::string Names::object_word(Place place) const {
  const Pfn p = objects_.index(place);
  const FrameNote& what = note(p);
  const auto word = static_cast<unsigned>(objects_.offset(place) / 8);
  if (!what.entry.empty()) {
    return fmt::format("{}[{:#x}]", what.entry, what.base + word * what.span);
  }
  if (what.kind == FrameKind::index) return fmt::format("{}[{}]", what.what, word);
  return fmt::format("frame {} ({}) entry {}", p, what.what, word);
}

std::string Names::stack_name(Place place) const {
  return fmt::format("stack of cpu {}", (place - sim::Arena::kDataBytes) / sim::Arena::kStackBytes);
}

About Names::about(Place place) const {
  About a;
  if (const Field* const f = field(place)) {
    a.meaning = f->meaning;
    a.bytes = std::min(f->end - f->from, 8u);
  } else if (frame_table_.has(place, frames_.size())) {
    a.frame = frame_table_.index(place);
    a.bytes = 4;
    switch (frame_table_.offset(place)) {
      case offsetof(Frame, kind):
        a.meaning = Meaning::frame_kind;
        a.bytes = 1;
        break;
      case offsetof(Frame, lock): a.meaning = Meaning::lock; break;
      case offsetof(Frame, page_lock): a.meaning = Meaning::page_lock; break;
      case offsetof(Frame, flags): a.meaning = Meaning::page_flags; break;
      case offsetof(Frame, owner):
        a.meaning = Meaning::pointer;
        a.bytes = 8;
        break;
      default: a.meaning = Meaning::number; break;
    }
  } else if (objects_.has(place, frames_.size())) {
    a.meaning =
        note(objects_.index(place)).kind == FrameKind::table ? Meaning::entry : Meaning::bits;
    a.frame = objects_.index(place);
  } else if (payload_.has(place, frames_.size())) {
    a.meaning = Meaning::payload;
    a.frame = payload_.index(place);
    a.word = static_cast<unsigned>(payload_.offset(place) / 8);
  }
  return a;
}

std::string Names::value(Place place, std::uint64_t v) const {
  switch (about(place).meaning) {
    case Meaning::entry: {
      const Pfn p = objects_.index(place);
      // An upper entry's frame is a table: its rights say nothing.
      if (note(p).span > kPageSize && v != 0) return fmt::format("table {}", Pte(v).pfn());
      return entry_text(Pte(v));
    }
    case Meaning::sequence: return fmt::format("{}{}", v, (v & 1) != 0 ? " (marked)" : "");
    case Meaning::section:
      return fmt::format("{}{}{}", v & ~detail::kInEngine, (v & 1) != 0 ? " open" : " closed",
                         (v & detail::kInEngine) != 0 ? ", in engine" : "");
    case Meaning::mmap_lock:
    case Meaning::rw_lock: {
      const bool big = about(place).meaning == Meaning::mmap_lock;
      const std::uint64_t readers = big ? v >> 8 : v >> 2;
      std::string s =
          readers == 0 ? "" : fmt::format("{} reader{}", readers, readers == 1 ? "" : "s");
      // A reader that counted itself in beside a writer is none yet, and takes itself out again.
      if ((v & 1) != 0) s = readers == 0 ? "writer" : "writer, and " + s + " to be";
      if (s.empty()) s = "free";
      if ((v & 2) != 0) s += big ? ", queue" : ", door shut";
      if (big && (v & 4) != 0) s += ", handoff";
      return s;
    }
    case Meaning::page_lock: return v == 0 ? "free" : v == 1 ? "held" : "held, sleepers";
    case Meaning::lock: return v == 0 ? "free" : "held";
    case Meaning::frame_kind: return name_of(static_cast<FrameKind>(v));
    case Meaning::vma_flags:
      return rights(vma::prot_of(static_cast<std::uint32_t>(v))) +
             ((v & vma::kVmShared) != 0 ? 's' : 'p');
    case Meaning::page_flags: {
      std::string s;
      if ((v & memory::kPageUptodate) != 0) s += " uptodate";
      if ((v & memory::kPageDirty) != 0) s += " dirty";
      return s.empty() ? "clear" : s.substr(1);
    }
    case Meaning::pointer: {
      if (v == 0) return "null";
      const Place to = sim::World::get().place_of(reinterpret_cast<const void*>(v));  // NOLINT
      if (to == sim::kNoPlace) return hex(v);
      // The object's name, without that of its first member.
      std::string s = name(to);
      if (s.ends_with(".link")) s.resize(s.size() - 5);
      return s;
    }
    case Meaning::bits: return v == 0 ? "0" : hex(v);
    case Meaning::unknown:
    case Meaning::signal:
    case Meaning::number:
    case Meaning::payload: return number(v);
  }
  return number(v);
}

}  // namespace faultpath::check
