// The fault policies and the one grammar that names them and their variants.
#pragma once

#include <faultpath/result.h>

#include <cstdint>
#include <string_view>

namespace faultpath {

/// How a space's page faults find a VMA and keep it stable. Fixed when the space is made.
enum class Policy : std::uint8_t {
  mmap_lock,  ///< the address-space lock, held for read over the whole fault (Linux before 2.6.37)
  spf,        ///< speculative page faults as posted in May 2018 (v11), memory-safety defects mended
  vma_lock,   ///< per-VMA locks (Linux 6.4 to 6.15+), with the bad-access exit of 2024
};

inline constexpr Policy kAllPolicies[] = {Policy::mmap_lock, Policy::spf, Policy::vma_lock};

/// A policy with its variant's switches.
struct PolicySpec {
  constexpr PolicySpec() = default;
  constexpr PolicySpec(Policy p)
      : policy(p) {}  // NOLINT: implicit, so that `.policy = Policy::spf`
  Policy policy = Policy::mmap_lock;
  /// `spf` only: with one task in the space, do not even try (v11's check 0).
  bool single_thread_bypass = true;
  /// `vma-lock` only: a forbidden access is decided under the VMA lock. Off: as kernels before 6.10
  /// did it, unlock, take the mmap lock, look up again, check again.
  bool bad_access_fast = true;
  friend constexpr bool operator==(const PolicySpec&, const PolicySpec&) = default;
};

constexpr std::string_view name_of(Policy p) {
  switch (p) {
    case Policy::mmap_lock: return "mmap-lock";
    case Policy::spf: return "spf";
    case Policy::vma_lock: return "vma-lock";
  }
  return "?";
}

namespace detail {
/// One `SWITCH=VALUE` into `spec`. False: the policy has no such switch, or no such value of it.
constexpr bool set_switch(PolicySpec& spec, std::string_view item) {
  if (spec.policy == Policy::spf) {
    if (item == "single-thread-bypass=off") return spec.single_thread_bypass = false, true;
    if (item == "single-thread-bypass=on") return spec.single_thread_bypass = true, true;
  }
  if (spec.policy == Policy::vma_lock) {
    if (item == "bad-access=slow") return spec.bad_access_fast = false, true;
    if (item == "bad-access=fast") return spec.bad_access_fast = true, true;
  }
  return false;
}
}  // namespace detail

/// Reads `NAME[:SWITCH=VALUE[,SWITCH=VALUE...]]`, e.g. `vma-lock:bad-access=slow`. EINVAL for
/// anything else. Pure; callable from any thread.
inline Result<PolicySpec> parse_policy(std::string_view text) {
  PolicySpec spec;
  const auto colon = text.find(':');
  const auto name = text.substr(0, colon);
  bool found = false;
  for (Policy p : kAllPolicies) {
    if (name == name_of(p)) {
      spec.policy = p;
      found = true;
    }
  }
  if (!found) return Errno::einval;
  if (colon == std::string_view::npos) return spec;
  std::string_view rest = text.substr(colon + 1);
  for (;;) {
    const auto comma = rest.find(',');
    const auto item = rest.substr(0, comma);
    if (!detail::set_switch(spec, item)) return Errno::einval;
    if (comma == std::string_view::npos) return spec;
    rest = rest.substr(comma + 1);
  }
}

}  // namespace faultpath
