// Counters of one Cpu: written by the owner alone, read by anybody.
#pragma once

#include <faultpath/counters.h>

#include "env.h"

namespace faultpath {

/// Owner: add(). Anybody: read(). Relaxed throughout: a reader sees each counter as of some moment.
/// Not a read-modify-write on a shared line: single writer, so a load and a store do.
class CounterBlock {
 public:
  FP_ALWAYS_INLINE void add(Counter c, std::uint64_t n = 1) {
    auto& v = values_[static_cast<std::size_t>(c)];
    v.store(v.load(env::relaxed) + n, env::relaxed);
  }
  /// For what a signal handler may count in the middle of the owner's counting.
  void add_nested(Counter c) { values_[static_cast<std::size_t>(c)].fetch_add(1, env::relaxed); }
  std::uint64_t read(Counter c) const {
    return values_[static_cast<std::size_t>(c)].load(env::relaxed);
  }
  void add_to(Counters& out) const {
    std::size_t i = 0;
    out.for_each([&](std::string_view, std::uint64_t& v) { v += values_[i++].load(env::relaxed); });
  }
  /// Owner, or with the owner gone: hands everything to `other`, whose owner is the caller.
  void move_to(CounterBlock& other) {
    for (std::size_t i = 0; i < kCounterCount; ++i) {
      other.add(static_cast<Counter>(i), values_[i].load(env::relaxed));
      values_[i].store(0, env::relaxed);
    }
  }
  void clear() {
    for (auto& v : values_) v.store(0, env::relaxed);
  }

 private:
  env::stat<std::uint64_t> values_[kCounterCount];
};

}  // namespace faultpath
