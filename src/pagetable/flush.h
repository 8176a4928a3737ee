// TLB flushes: asking every Cpu inside a space to forget a range, and waiting until it has.
//
// A flush is answered for a Cpu when one of these is seen after the request was posted and a full
// fence passed (docs/LOCKING.md has the argument in full):
//   - its box says so: it answered between two access sections;
//   - it is parked (idle, in the engine, blocked) and in no section: it reads its TLB again only
//     after it unparked, which is a full fence, and it looks at `attention` after that;
//   - after the heavy fence its section counter is even, or has changed: whatever it opens from now
//     on sees `attention`.
// A flusher is parked itself, so two flushers never wait for each other. It may hold table locks: a
// Cpu in an access section takes none, and one with interrupts off only tries.
#pragma once

#include "base/guards.h"
#include "memory/cpu.h"
#include "memory/machine_core.h"

namespace faultpath::pagetable {

/// The Cpus inside a space. Bits change at context switches; a flusher reads them after its fence.
class CpuSet {
 public:
  void add(std::uint32_t id) { words_[id / 64].fetch_or(bit(id), env::seq_cst); }
  void remove(std::uint32_t id) { words_[id / 64].fetch_and(~bit(id), env::release); }
  bool has(std::uint32_t id) const { return (words_[id / 64].load(env::acquire) & bit(id)) != 0; }
  bool empty() const {
    for (const auto& w : words_) {
      if (w.load(env::acquire) != 0) return false;
    }
    return true;
  }
  template <class F>
  void for_each(F&& f) const {
    for (std::uint32_t w = 0; w < memory::kMaxCpus / 64; ++w) {
      std::uint64_t bits = words_[w].load(env::acquire);
      while (bits != 0) {
        const auto b = static_cast<std::uint32_t>(__builtin_ctzll(bits));
        bits &= bits - 1;
        f(w * 64 + b);
      }
    }
  }

 private:
  static constexpr std::uint64_t bit(std::uint32_t id) { return std::uint64_t{1} << (id % 64); }
  env::atomic<std::uint64_t> words_[memory::kMaxCpus / 64];
};

/// Makes every Cpu in `cpus` forget [start, end); returns when all have. `self` is the caller,
/// parked and in no access section. The entries have been changed before the call.
void flush_range(memory::MachineCore& core, memory::Cpu& self, const CpuSet& cpus, Addr start,
                 Addr end);

/// Forgets [start, end) in the owner's own TLB.
void drop_translations(memory::Cpu& cpu, Addr start, Addr end);

/// Answers whatever was asked of this Cpu. By its owner, outside access sections.
void answer_flush(memory::Cpu& cpu);

/// The owner leaves guest code (enters the engine, goes idle): flushes count as answered from here.
inline void park_cpu(memory::Cpu& cpu, env::Site site = env::Site::current()) {
  // Before `parked`: from the moment flushers stop waiting, a signal handler's access is diverted.
  cpu.section.store(cpu.section.load(env::relaxed, site) | detail::kInEngine, env::relaxed, site);
  // Release: a flusher that sees the Cpu parked sees its accesses as done.
  cpu.parked.store(1, env::release, site);
}
/// Before the owner, in the engine, waits for anything: where parking was put off.
inline void ensure_parked(memory::Cpu& cpu, env::Site site = env::Site::current()) {
  if (cpu.parked.load(env::relaxed, site) == 0) park_cpu(cpu, site);
}
/// The owner goes back to guest code.
inline void unpark_cpu(memory::Cpu& cpu, env::Site site = env::Site::current()) {
  cpu.parked.store(0, env::relaxed, site);
  // Named fence: unpark. A flusher either sees `parked` clear, and waits for an answer, or posted
  // its request before this fence, and it is seen here.
  if (env::guard<Guard::fence_unpark>()) env::full_fence(cpu.parked, site);
  if (FP_UNLIKELY(cpu.flush.posted.load(env::acquire, site) !=
                  cpu.flush.answered.load(env::relaxed, site))) {
    answer_flush(cpu);
  }
  // Last: until the requests seen above are answered, a handler may not use the TLB.
  env::signal_fence();
  cpu.section.store(cpu.section.load(env::relaxed, site) & ~detail::kInEngine, env::relaxed, site);
}

/// An interrupts-off section, for `spf` alone: flushers and grace periods wait for it; inside it
/// locks are only tried (B38). It is an access section with a full fence, as the Cpu is parked
/// around it.
class InterruptsOff {
 public:
  explicit InterruptsOff(memory::Cpu& cpu, env::Site site = env::Site::current())
      : cpu_(cpu), before_(cpu.section.load(env::relaxed, site)), site_(site) {
    cpu_.section.store(before_ | 1, env::relaxed, site);
    if (env::guard<Guard::fence_interrupts_off>()) env::full_fence(cpu_.section, site);
  }
  ~InterruptsOff() { detail::close_section(cpu_, before_, site_); }
  InterruptsOff(const InterruptsOff&) = delete;
  InterruptsOff& operator=(const InterruptsOff&) = delete;

 private:
  memory::Cpu& cpu_;
  std::uint64_t before_;
  [[no_unique_address]] env::Site site_;
};

}  // namespace faultpath::pagetable
