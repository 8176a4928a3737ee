// will-it-scale's tests of single calls: brk1, mmap1, mmap2, malloc1.
#pragma once

#include "lab/workloads/allocator.h"
#include "lab/workloads/workload.h"

namespace faultpath::lab {

/// Two operations: the break one page up, and back. Tasks of one space all move its one break, each
/// from where it found it; the original asserts that every call is granted, which such tasks cannot
/// rely on, so a refused one is counted like any other.
template <MemoryTarget T>
class Brk1 : public Workload<T> {
 public:
  struct Shared {};
  Brk1(const Seat<T>& seat, Shared&) : Workload<T>(seat) {}

  bool set_up() {
    start_ = this->target().brk(0);
    return start_ != 0 || this->broken("brk(0)");
  }

  void run() {
    T& t = this->target();
    Meter& m = this->meter();
    const std::uint64_t page_size = t.page_size();
    while (m.running()) {
      const Addr up = t.brk(start_ + page_size);
      const Addr down = t.brk(start_);
      if (FP_UNLIKELY(up != start_ + page_size || down != start_) && this->seat_.tasks == 1) {
        m.fail("brk was refused: the break is 0x%llx, asked for 0x%llx",
               static_cast<unsigned long long>(down), static_cast<unsigned long long>(start_));
        return;
      }
      m.count(2);
    }
  }

  /// The page that the break gives holds what is written to it, and comes back zeroed.
  void check() {
    if (this->seat_.index != 0 || this->meter().failed()) return;
    T& t = this->target();
    const std::uint64_t page_size = t.page_size();
    for (int turn = 0; turn < 2; ++turn) {
      t.brk(start_);
      if (t.brk(start_ + page_size) != start_ + page_size) {
        this->meter().fail("brk refused a page when all others had stopped");
        return;
      }
      // The break may begin inside a page that was there before.
      const Addr a = (start_ + page_size - 1) / page_size * page_size;
      if (!this->expect(a, 0, "fresh memory below the break", 0)) return;
      if (!t.write(a, 0xa5)) {
        this->broken("write", a);
        return;
      }
      this->plant_at(a);
      if (!this->expect(a, 0xa5, "memory below the break", 0)) return;
    }
    t.brk(start_);
  }

 private:
  Addr start_ = 0;
};

/// One operation maps 128 MiB (anonymous, or the task's own file privately) and unmaps it; nothing
/// is touched.
template <MemoryTarget T, Backing kBacking>
class MapUnmap : public Workload<T> {
 public:
  struct Shared {};
  MapUnmap(const Seat<T>& seat, Shared&) : Workload<T>(seat) {}

  void run() {
    T& t = this->target();
    Meter& m = this->meter();
    while (m.running()) {
      const Addr area = t.map(kAreaBytes, what());
      if (area == 0) {
        this->broken("mmap of 128 MiB");
        return;
      }
      if (!t.unmap(area, kAreaBytes)) {
        this->broken("munmap", area);
        return;
      }
      m.count();
    }
  }

  /// What mmap gives is memory: zero at first, then what was written.
  void check() {
    if (this->meter().failed()) return;
    T& t = this->target();
    const Addr area = t.map(kAreaBytes, what());
    if (area == 0) {
      this->broken("mmap of 128 MiB");
      return;
    }
    const std::uint64_t page_size = t.page_size();
    const std::uint64_t stride = kAreaBytes / page_size / 16;
    for (std::uint64_t page = 0; page < 16 * stride; page += stride) {
      const Addr a = area + page * page_size;
      if (!this->expect(a, 0, "fresh memory", page)) return;
      if (!t.write(a, page_byte(page, this->seat_.salt))) {
        this->broken("write", a);
        return;
      }
    }
    this->plant_at(area);
    for (std::uint64_t page = 0; page < 16 * stride; page += stride) {
      if (!this->expect(area + page * page_size, page_byte(page, this->seat_.salt), "memory",
                        page)) {
        return;
      }
    }
    if (!t.unmap(area, kAreaBytes)) {
      this->broken("munmap", area);
      return;
    }
    if (kBacking == Backing::anonymous || !this->deep()) return;
    this->plant_in_file();
    this->expect_file([](std::uint64_t) { return 0; });
  }

 private:
  Mapping<typename T::File> what() const {
    Mapping<typename T::File> w;
    w.file = kBacking == Backing::anonymous ? nullptr : this->seat_.file;
    return w;
  }
};

/// One operation is malloc(128 MiB) and free, as the calls that glibc makes of them: mmap, the
/// write of the chunk's header (one fault), munmap.
template <MemoryTarget T>
class Malloc1 : public Workload<T> {
 public:
  struct Shared {};
  Malloc1(const Seat<T>& seat, Shared&) : Workload<T>(seat) {}

  void run() {
    Meter& m = this->meter();
    while (m.running()) {
      const Addr memory = allocate();
      if (memory == 0) return;
      if (!MappedChunks<T>::give_back(this->target(), memory, kAreaBytes)) {
        this->broken("munmap", memory);
        return;
      }
      m.count();
    }
  }

  void check() {
    if (this->meter().failed()) return;
    const Addr memory = allocate();
    if (memory == 0) return;
    const Addr last = memory + kAreaBytes - 1;
    if (!this->expect(last, 0, "fresh memory", kAreaBytes / this->target().page_size())) return;
    if (!this->target().write(last, 0xa5)) {
      this->broken("write", last);
      return;
    }
    this->plant_at(last);
    if (!this->expect(last, 0xa5, "memory", kAreaBytes / this->target().page_size())) return;
    std::uint64_t header = 0;
    if (!this->target().read_word(memory - 8, header)) {
      this->broken("read", memory - 8);
      return;
    }
    if (header != MappedChunks<T>::header(this->target(), kAreaBytes)) {
      this->meter().fail("the chunk's header holds 0x%llx",
                         static_cast<unsigned long long>(header));
      return;
    }
    if (!MappedChunks<T>::give_back(this->target(), memory, kAreaBytes)) {
      this->broken("munmap", memory);
    }
  }

 private:
  Addr allocate() {
    const Addr memory = MappedChunks<T>::get(this->target(), this->meter(), kAreaBytes);
    if (memory == 0) this->broken("malloc of 128 MiB");
    return memory;
  }
};

}  // namespace faultpath::lab
