// Buddy allocator over the machine's frames, orders 0 to 9.
#pragma once

#include "memory/frame.h"

namespace faultpath::check {
struct Inspect;
}

namespace faultpath::memory {

inline constexpr unsigned kMaxOrder = 9;

/// Thread-safe behind one spin lock; the hot paths come here for a batch at a time
/// (machine_core.cc).
class Buddy {
 public:
  /// `frames[0..count)` become free.
  void init(Frame* frames, std::uint32_t count);

  /// One block of 2^order frames, or kNoPfn.
  Pfn allocate(unsigned order);
  void release(Pfn pfn, unsigned order);

  /// Up to `want` single frames, neighbours first, ascending within a block, but never the last
  /// `keep` ones. Returns how many.
  std::uint32_t allocate_batch(env::var<Pfn>* out, std::uint32_t want, std::uint32_t keep);
  void release_batch(const env::var<Pfn>* pfns, std::uint32_t count);

  std::uint64_t free_frames() const { return free_.load(env::relaxed); }

 private:
  friend struct ::faultpath::check::Inspect;  // the checker's laws at rest
  Pfn take_locked(unsigned order) FP_REQUIRES(lock_);
  void put_locked(Pfn pfn, unsigned order) FP_REQUIRES(lock_);
  void push(unsigned order, Pfn pfn) FP_REQUIRES(lock_);
  void unlink(unsigned order, Pfn pfn) FP_REQUIRES(lock_);
  void account(std::int64_t frames) FP_REQUIRES(lock_);

  alignas(64) env::SpinLock lock_;
  env::var<Pfn> heads_[kMaxOrder + 1] FP_GUARDED_BY(lock_){};
  env::atomic<std::uint64_t> free_;  ///< written under lock_, read by anybody
  Frame* frames_ = nullptr;
  std::uint32_t count_ = 0;
};

}  // namespace faultpath::memory
