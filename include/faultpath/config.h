// Compile-time constants of the library.
#pragma once

#include <cstddef>
#include <cstdint>

#ifndef FAULTPATH_PAGE_SHIFT
#define FAULTPATH_PAGE_SHIFT 12
#endif

namespace faultpath {

/// A guest virtual address, in bytes.
using Addr = std::uint64_t;

inline constexpr unsigned kPageShift = FAULTPATH_PAGE_SHIFT;
/// Bytes in a guest page. One constant for the whole program: 4 KiB, or 64 KiB in the build that
/// reproduces the published POWER figures.
inline constexpr std::uint64_t kPageSize = std::uint64_t{1} << kPageShift;
inline constexpr std::uint64_t kPageMask = ~(kPageSize - 1);

/// One past the last byte a guest may map, as on x86-64 with four levels: 2^47 less one page.
inline constexpr Addr kUserEnd = (Addr{1} << 47) - kPageSize;

static_assert(kPageShift == 12 || kPageShift == 16, "pages are 4 KiB or 64 KiB");

constexpr Addr page_floor(Addr a) { return a & kPageMask; }
constexpr Addr page_ceil(Addr a) { return (a + kPageSize - 1) & kPageMask; }

}  // namespace faultpath
