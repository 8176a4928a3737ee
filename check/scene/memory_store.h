// A file's backing in the arena: as big as its payload pages, a step a word, like a DMA engine.
#pragma once

#include <faultpath/store.h>

#include <new>

#include "env.h"

namespace faultpath::check {

/// Page p of the file is words [8p, 8p + 8). Lives in World::state(), so that runs restore it.
class MemoryStore final : public Store {
 public:
  static constexpr unsigned kPages = 8;

  explicit MemoryStore(unsigned pages) : pages_(pages) {
    for (unsigned i = 0; i < pages * 8; ++i) words_[i] = 1000 + i;
  }

  Result<std::uint64_t> read(std::uint64_t offset, std::byte* to, std::uint64_t bytes) override {
    std::uint64_t* const from = at(offset);
    if (from == nullptr) return std::uint64_t{0};
    env::copy_to_payload(to, from, bytes);
    return bytes;
  }
  Result<void> write(std::uint64_t offset, const std::byte* from, std::uint64_t bytes) override {
    std::uint64_t* const to = at(offset);
    if (to == nullptr) return Errno::eio;
    env::copy_from_payload(to, from, bytes);
    return {};
  }
  std::uint64_t size() override { return std::uint64_t{pages_} * kPageSize; }
  void closed() override {}

  std::uint64_t word(unsigned page, unsigned index) const { return words_[page * 8 + index]; }

 private:
  std::uint64_t* at(std::uint64_t offset) {
    const std::uint64_t page = offset >> kPageShift;
    return page < pages_ ? words_ + page * 8 : nullptr;
  }
  unsigned pages_;
  std::uint64_t words_[kPages * 8] = {};
};

}  // namespace faultpath::check
