// SoftCpu's out-of-line half: context switch, and translation beyond the TLB hit.
#include <faultpath/address_space.h>
#include <faultpath/soft_cpu.h>

#include "base/assert.h"
#include "base/guards.h"
#include "memory/machine_core.h"
#include "mmu/walker.h"
#include "pagetable/flush.h"
#include "space/take_fault.h"

namespace faultpath {

using memory::Cpu;
using vma::Mm;

namespace {
/// Not from a signal handler that interrupted the engine or an open access section of this Cpu: the
/// outer frame still uses the space and the TLB.
bool may_switch(const Cpu& cpu) {
  return cpu.depth.load(env::relaxed) == 0 && (cpu.section.load(env::relaxed) & 1) == 0;
}
}  // namespace

SoftCpu::SoftCpu(Machine& machine) : block_(machine.core().attach()) {}

SoftCpu::~SoftCpu() {
  if (block_ == nullptr) return;
  leave();
  Cpu& cpu = static_cast<Cpu&>(*block_);
  cpu.machine->detach(cpu);
}

void SoftCpu::enter(AddressSpace& space) {
  if (block_ == nullptr) return;
  Cpu& cpu = static_cast<Cpu&>(*block_);
  if (!may_switch(cpu) || space.mm().core != cpu.machine) return;
  leave();
  cpu.depth.store(1, env::relaxed);
  Mm& mm = space.mm();
  pagetable::drop_translations(cpu, 0, ~Addr{0});
  // A full barrier: a flusher that does not see us inside changed its entries before we walk any.
  mm.cpus.add(cpu.id);
  mm.users.fetch_add(1, env::relaxed);
  cpu.space = &mm;
  pagetable::unpark_cpu(cpu);
  cpu.depth.store(0, env::relaxed);
}

void SoftCpu::leave() {
  if (block_ == nullptr) return;
  Cpu& cpu = static_cast<Cpu&>(*block_);
  if (cpu.space == nullptr || !may_switch(cpu)) return;
  cpu.depth.store(1, env::relaxed);
  Mm& mm = *static_cast<Mm*>(cpu.space);
  pagetable::park_cpu(cpu);
  mm.users.fetch_sub(1, env::relaxed);
  mm.cpus.remove(cpu.id);
  cpu.space = nullptr;
  cpu.depth.store(0, env::relaxed);
}

Counters SoftCpu::counters() const {
  Counters now;
  if (block_ == nullptr) return now;
  const Cpu& cpu = static_cast<const Cpu&>(*block_);
  Counters before;
  cpu.counters.add_to(now);
  cpu.baseline.add_to(before);
  now -= before;
  return now;
}

namespace detail {

namespace {

Outcome refused(Cpu& cpu, RefusedReason reason, Addr a) {
  cpu.counters.add_nested(Counter::refused);
  return Outcome::refused(reason, a);
}

using mmu::Miss;

/// The fault that the space's machine would report.
GuestFault reported(const Cpu& cpu, const Mm& mm, const Miss& miss, Access access) {
  GuestFault f;
  f.arch = mm.options.arch;
  f.access = access;
  f.present = miss.present;
  f.key_denied = miss.key;
  f.check_keys = f.arch == Arch::x86;
  f.epan = f.arch == Arch::arm64;
  f.key_rights = cpu.pkru;
  f.address = f.reported = miss.at;
  return f;
}

/// One page of the range, in the open section: by TLB, else by a walk.
FP_ALWAYS_INLINE std::byte* translate_page(Cpu& cpu, Mm& mm, Addr a, Access access, bool insert,
                                           Miss* miss) {
  if (access != Access::exec) {  // the TLB knows nothing of fetches
    const TlbEntry& e = tlb_slot(cpu, a);
    const Addr tag = access == Access::write ? e.write_tag : e.read_tag;
    if (tag == page_floor(a)) {
      return reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(a + e.addend));
    }
  }
  if (insert) cpu.count(Counter::tlb_misses);
  std::byte* const page = mmu::walk(cpu, mm, a, access, insert, miss);
  return page == nullptr ? nullptr : page + (a - page_floor(a));
}

/// The whole range, in the open section. False: `*miss` says why.
bool translate_range(Cpu& cpu, Mm& mm, Addr a, std::uint64_t bytes, Access access, bool insert,
                     Translated* t, Miss* miss) {
  std::uint64_t first = kPageSize - (a - page_floor(a));
  if (first > bytes) first = bytes;
  std::byte* const one = translate_page(cpu, mm, a, access, insert, miss);
  if (one == nullptr) return false;
  if (FP_UNLIKELY(first < bytes)) {
    t->second = translate_page(cpu, mm, a + first, access, insert, miss);
    if (t->second == nullptr) return false;
  }
  t->first = one;
  t->first_bytes = first;
  return true;
}

/// A signal handler that interrupted the engine on this Cpu. The Cpu is parked (or may be: a fault
/// parks late), so flushers do not wait for it: the section is opened with a full fence, and nothing is read if a flush has been
/// asked for and not been answered. The TLB is read, not written. A fault is refused.
Translated translate_nested(Cpu& cpu, Mm& mm, Addr a, std::uint64_t bytes, Access access) {
  const std::uint64_t before = cpu.section.load(env::relaxed);
  cpu.section.store(before | 1, env::relaxed);
  if (env::guard<Guard::fence_nested_access>()) env::full_fence(cpu.section);
  Translated t;
  if (cpu.flush.posted.load(env::acquire) == cpu.flush.answered.load(env::relaxed)) {
    Miss miss;
    (void)translate_range(cpu, mm, a, bytes, access, false, &t, &miss);
  }
  if (t.first == nullptr) {
    close_section(cpu, before);
    t.failure = refused(cpu, RefusedReason::nested, a);
    return t;
  }
  t.section = before;
  return t;
}

}  // namespace

Translated translate(CpuBlock& block, Addr a, std::uint64_t bytes, Access access) {
  Cpu& cpu = static_cast<Cpu&>(block);
  Translated t;
  if (cpu.space == nullptr) {
    t.failure = refused(cpu, RefusedReason::not_entered, a);
    return t;
  }
  Mm& mm = *static_cast<Mm*>(cpu.space);
  const bool in_engine = cpu.depth.load(env::relaxed) != 0;
  // The walker looks at 48 bits (52 with larger pages), so what lies beyond the user range must not
  // reach it. The fault finds no VMA there.
  if (a >= kUserEnd || bytes > kUserEnd - a) {
    const Addr fault_at = a < kUserEnd ? kUserEnd : a;
    const bool nested = in_engine || (cpu.section.load(env::relaxed) & 1) != 0;
    t.failure = nested ? refused(cpu, RefusedReason::nested, fault_at)
                       : space::take_fault(cpu, mm, reported(cpu, mm, {fault_at}, access));
    return t;
  }
  if (in_engine) return translate_nested(cpu, mm, a, bytes, access);
  for (;;) {
    const std::uint64_t before = open_section(cpu);
    const bool nested = (before & 1) != 0;
    if (cpu.attention.load(env::acquire) != 0) {
      close_section(cpu, before);
      if (nested) {
        // The outer frame may have opened its section after the flusher looked, and not have come to
        // its own look at `attention`: then nobody waits for it, and what the TLB says is stale.
        t.failure = refused(cpu, RefusedReason::nested, a);
        return t;
      }
      // At depth 1: a signal handler in here must not wait for the box's lock, nor for anybody who
      // does.
      cpu.depth.store(1, env::relaxed);
      pagetable::answer_flush(cpu);
      cpu.depth.store(0, env::relaxed);
      continue;
    }
    Miss miss;
    if (translate_range(cpu, mm, a, bytes, access, !nested, &t, &miss)) {
      t.section = before;
      return t;
    }
    close_section(cpu, before);
    if (nested) {
      // The outer frame's section is open: this one may neither wait for a flush nor answer one.
      t.failure = refused(cpu, RefusedReason::nested, miss.at);
      return t;
    }
    t.failure = space::take_fault(cpu, mm, reported(cpu, mm, miss, access));
    if (!t.failure.ok()) return t;
  }
}

GuestPair compare_exchange_16(std::byte* at, GuestPair expected, GuestPair desired) {
  return env::guest_compare_exchange_16(at, expected, desired);
}

}  // namespace detail

Outcome SoftCpu::fetch(Addr a) {
  if (block_ == nullptr) return not_entered(a);
  const detail::Translated t = detail::translate(*block_, a, 1, Access::exec);
  if (t.first == nullptr) return t.failure;
  detail::close_section(*block_, t.section);
  return {};
}

Outcome SoftCpu::fault(const Decoded& what) {
  if (what.kind == Decoded::Kind::signal) return what.signal;
  const Addr a = what.fault.address;
  if (block_ == nullptr) return not_entered(a);
  Cpu& cpu = static_cast<Cpu&>(*block_);
  if (what.kind == Decoded::Kind::impossible) {
    return detail::refused(cpu, RefusedReason::impossible, a);
  }
  if (cpu.space == nullptr) return detail::refused(cpu, RefusedReason::not_entered, a);
  if (!may_switch(cpu)) return detail::refused(cpu, RefusedReason::nested, a);
  return space::take_fault(cpu, *static_cast<Mm*>(cpu.space), what.fault);
}

void SoftCpu::set_pkru(std::uint32_t rights) {
  if (block_ == nullptr) return;
  Cpu& cpu = static_cast<Cpu&>(*block_);
  if (!may_switch(cpu)) return;
  cpu.depth.store(1, env::relaxed);
  env::signal_fence();  // a handler in here misses, and is refused
  pagetable::drop_translations(cpu, 0, ~Addr{0});
  cpu.pkru = rights;
  env::signal_fence();
  cpu.depth.store(0, env::relaxed);
}

Loaded<GuestPair> SoftCpu::compare_exchange(Addr a, GuestPair expected, GuestPair desired) {
  if (block_ == nullptr) return not_entered(a);
  if ((a & 15) != 0) return Outcome::signal(kSigSegv, kSegvMapErr, a, Access::write);
  const detail::Translated t = detail::translate(*block_, a, 16, Access::write);
  if (t.first == nullptr) return t.failure;
  const GuestPair old = detail::compare_exchange_16(t.first, expected, desired);
  detail::close_section(*block_, t.section);
  return old;
}

namespace {
// Page by page; `move(host, done, n)` moves n bytes, `done` having been moved before.
template <class F>
Copied copy_pages(detail::CpuBlock* block, Addr from, std::uint64_t bytes, Access access,
                  F&& move) {
  Copied c;
  while (c.bytes < bytes) {
    const Addr at = from + c.bytes;
    if (block == nullptr) {
      c.outcome = Outcome::refused(RefusedReason::not_entered, at);
      return c;
    }
    std::uint64_t n = kPageSize - (at - page_floor(at));
    if (n > bytes - c.bytes) n = bytes - c.bytes;
    const detail::Translated t = detail::translate(*block, at, n, access);
    if (t.first == nullptr) {
      c.outcome = t.failure;
      return c;
    }
    move(t.first, c.bytes, n);
    detail::close_section(*block, t.section);
    c.bytes += n;
  }
  return c;
}
}  // namespace

Copied SoftCpu::copy_in(void* to, Addr from, std::uint64_t bytes) {
  return copy_pages(block_, from, bytes, Access::read,
                    [to](std::byte* host, std::uint64_t done, std::uint64_t n) {
                      env::copy_from_payload(static_cast<std::byte*>(to) + done, host, n);
                    });
}

Copied SoftCpu::copy_out(Addr to, const void* from, std::uint64_t bytes) {
  return copy_pages(block_, to, bytes, Access::write,
                    [from](std::byte* host, std::uint64_t done, std::uint64_t n) {
                      env::copy_to_payload(host, static_cast<const std::byte*>(from) + done, n);
                    });
}

}  // namespace faultpath
