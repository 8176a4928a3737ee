// What a VMA grants, and the three answers that an access gets.
#pragma once

#include <faultpath/types.h>

#include <cstdint>

namespace faultpath::arch {

struct VmaRights {
  Prot prot = Prot::none;
  std::uint8_t pkey = 0;
  bool shadow_stack = false;
};

enum class Verdict : std::uint8_t {
  allowed,
  denied,      ///< SEGV_ACCERR
  key_denied,  ///< SEGV_PKUERR, with the VMA's key
};

constexpr bool has_any(Prot set, Prot bits) { return (set & bits) != Prot::none; }

inline constexpr Prot kAnyRight = Prot::read | Prot::write | Prot::exec;

constexpr Verdict allowed_if(bool yes) { return yes ? Verdict::allowed : Verdict::denied; }

}  // namespace faultpath::arch
