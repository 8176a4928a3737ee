// will-it-scale's page_fault1 (anonymous memory), page_fault2 (private mapping of the task's own
// file) and page_fault3 (shared mapping of it).
#pragma once

#include "lab/workloads/workload.h"

namespace faultpath::lab {

/// One operation writes a byte to the next page of a 128 MiB mapping; behind the last page the area
/// is unmapped and mapped anew.
template <MemoryTarget T, Backing kBacking>
class PageFault : public Workload<T> {
 public:
  struct Shared {};
  PageFault(const Seat<T>& seat, Shared&) : Workload<T>(seat) {}

  void run() {
    T& t = this->target();
    Meter& m = this->meter();
    const std::uint64_t page_size = t.page_size();
    const std::uint64_t pages = kAreaBytes / page_size;
    while (m.running()) {
      if (area_ == 0 && !map_area()) return;
      const Addr area = area_;
      const std::uint32_t salt = salt_of(round_);
      std::uint64_t page = written_;
      for (; page < pages && m.running(); ++page) {
        const Addr a = area + page * page_size;
        const std::uint8_t byte = page_byte(page, salt);
        if (!m.sampled([&] { return t.write(a, byte); })) {
          this->broken("write", a);
          break;
        }
        m.count();
      }
      written_ = page;
      if (page < pages || !m.running()) return;
      if (this->deep() && !check_pages()) return;
      if (!t.unmap(area, kAreaBytes)) {
        this->broken("munmap", area);
        return;
      }
      area_ = 0;
      written_ = 0;
      ++round_;
    }
  }

  void check() {
    if (area_ == 0 || this->meter().failed()) return;
    if (written_ > 0) this->plant_at(area_ + (written_ - 1) * this->target().page_size());
    if (kBacking != Backing::anonymous) this->plant_in_file();
    if (!check_pages() || !this->deep()) return;
    if constexpr (kBacking == Backing::private_file) {
      this->expect_file([](std::uint64_t) { return 0; });
    } else if constexpr (kBacking == Backing::shared_file) {
      if (!this->target().sync(*this->seat_.file)) {
        this->broken("syncing the file");
        return;
      }
      this->expect_file([this](std::uint64_t page) { return expected(page); });
    }
  }

 private:
  bool map_area() {
    Mapping<typename T::File> what;
    what.file = kBacking == Backing::anonymous ? nullptr : this->seat_.file;
    what.shared = kBacking == Backing::shared_file;
    area_ = this->target().map(kAreaBytes, what);
    return area_ != 0 || this->broken("mmap of 128 MiB");
  }

  /// Each round of each run writes other bytes, so that a stale page shows.
  std::uint32_t salt_of(std::uint32_t round) const { return this->seat_.salt * 4093u + round; }

  /// The byte that page `page` holds now; negative where an earlier run may have left anything.
  int expected(std::uint64_t page) const {
    if (page < written_) return page_byte(page, salt_of(round_));
    if (kBacking != Backing::shared_file) return 0;
    return round_ > 0 ? page_byte(page, salt_of(round_ - 1)) : -1;
  }

  /// The pages written since the last mmap; in the verification pass some of the others too.
  bool check_pages() {
    const std::uint64_t page_size = this->target().page_size();
    const std::uint64_t end = this->deep() ? kAreaBytes / page_size : written_;
    for (std::uint64_t page = 0; page < end; page += page < written_ ? 1 : 16) {
      const int wanted = expected(page);
      if (wanted >= 0 && !this->expect(area_ + page * page_size, static_cast<std::uint8_t>(wanted),
                                       "memory", page)) {
        return false;
      }
    }
    return true;
  }

  Addr area_ = 0;
  std::uint64_t written_ = 0;
  std::uint32_t round_ = 0;
};

}  // namespace faultpath::lab
