// The lock of an address space: many readers or one writer, sleeping waiters, a FIFO queue.
//
// Everything that decides who holds the lock is in one word:
//
//   kWriter   a writer holds it
//   kWaiters  the queue is not empty
//   kHandoff  the lock goes to the head of the queue and to nobody else
//   kAwake    the head of the queue is awake (or has just been woken) and will look at this word
//             again before it sleeps: whoever unlocks need not wake it
//   the rest  the number of readers. One that finds a writer (or a queue) after counting itself in
//             takes itself out again. So a count beside kWriter is no reader yet, but may keep a
//             writer out for a moment
//
// Linearisation points: a reader holds the lock from its fetch_add, if that returned neither
// kWriter nor a queue it must respect; a writer from its compare-exchange of a word with neither
// kWriter nor readers; a queued waiter from the compare-exchange in take(), done by itself or, for
// readers behind a reader at the head, by that reader for all of them at once. Unlocking is one
// fetch_sub. Every change of the word is a read-modify-write, so each release reaches every later
// acquire.
//
// The queue. Waiters are nodes on their threads' stacks, linked under a spin lock. kWaiters and
// kAwake are set, and nodes leave, only under it. Only the head of the queue acts: woken, it tries
// to take the lock as others do, spins a bounded while, and sleeps again. The lock is not handed to
// a sleeper: it would stand idle for as long as waking takes.
//
// Stealing and its bound. Threads that are not queued may take a free lock past the queue (readers
// only if nobody holds it: no stream of readers runs past a queued writer). That ends when the head
// has been waiting for kStealNs since it queued: the next time it finds the lock taken it sets
// kHandoff. From then on only the head can take the lock, and the taking clears the bit. Hence no
// waiter, reader or writer, starves:
//
//   time to get the lock <= the spinning before the queue (some tens of microseconds)
//                         + the longer of kStealNs and the turns of those queued before it
//                         + twice (one hold + one wake-up): until it looks after its time has come
//                           and sets kHandoff; until those who are in then have left
//
// Why no wake-up is lost. The head sleeps by a compare-exchange that clears kAwake on a word in
// which it could not take the lock. From that word only three operations lead to one in which it
// can: unlock_write, downgrade, and a fetch_sub that leaves no reader (unlock_read, or a reader
// taking itself out). Each is a read-modify-write that comes after the head's in the word's order,
// so it sees kWaiters without kAwake, unless another of them did before, and calls wake_head().
// That marks the head's node under the spin lock; the head parks only while its node is unmarked.
// A waiter that becomes the head while asleep finds the lock held by whoever made it the head, and
// the same argument applies. One that queues first into an empty queue is awake.
#pragma once

#include <cstdint>

#include "env.h"

namespace faultpath::sync {

/// What taking a lock cost. The clock is read only by those that had to wait.
struct Wait {
  bool contended = false;
  std::uint64_t wait_ns = 0;
};

class FP_CAPABILITY("rwlock") RwLock {
 public:
  /// Since it queued, a waiter at the head lets others take the lock before it for so long at most.
  static constexpr std::uint64_t kStealNs = 4'000'000;

  constexpr RwLock() noexcept = default;
  RwLock(const RwLock&) = delete;
  RwLock& operator=(const RwLock&) = delete;

  FP_ALWAYS_INLINE Wait lock_read(env::Site site = env::Site::current()) noexcept
      FP_ACQUIRE_SHARED() {
    const std::uint64_t seen = state_.fetch_add(kReader, env::acquire, site);
    if (FP_LIKELY((seen & kNotFast) == 0)) return {};
    return lock_read_slow(seen);
  }

  FP_ALWAYS_INLINE void unlock_read(env::Site site = env::Site::current()) noexcept
      FP_RELEASE_SHARED() {
    drop_reader(env::release, site);
  }

  FP_ALWAYS_INLINE Wait lock_write(env::Site site = env::Site::current()) noexcept FP_ACQUIRE() {
    std::uint64_t seen = 0;
    if (FP_LIKELY(state_.compare_exchange(seen, kWriter, env::acquire, env::relaxed, site))) {
      return {};
    }
    return lock_write_slow();
  }

  FP_ALWAYS_INLINE void unlock_write(env::Site site = env::Site::current()) noexcept FP_RELEASE() {
    const std::uint64_t seen = state_.fetch_sub(kWriter, env::release, site);
    if (FP_UNLIKELY((seen & (kWaiters | kAwake)) == kWaiters)) wake_head(false);
  }

  /// Never waits, and never passes a queue.
  FP_ALWAYS_INLINE bool try_lock_read(env::Site site = env::Site::current()) noexcept
      FP_TSA(try_acquire_shared_capability(true)) {
    std::uint64_t seen = state_.load(env::relaxed, site);
    while ((seen & kNotFast) == 0) {
      if (state_.compare_exchange(seen, seen + kReader, env::acquire, env::relaxed, site)) {
        return true;
      }
    }
    return false;
  }

  FP_ALWAYS_INLINE bool try_lock_write(env::Site site = env::Site::current()) noexcept
      FP_TRY_ACQUIRE(true) {
    std::uint64_t seen = 0;
    return state_.load(env::relaxed, site) == 0 &&
           state_.compare_exchange(seen, kWriter, env::acquire, env::relaxed, site);
  }

  /// The writer becomes a reader; no other writer gets in between. Readers at the head of the queue
  /// are woken.
  FP_ALWAYS_INLINE void downgrade(env::Site site = env::Site::current()) noexcept FP_RELEASE()
      FP_ACQUIRE_SHARED() {
    const std::uint64_t seen = state_.fetch_add(kReader - kWriter, env::release, site);
    if (FP_UNLIKELY((seen & (kWaiters | kAwake)) == kWaiters)) wake_head(true);
  }

  /// For assertions only: a writer holds it; somebody holds it or is just trying to.
  bool is_write_locked() const noexcept { return (state_.load(env::relaxed) & kWriter) != 0; }
  bool is_locked() const noexcept {
    return (state_.load(env::relaxed) & ~(kWaiters | kHandoff | kAwake)) != 0;
  }
  /// A hint: somebody is queued for it.
  bool has_waiters() const noexcept { return (state_.load(env::relaxed) & kWaiters) != 0; }

 private:
  static constexpr std::uint64_t kWriter = 1;
  static constexpr std::uint64_t kWaiters = 2;
  static constexpr std::uint64_t kHandoff = 4;
  static constexpr std::uint64_t kAwake = 8;
  static constexpr std::uint64_t kReader = 256;
  static constexpr std::uint64_t kReaders = ~(kReader - 1);
  static constexpr std::uint64_t kNotFast = kWriter | kWaiters | kHandoff;

  enum class Kind : std::uint8_t { reader, writer };
  struct Waiter;

  FP_ALWAYS_INLINE void drop_reader(env::Order order,
                                    env::Site site = env::Site::current()) noexcept {
    const std::uint64_t left = state_.fetch_sub(kReader, order, site) - kReader;
    if (FP_UNLIKELY((left & ~kHandoff) == kWaiters)) wake_head(false);
  }

  Wait lock_read_slow(std::uint64_t seen) noexcept;
  Wait lock_write_slow() noexcept;
  template <Kind kKind>
  bool steal() noexcept;
  template <Kind kKind>
  bool spin() noexcept;
  template <Kind kKind>
  void wait_in_queue(std::uint64_t since_ns) noexcept;
  template <Kind kKind>
  bool take(Waiter& me) noexcept FP_EXCLUDES(queue_lock_);
  bool push(Waiter& me) noexcept FP_EXCLUDES(queue_lock_);
  void wake_head(bool only_reader) noexcept FP_EXCLUDES(queue_lock_);

  // The word has its line for itself: waiters work on the queue without disturbing the holders.
  alignas(64) env::atomic<std::uint64_t> state_;
  alignas(64) env::SpinLock queue_lock_;
  env::var<Waiter*> head_ FP_GUARDED_BY(queue_lock_){};
  env::var<Waiter*> tail_ FP_GUARDED_BY(queue_lock_){};
};

}  // namespace faultpath::sync
