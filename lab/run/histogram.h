// A log-linear histogram of durations: exact below 64, then 64 equal steps for each power of two,
// so that a percentile is off by less than one part in 64. Fixed size, no pointers: it may lie in
// shared memory.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace faultpath::lab {

class Histogram {
 public:
  static constexpr unsigned kStepBits = 6;
  static constexpr std::uint64_t kSteps = std::uint64_t{1} << kStepBits;
  static constexpr unsigned kValueBits = 42;  ///< longer ones are counted in the last bucket
  static constexpr std::size_t kBuckets = (kValueBits - kStepBits + 1) * kSteps;

  void record(std::uint64_t value) {
    ++counts_[bucket_of(value)];
    ++total_;
  }
  void add(const Histogram& other) {
    for (std::size_t i = 0; i < kBuckets; ++i) counts_[i] += other.counts_[i];
    total_ += other.total_;
  }
  void clear() { *this = Histogram(); }
  std::uint64_t total() const { return total_; }

  /// The value that a share `p` (0 to 1) of the samples does not exceed: the middle of its bucket.
  /// 0 where nothing was recorded.
  double percentile(double p) const {
    if (total_ == 0) return 0;
    const auto wanted = std::clamp<std::uint64_t>(
        static_cast<std::uint64_t>(std::ceil(p * static_cast<double>(total_))), 1, total_);
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) {
      seen += counts_[i];
      if (seen >= wanted) return middle_of(i);
    }
    return middle_of(kBuckets - 1);
  }

  static constexpr std::size_t bucket_of(std::uint64_t value) {
    if (value < kSteps) return static_cast<std::size_t>(value);
    constexpr std::uint64_t longest = (std::uint64_t{1} << kValueBits) - 1;
    value = std::min(value, longest);
    // The top bit picks the power of two, the six below it the step.
    const auto shift = static_cast<unsigned>(std::bit_width(value)) - 1 - kStepBits;
    return static_cast<std::size_t>((shift + 1) * kSteps + ((value >> shift) - kSteps));
  }
  static constexpr double middle_of(std::size_t bucket) {
    if (bucket < kSteps) return static_cast<double>(bucket);
    const auto shift = static_cast<unsigned>(bucket / kSteps) - 1;
    const std::uint64_t low = (kSteps + bucket % kSteps) << shift;
    const std::uint64_t width = std::uint64_t{1} << shift;
    return static_cast<double>(low) + static_cast<double>(width - 1) / 2;
  }

 private:
  std::array<std::uint32_t, kBuckets> counts_{};
  std::uint64_t total_ = 0;
};

}  // namespace faultpath::lab
