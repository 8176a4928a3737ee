// The engine's memory: one SoftCpu a task, inside the space that the task shares with others or has
// to itself.
#pragma once

#include <faultpath/address_space.h>
#include <faultpath/file.h>
#include <faultpath/format.h>
#include <faultpath/machine.h>
#include <faultpath/soft_cpu.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "lab/targets/target.h"

namespace faultpath::lab {

class EngineTask {
 public:
  struct File {
    int fd = -1;  ///< of the file on the host
    faultpath::File* file = nullptr;
  };

  EngineTask(Machine& machine, AddressSpace& space) : cpu_(machine), space_(&space) {}

  bool attached() const { return cpu_.attached(); }
  Counters counters() const { return cpu_.counters(); }

  void enter() { cpu_.enter(*space_); }
  void leave() { cpu_.leave(); }
  static constexpr std::uint64_t page_size() { return kPageSize; }

  Addr map(std::uint64_t bytes, const Mapping<File>& what) {
    ++calls_.maps;
    MapRequest request;
    request.length = bytes;
    request.prot = what.writable ? Prot::read | Prot::write : Prot::read;
    request.shared = what.shared;
    request.file = what.file ? what.file->file : nullptr;
    auto at = space_->map(cpu_, request);
    if (at) return at.value();
    error_ = at.error();
    outcome_ = {};
    return 0;
  }
  bool unmap(Addr a, std::uint64_t bytes) {
    ++calls_.unmaps;
    return done(space_->unmap(cpu_, a, bytes));
  }
  bool protect(Addr a, std::uint64_t bytes, bool writable) {
    ++calls_.protects;
    return done(space_->protect(cpu_, a, bytes, writable ? Prot::read | Prot::write : Prot::read));
  }
  bool dontneed(Addr a, std::uint64_t bytes) {
    ++calls_.advises;
    return done(space_->advise(cpu_, a, bytes, Advice::dontneed));
  }
  Addr brk(Addr wish) {
    ++calls_.breaks;
    const Addr now = space_->brk(cpu_, wish);
    if (wish != 0 && now != wish) ++calls_.breaks_refused;
    return now;
  }

  FP_ALWAYS_INLINE bool write(Addr a, std::uint8_t v) {
    return done(cpu_.store<std::uint8_t>(a, v));
  }
  FP_ALWAYS_INLINE int read(Addr a) {
    const auto loaded = cpu_.load<std::uint8_t>(a);
    if (FP_LIKELY(loaded.has_value())) return loaded.value();
    keep(loaded.outcome());
    return -1;
  }
  FP_ALWAYS_INLINE bool write_word(Addr a, std::uint64_t v) {
    return done(cpu_.store<std::uint64_t>(a, v));
  }
  FP_ALWAYS_INLINE bool read_word(Addr a, std::uint64_t& v) {
    const auto loaded = cpu_.load<std::uint64_t>(a);
    if (FP_UNLIKELY(!loaded.has_value())) return keep(loaded.outcome());
    v = loaded.value();
    return true;
  }
  /// Guest to guest goes through a buffer: a copy more than the host target makes.
  bool copy(Addr to, Addr from, std::uint64_t bytes) {
    while (bytes > 0) {
      const std::uint64_t step = std::min<std::uint64_t>(bytes, buffer_.size());
      const Copied in = cpu_.copy_in(buffer_.data(), from, step);
      if (!in.ok()) return keep(in.outcome);
      if (!copy_out(to, buffer_.data(), step)) return false;
      to += step;
      from += step;
      bytes -= step;
    }
    return true;
  }
  bool copy_out(Addr to, const void* from, std::uint64_t bytes) {
    const Copied out = cpu_.copy_out(to, from, bytes);
    return out.ok() || keep(out.outcome);
  }
  /// Makes the file on the host hold what was stored.
  bool sync(const File& file) { return done(file.file->sync()); }

  /// For read_at(). The engine has no open files beside File, so all tasks read through one.
  bool open(const File& file) {
    opened_ = file.file;
    return true;
  }
  /// From the page cache through a buffer into guest memory; bytes, 0 at the end of the file.
  std::int64_t read_at(std::uint64_t at, Addr to, std::uint64_t bytes) {
    bytes = std::min<std::uint64_t>(bytes, buffer_.size());
    const auto got = opened_->read_at(at, buffer_.data(), bytes);
    if (!got) {
      error_ = got.error();
      outcome_ = {};
      return -1;
    }
    if (got.value() > 0 && !copy_out(to, buffer_.data(), got.value())) return -1;
    return static_cast<std::int64_t>(got.value());
  }
  /// A store whose outcome is not kept.
  FP_ALWAYS_INLINE Outcome store(Addr a, std::uint8_t v) { return cpu_.store<std::uint8_t>(a, v); }

  const CallCounts& calls() const { return calls_; }
  std::uint64_t faults() const { return cpu_.counters().faults; }
  void why(char* text, std::size_t room) const {
    if (outcome_.ok()) {
      std::snprintf(text, room, "%s", to_string(error_));
    } else {
      std::snprintf(text, room, "%s", to_string(outcome_).c_str());
    }
  }

 private:
  FP_NOINLINE bool keep(const Outcome& outcome) {
    outcome_ = outcome;
    return false;
  }
  FP_ALWAYS_INLINE bool done(const Outcome& outcome) {
    return FP_LIKELY(outcome.ok()) || keep(outcome);
  }
  bool done(const Result<void>& result) {
    if (result) return true;
    error_ = result.error();
    outcome_ = {};
    return false;
  }

  SoftCpu cpu_;
  AddressSpace* space_;
  faultpath::File* opened_ = nullptr;
  CallCounts calls_;
  Errno error_{};
  Outcome outcome_;
  std::array<std::byte, kPageSize> buffer_;
};

static_assert(MemoryTarget<EngineTask>);

}  // namespace faultpath::lab
