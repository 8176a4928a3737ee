// Which steps of a run a reader wants to see.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "check/report/names.h"
#include "env/sim/world.h"

namespace faultpath::check {

/// A communication is two steps of different CPUs on one place, one of which writes, with no other
/// such pair between them. From what only its own CPU can notice to what a page-table bug is made of.
enum class Weight : std::uint8_t {
  own,        ///< on a place that no other CPU touches in this run, or that nobody writes
  shared,     ///< on one that others touch and somebody writes
  chatter,    ///< one end of a communication, between Cpus about flushes and sections
  exchanged,  ///< one end of another communication
  telling,    ///< one end of one on a mapping or on an address space's lock
  essential,  ///< changes an entry or frees a frame that others use; touches a page that others write
};

struct Weighed {
  Weight weight = Weight::own;
  /// Read-modify-writes: what it left there, as far as it is known.
  std::optional<std::uint64_t> left{};
  /// It wrote: not a compare-exchange that failed, nor a lock that was only tried.
  bool wrote = false;
};

/// One for each step. `left` is a Witness's; if it is empty, what a step left is taken from the next
/// step that looked, or from the world, which stands as the run has left it.
std::vector<Weighed> weigh(std::span<const sim::Step> steps, std::span<const std::uint64_t> left,
                           const Names& names);

}  // namespace faultpath::check
