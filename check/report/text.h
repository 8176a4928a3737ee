// Small pieces of text that all parts of a report are made of.
#pragma once

#include <faultpath/types.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "env/sim/world.h"

namespace faultpath::check {

/// Reports are no wider.
inline constexpr std::size_t kWidth = 100;

/// `fork.cc` of `/a/b/fork.cc`; empty if the site is nowhere.
std::string_view file_of(const sim::Site& site);
/// `EntryLock::lock` of the compiler's long name: no namespaces, arguments, results; a lambda has
/// the name of the function around it.
std::string function_of(const sim::Site& site);
/// `fork.cc:86`
std::string line_of(const sim::Site& site);

/// Decimal while that is short, else hexadecimal.
std::string number(std::uint64_t v);
/// `30 0 (7 times)`, `1000 to 1007`.
std::string numbers(std::span<const std::uint64_t> values);
/// Hexadecimal, `0x400000`.
std::string hex(std::uint64_t v);
/// `rw-`
std::string rights(Prot prot);

/// Breaks lines at blanks; each begins with `indent`. Lines that the text has stay.
std::string wrap(std::string_view text, std::string_view indent);
/// At most `width` characters, the last three dots if some are missing.
std::string cut(std::string text, std::size_t width);

}  // namespace faultpath::check
