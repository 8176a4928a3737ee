// Random numbers that are the same everywhere.
#pragma once

#include <cstdint>

namespace faultpath::check {

/// SplitMix64 (Steele, Lea and Flood 2014).
class Rng {
 public:
  constexpr explicit Rng(std::uint64_t seed) : state_(seed) {}
  /// The numbers of run `run` of a seed: two runs' have nothing to do with each other.
  constexpr Rng(std::uint64_t seed, std::uint64_t run) : state_(mix(mix(seed) + run)) {}

  constexpr std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15); }
  /// 0 .. n - 1. The bias is below n / 2^32.
  constexpr std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>((next() >> 32) * n >> 32);
  }
  /// True once in 2^bits.
  constexpr bool one_in_power(unsigned bits) { return next() >> (64 - bits) == 0; }

 private:
  static constexpr std::uint64_t mix(std::uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  std::uint64_t state_;
};

/// One of the CPUs of a set that is not empty.
inline unsigned pick(Rng& rng, std::uint32_t set) {
  std::uint32_t skip = rng.below(static_cast<std::uint32_t>(__builtin_popcount(set)));
  for (; skip > 0; --skip) set &= set - 1;
  return static_cast<unsigned>(__builtin_ctz(set));
}

}  // namespace faultpath::check
