// The slow half of RwLock. What the bits mean and why nobody sleeps for ever is in the header.
#include "sync/rw_lock.h"

#include "sync/spin_guard.h"

namespace faultpath::sync {

namespace {

// Spinning backs off: a waiter that looks at the word all the time takes its cache line from the
// holder, who then needs longer. Rounds double their pauses up to a limit.
constexpr unsigned kSpinRounds = env::per_world(12, 1);      // before the queue
constexpr unsigned kHeadSpinRounds = env::per_world(12, 1);  // of its head, each time it is woken
constexpr unsigned kLongestBackoff = 64;                     // pauses

void back_off(unsigned round) noexcept {
  const unsigned pauses = env::per_world(round < 6 ? 1u << round : kLongestBackoff, 1u);
  for (unsigned i = 0; i < pauses; ++i) env::pause();
}

// States of a waiter's `signal`.
constexpr std::uint32_t kNothing = 0;
constexpr std::uint32_t kParked = 1;   // nothing yet, and its thread sleeps or is about to
constexpr std::uint32_t kWoken = 2;    // it is the head of the queue, and may be able to go on
constexpr std::uint32_t kGranted = 3;  // it holds the lock; the node is off the queue

}  // namespace

struct RwLock::Waiter {
  // Guarded by the queue's lock while the node is queued; then its new owner's (see take()).
  env::var<Waiter*> next{};
  env::var<Kind> kind{};
  env::atomic<std::uint32_t> signal;

  // The node may be gone as soon as the exchange is done: its thread may see the signal without
  // sleeping. From then on it is a mere address. A wake-up for it wakes nobody, or somebody parked
  // on a later word in that place, and every park bears being woken for nothing.
  bool give(std::uint32_t what) noexcept { return signal.exchange(what, env::release) == kParked; }

  // Sleeps until there is a signal and consumes it.
  std::uint32_t await() noexcept {
    std::uint32_t nothing = kNothing;
    if (signal.compare_exchange(nothing, kParked, env::acquire, env::acquire)) {
      while (signal.load(env::acquire) == kParked) env::park(signal, kParked, 0);
    }
    return signal.exchange(kNothing, env::acquire);
  }
};

/// Takes a free lock, past the queue if there is one and kHandoff allows.
template <RwLock::Kind kKind>
bool RwLock::steal() noexcept {
  std::uint64_t seen = state_.load(env::relaxed);
  for (;;) {
    if ((seen & (kWriter | kHandoff)) != 0) return false;
    if constexpr (kKind == Kind::writer) {
      if ((seen & kReaders) != 0) return false;
      if (state_.compare_exchange(seen, seen | kWriter, env::acquire, env::relaxed)) return true;
    } else {
      if ((seen & kWaiters) != 0 && (seen & kReaders) != 0) return false;
      if (state_.compare_exchange(seen, seen + kReader, env::acquire, env::relaxed)) return true;
    }
  }
}

/// Tries for a bounded while without queueing.
template <RwLock::Kind kKind>
bool RwLock::spin() noexcept {
  for (unsigned round = 0; round < kSpinRounds; ++round) {
    back_off(round);
    if ((state_.load(env::relaxed) & kHandoff) != 0) return false;
    if (steal<kKind>()) return true;
  }
  return false;
}

Wait RwLock::lock_read_slow(std::uint64_t seen) noexcept {
  // There is a queue, but nobody held the lock: counted in is in.
  if ((seen & (kWriter | kHandoff | kReaders)) == 0) return {};
  drop_reader(env::relaxed);
  const std::uint64_t since = env::now_ns();
  if (!spin<Kind::reader>()) wait_in_queue<Kind::reader>(since);
  return {.contended = true, .wait_ns = env::now_ns() - since};
}

Wait RwLock::lock_write_slow() noexcept {
  if (steal<Kind::writer>()) return {};
  const std::uint64_t since = env::now_ns();
  if (!spin<Kind::writer>()) wait_in_queue<Kind::writer>(since);
  return {.contended = true, .wait_ns = env::now_ns() - since};
}

/// True if `me` is now the head (and awake: kAwake says so).
bool RwLock::push(Waiter& me) noexcept {
  const SpinGuard guard(queue_lock_);
  Waiter* const last = tail_;
  tail_ = &me;
  if (last != nullptr) {
    last->next = &me;
    return false;
  }
  head_ = &me;
  state_.fetch_or(kWaiters | kAwake, env::relaxed);
  return true;
}

/// The head takes the lock if it can, and leaves the queue; a reader takes the readers behind it
/// along.
template <RwLock::Kind kKind>
bool RwLock::take(Waiter& me) noexcept {
  Waiter* batch = nullptr;  // the readers behind, up to `rest`
  Waiter* rest = nullptr;
  {
    const SpinGuard guard(queue_lock_);
    batch = me.next;
    rest = batch;
    std::uint64_t gain = kWriter;
    if constexpr (kKind == Kind::reader) {
      gain = kReader;
      while (rest != nullptr) {
        const Kind kind = rest->kind;
        if (kind != Kind::reader) break;
        gain += kReader;
        rest = rest->next;
      }
    }
    constexpr std::uint64_t kBusy = kKind == Kind::reader ? kWriter : kWriter | kReaders;
    const std::uint64_t gone = kHandoff | kAwake | (rest == nullptr ? kWaiters : 0);
    std::uint64_t seen = state_.load(env::relaxed);
    do {
      if ((seen & kBusy) != 0) return false;
    } while (!state_.compare_exchange(seen, (seen & ~gone) + gain, env::acquire, env::relaxed));
    head_ = rest;
    if (rest == nullptr) tail_ = nullptr;
  }
  // The batch is off the queue and holds the lock: these nodes are ours until they are signalled.
  while (batch != rest) {
    Waiter* const next = batch->next;
    if (batch->give(kGranted)) env::unpark_one(batch->signal);
    batch = next;
  }
  return true;
}

template <RwLock::Kind kKind>
void RwLock::wait_in_queue(std::uint64_t since_ns) noexcept {
  constexpr std::uint64_t kBusy = kKind == Kind::reader ? kWriter : kWriter | kReaders;
  Waiter me;
  me.kind = kKind;
  if (!push(me) && me.await() == kGranted) return;
  // From here on this is the head, awake.
  for (;;) {
    bool asleep = false;
    for (unsigned round = 0; !asleep;) {
      std::uint64_t seen = state_.load(env::relaxed);
      if ((seen & kBusy) == 0) {
        if (take<kKind>(me)) return;
      } else if ((seen & kHandoff) == 0 && env::now_ns() - since_ns >= kStealNs) {
        state_.compare_exchange(seen, seen | kHandoff, env::relaxed, env::relaxed);
      } else if (round < kHeadSpinRounds) {
        back_off(round++);
      } else {
        // Not to be taken, and from now on not awake: one step, so that nothing falls in between.
        asleep = state_.compare_exchange(seen, seen & ~kAwake, env::relaxed, env::relaxed);
      }
    }
    me.await();
  }
}

/// Called by whoever saw kWaiters without kAwake in a word that the head may be waiting for. It
/// wakes the head even if the lock has been stolen since: the head must see to kHandoff.
void RwLock::wake_head(bool only_reader) noexcept {
  env::atomic<std::uint32_t>* sleeper = nullptr;
  {
    const SpinGuard guard(queue_lock_);
    // Somebody else may have woken the head meanwhile, or the queue may have been served.
    Waiter* const head = head_;
    if (head == nullptr) return;
    if (only_reader) {
      const Kind kind = head->kind;
      if (kind != Kind::reader) return;
    }
    if ((state_.fetch_or(kAwake, env::relaxed) & kAwake) != 0) return;
    if (head->give(kWoken)) sleeper = &head->signal;
  }
  if (sleeper != nullptr) env::unpark_one(*sleeper);
}

}  // namespace faultpath::sync
