#include "check/scene/stage.h"

#include <cstring>
#include <new>
#include <utility>

#include "memory/machine_core.h"

namespace faultpath::check {

namespace {

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "a scene could not be set up: %s\n", what);
  std::abort();
}

template <class T>
T value_of(Result<T>&& r, const char* what) {
  if (!r.has_value()) give_up(what);
  return std::move(r).value();
}

}  // namespace

Stage::Stage(const PolicySpec& policy, std::uint64_t seed) : policy_(policy), seed_(seed) {
  sim::World& world = sim::World::get();
  world.reset();
  // Handles lie in the arena too: a run may make spaces, and the next run must not know them.
  // Nothing in the arena is ever destroyed; reset() forgets it.
  spaces_ = static_cast<std::byte*>(world.state(kSpaces * sizeof(AddressSpace)));
  machine_ = ::new (world.state(sizeof(Machine)))
      Machine(value_of(Machine::create({.memory_bytes = 1 << 20, .max_cpus = 7}), "machine"));
  ::new (slot(0)) AddressSpace(value_of(machine_->new_space({.policy = policy}), "space"));
  auto* const soft = ::new (world.state(sizeof(SoftCpu))) SoftCpu(*machine_);
  director_ = &directors_.emplace_back(*this, sim::kMaxCpus, "director", soft, 0u);
}

Script& Stage::cpu(const char* name, std::function<void(Script&)> body, unsigned space) {
  if (cpu_count_ == sim::kMaxCpus) give_up("too many CPUs");
  auto* const soft = ::new (sim::World::get().state(sizeof(SoftCpu))) SoftCpu(*machine_);
  if (!bare) soft->enter(*slot(space));
  Script& s = scripts_.emplace_back(*this, cpu_count_++, name, soft, space);
  s.body = std::move(body);
  return s;
}

unsigned Stage::make_file(unsigned pages, bool writable) {
  const unsigned number = ++file_count_;
  if (number > kFiles || pages > State::kFilePages) give_up("too many files or pages");
  sim::World& world = sim::World::get();
  stores_[number] = ::new (world.state(sizeof(MemoryStore))) MemoryStore(pages);
  files_[number] = ::new (world.state(sizeof(File)))
      File(value_of(machine_->new_file(*stores_[number], {true, writable}), "file"));
  model_.files[number].size = pages * kPageSize;
  for (unsigned p = 0; p < pages; ++p) {
    for (unsigned w = 0; w < kWords; ++w) {
      model_.files[number].words[p][w] = stores_[number]->word(p, w);
    }
  }
  return number;
}

unsigned Stage::new_space(const SpaceOptions& options) {
  for (unsigned i = 0; i < kSpaces; ++i) {
    if (has_space(i)) continue;
    ::new (slot(i)) AddressSpace(value_of(machine_->new_space(options), "space"));
    return i;
  }
  give_up("too many spaces");
}

bool Stage::has_space(unsigned i) const {
  static_assert(sizeof(AddressSpace) == sizeof(void*));
  void* mm = nullptr;
  std::memcpy(&mm, spaces_ + i * sizeof(AddressSpace), sizeof mm);
  return mm != nullptr;
}

void Stage::adopt(unsigned i, AddressSpace&& space) {
  ::new (slot(i)) AddressSpace(std::move(space));
}

void Stage::destroy(unsigned i) {
  AddressSpace gone(std::move(*slot(i)));  // empties the slot first: the destructor takes steps
}

void Stage::finish() {
  if (bare) return;
  memory::MachineCore& core = machine_->core();
  for (Script& s : scripts_) {
    auto& cpu = static_cast<memory::Cpu&>(*s.soft().block());
    const memory::Pfn pfn = core.allocate_frame(cpu, memory::FrameKind::anon, true);
    if (pfn == memory::kNoPfn) give_up("frames");
    core.free_frame(cpu, pfn);
  }
  const auto frames = static_cast<memory::Pfn>(core.memory_info().frames + 1);
  for (memory::Pfn p = 0; p < frames; ++p) {
    if (core.frame(p).kind.load(env::relaxed) != memory::FrameKind::free) continue;
    for (unsigned w = 0; w < kWords; ++w) {
      const std::uint64_t stale = 0xdead00000000 + p * 16 + w;
      std::memcpy(core.payload(p) + w * 8, &stale, sizeof stale);
    }
  }
}

}  // namespace faultpath::check
