// What each operation of the engine does in this world: takes a turn, and leaves its traces in
// shadow memory, where the detectors find them.
#include "hooks.h"

#include <cstring>

#include "scheduler.h"

namespace faultpath::sim::hooks {

bool active = false;

namespace {

bool acquires(std::memory_order o) {
  return o != std::memory_order_relaxed && o != std::memory_order_release;
}
bool releases(std::memory_order o) {
  return o == std::memory_order_release || o == std::memory_order_acq_rel ||
         o == std::memory_order_seq_cst;
}

}  // namespace

void turn(OpKind kind, const void* at, Site site) {
  Fibre& f = *the_world->me;
  Place place = kNoPlace;
  if (at != nullptr) {
    const std::uint64_t offset = the_world->arena.offset(at);
    if (offset >= Arena::kBytes)
      the_world->world.violate(Detector::crash, "an access outside the arena");
    place = static_cast<Place>(offset);
    if (kind == OpKind::peek || kind == OpKind::poke) place &= ~Place{7};
  }
  if (kind == OpKind::wait) the_world->watch(f);
  the_world->set_pending(f, {kind, place, site});
  the_world->decide(f);
  the_world->record(f);
  if (kind == OpKind::wait) f.waited = the_world->steps().size();
  if (place != kNoPlace) the_world->check_alive(f.pending);
}

namespace {
void acquire_from(Fibre& f, const Cell& c, std::memory_order order) {
  join(acquires(order) ? f.clock : f.observed, c.released);
}
}  // namespace

void loaded(const void* at, std::memory_order order, std::uint64_t value) {
  Fibre& f = *the_world->me;
  acquire_from(f, the_world->shadow.cell(the_world->arena.offset(at)), order);
  the_world->steps().back().value = value;
}

void stored(const void* at, std::memory_order order, std::uint64_t value) {
  Fibre& f = *the_world->me;
  const auto place = static_cast<Place>(the_world->arena.offset(at));
  the_world->note_write(place);
  Cell& c = the_world->shadow.cell(place);
  if (releases(order)) {
    c.released = f.clock;
    ++f.clock[f.id];
  } else {
    c.released = f.fenced;
  }
  the_world->steps().back().value = value;
}

void exchanged(const void* at, std::memory_order order, std::uint64_t old_value) {
  Fibre& f = *the_world->me;
  const auto place = static_cast<Place>(the_world->arena.offset(at));
  the_world->note_write(place);
  Cell& c = the_world->shadow.cell(place);
  acquire_from(f, c, order);
  // A read-modify-write continues the release sequence that it found.
  if (releases(order)) {
    join(c.released, f.clock);
    ++f.clock[f.id];
  } else {
    join(c.released, f.fenced);
  }
  the_world->steps().back().value = old_value;
}

void locked(const void* at) {
  Fibre& f = *the_world->me;
  const auto place = static_cast<Place>(the_world->arena.offset(at));
  the_world->note_write(place);
  Cell& c = the_world->shadow.cell(place);
  c.holder = f.id;
  join(f.clock, c.released);
  the_world->steps().back().value = 1;
}

void unlocked(const void* at) {
  Fibre& f = *the_world->me;
  const auto place = static_cast<Place>(the_world->arena.offset(at));
  the_world->note_write(place);
  Cell& c = the_world->shadow.cell(place);
  c.holder = kNoCpu;
  c.released = f.clock;
  ++f.clock[f.id];
}

void fenced() {
  Fibre& f = *the_world->me;
  join(f.clock, f.observed);
  f.fenced = f.clock;
  ++f.clock[f.id];
}

void fenced_everywhere() {
  for (unsigned i = 0; i < the_world->count; ++i) {
    Fibre& f = the_world->fibres[i];
    join(f.clock, f.observed);
    f.fenced = f.clock;
    ++f.clock[f.id];
  }
}

void accessed() { the_world->me->last_access = the_world->steps().size(); }

void wrote(const void* at, std::size_t bytes) {
  if (!the_world->arena.contains(at)) return;
  const std::uint64_t from = the_world->arena.offset(at);
  for (std::uint64_t o = from & ~(Arena::kPage - 1); o < from + bytes; o += Arena::kPage) {
    the_world->arena.mark_dirty(o);
  }
}

void pooled(const void* at, bool write) {
  const std::uint64_t offset = the_world->arena.offset(at);
  if (offset >= Arena::kBytes) return;  // a local variable of the host
  if (write) the_world->arena.mark_dirty(offset);
  Fibre& f = *the_world->me;
  Cell& c = the_world->shadow.cell(offset);
  if (c.wrote > f.clock[c.writer] && c.writer != f.id) {
    the_world->world.violate(
        Detector::race, "data race: cpu " + std::to_string(f.id) + (write ? " writes" : " reads") +
                            " a plain field that cpu " + std::to_string(c.writer) +
                            " wrote, and nothing orders the two");
  }
  if (!write) {
    c.read[f.id] = f.clock[f.id];
    return;
  }
  for (unsigned i = 0; i < the_world->count; ++i) {
    if (i == f.id || c.read[i] <= f.clock[i]) continue;
    the_world->world.violate(Detector::race, "data race: cpu " + std::to_string(f.id) +
                                                 " writes a plain field that cpu " +
                                                 std::to_string(i) +
                                                 " read, and nothing orders the two");
  }
  c.wrote = f.clock[f.id];
  c.writer = f.id;
}

void plain(const void* at, bool write) {
  const std::uint64_t offset = the_world->arena.offset(at);
  if (offset < Arena::kDataBytes && the_world->arena.dead[offset / Arena::kGranule] != 0) {
    the_world->world.violate(Detector::lifetime, "uses memory that is dead");
  }
  pooled(at, write);
}

void made(const void* at) {
  const std::uint64_t offset = the_world->arena.offset(at);
  if (offset >= Arena::kBytes) return;
  the_world->arena.mark_dirty(offset);
  the_world->shadow.cell(offset).released = {};
}

void park(const void* at, bool holds_value) {
  if (!holds_value) return;
  Fibre& f = *the_world->me;
  f.woken = false;
  f.slept = ++the_world->sleep_order;
  the_world->set_pending(
      f, {OpKind::sleep, static_cast<Place>(the_world->arena.offset(at)), f.pending.site});
  the_world->decide(f);
  the_world->record(f);
}

void unpark(const void* at, bool all, Site site) {
  turn(OpKind::unpark, at, site);
  const auto place = static_cast<Place>(the_world->arena.offset(at));
  for (;;) {
    Fibre* longest = nullptr;
    for (unsigned i = 0; i < the_world->count; ++i) {
      Fibre& f = the_world->fibres[i];
      if ((the_world->world.unfinished() & bit(i)) == 0 || f.pending.kind != OpKind::sleep ||
          f.woken || f.pending.place != place) {
        continue;
      }
      if (longest == nullptr || f.slept < longest->slept) longest = &f;
    }
    if (longest == nullptr) return;
    longest->woken = true;
    if (!all) return;
  }
}

void born(const void* at, std::uint64_t bytes) {
  const std::uint64_t from = the_world->arena.offset(at);
  if (from >= Arena::kDataBytes) return;
  for (std::uint64_t o = from; o < from + bytes; o += Arena::kGranule) {
    the_world->arena.dead[o / Arena::kGranule] = 0;
  }
  if (bytes == Arena::kPage) the_world->arena.dead_page[from / Arena::kPage] = 0;
  wrote(at, bytes);
}

// A death of a whole page covers the objects in it, dead or not.
void died(const void* at, std::uint64_t bytes) {
  const std::uint64_t from = the_world->arena.offset(at);
  if (from >= Arena::kDataBytes) return;
  const bool page = bytes == Arena::kPage;
  const bool already = page ? the_world->arena.dead_page[from / Arena::kPage] != 0
                            : the_world->arena.dead[from / Arena::kGranule] != 0;
  if (already) the_world->world.violate(Detector::double_release, "frees memory that is free");
  for (std::uint64_t o = from; o < from + bytes; o += Arena::kGranule) {
    the_world->arena.dead[o / Arena::kGranule] = 1;
  }
  // Whoever else touches a word of it may come before or after: places that the searches must vary.
  if (active) the_world->learn_death(from, bytes);
  if (page) the_world->arena.dead_page[from / Arena::kPage] = 1;
}

void lock_born(const void* at) {
  the_world->arena.dead_lock[the_world->arena.offset(at) / Arena::kGranule] = 0;
}
void lock_died(const void* at) {
  the_world->arena.dead_lock[the_world->arena.offset(at) / Arena::kGranule] = 1;
}

void assertion_failed(const char* what, const char* file, int line) {
  for (const char* p = file; *p != 0; ++p) {
    if (*p == '/') file = p + 1;
  }
  the_world->world.violate(Detector::assertion, std::string("assertion ") + what + " at " + file +
                                                    ":" + std::to_string(line));
}
void unmarked_write() {
  the_world->world.violate(Detector::unmarked_write, "writes a field of a VMA that is not marked");
}

bool guard_on(unsigned guard) { return ((the_world->guards_off >> guard) & 1) == 0; }

std::uint64_t now_ns() {
  if (!active) return the_world->clock_ns;
  return the_world->clock_ns + the_world->steps().size() * the_world->step_ns;
}

bool map_region(std::uint64_t frames, std::uint64_t object_bytes, std::uint64_t payload_bytes,
                std::uint64_t table_bytes, std::byte** payload, std::byte** objects,
                std::byte** tables) {
  (void)frames;
  World::get();
  // The core, the frame table and the Cpus have plain fields: always restored.
  *tables = the_world->arena.take(table_bytes, true);
  *objects = the_world->arena.take(object_bytes, false);
  *payload = the_world->arena.take(payload_bytes, false);
  return *tables != nullptr && *objects != nullptr && *payload != nullptr;
}

}  // namespace faultpath::sim::hooks
