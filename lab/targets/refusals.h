// Stores that a target has to refuse, each with a handler that is called for it; and the handler
// called without a store, by the same way.
#pragma once

#include "lab/targets/target.h"

namespace faultpath::lab {

/// For one task and one page that may be read but not written:
///
///   bool open(T&, Addr page)             handlers in place; counters are looked at from here on
///   std::uint64_t refuse(std::uint64_t)  that many stores; how many were refused as they must be:
///                                        SIGSEGV, SEGV_ACCERR, at the page, handler called
///   std::uint64_t deliver(std::uint64_t) the handler alone, that often; how often it was called
///   void plain(std::uint64_t)            what deliver() does beside the handler, to be subtracted
///   bool settled(std::string&)           the target's counters tell of those faults alone
///   std::string odd() const              what came instead of the first refusal that was wrong
template <MemoryTarget T>
class Refusals;

}  // namespace faultpath::lab
