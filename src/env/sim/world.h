// The simulated world: virtual CPUs on fibres of one host thread, under a scheduler that a test
// controls. What the checker (check/) sees of it; engine sources see env.h.
//
// A *scene* is set up once, on the caller's own stack, with no scheduling (`in_run()` is false).
// freeze() then takes a snapshot of the arena. Each run() restores the snapshot, starts one fibre
// for each actor, and asks a Strategy before every step who may take it. Everything that engine code
// reads or writes lies in the arena, at an address that is the same in every process; nothing else
// is restored between runs. So a run is a function of the snapshot and of the strategy's choices.
//
// A *point* is a place where a CPU may lose its turn: before each atomic access, lock, park, fence
// and frame access. A CPU stops at its point with the operation *pending*; when it is chosen, it
// performs it and goes on to its next point. That is one *step*. Plain fields (env::var) are not
// points: they are checked for data races by happens-before instead, so every order of them that
// matters is an order of points.
//
// Memory order: in this world every operation takes effect at once (sequential consistency).
// The orders written in the code count all the same: they make the happens-before by which plain
// fields are judged. (Outcomes of weak memory come with a later version of this world.)
//
// Detectors in here: data races, use of dead memory, double death, deadlock, no progress. Each calls
// violate(), which ends the run at once and abandons its fibres where they stand. Scenes add theirs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <span>
#include <string>
#include <vector>

namespace faultpath::sim {

/// Where in the sources an operation stands.
using Site = std::source_location;

inline constexpr unsigned kMaxCpus = 5;
inline constexpr unsigned kNoCpu = 0xff;
/// Offset of a byte in the arena; identifies atomics, locks and payload words. kNoPlace: none.
using Place = std::uint32_t;
inline constexpr Place kNoPlace = 0xffffffff;

enum class OpKind : std::uint8_t {
  start,     ///< before the first instruction of an actor
  load,      ///< atomic load
  store,     ///< atomic store
  rmw,       ///< exchange, fetch-op, compare-exchange
  lock,      ///< SpinLock::lock: enabled only while the lock is free
  try_lock,  ///< SpinLock::try_lock
  unlock,
  park,   ///< falls asleep if the word holds the value
  sleep,  ///< asleep: enabled only when woken
  unpark,
  fence,  ///< full_fence, heavy_fence
  peek,   ///< guest word or payload word, read
  poke,   ///< guest word or payload word, written (also exchanged)
  pause,  ///< in a bounded loop: a good moment for somebody else, always enabled
  wait,   ///< in an unbounded loop: enabled only when a word that this CPU has read since its
          ///< last wait has been written by another CPU
};

constexpr bool writes(OpKind k) {
  return k == OpKind::store || k == OpKind::rmw || k == OpKind::lock || k == OpKind::try_lock ||
         k == OpKind::unlock || k == OpKind::park || k == OpKind::unpark || k == OpKind::poke;
}

struct Op {
  OpKind kind = OpKind::start;
  Place place = kNoPlace;
  Site site{};
};

/// One step of a run, as recorded.
struct Step {
  std::uint8_t cpu = 0;
  OpKind kind = OpKind::start;
  bool injected = false;  ///< taken by a nested handler on that CPU
  bool chosen = false;    ///< the strategy was asked
  Place place = kNoPlace;
  Site site{};
  std::uint64_t value = 0;  ///< read, or written; old value for rmw
};

enum class Detector : std::uint8_t {
  none,
  value,           ///< a result that no sequential order explains (the model)
  lifetime,        ///< use of a VMA, table, node, frame or lock after its death
  double_release,  ///< it died twice
  conservation,    ///< at rest a count is off: a page lost, a reference leaked, a mark left
  deadlock,        ///< nobody can go on
  no_progress,     ///< a bound on steps was passed
  crash,           ///< the engine dereferenced nonsense
  race,            ///< data race on a plain field            (structural)
  assertion,       ///< an assertion of the engine            (structural)
  unmarked_write,  ///< a VMA field written while unmarked    (structural)
};
/// Semantic detectors see a wrong result; structural ones a broken rule that may lead to one.
constexpr bool semantic(Detector d) { return d != Detector::none && d < Detector::race; }
const char* name_of(Detector d);
const char* name_of(OpKind k);

struct Violation {
  Detector detector = Detector::none;
  unsigned cpu = kNoCpu;
  std::uint64_t step = 0;  ///< steps taken before it
  std::string message;
  explicit operator bool() const { return detector != Detector::none; }
};

/// What a strategy sees when it is asked. References are good during the call.
struct Question {
  std::uint64_t step;        ///< steps taken so far in this run
  unsigned current;          ///< who took the last step; kNoCpu at first
  std::uint32_t enabled;     ///< CPUs that may take the next step; never empty
  std::uint32_t injectable;  ///< CPUs on which a nested handler may be run now
  bool visible;  ///< the current CPU's pending operation may conflict with another CPU's: its place
                 ///< has been seen to be shared, or it is no access of a place at all
  bool polite;   ///< the current CPU is at a pause or a wait: switching away is no preemption
  const Op* pending;  ///< [kMaxCpus]: the next operation of each CPU that has not finished
};

/// A strategy's answer: a CPU out of `enabled`, or one out of `injectable` with `inject`.
struct Choice {
  std::uint8_t cpu = 0;
  bool inject = false;
  friend bool operator==(const Choice&, const Choice&) = default;
};

/// Who may take the next step. Strategies live in check/explore.
class Strategy {
 public:
  virtual ~Strategy() = default;
  /// Asked at every point, or only where the answer can matter (Question::visible, or the current
  /// CPU cannot go on, or a handler may be injected)?
  virtual bool wants_every_point() const { return false; }
  /// Asked only if there is a choice (more than one CPU enabled, or something injectable), unless
  /// wants_forced() says that forced steps are asked for too.
  virtual bool wants_forced() const { return false; }
  virtual Choice choose(const Question& q) = 0;
  /// After each step, if wants_steps().
  virtual bool wants_steps() const { return false; }
  virtual void took(const Step&) {}
};

/// One virtual CPU's script in a run.
struct Actor {
  const char* name = "";
  void (*run)(void* context) = nullptr;
  void* context = nullptr;
  /// A signal handler that a strategy may run on this CPU between two of its steps; may be null.
  void (*handler)(void* context) = nullptr;
};

struct Limits {
  std::uint64_t steps = 20'000;      ///< of a run; past it: no_progress
  std::uint64_t call_steps = 4'000;  ///< of one CPU in one call; past it: no_progress
  unsigned injections = 0;           ///< nested handlers in one run
};

/// The whole simulated machine. One in a process; used by one host thread.
class World {
 public:
  static World& get();

  // --- the arena ------------------------------------------------------------------------------
  /// Forgets everything: the arena is empty and zero, no place has been seen to be shared.
  void reset();
  /// Zeroed memory in the arena for a scene's own state; snapshotted and restored with the rest.
  void* state(std::size_t bytes);
  /// Takes the snapshot that every run starts from.
  void freeze();
  /// Puts the snapshot back (run() does it first).
  void restore();

  Place place_of(const void* at) const;
  const void* address_of(Place place) const;
  /// The address lies in the arena.
  bool contains(const void* at) const;

  // --- running --------------------------------------------------------------------------------
  /// One run: restores, starts `actors`, ends when all have finished or at a violation. False at a
  /// violation.
  bool run(std::span<const Actor> actors, Strategy& strategy, const Limits& limits);

  const Violation& violation() const { return violation_; }
  /// Ends the run (from a fibre: does not return). Between runs: only recorded, and the first one
  /// stays. Structural detectors that are switched off are ignored.
  void violate(Detector detector, std::string message);
  void clear_violation() { violation_ = {}; }

  /// Steps of the last run, in order; the schedule is in them.
  const std::vector<Step>& trace() const { return trace_; }
  std::uint64_t steps() const { return trace_.size(); }
  /// FNV-1a over CPU, kind, place, value, file and line of each step of the last run.
  std::uint64_t trace_hash() const;
  /// CPUs that had not finished at the end of the last run, and what each was about to do.
  std::uint32_t unfinished() const { return alive_; }
  const Op& pending(unsigned cpu) const;

  /// A call of an actor begins and ends (calls nest: a handler's). The span is from its first step
  /// that another CPU could have noticed to its last: steps on places that are not shared commute
  /// with everything, so the call might as well have begun after them. Steps of a call without any
  /// are one instant, now.
  struct Span {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };
  void begin_call();
  Span end_call();
  /// The CPU whose fibre is running; kNoCpu outside runs.
  unsigned cpu() const;
  /// The step number of this CPU's last guest access (peek or poke): the instant of a load or store.
  std::uint64_t last_access_step() const;
  /// True while a nested handler runs on this CPU.
  bool in_handler() const;
  /// Runs `f` outside a run; false if it crashed (the engine's structures are broken).
  bool guarded(void (*f)(void*), void* context);

  // --- what has been learned about a scene --------------------------------------------------------
  /// Has the place been accessed by two CPUs, one of them writing, in any run since reset()?
  bool shared(Place place) const;
  /// Grows whenever another place becomes shared.
  std::uint64_t shared_places() const;
  /// Treats every place as shared (plain enumeration; the first runs of a scene).
  void treat_all_as_shared(bool on);

  // --- switches -----------------------------------------------------------------------------------
  /// Bit g set: guard g (its value in base/guards.h) is switched off.
  void set_guards_off(std::uint64_t mask);
  std::uint64_t guards_off() const;
  /// Race, assertion and unmarked-write detectors; on at first. Mutants run without.
  void set_structural(bool on);
  /// Nanoseconds of the simulated clock that one step takes (1000 at first).
  void set_step_ns(std::uint64_t ns);

  class Impl;

 private:
  World();
  Violation violation_;
  std::vector<Step> trace_;
  std::uint32_t alive_ = 0;
  Impl* impl_;
};

}  // namespace faultpath::sim
