// Facts about this machine that results carry or need.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace faultpath::lab {

/// MemAvailable in bytes; 0 where /proc/meminfo does not tell.
std::uint64_t available_memory();
/// "ext4 (/dev/vda on /)": the type by its magic number, the mount that holds `dir`.
std::string filesystem_of(const std::string& dir);
/// The chosen word of a line like "always [madvise] never"; empty if there is none.
std::string_view bracketed(std::string_view line);

}  // namespace faultpath::lab
