#include "pagetable/flush.h"

#include "base/assert.h"
#include "base/guards.h"
#include "sync/spin_guard.h"

namespace faultpath::pagetable {

using memory::Cpu;
using memory::MachineCore;

namespace {

/// Pauses before the heavy fence is paid for.
constexpr int kAnswerSpins = env::per_world(300, 1);
/// Every so often a wait for a section yields instead of pausing.
constexpr int kSectionSpins = env::per_world(100, 1);

// Posts the range; returns the generation to wait for.
std::uint64_t post(Cpu& cpu, Addr start, Addr end) {
  memory::FlushBox& box = cpu.flush;
  sync::SpinGuard guard(box.lock);
  const std::uint64_t posted = box.posted.load(env::relaxed);
  if (posted == box.answered.load(env::relaxed)) {
    box.start = start;
    box.end = end;
  } else {
    if (start < box.start) box.start = start;
    if (end > box.end) box.end = end;
  }
  box.posted.store(posted + 1, env::release);
  cpu.attention.store(1, env::release);  // cleared under the same lock, by the owner's answer
  return posted + 1;
}

bool answered(const Cpu& cpu, std::uint64_t wanted) {
  if (cpu.flush.answered.load(env::acquire) >= wanted) return true;
  // Parked and in no section. In this order: a section opened while parked (interrupts off) was
  // opened with a full fence, so it is seen here, or it sees the changed entries.
  return cpu.parked.load(env::acquire) != 0 && (cpu.section.load(env::acquire) & 1) == 0;
}

}  // namespace

void drop_translations(Cpu& cpu, Addr start, Addr end) {
  if ((end - start) >> kPageShift >= detail::kTlbEntries) {
    for (detail::TlbEntry& e : cpu.tlb) e.read_tag = e.write_tag = detail::kNoTag;
    return;
  }
  for (Addr a = page_floor(start); a < end; a += kPageSize) {
    detail::TlbEntry& e = detail::tlb_slot(cpu, a);
    // The slot may hold another page of the same index; forgetting it is only a miss.
    e.read_tag = e.write_tag = detail::kNoTag;
  }
}

void answer_flush(Cpu& cpu) {
  memory::FlushBox& box = cpu.flush;
  sync::SpinGuard guard(box.lock);
  const std::uint64_t posted = box.posted.load(env::relaxed);
  if (posted != box.answered.load(env::relaxed)) {
    drop_translations(cpu, box.start, box.end);
    cpu.count(Counter::flush_answered);
    // Release: whoever sees the answer sees every access made through the old translations.
    box.answered.store(posted, env::release);
  }
  cpu.attention.store(0, env::relaxed);
}

void flush_range(MachineCore& core, Cpu& self, const CpuSet& cpus, Addr start, Addr end) {
  FP_ASSERT(self.parked.load(env::relaxed) != 0);
  self.count(Counter::flushes);
  if (cpus.has(self.id)) drop_translations(self, start, end);

  std::uint64_t wanted[memory::kMaxCpus];
  std::uint32_t targets[memory::kMaxCpus];
  std::uint32_t count = 0;
  // Named fence: flush 1. The changed entries are visible before we look who is inside: a Cpu that
  // enters later (a full barrier in CpuSet::add) walks the new entries.
  if (env::guard<Guard::fence_flush_entries>()) env::full_fence(self.parked);
  cpus.for_each([&](std::uint32_t id) {
    if (id == self.id) return;
    targets[count] = id;
    wanted[count] = post(core.cpu(id), start, end);
    ++count;
  });
  if (count == 0) return;
  self.count(Counter::flush_targets, count);
  const std::uint64_t began = env::now_ns();
  // Named fence: flush 2. The requests are visible before `parked` and the sections are read.
  if (env::guard<Guard::fence_flush_requests>()) env::full_fence(self.parked);

  const auto drop_answered = [&] {
    std::uint32_t left = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      if (answered(core.cpu(targets[i]), wanted[i])) continue;
      targets[left] = targets[i];
      wanted[left] = wanted[i];
      ++left;
    }
    count = left;
  };
  drop_answered();
  for (int spins = 0; count != 0 && spins < kAnswerSpins; ++spins) {
    env::pause();
    drop_answered();
  }
  if (count != 0) {
    if (env::guard<Guard::fence_heavy>()) env::heavy_fence();
    self.count(Counter::membarriers);
    for (std::uint32_t i = 0; i < count; ++i) {
      Cpu& target = core.cpu(targets[i]);
      const std::uint64_t section = target.section.load(env::acquire);
      if ((section & 1) == 0) continue;
      for (int spins = 0; target.section.load(env::acquire) == section; ++spins) {
        if (answered(target, wanted[i])) break;
        if (spins % kSectionSpins == kSectionSpins - 1) {
          env::yield();
        } else {
          env::pause();
        }
      }
    }
  }
  self.count(Counter::flush_wait_ns, env::now_ns() - began);
}

}  // namespace faultpath::pagetable
