// Tasks fault while another thread of their space maps and unmaps without pause.
#pragma once

#include <bit>

#include "lab/workloads/workload.h"

namespace faultpath::lab {

/// One operation writes a byte to a page of the task's 64 MiB of one big anonymous mapping, in
/// random order, each page once: each is a fault. A full part is emptied with MADV_DONTNEED. The
/// mapper maps and unmaps 1 MiB, read-only so that it never merges with the big mapping; its calls
/// do not count.
template <MemoryTarget T>
class FaultVsMmap : public Workload<T> {
 public:
  static constexpr std::uint64_t kPartBytes = std::uint64_t{64} << 20;
  static constexpr std::uint64_t kMapperBytes = std::uint64_t{1} << 20;

  struct Shared {
    Addr area = 0;
  };
  FaultVsMmap(const Seat<T>& seat, Shared& shared) : Workload<T>(seat), shared_(shared) {}

  bool prepare_space() {
    shared_.area = this->target().map(kPartBytes * this->seat_.tasks, {});
    return shared_.area != 0 || this->broken("mmap of the area");
  }

  void run() {
    T& t = this->target();
    Meter& m = this->meter();
    const std::uint64_t page_size = t.page_size();
    const std::uint64_t pages = kPartBytes / page_size;
    part_ = shared_.area + kPartBytes * this->seat_.index;
    while (m.running()) {
      const std::uint32_t salt = salt_now();
      std::uint64_t turn = written_;
      for (; turn < pages && m.running(); ++turn) {
        const std::uint64_t page = page_of(turn, pages, salt);
        const Addr a = part_ + page * page_size;
        const std::uint8_t byte = page_byte(page, salt);
        if (!m.sampled([&] { return t.write(a, byte); })) {
          this->broken("write", a);
          break;
        }
        m.count();
      }
      written_ = turn;
      if (turn < pages || !m.running()) return;
      if (this->deep() && !check_pages()) return;
      if (!t.dontneed(part_, kPartBytes)) {
        this->broken("MADV_DONTNEED", part_);
        return;
      }
      written_ = 0;
      ++lap_;
    }
  }

  void run_mapper() {
    T& t = this->target();
    Meter& m = this->meter();
    Mapping<typename T::File> what;
    what.writable = false;
    while (m.running()) {
      const Addr a = t.map(kMapperBytes, what);
      if (a == 0) {
        this->broken("mmap of the mapper");
        return;
      }
      if (!t.unmap(a, kMapperBytes)) {
        this->broken("munmap of the mapper", a);
        return;
      }
      m.count();
    }
  }

  void check() {
    if (part_ == 0 || this->meter().failed()) return;
    if (written_ > 0) {
      const std::uint64_t page_size = this->target().page_size();
      this->plant_at(part_ + page_of(0, kPartBytes / page_size, salt_now()) * page_size);
    }
    check_pages();
  }

  /// The page of turn `turn`: a permutation of [0, pages), `pages` a power of two.
  static std::uint64_t page_of(std::uint64_t turn, std::uint64_t pages, std::uint32_t salt) {
    const auto mask = static_cast<std::uint32_t>(pages - 1);
    const auto half = static_cast<unsigned>(std::countr_one(mask)) / 2;
    auto x = static_cast<std::uint32_t>(turn);
    x = (x * 0x2C9277B5u + salt) & mask;
    x ^= x >> half;
    x = (x * 0x9E3779B1u) & mask;
    x ^= x >> half;
    return (x * 0x85EBCA6Bu + 0x35u) & mask;
  }

 private:
  std::uint32_t salt_now() const { return this->seat_.salt * 4093u + lap_; }

  /// The pages written in this lap; in the verification pass also that some others are empty.
  bool check_pages() {
    const std::uint64_t page_size = this->target().page_size();
    const std::uint64_t pages = kPartBytes / page_size;
    const std::uint32_t salt = salt_now();
    const std::uint64_t end = this->deep() ? pages : written_;
    for (std::uint64_t turn = 0; turn < end; turn += turn < written_ ? 1 : 16) {
      const std::uint64_t page = page_of(turn, pages, salt);
      const std::uint8_t wanted = turn < written_ ? page_byte(page, salt) : 0;
      if (!this->expect(part_ + page * page_size, wanted, "memory", page)) return false;
    }
    return true;
  }

  Shared& shared_;
  Addr part_ = 0;
  std::uint64_t written_ = 0;
  std::uint32_t lap_ = 0;
};

}  // namespace faultpath::lab
