#include "memory/buddy.h"

#include "base/assert.h"
#include "sync/spin_guard.h"

namespace faultpath::memory {

// A free block is known by its first frame: kind free, order set, linked into heads_[order]. Frames
// inside a block, and frames in Cpu caches, carry order kInside, so that a buddy which is not a
// free block of the same order is never mistaken for one.
namespace {
constexpr std::uint8_t kInside = 0xff;
}

void Buddy::init(Frame* frames, std::uint32_t count) {
  sync::SpinGuard guard(lock_);
  frames_ = frames;
  count_ = count;
  for (auto& head : heads_) head = kNoPfn;
  for (Pfn i = 0; i < count; ++i) frames_[i].order = kInside;
  Pfn at = 0;
  while (at < count) {
    unsigned order = kMaxOrder;
    while ((at & ((1u << order) - 1)) != 0 || at + (1u << order) > count) --order;
    push(order, at);
    at += 1u << order;
  }
  free_.store(count, env::relaxed);
}

void Buddy::push(unsigned order, Pfn pfn) {
  Frame& f = frames_[pfn];
  f.order = static_cast<std::uint8_t>(order);
  f.prev = kNoPfn;
  const Pfn first = heads_[order];
  f.next = first;
  if (first != kNoPfn) frames_[first].prev = pfn;
  heads_[order] = pfn;
}

void Buddy::unlink(unsigned order, Pfn pfn) {
  Frame& f = frames_[pfn];
  const Pfn next = f.next;
  const Pfn prev = f.prev;
  if (prev != kNoPfn) {
    frames_[prev].next = next;
  } else {
    heads_[order] = next;
  }
  if (next != kNoPfn) frames_[next].prev = prev;
  f.order = kInside;
}

Pfn Buddy::take_locked(unsigned order) {
  unsigned from = order;
  while (from <= kMaxOrder && heads_[from] == kNoPfn) ++from;
  if (from > kMaxOrder) return kNoPfn;
  const Pfn pfn = heads_[from];
  unlink(from, pfn);
  while (from > order) {
    --from;
    push(from, pfn + (1u << from));
  }
  return pfn;
}

void Buddy::put_locked(Pfn pfn, unsigned order) {
  while (order < kMaxOrder) {
    const Pfn buddy = pfn ^ (1u << order);
    if (buddy >= count_ || frames_[buddy].order != order ||
        frames_[buddy].kind.load(env::relaxed) != FrameKind::free) {
      break;
    }
    unlink(order, buddy);
    pfn &= ~(1u << order);
    ++order;
  }
  push(order, pfn);
}

void Buddy::account(std::int64_t frames) {
  free_.store(free_.load(env::relaxed) + static_cast<std::uint64_t>(frames), env::relaxed);
}

Pfn Buddy::allocate(unsigned order) {
  sync::SpinGuard guard(lock_);
  const Pfn pfn = take_locked(order);
  if (pfn != kNoPfn) account(-(std::int64_t{1} << order));
  return pfn;
}

void Buddy::release(Pfn pfn, unsigned order) {
  sync::SpinGuard guard(lock_);
  account(std::int64_t{1} << order);
  put_locked(pfn, order);
}

std::uint32_t Buddy::allocate_batch(env::var<Pfn>* out, std::uint32_t want, std::uint32_t keep) {
  sync::SpinGuard guard(lock_);
  const std::uint64_t free = free_.load(env::relaxed);
  if (free <= keep) return 0;
  if (want > free - keep) want = static_cast<std::uint32_t>(free - keep);
  std::uint32_t got = 0;
  while (got < want) {
    unsigned order = 0;
    while (order < kMaxOrder && (2u << order) <= want - got) ++order;
    Pfn pfn = kNoPfn;
    for (;; --order) {
      pfn = take_locked(order);
      if (pfn != kNoPfn || order == 0) break;
    }
    if (pfn == kNoPfn) break;
    for (std::uint32_t i = 0; i < (1u << order); ++i) out[got++] = pfn + i;
  }
  account(-static_cast<std::int64_t>(got));
  return got;
}

void Buddy::release_batch(const env::var<Pfn>* pfns, std::uint32_t count) {
  sync::SpinGuard guard(lock_);
  for (std::uint32_t i = 0; i < count; ++i) put_locked(pfns[i], 0);
  account(count);
}

}  // namespace faultpath::memory
