// The calls that glibc's malloc makes for big chunks, without malloc: a mapping for each from 128
// KiB up, and the break heap below that or where mappings are forbidden (M_MMAP_MAX 0). glibc
// raises its threshold when it frees a mapped chunk of up to 32 MiB; this stays at 128 KiB.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <vector>

#include "lab/run/control.h"
#include "lab/targets/target.h"

namespace faultpath::lab {

inline constexpr std::uint64_t kMapThreshold = 128 * 1024;
inline constexpr std::uint64_t kTrimThreshold = 128 * 1024;
inline constexpr std::uint64_t kTopPad = 128 * 1024;
inline constexpr std::uint64_t kLeastChunk = 32;

/// Bytes of a chunk for a request: its header word, rounded up to 16.
constexpr std::uint64_t chunk_bytes_of(std::uint64_t request) {
  return std::max<std::uint64_t>((request + 8 + 15) & ~std::uint64_t{15}, kLeastChunk);
}

template <MemoryTarget T>
struct MappedChunks {
  static std::uint64_t mapped_bytes(const T& t, std::uint64_t request) {
    const std::uint64_t page_size = t.page_size();
    return (chunk_bytes_of(request) + 8 + page_size - 1) / page_size * page_size;
  }
  /// Size and the flag of a mapped chunk.
  static std::uint64_t header(const T& t, std::uint64_t request) {
    return mapped_bytes(t, request) | 2;
  }

  /// 0 where it failed. The header's page is the one fault.
  static Addr get(T& t, Meter& m, std::uint64_t request) {
    const std::uint64_t bytes = mapped_bytes(t, request);
    const Addr chunk = t.map(bytes, {});
    if (chunk == 0) return 0;
    if (!m.sampled([&] { return t.write_word(chunk + 8, bytes | 2); })) return 0;
    return chunk + 16;
  }
  static bool give_back(T& t, Addr memory, std::uint64_t request) {
    return t.unmap(memory - 16, mapped_bytes(t, request));
  }
};

/// A heap on the break of one space, all chunks of one size, under one lock as glibc's main arena.
/// The lowest free chunk is taken first; free chunks at the end join the top, and a top of more
/// than the trim threshold is given back to the system but for the pad.
template <MemoryTarget T>
class BreakHeap {
 public:
  /// Before any use; `most` chunks are ever out at once. The break may be the lab's own, so nothing
  /// is allocated after it was asked for.
  bool open(T& t, std::uint64_t request, std::size_t most) {
    chunk_ = chunk_bytes_of(request);
    used_.assign(most, 0);
    end_ = 0;
    break_ = t.brk(0);
    base_ = (break_ + 15) & ~Addr{15};
    return break_ != 0;
  }

  /// 0 where it failed.
  Addr get(T& t, Meter& m) {
    const std::lock_guard<std::mutex> hold(lock_);
    std::size_t i = 0;
    while (i < end_ && used_[i] != 0) ++i;
    if (i == used_.size()) return 0;
    const Addr chunk = base_ + i * chunk_;
    if (i == end_) {
      const Addr top = chunk + chunk_;
      if (top + kLeastChunk > break_) {
        const Addr wish = page_up(t, top + kLeastChunk + kTopPad);
        if (t.brk(wish) != wish) return 0;
        break_ = wish;
      }
      if (!m.sampled([&] { return t.write_word(chunk + 8, chunk_ | 1); })) return 0;
      if (!t.write_word(top + 8, (break_ - top) | 1)) return 0;
      ++end_;
    }
    used_[i] = 1;
    return chunk + 16;
  }

  bool give_back(T& t, Addr memory) {
    const std::lock_guard<std::mutex> hold(lock_);
    used_[(memory - 16 - base_) / chunk_] = 0;
    const std::size_t before = end_;
    while (end_ > 0 && used_[end_ - 1] == 0) --end_;
    if (end_ == before) return true;
    const Addr top = base_ + end_ * chunk_;
    if (break_ - top >= kTrimThreshold) {
      const std::uint64_t page_size = t.page_size();
      const std::uint64_t spare = break_ - top - kLeastChunk - 1;
      const std::uint64_t extra = spare > kTopPad ? (spare - kTopPad) / page_size * page_size : 0;
      if (extra > 0) {
        if (t.brk(break_ - extra) != break_ - extra) return false;
        break_ -= extra;
      }
    }
    return t.write_word(top + 8, (break_ - top) | 1);
  }

 private:
  static Addr page_up(const T& t, Addr a) {
    return (a + t.page_size() - 1) / t.page_size() * t.page_size();
  }

  std::mutex lock_;
  Addr base_ = 0;
  Addr break_ = 0;
  std::uint64_t chunk_ = 0;
  std::vector<unsigned char> used_;
  std::size_t end_ = 0;  ///< chunks below the top
};

}  // namespace faultpath::lab
