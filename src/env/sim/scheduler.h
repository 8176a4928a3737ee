// The scheduler's inside: virtual CPUs, whose turn it is, what each waits for.
#pragma once

#include <boost/context/detail/fcontext.hpp>

#include <csetjmp>
#include <cstring>
#include <string>

#include "arena.h"
#include "shadow.h"
#include "world.h"

namespace faultpath::sim {

namespace context = boost::context::detail;

constexpr std::uint32_t bit(unsigned cpu) { return std::uint32_t{1} << cpu; }

inline constexpr unsigned kNesting = 4;  ///< calls of one CPU inside one another
inline constexpr unsigned kWatched = 64;

struct CallFrame {
  std::uint64_t first = 0;  ///< step + 1 of its first visible step; 0: none yet
  std::uint64_t last = 0;
  std::uint64_t steps = 0;
};

struct Watched {
  Place place;
  std::uint32_t since;  ///< step + 1 of the CPU's last read of it
};

/// A virtual CPU.
struct Fibre {
  context::fcontext_t context = nullptr;
  const Actor* actor = nullptr;
  std::uint8_t id = 0;
  Op pending;
  bool inject = false;  ///< resumed in order to run its handler
  bool woken = false;   ///< asleep, and unparked since
  bool in_handler = false;
  std::uint64_t slept = 0;  ///< when it fell asleep: who sleeps longest is woken first
  std::uint64_t last_access = 0;
  std::uint64_t waited = 0;  ///< steps taken when its last wait ended
  unsigned watched_count = 0;
  Watched watched[kWatched];  ///< what its pending wait waits for
  unsigned depth = 0;
  CallFrame calls[kNesting];
  // Happens-before.
  Clock clock{};
  Clock fenced{};    ///< at its last fence: what its relaxed stores publish
  Clock observed{};  ///< what its relaxed loads saw: joined at its next fence
};

class World::Impl {
 public:
  explicit Impl(World& w) : world(w) {}

  World& world;
  Arena arena;
  Shadow shadow;
  Fibre fibres[kMaxCpus];
  Fibre home;  ///< the caller of run()
  Fibre* me = nullptr;
  unsigned count = 0;
  std::uint32_t conditional = 0;  ///< CPUs whose pending operation may be disabled
  std::uint32_t handlers = 0;     ///< CPUs that have a handler
  unsigned injections_left = 0;
  unsigned current = kNoCpu;
  std::uint64_t sleep_order = 0;
  Strategy* strategy = nullptr;
  bool every_point = false;
  bool forced = false;
  bool steps_wanted = false;
  Limits limits;
  bool all_shared = false;
  std::uint64_t shared_count = 0;
  std::uint64_t guards_off = 0;
  bool structural = true;
  std::uint64_t step_ns = 1000;
  std::uint64_t clock_ns = 1;
  std::uint64_t chosen_at = ~std::uint64_t{0};
  sigjmp_buf rescue;
  bool rescuing = false;

  std::vector<Step>& steps() { return world.trace_; }
  bool is_shared(Place p) { return all_shared || shadow.sharing(p).shared; }
  bool visible(const Op& op) {
    if (op.place != kNoPlace) return is_shared(op.place);
    return op.kind == OpKind::pause || op.kind == OpKind::wait;
  }

  bool holds(const Fibre& f) {
    switch (f.pending.kind) {
      case OpKind::lock: {
        std::uint32_t word = 0;
        std::memcpy(&word, arena.at(f.pending.place), sizeof word);
        return word == 0;
      }
      case OpKind::sleep: return f.woken;
      case OpKind::wait:
        if (f.watched_count == 0) return true;
        for (unsigned i = 0; i < f.watched_count; ++i) {
          const Cell& c = shadow.cell(f.watched[i].place);
          const std::uint32_t by_others = c.last_writer != f.id ? c.write_step : c.other_step;
          if (by_others > f.watched[i].since) return true;
        }
        return false;
      default: return true;
    }
  }

  std::uint32_t enabled() {
    std::uint32_t mask = world.alive_;
    for (std::uint32_t left = conditional & mask; left != 0; left &= left - 1) {
      const auto c = static_cast<unsigned>(__builtin_ctz(left));
      if (!holds(fibres[c])) mask &= ~bit(c);
    }
    return mask;
  }

  std::uint32_t injectable() {
    if (injections_left == 0) return 0;
    std::uint32_t mask = handlers & world.alive_;
    for (std::uint32_t left = mask; left != 0; left &= left - 1) {
      const auto c = static_cast<unsigned>(__builtin_ctz(left));
      if (fibres[c].in_handler || fibres[c].pending.kind == OpKind::start) mask &= ~bit(c);
    }
    return mask;
  }

  /// Who is next, the pending operations being as they are.
  Choice ask() {
    const std::uint32_t can = enabled();
    const std::uint32_t handlers_now = injectable();
    const bool goes_on = current != kNoCpu && (can & bit(current)) != 0;
    const bool seen = !goes_on || visible(fibres[current].pending);
    if (can == 0 && handlers_now == 0) deadlock();
    const bool single = (can & (can - 1)) == 0 && handlers_now == 0;
    if (single && !forced) return {static_cast<std::uint8_t>(__builtin_ctz(can)), false};
    if (!seen && !every_point && handlers_now == 0) {
      return {static_cast<std::uint8_t>(current), false};
    }
    if (can == 0) deadlock();
    chosen_at = world.trace_.size();
    const OpKind kind = goes_on ? fibres[current].pending.kind : OpKind::pause;
    const Question q{world.trace_.size(), current, can,
                     handlers_now,        seen,    kind == OpKind::pause || kind == OpKind::wait,
                     pending_ops()};
    return strategy->choose(q);
  }

  Op ops[kMaxCpus];
  const Op* pending_ops() {
    for (unsigned i = 0; i < count; ++i) ops[i] = fibres[i].pending;
    return ops;
  }

  /// Leaves this stack for `to`; returns when somebody comes back.
  void jump(Fibre& to) {
    Fibre& from = *me;
    me = &to;
    const context::transfer_t t = context::jump_fcontext(to.context, &from);
    static_cast<Fibre*>(t.data)->context = t.fctx;
  }

  /// Waits for this CPU's turn.
  void decide(Fibre& f) {
    for (;;) {
      const Choice choice = ask();
      if (choice.inject) {
        --injections_left;
        fibres[choice.cpu].inject = true;
      }
      if (choice.cpu != f.id) {
        current = choice.cpu;
        jump(fibres[choice.cpu]);
      }
      current = f.id;
      if (!f.inject) return;
      f.inject = false;
      nested(f);
    }
  }

  void nested(Fibre& f) {
    const Op interrupted = f.pending;
    const std::uint64_t instant = f.last_access;
    f.in_handler = true;
    f.actor->handler(f.actor->context);
    f.in_handler = false;
    f.last_access = instant;  // the interrupted access has its own
    set_pending(f, interrupted);
    // A signal ends a sleep early, as it ends a futex's wait.
    if (interrupted.kind == OpKind::sleep) f.woken = true;
  }

  void set_pending(Fibre& f, const Op& op) {
    f.pending = op;
    if (op.kind == OpKind::lock || op.kind == OpKind::sleep || op.kind == OpKind::wait) {
      conditional |= bit(f.id);
    } else {
      conditional &= ~bit(f.id);
    }
  }

  void record(Fibre& f) {
    const std::uint64_t step = world.trace_.size();
    Step s;
    s.cpu = f.id;
    s.kind = f.pending.kind;
    s.injected = f.in_handler;
    s.chosen = chosen_at == step;
    s.place = f.pending.place;
    s.site = f.pending.site;
    world.trace_.push_back(s);
    if (f.depth != 0) {
      CallFrame& c = f.calls[f.depth - 1];
      if (visible(f.pending)) {
        if (c.first == 0) c.first = step + 1;
        c.last = step + 1;
      }
      if (++c.steps > limits.call_steps) starved(f);
    }
    if (step + 1 > limits.steps) endless();
    if (f.pending.place != kNoPlace) learn(f);
    if (steps_wanted) strategy->took(s);
  }

  void learn(const Fibre& f) {
    Sharing& s = shadow.sharing(f.pending.place);
    if (s.shared) return;
    s.cpus |= static_cast<std::uint8_t>(bit(f.id));
    s.written = s.written || writes(f.pending.kind);
    if (s.written && (s.cpus & (s.cpus - 1)) != 0) {
      s.shared = true;
      ++shared_count;
    }
  }

  /// A death is no access of a place, and conflicts with every other CPU's access of the memory.
  void learn_death(std::uint64_t from, std::uint64_t bytes) {
    for (std::uint64_t o = from; o < from + bytes; ++o) {
      Sharing& s = shadow.sharing(o);
      if (s.shared || (s.cpus & ~bit(me->id)) == 0) continue;
      s.shared = true;
      ++shared_count;
    }
  }

  void note_write(Place place) {
    if (place == kNoPlace) return;
    Cell& c = shadow.cell(place);
    const auto step = static_cast<std::uint32_t>(world.trace_.size());  // its number
    if (c.last_writer != me->id) {
      c.other_step = c.write_step;
      c.last_writer = me->id;
    }
    c.write_step = step;
    arena.mark_dirty(place);
  }

  void check_alive(const Op& op) {
    if (op.place >= Arena::kDataBytes) return;
    const std::uint64_t granule = op.place / Arena::kGranule;
    const bool lock = op.kind == OpKind::lock || op.kind == OpKind::try_lock;
    if (arena.dead[granule] != 0 || (lock && arena.dead_lock[granule] != 0)) {
      world.violate(Detector::lifetime,
                    lock ? "takes a lock that is dead" : "uses memory that is dead");
    }
  }

  /// Collects what a CPU that waits has read since its last wait, or since its call began.
  void watch(Fibre& f) {
    f.watched_count = 0;
    std::uint64_t i = world.trace_.size();
    while (i > f.waited && f.watched_count < kWatched) {
      const Step& s = world.trace_[--i];
      if (s.cpu != f.id || s.place == kNoPlace || s.kind == OpKind::store ||
          s.kind == OpKind::unlock) {
        continue;
      }
      bool known = false;
      for (unsigned k = 0; k < f.watched_count; ++k) known = known || f.watched[k].place == s.place;
      if (!known) f.watched[f.watched_count++] = {s.place, static_cast<std::uint32_t>(i + 1)};
    }
  }

  // --- ends of a run --------------------------------------------------------------------------
  [[noreturn]] void leave() {
    hooks::active = false;
    me = &home;
    context::jump_fcontext(home.context, nullptr);
    __builtin_unreachable();
  }

  std::string where(const Fibre& f) {
    std::string s = "cpu " + std::to_string(f.id);
    if (f.actor != nullptr && *f.actor->name != 0) s += std::string(" (") + f.actor->name + ")";
    return s;
  }
  std::string at(const Op& op) {
    const char* file = op.site.file_name();
    for (const char* p = file; *p != 0; ++p) {
      if (*p == '/') file = p + 1;
    }
    return std::string(file) + ":" + std::to_string(op.site.line());
  }

  void deadlock() {
    std::string text = "nobody can go on:";
    for (unsigned i = 0; i < count; ++i) {
      Fibre& f = fibres[i];
      if ((world.alive_ & bit(i)) == 0) continue;
      text += " " + where(f);
      switch (f.pending.kind) {
        case OpKind::lock: {
          const Cell& c = shadow.cell(f.pending.place);
          text += " waits for the lock at " + at(f.pending);
          text += c.holder == kNoCpu ? ", held since before the run"
                                     : ", held by cpu " + std::to_string(c.holder);
          break;
        }
        case OpKind::sleep: text += " sleeps at " + at(f.pending); break;
        case OpKind::wait: text += " waits for another CPU's answer at " + at(f.pending); break;
        default: text += " stands at " + at(f.pending); break;
      }
      text += ";";
    }
    text.pop_back();
    world.violate(Detector::deadlock, std::move(text));
  }
  void starved(const Fibre& f) {
    world.violate(Detector::no_progress, where(f) + " took more than " +
                                             std::to_string(limits.call_steps) +
                                             " steps in one call, the last at " + at(f.pending));
  }
  void endless() {
    world.violate(Detector::no_progress,
                  "the run took more than " + std::to_string(limits.steps) + " steps");
  }

  static void entry(context::transfer_t t);
  [[noreturn]] void finish(Fibre& f);
};

/// The one world of the process; set once it has been asked for.
extern World::Impl* the_world;

}  // namespace faultpath::sim
