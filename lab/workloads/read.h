// will-it-scale's read2, a null control.
#pragma once

#include "lab/workloads/workload.h"

namespace faultpath::lab {

/// One operation reads the next 4 KiB of a file of 1 MiB that all tasks read, each at its own
/// offset, through the page cache into a resident page; the read that finds the end counts too.
template <MemoryTarget T>
class Read2 : public Workload<T> {
 public:
  struct Shared {};
  Read2(const Seat<T>& seat, Shared&) : Workload<T>(seat) {}

  bool set_up() {
    T& t = this->target();
    if (!t.open(*this->seat_.file)) return this->broken("opening the file once more");
    buffer_ = t.map(std::max(kReadBytes, t.page_size()), {});
    if (buffer_ == 0) return this->broken("mmap");
    for (std::uint64_t i = 0; i < kReadBytes; i += t.page_size()) {
      if (!t.write(buffer_ + i, 0)) return this->broken("write", buffer_ + i);
    }
    return true;
  }

  void run() {
    Meter& m = this->meter();
    while (m.running()) {
      if (!read_next(this->deep())) return;
      m.count();
    }
  }

  /// What the last read brought, and one more read.
  void check() {
    if (buffer_ == 0 || this->meter().failed()) return;
    if (at_ == kReadFileBytes) at_ = 0;
    if (!read_next(true)) return;
    this->plant_at(buffer_);
    check_buffer(1);
  }

 private:
  bool read_next(bool look) {
    const std::int64_t got = this->target().read_at(at_, buffer_, kReadBytes);
    if (got == 0 && at_ == kReadFileBytes) return at_ = 0, true;
    if (got < 0) return this->broken("read");
    if (got != static_cast<std::int64_t>(kReadBytes)) {
      this->meter().fail("a read at %llu brought %lld bytes", static_cast<unsigned long long>(at_),
                         static_cast<long long>(got));
      return false;
    }
    piece_ = at_ / kReadBytes;
    at_ += kReadBytes;
    return !look || check_buffer(256);
  }
  /// Every byte of a piece is the same.
  bool check_buffer(std::uint64_t step) {
    for (std::uint64_t i = 0; i < kReadBytes; i += step) {
      if (!this->expect(buffer_ + i, page_byte(piece_, 0), "the buffer", piece_)) return false;
    }
    return true;
  }

  Addr buffer_ = 0;
  std::uint64_t at_ = 0;
  std::uint64_t piece_ = 0;
};

}  // namespace faultpath::lab
