// A picture of the address spaces, in text: mappings, entries and pages, files, translations.
#pragma once

#include <string>

#include "check/report/survey.h"

namespace faultpath::check {

inline constexpr std::size_t kPictureLines = 40;

/// Of the stage as it is now, as /proc/PID/maps would show it, with what hangs below each mapping:
///
///   mm0 (spf): mmap_lock free
///     00400000-00402000 rw-p 00000000 anon           sequence 6, ever faulted
///       00400000  frame 27 r d a       anon, 2 refs       word 0: 30
///   cpu2 writer in mm0:
///       00400000  frame 27 w           STALE: its entry is frame 27 r d a
///
/// Entries: w or r, d for dirty, a for accessed. Of a page's eight words those that are not zero.
std::string picture(Stage& stage);
std::string picture(const Survey& survey);

}  // namespace faultpath::check
