#include "arena.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

namespace faultpath::sim {

Arena::Arena()
    : dead(kDataBytes / kGranule),
      dead_page(kDataBytes / kPage),
      dead_lock(kDataBytes / kGranule),
      dirty_(kDataBytes / kPage) {
  void* const want = reinterpret_cast<void*>(kBase);  // NOLINT: the address is the point
  void* const got = mmap(want, kBytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (got != want) {
    std::fputs("the simulated world's arena at 0x200000000000 is not to be had\n", stderr);
    std::exit(4);
  }
  base_ = static_cast<std::byte*>(got);
}

void Arena::reset() {
  std::memset(base_, 0, used_);
  used_ = 0;
  always_.clear();
  std::fill(dead.begin(), dead.end(), std::uint8_t{0});
  std::fill(dead_page.begin(), dead_page.end(), std::uint8_t{0});
  std::fill(dead_lock.begin(), dead_lock.end(), std::uint8_t{0});
}

std::byte* Arena::take(std::uint64_t bytes, bool always) {
  const std::uint64_t rounded = (bytes + kPage - 1) / kPage * kPage;
  if (rounded > kDataBytes - used_) return nullptr;
  std::byte* const at = base_ + used_;
  if (always) always_.push_back({used_, used_ + rounded});
  used_ += rounded;
  return at;
}

void Arena::freeze() {
  snapshot_.assign(base_, base_ + used_);
  const auto granules = static_cast<std::ptrdiff_t>(used_ / kGranule);
  const auto pages = static_cast<std::ptrdiff_t>(used_ / kPage);
  snapshot_dead_.assign(dead.begin(), dead.begin() + granules);
  snapshot_dead_page_.assign(dead_page.begin(), dead_page.begin() + pages);
  snapshot_dead_lock_.assign(dead_lock.begin(), dead_lock.begin() + granules);
  std::fill(dirty_.begin(), dirty_.end(), std::uint8_t{0});
}

void Arena::restore() {
  for (const Range& r : always_) {
    std::memcpy(base_ + r.from, snapshot_.data() + r.from, r.to - r.from);
  }
  const std::uint64_t pages = used_ / kPage;
  for (std::uint64_t p = 0; p < pages; ++p) {
    if (dirty_[p] == 0) continue;
    dirty_[p] = 0;
    std::memcpy(base_ + p * kPage, snapshot_.data() + p * kPage, kPage);
  }
  std::memcpy(dead.data(), snapshot_dead_.data(), snapshot_dead_.size());
  std::memcpy(dead_page.data(), snapshot_dead_page_.data(), snapshot_dead_page_.size());
  std::memcpy(dead_lock.data(), snapshot_dead_lock_.data(), snapshot_dead_lock_.size());
}

}  // namespace faultpath::sim
