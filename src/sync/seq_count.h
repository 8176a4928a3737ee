// A sequence count: readers that do not lock find out whether the data changed under them.
//
//   writer (one at a time)            reader
//     begin_write();                    seen = read_begin();
//     field.store(v, release);          v = field.load(acquire);
//     end_write();                      if (seen is odd || changed(seen)) v is not to be used
//
// The usual scheme puts a read fence between the data and the second look at the count. None is
// needed here, because of one rule that users of this class keep: while the count is odd, protected
// fields are stored with release; readers load them with acquire.
//
// Why a reader that was told "not changed" saw one version, whole:
//
//   Nothing newer. Say a field's load returned a value stored after some begin_write() whose odd
//   count is not the one in `seen` or before it. That load (acquire) synchronises with that store
//   (release), and the store of the odd count precedes the field's store in the writer's order. So
//   the odd count happens before the reader's second look, which by coherence returns that count
//   or a later one. Counts only grow, hence the look differs from `seen`. Relaxed is enough for it.
//
//   Nothing older. An even `seen` was stored by end_write() with release and loaded with acquire,
//   so every store of that write section and of all earlier ones happens before the field's load.
//
// The second look needs no order of its own for what follows either: values that fail the test are
// thrown away. 64 bits do not wrap.
#pragma once

#include <cstdint>

#include "env.h"

namespace faultpath::sync {

class SeqCount {
 public:
  constexpr SeqCount() noexcept = default;
  SeqCount(const SeqCount&) = delete;
  SeqCount& operator=(const SeqCount&) = delete;

  /// The count before the fields are read. Odd: a writer is at work.
  FP_ALWAYS_INLINE std::uint64_t read_begin(env::Site site = env::Site::current()) const noexcept {
    return count_.load(env::acquire, site);
  }

  /// Whether a write began or ended since `seen` was read. Fields loaded (acquire) between the two
  /// belong together if not and `seen` is even.
  FP_ALWAYS_INLINE bool changed(std::uint64_t seen,
                                env::Site site = env::Site::current()) const noexcept {
    return count_.load(env::relaxed, site) != seen;
  }

  /// `seen` is even and has not changed: what was read in between may be used.
  FP_ALWAYS_INLINE bool stable_even(std::uint64_t seen,
                                    env::Site site = env::Site::current()) const noexcept {
    return (seen & 1) == 0 && !changed(seen, site);
  }

  /// A writer is at work. The writer's own lock makes the answer exact; for others it is a hint.
  FP_ALWAYS_INLINE bool is_marked(env::Site site = env::Site::current()) const noexcept {
    return (count_.load(env::acquire, site) & 1) != 0;
  }

  /// One writer at a time: the caller holds the lock that says so.
  FP_ALWAYS_INLINE void begin_write(env::Site site = env::Site::current()) noexcept {
    const std::uint64_t count = count_.load(env::relaxed, site);
    check((count & 1) == 0);
    // Relaxed: the release stores of the fields carry it along (see above).
    count_.store(count + 1, env::relaxed, site);
  }

  FP_ALWAYS_INLINE void end_write(env::Site site = env::Site::current()) noexcept {
    const std::uint64_t count = count_.load(env::relaxed, site);
    check((count & 1) == 1);
    count_.store(count + 1, env::release, site);
  }

 private:
  FP_ALWAYS_INLINE static void check([[maybe_unused]] bool right) noexcept {
#if defined(FAULTPATH_ASSERTS) && FAULTPATH_ASSERTS
    if (FP_UNLIKELY(!right)) {
      env::assertion_failed("one writer of a sequence count at a time", __FILE__, __LINE__);
    }
#endif
  }

  env::atomic<std::uint64_t> count_;
};

}  // namespace faultpath::sync
