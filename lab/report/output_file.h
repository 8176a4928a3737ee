// A result file that is whole or not there.
#pragma once

#include <string>
#include <string_view>

namespace faultpath::lab {

/// Whether `path` could be written now, without leaving anything behind: empty, or what is wrong
/// ("Permission denied"). An existing regular file is replaced later, never touched here.
std::string probe_output_file(const std::string& path);

/// Writes to a temporary file beside `path`, syncs it and renames it into place; what is not a
/// regular file (a device, a pipe), or is standard output itself, is written directly. A symbolic
/// link keeps pointing where it did.
/// Empty, or what went wrong; then `path` is as before and the temporary file is gone.
std::string write_output_file(const std::string& path, std::string_view content);

}  // namespace faultpath::lab
