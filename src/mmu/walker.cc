#include "mmu/walker.h"

#include "base/guards.h"

namespace faultpath::mmu {

using pagetable::Pte;

namespace {

/// The register of protection keys says no (x86).
bool key_denies(const memory::Cpu& cpu, const vma::Mm& mm, std::uint8_t key, Access access) {
  return cpu.pkru != 0 && mm.options.arch == Arch::x86 &&
         arch::x86::key_denies(cpu.pkru, key, access);
}

bool grants(const memory::Cpu& cpu, const vma::Mm& mm, Pte pte, Access access) {
  switch (access) {
    case Access::read:
      if (!pte.readable()) return false;
      break;
    case Access::write:
      if (!pte.writable()) return false;
      break;
    case Access::exec:
      if (!pte.executable()) return false;
      break;
  }
  return !key_denies(cpu, mm, pte.key(), access);
}

}  // namespace

std::byte* walk(memory::Cpu& cpu, vma::Mm& mm, Addr a, Access access, bool insert, Miss* miss) {
  *miss = {a, false, false};
  // Walk and insert are in one section, so an answer of this Cpu cannot come between them; the
  // generation says so even if one did (a nested user of the Cpu).
  const std::uint64_t generation = cpu.flush.answered.load(env::relaxed);
  const pagetable::Table leaf = mm.tables.find_leaf(a);
  if (!leaf) return nullptr;
  pagetable::Entry& entry = leaf.at(a, 0);
  std::uint64_t word = entry.load(env::acquire);
  std::uint64_t wanted = Pte::kAccessed;
  if (access == Access::write) wanted |= Pte::kDirty;
  for (;;) {
    const Pte pte(word);
    if (!pte.present()) return nullptr;
    if (!grants(cpu, mm, pte, access)) {
      *miss = {a, true, key_denies(cpu, mm, pte.key(), access)};
      return nullptr;
    }
    if ((word & wanted) == wanted) break;
    // As hardware: the bits are set only in an entry that still grants the access.
    if (entry.compare_exchange(word, word | wanted, env::acq_rel, env::acquire)) {
      word |= wanted;
      break;
    }
  }
  const Pte pte(word);
  std::byte* const host = mm.core->payload(pte.pfn());
  if (insert && (!env::guard<Guard::walk_insert_same_section>() ||
                 generation == cpu.flush.answered.load(env::relaxed))) {
    detail::TlbEntry& e = detail::tlb_slot(cpu, a);
    const Addr page = page_floor(a);
    // Tags last, and none while the addend changes: a signal handler between two of these stores
    // finds an entry that misses.
    e.read_tag = e.write_tag = detail::kNoTag;
    env::signal_fence();
    e.addend = reinterpret_cast<std::uintptr_t>(host) - page;
    env::signal_fence();
    if (grants(cpu, mm, pte, Access::read)) e.read_tag = page;
    // Only through a dirty entry may stores go on without looking again.
    if (pte.dirty() && grants(cpu, mm, pte, Access::write)) e.write_tag = page;
  }
  return host;
}

}  // namespace faultpath::mmu
