// Runs: fibres begin, are left and end; crashes of the engine are findings.
#include "world.h"

#include <csignal>
#include <utility>

#include "hooks.h"
#include "scheduler.h"

namespace faultpath::sim {

World::Impl* the_world = nullptr;

namespace {

void crashed(int signal_number) {
  const char* const what = signal_number == SIGSEGV  ? "a wild address was dereferenced"
                           : signal_number == SIGBUS ? "a bus error"
                                                     : "the engine trapped";
  if (hooks::active) {
    the_world->world.violate(Detector::crash, what);
  } else if (the_world->rescuing) {
    siglongjmp(the_world->rescue, 1);
  }
  std::signal(signal_number, SIG_DFL);
  std::raise(signal_number);
}

void catch_crashes() {
  static std::byte stack[64 << 10];
  stack_t alternate{};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof stack;
  sigaltstack(&alternate, nullptr);
  struct sigaction action{};
  action.sa_handler = crashed;
  // Left by a jump, not by a return: the signal must not stay blocked.
  action.sa_flags = SA_ONSTACK | SA_NODEFER;
  for (const int s : {SIGSEGV, SIGBUS, SIGILL, SIGFPE}) sigaction(s, &action, nullptr);
}

}  // namespace

void World::Impl::entry(context::transfer_t t) {
  static_cast<Fibre*>(t.data)->context = t.fctx;
  Fibre& f = *the_world->me;
  the_world->record(f);
  f.actor->run(f.actor->context);
  the_world->finish(f);
}

void World::Impl::finish(Fibre& f) {
  world.alive_ &= ~bit(f.id);
  conditional &= ~bit(f.id);
  if (world.alive_ == 0) leave();
  current = kNoCpu;
  const Choice choice = ask();
  if (choice.inject) {
    --injections_left;
    fibres[choice.cpu].inject = true;
  }
  current = choice.cpu;
  jump(fibres[choice.cpu]);
  __builtin_unreachable();
}

// --- World ----------------------------------------------------------------------------------------

World::World() : impl_(new Impl(*this)) {
  the_world = impl_;
  catch_crashes();
  trace_.reserve(1024);
}

World& World::get() {
  static World& world = *new World;  // never destroyed: its arena is at a fixed address
  return world;
}

void World::reset() {
  impl_->arena.reset();
  impl_->shadow.next_run();
  impl_->shadow.forget_sharing();
  impl_->shared_count = 0;
  impl_->clock_ns = 1;
  impl_->step_ns = 1000;
  violation_ = {};
  trace_.clear();
}

void* World::state(std::size_t bytes) { return impl_->arena.take(bytes, true); }
void World::freeze() { impl_->arena.freeze(); }
void World::restore() { impl_->arena.restore(); }

Place World::place_of(const void* at) const {
  return impl_->arena.contains(at) ? static_cast<Place>(impl_->arena.offset(at)) : kNoPlace;
}
const void* World::address_of(Place place) const { return impl_->arena.at(place); }
bool World::contains(const void* at) const { return impl_->arena.contains(at); }

bool World::run(std::span<const Actor> actors, Strategy& strategy, const Limits& limits) {
  Impl& i = *impl_;
  i.arena.restore();
  i.shadow.next_run();
  trace_.clear();
  violation_ = {};
  i.strategy = &strategy;
  i.every_point = strategy.wants_every_point();
  i.forced = strategy.wants_forced();
  i.steps_wanted = strategy.wants_steps();
  i.limits = limits;
  i.injections_left = limits.injections;
  i.conditional = 0;
  i.handlers = 0;
  i.current = kNoCpu;
  i.chosen_at = ~std::uint64_t{0};
  i.sleep_order = 0;
  i.count = static_cast<unsigned>(actors.size());
  alive_ = bit(i.count) - 1;
  for (unsigned c = 0; c < i.count; ++c) {
    Fibre& f = i.fibres[c];
    f = Fibre{};
    f.id = static_cast<std::uint8_t>(c);
    f.actor = &actors[c];
    f.clock[c] = 1;
    f.context = context::make_fcontext(i.arena.stack(c) + Arena::kStackBytes - 64,
                                       Arena::kStackBytes - 64, Impl::entry);
    if (actors[c].handler != nullptr) i.handlers |= bit(c);
  }
  i.home = Fibre{};
  i.me = &i.home;
  hooks::active = true;
  const Choice first = i.ask();
  i.current = first.cpu;
  i.me = &i.fibres[first.cpu];
  context::jump_fcontext(i.me->context, &i.home);
  hooks::active = false;
  i.me = nullptr;
  return !violation_;
}

void World::violate(Detector detector, std::string message) {
  if (!semantic(detector) && !impl_->structural) return;
  if (!violation_) {
    violation_.detector = detector;
    violation_.cpu = cpu();
    violation_.step = trace_.size();
    violation_.message = std::move(message);
  }
  if (hooks::active) impl_->leave();
}

std::uint64_t World::trace_hash() const {
  std::uint64_t h = 0xcbf29ce484222325;
  const auto mix = [&h](std::uint64_t v) {
    for (int i = 0; i < 8; ++i) {
      h = (h ^ (v & 0xff)) * 0x100000001b3;
      v >>= 8;
    }
  };
  for (const Step& s : trace_) {
    mix(s.cpu | (std::uint64_t{static_cast<std::uint8_t>(s.kind)} << 8) |
        (std::uint64_t{s.place} << 32));
    // A field may hold an address of the program itself (a call table), which the loader chose.
    mix(s.value < Arena::kBase || s.value - Arena::kBase < Arena::kBytes ? s.value : 0);
    mix(s.site.line());
    for (const char* p = s.site.file_name(); *p != 0; ++p) {
      h = (h ^ static_cast<unsigned char>(*p)) * 0x100000001b3;
    }
  }
  return h;
}

const Op& World::pending(unsigned c) const { return impl_->fibres[c].pending; }
unsigned World::cpu() const {
  return impl_->me != nullptr && impl_->me != &impl_->home ? impl_->me->id : kNoCpu;
}
std::uint64_t World::last_access_step() const { return impl_->me->last_access; }
bool World::in_handler() const { return impl_->me != nullptr && impl_->me->in_handler; }

void World::begin_call() {
  Fibre& f = *impl_->me;
  if (f.depth == kNesting) __builtin_trap();
  f.calls[f.depth++] = {};
}
World::Span World::end_call() {
  Fibre& f = *impl_->me;
  const CallFrame& c = f.calls[--f.depth];
  if (c.first == 0) return {trace_.size(), trace_.size()};
  return {c.first, c.last};
}

bool World::guarded(void (*f)(void*), void* ctx) {
  impl_->rescuing = true;
  const bool fine = sigsetjmp(impl_->rescue, 0) == 0;
  if (fine) f(ctx);
  impl_->rescuing = false;
  return fine;
}

bool World::shared(Place place) const { return impl_->is_shared(place); }
std::uint64_t World::shared_places() const { return impl_->shared_count; }
void World::treat_all_as_shared(bool on) { impl_->all_shared = on; }
void World::set_guards_off(std::uint64_t mask) { impl_->guards_off = mask; }
std::uint64_t World::guards_off() const { return impl_->guards_off; }
void World::set_structural(bool on) { impl_->structural = on; }
void World::set_step_ns(std::uint64_t ns) { impl_->step_ns = ns; }

const char* name_of(Detector d) {
  switch (d) {
    case Detector::none: return "none";
    case Detector::value: return "value";
    case Detector::lifetime: return "lifetime";
    case Detector::double_release: return "double-release";
    case Detector::conservation: return "conservation";
    case Detector::deadlock: return "deadlock";
    case Detector::no_progress: return "no-progress";
    case Detector::crash: return "crash";
    case Detector::race: return "race";
    case Detector::assertion: return "assertion";
    case Detector::unmarked_write: return "unmarked-write";
  }
  return "?";
}

const char* name_of(OpKind k) {
  switch (k) {
    case OpKind::start: return "start";
    case OpKind::load: return "load";
    case OpKind::store: return "store";
    case OpKind::rmw: return "rmw";
    case OpKind::lock: return "lock";
    case OpKind::try_lock: return "try_lock";
    case OpKind::unlock: return "unlock";
    case OpKind::park: return "park";
    case OpKind::sleep: return "sleep";
    case OpKind::unpark: return "unpark";
    case OpKind::fence: return "fence";
    case OpKind::peek: return "peek";
    case OpKind::poke: return "poke";
    case OpKind::pause: return "pause";
    case OpKind::wait: return "wait";
  }
  return "?";
}

}  // namespace faultpath::sim
