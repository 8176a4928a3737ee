#include "check/model/at_rest.h"

#include <cstring>

#include "check/model/inspection.h"

namespace faultpath::check {

using memory::Cpu;

bool at_rest(const Rest& rest, std::string* why) {
  static Inspection inspection;
  return inspection.run(rest, why);
}

bool Inspection::run(const Rest& rest, std::string* why) {
  rest_ = &rest;
  why_ = why;
  if (why != nullptr) why->clear();
  wrongs_ = 0;
  walkable_ = true;
  full_ = calls_++ % kFullEvery == 0;
  frames_ = Inspect::frames(*rest.core);
  vmas_ = files_ = roots_ = 0;
  nodes_ = all_tables_ = cached_ = retired_ = 0;
  if (frames_ > kMostFrames || rest.spaces.size() > kMostSpaces || rest.files.size() > kMostFiles) {
    wrong("the machine is too large to be looked at");
    return false;
  }
  std::memset(static_cast<void*>(named_), 0, frames_ * sizeof named_[0]);
  for (const Rest::File& f : rest.files) file_[files_++] = {f.object, f.handles, f.store};

  // The first that is said is mostly the cause; what follows from it may tell more.
  using Group = void (Inspection::*)();
  static constexpr Group kGroups[] = {
      &Inspection::locks_and_cpus, &Inspection::spaces,      &Inspection::reverse_maps,
      &Inspection::file_pages,     &Inspection::page_tables, &Inspection::free_frames,
      &Inspection::every_frame,    &Inspection::objects,     &Inspection::translations,
      &Inspection::counters,       &Inspection::contents,
  };
  for (const Group group : kGroups) {
    (this->*group)();
    if (!walkable_) return false;
  }
  return wrongs_ == 0;
}

// --- Cpus -------------------------------------------------------------------------------------

void Inspection::locks_and_cpus() {
  memory::MachineCore& machine = core();
  if (machine.system_lock.is_locked()) wrong("the system lock is held");
  if (Inspect::attach_locked(machine)) wrong("the attach lock is held");
  if (machine.epochs().advance_lock.is_locked()) wrong("the epoch's advance lock is held");
  if (Inspect::locked(Inspect::buddy(machine))) wrong("the buddy allocator's lock is held");
  for (unsigned k = 0; k < memory::kSlabKinds; ++k) {
    if (Inspect::locked(Inspect::slab(machine, k))) wrong("the lock of slab {} is held", k);
  }
  for (std::uint32_t id = 0; id < cpus(); ++id) {
    Cpu& cpu = machine.cpu(id);
    const std::uint64_t section = cpu.section.load(env::relaxed);
    const bool inside = cpu.space != nullptr;
    if ((section & 1) != 0) wrong("Cpu {}: its section is still open", id);
    if (((section & detail::kInEngine) != 0) == inside) {
      wrong("Cpu {}: it is {} a space, and kInEngine is {}", id, inside ? "in" : "in no",
            inside ? "set" : "clear");
    }
    if ((cpu.parked.load(env::relaxed) == 0) != inside) {
      wrong("Cpu {}: it is {} a space, and {}", id, inside ? "in" : "in no",
            inside ? "parked" : "not parked");
    }
    const std::uint32_t depth = cpu.depth.load(env::relaxed);
    if (depth != 0) wrong("Cpu {}: depth is {}", id, depth);
    if (cpu.epoch.word.load(env::relaxed) != 0 || cpu.epoch.depth != 0) {
      wrong("Cpu {}: it never left its epoch section", id);
    }
    if (cpu.flush.lock.is_locked()) wrong("Cpu {}: the lock of its flush box is held", id);
    if (cpu.cache_lock.is_locked()) wrong("Cpu {}: the lock of its caches is held", id);
    // A request may stay unanswered: its flusher saw the section even. Then the owner will see
    // `attention` before it uses its TLB again.
    const std::uint64_t posted = cpu.flush.posted.load(env::relaxed);
    const std::uint64_t answered = cpu.flush.answered.load(env::relaxed);
    if (answered > posted) wrong("Cpu {}: {} flushes posted, {} answered", id, posted, answered);
    if ((cpu.attention.load(env::relaxed) != 0) != (posted != answered)) {
      wrong("Cpu {}: {} flushes posted, {} answered, but attention is {}", id, posted, answered,
            cpu.attention.load(env::relaxed));
    }
  }
}

// At rest a Cpu's TLB says what the tables say, or less, but for what it has been asked to forget.
void Inspection::translations() {
  for (std::uint32_t id = 0; id < cpus(); ++id) {
    Cpu& cpu = core().cpu(id);
    if (cpu.space == nullptr) continue;
    const vma::Mm& mm = *static_cast<const vma::Mm*>(cpu.space);
    const bool asked = cpu.flush.posted.load(env::relaxed) != cpu.flush.answered.load(env::relaxed);
    for (const detail::TlbEntry& e : cpu.tlb) {
      const Addr tags[2] = {e.read_tag, e.write_tag};
      for (int write = 0; write < 2; ++write) {
        const Addr page = tags[write];
        if (page == detail::kNoTag) continue;
        if (asked && page >= cpu.flush.start && page < cpu.flush.end) continue;
        const pagetable::Table table = mm.tables.find_leaf(page);
        const Pte entry = table ? Pte(table.at(page, 0).load(env::relaxed)) : Pte();
        const char* const access = write != 0 ? "stores to" : "loads from";
        if (!entry.present()) {
          wrong("Cpu {}: its TLB lets {} {:#x} through, whose entry is not present", id, access,
                page);
          continue;
        }
        const auto host = reinterpret_cast<std::uintptr_t>(core().payload(entry.pfn()));
        if (page + e.addend != host) {
          const auto offset = page + e.addend - reinterpret_cast<std::uintptr_t>(core().payload(0));
          wrong("Cpu {}: its TLB sends {} {:#x} to frame {}; the entry names frame {}", id, access,
                page, offset / env::kPayloadBytes, entry.pfn());
        } else if (write != 0 && !(entry.writable() && entry.dirty())) {
          wrong("Cpu {}: its TLB lets stores to {:#x} through, whose entry is {}", id, page,
                entry.writable() ? "clean" : "not writable");
        }
      }
    }
  }
}

// --- counters ---------------------------------------------------------------------------------

void Inspection::counters() {
  const Counters c = core().counters();
  const auto same = [&](const char* left, std::uint64_t a, const char* right, std::uint64_t b) {
    if (a != b) wrong("counters: {} is {}, but {} is {}", left, a, right, b);
  };
  same("faults", c.faults, "minor + major + signals + oom",
       c.minor_faults + c.major_faults + c.fault_signals + c.fault_oom);
  same("faults", c.faults, "spf + spf_vma_access + vma_lock_success + classic_settled",
       c.spf + c.spf_vma_access + c.vma_lock_success + c.classic_settled);
  same("classic_settled", c.classic_settled, "classic_entered", c.classic_entered);
  same("spf_entered", c.spf_entered, "what its attempts came to",
       c.spf + c.spf_vma_access + c.spf_vma_changed + c.spf_vma_noanon + c.spf_vma_notsup +
           c.spf_pmd_changed + c.spf_pte_lock + c.spf_no_vma + c.spf_no_memory);
  const auto all_under = [&](Policy p) {
    for (const vma::Mm* mm : rest_->spaces) {
      if (mm->policy.policy != p) return false;
    }
    return !rest_->spaces.empty();
  };
  if (all_under(Policy::vma_lock)) {
    same("classic_entered", c.classic_entered, "what vma-lock passed on",
         c.vma_lock_abort + c.vma_lock_retry + c.vma_lock_bad_access);
  }
  if (all_under(Policy::spf)) {
    same("classic_entered", c.classic_entered, "spf_bypassed + what spf passed on",
         c.spf_bypassed + c.spf_entered - c.spf - c.spf_vma_access);
  }
  same("table_alloc - table_free", c.table_alloc - c.table_free, "tables", all_tables_);
  const std::uint64_t used =
      frames_ - 1 - Inspect::buddy(core()).free_frames() - cached_;  // the zero page is nobody's
  if (c.pgalloc - c.pgfree < used) {
    wrong("counters: pgalloc - pgfree is {}, but {} frames are in use", c.pgalloc - c.pgfree, used);
  }
}

// --- what stores hold -------------------------------------------------------------------------

// A page that nobody marked dirty holds what the store holds: no store of a guest is forgotten.
void Inspection::contents() {
  for (std::uint32_t pfn = 0; pfn < frames_; ++pfn) {
    if (named_[pfn].holder != Holder::page) continue;
    const Frame& f = frame(pfn);
    const std::uint32_t flags = f.flags.load(env::relaxed);
    if ((flags & memory::kPageUptodate) == 0 || (flags & memory::kPageDirty) != 0) continue;
    const KnownFile* file = known(static_cast<cache::FileObject*>(f.owner.load(env::relaxed)));
    const std::uint64_t page = f.index.load(env::relaxed);
    if (file == nullptr || file->store == nullptr || page >= MemoryStore::kPages) continue;
    for (unsigned w = 0; w < env::kPayloadBytes / 8 && w < 8; ++w) {
      std::uint64_t held = 0;
      std::memcpy(&held, core().payload(pfn) + w * 8, sizeof held);
      const std::uint64_t stored = file->store->word(static_cast<unsigned>(page), w);
      if (held == stored) continue;
      wrong("frame {} (page {} of a file) is clean and holds {} in word {}; the store has {}", pfn,
            page, held, w, stored);
    }
  }
}

}  // namespace faultpath::check
