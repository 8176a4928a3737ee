// will-it-scale's tlb_flush1 (private mapping of the task's own file), tlb_flush2 (anonymous
// memory) and tlb_flush3 (shared mapping of the file).
#pragma once

#include "lab/workloads/workload.h"

namespace faultpath::lab {

/// One operation writes 1 to the next page, drops the page with MADV_DONTNEED and reads it back: 0,
/// or 1 where the file keeps it. Behind the last page the area is unmapped and mapped anew.
template <MemoryTarget T, Backing kBacking>
class TlbFlush : public Workload<T> {
 public:
  static constexpr std::uint64_t kBytes =
      kBacking == Backing::anonymous ? std::uint64_t{1} << 20 : kAreaBytes;
  static constexpr std::uint8_t kLeft = kBacking == Backing::shared_file ? 1 : 0;

  struct Shared {};
  TlbFlush(const Seat<T>& seat, Shared&) : Workload<T>(seat) {}

  void run() {
    T& t = this->target();
    Meter& m = this->meter();
    const std::uint64_t page_size = t.page_size();
    const std::uint64_t pages = kBytes / page_size;
    while (m.running()) {
      if (area_ == 0 && !map_area()) return;
      std::uint64_t page = flushed_;
      for (; page < pages && m.running(); ++page) {
        const Addr a = area_ + page * page_size;
        if (!m.sampled([&] { return t.write(a, 1); })) {
          this->broken("write", a);
          break;
        }
        if (!t.dontneed(a, page_size)) {
          this->broken("MADV_DONTNEED", a);
          break;
        }
        if (!this->expect(a, kLeft, "memory after MADV_DONTNEED", page)) break;
        m.count();
      }
      flushed_ = page;
      most_ = std::max(most_, page);
      if (page < pages || !m.running()) return;
      if (!t.unmap(area_, kBytes)) {
        this->broken("munmap", area_);
        return;
      }
      area_ = 0;
      flushed_ = 0;
    }
  }

  void check() {
    if (area_ == 0 || this->meter().failed()) return;
    const std::uint64_t page_size = this->target().page_size();
    if (flushed_ > 0) this->plant_at(area_ + (flushed_ - 1) * page_size);
    if (kBacking != Backing::anonymous) this->plant_in_file();
    for (std::uint64_t page = 0; page < flushed_; ++page) {
      if (!this->expect(area_ + page * page_size, kLeft, "memory", page)) return;
    }
    if (!this->deep()) return;
    if constexpr (kBacking == Backing::private_file) {
      this->expect_file([](std::uint64_t) { return 0; });
    } else if constexpr (kBacking == Backing::shared_file) {
      if (!this->target().sync(*this->seat_.file)) {
        this->broken("syncing the file");
        return;
      }
      this->expect_file([this](std::uint64_t page) { return page < most_ ? 1 : -1; });
    }
  }

 private:
  bool map_area() {
    Mapping<typename T::File> what;
    what.file = kBacking == Backing::anonymous ? nullptr : this->seat_.file;
    what.shared = kBacking == Backing::shared_file;
    area_ = this->target().map(kBytes, what);
    return area_ != 0 || this->broken("mmap");
  }

  Addr area_ = 0;
  std::uint64_t flushed_ = 0;  ///< pages since the last mmap
  std::uint64_t most_ = 0;     ///< pages of the file that hold the 1 for certain
};

}  // namespace faultpath::lab
