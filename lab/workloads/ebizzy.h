// ebizzy 0.3: records are looked up in copies of big chunks, and every copy is allocated and freed.
#pragma once

#include <vector>

#include "lab/workloads/allocator.h"
#include "lab/workloads/workload.h"

namespace faultpath::lab {

/// One operation is one record: get a chunk's worth of memory; with -T write 0xff to each page,
/// else copy chunk 0 there and search record 0 by bisection; free the memory. Chunk 0 and key 0
/// always: ebizzy's generator multiplies its state, which starts at 0.
template <MemoryTarget T>
class Ebizzy : public Workload<T> {
 public:
  struct Shared {
    std::vector<Addr> chunks;
    BreakHeap<T> heap;
  };
  Ebizzy(const Seat<T>& seat, Shared& shared) : Workload<T>(seat), shared_(shared) {}

  bool prepare_space() {
    const EbizzyOptions& o = this->seat_.ebizzy;
    T& t = this->target();
    shared_.chunks.reserve(o.chunks);
    if (!shared_.heap.open(t, o.chunk_bytes, o.chunks + this->seat_.tasks)) {
      return this->broken("brk(0)");
    }
    std::array<std::uint64_t, 512> records;
    for (std::uint32_t c = 0; c < o.chunks; ++c) {
      const Addr chunk = allocate();
      if (chunk == 0) return false;
      for (std::uint64_t i = 0; i < record_count(); i += records.size()) {
        const std::uint64_t n = std::min<std::uint64_t>(records.size(), record_count() - i);
        for (std::uint64_t j = 0; j < n; ++j) records[j] = i + j;
        if (!t.copy_out(chunk + i * 8, records.data(), n * 8)) {
          return this->broken("filling a chunk", chunk + i * 8);
        }
      }
      shared_.chunks.push_back(chunk);
    }
    return true;
  }

  void run() {
    Meter& m = this->meter();
    while (m.running()) {
      if (!one_record(this->deep())) return;
      m.count();
    }
  }

  /// One more record, looked at closely, and all the chunks.
  void check() {
    if (this->meter().failed()) return;
    if (this->seat_.index == 0) this->plant_at(shared_.chunks[0]);
    for (const Addr chunk : shared_.chunks) {
      if (!check_records(chunk, "a chunk")) return;
    }
    one_record(true);
  }

 private:
  std::uint64_t bytes() const { return this->seat_.ebizzy.chunk_bytes; }
  std::uint64_t record_count() const { return bytes() / 8; }
  bool from_map() const {
    return !this->seat_.ebizzy.never_mmap && chunk_bytes_of(bytes()) >= kMapThreshold;
  }

  Addr allocate() {
    T& t = this->target();
    Addr memory = 0;
    if (this->seat_.ebizzy.always_mmap) {
      memory = t.map(bytes(), {});
    } else if (from_map()) {
      memory = MappedChunks<T>::get(t, this->meter(), bytes());
    } else {
      memory = shared_.heap.get(t, this->meter());
    }
    if (memory == 0) this->broken("allocating a chunk");
    return memory;
  }
  bool release(Addr memory) {
    T& t = this->target();
    bool ok = false;
    if (this->seat_.ebizzy.always_mmap) {
      ok = t.unmap(memory, bytes());
    } else if (from_map()) {
      ok = MappedChunks<T>::give_back(t, memory, bytes());
    } else {
      ok = shared_.heap.give_back(t, memory);
    }
    return ok || this->broken("freeing a chunk", memory);
  }

  bool one_record(bool look) {
    const Addr memory = allocate();
    if (memory == 0) return false;
    if (this->seat_.ebizzy.touch_only ? !touch(memory, look) : !copy_and_search(memory, look)) {
      return false;
    }
    return release(memory);
  }

  bool touch(Addr memory, bool look) {
    T& t = this->target();
    Meter& m = this->meter();
    const std::uint64_t page_size = t.page_size();
    const Addr end = memory + bytes();
    for (Addr a = memory; a < end; a += page_size) {
      if (!m.sampled([&] { return t.write(a, 0xff); })) return this->broken("write", a);
    }
    if (!look) return true;
    for (Addr a = memory; a < end; a += page_size) {
      if (!this->expect(a, 0xff, "memory", (a - memory) / page_size)) return false;
    }
    return true;
  }

  bool copy_and_search(Addr memory, bool look) {
    T& t = this->target();
    Meter& m = this->meter();
    const Addr from = shared_.chunks[0];
    const std::uint64_t page_size = t.page_size();
    for (std::uint64_t i = 0; i < bytes(); i += page_size) {
      const std::uint64_t n = std::min(page_size, bytes() - i);
      if (!m.sampled([&] { return t.copy(memory + i, from + i, n); })) {
        return this->broken("copying", memory + i);
      }
    }
    if (!search(memory, 0)) return false;
    return !look || check_records(memory, "a copy");
  }

  bool search(Addr records, std::uint64_t key) {
    std::uint64_t low = 0;
    std::uint64_t high = record_count();
    while (low < high) {
      const std::uint64_t middle = (low + high) / 2;
      std::uint64_t found = 0;
      if (!this->target().read_word(records + middle * 8, found)) {
        return this->broken("read", records + middle * 8);
      }
      if (found == key) return true;
      if (found < key) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    this->meter().fail("record %llu is not in the copy", static_cast<unsigned long long>(key));
    return false;
  }

  /// The first record of each page.
  bool check_records(Addr chunk, const char* what) {
    const std::uint64_t step = this->target().page_size() / 8;
    for (std::uint64_t i = 0; i < record_count(); i += step) {
      std::uint64_t found = 0;
      if (!this->target().read_word(chunk + i * 8, found)) {
        return this->broken("read", chunk + i * 8);
      }
      if (found != i) {
        this->meter().fail("%s: record %llu holds %llu", what, static_cast<unsigned long long>(i),
                           static_cast<unsigned long long>(found));
        return false;
      }
    }
    return true;
  }

  Shared& shared_;
};

}  // namespace faultpath::lab
