// The sequential model: is there an order of a run's events in which every result is right?
//
// Pages are judged one by one: a page index with all spaces that are forks of one another, since a
// fork copies each page at an instant of its own within the call (B62). Pages that name one page of
// a file, where a store can be seen through both, are judged together.
//
// Loads and stores have their instants. Every other event floats within its interval, and is placed
// by a search (page_search.h). What an event does to a page, at its instant:
//
//   map, unmap, protect   replace, remove, change the page's mapping: one instant for all CPUs
//   fork                  the child's page is the parent's page as it is then
//   fault                 nothing; its signal must be the one that the page gives then
//   file_write            stores into the file's page
//   dontneed              begins a new generation of the page's contents. A CPU that has looked at
//                         an old one may go on with it until the call has ended (or until the next
//                         map, unmap, protect or fork: those exclude DONTNEED). Nobody goes back
//   store                 to a private page of a file that has no copy yet: makes one. Each word of
//                         it was read from the file at some instant of an access that wrote, begun
//                         before; which value that was may stay open, until a load tells
//
// Nothing here uses or follows the engine's code.
#pragma once

#include <cstdint>
#include <string>

#include "check/model/history.h"

namespace faultpath::check {

/// Words of a page that hold something: the rest of a page is not used.
inline constexpr unsigned kWords = 8;

/// What a run starts from, beside the events of the set-up.
struct State {
  static constexpr unsigned kFiles = 4;
  static constexpr unsigned kFilePages = 8;
  struct File {
    std::uint64_t size = 0;  ///< in bytes; a page wholly beyond it gives SIGBUS
    std::uint64_t words[kFilePages][kWords] = {};  ///< what the store holds at first
  };
  File files[kFiles + 1];  ///< by number; 0 is none
};

/// True if every page has such an order. If not, `why` (which may be null) gets an account of the
/// first page that has none. Not reentrant: it works in memory of its own.
bool explain(const State& at_start, const History& history, std::string* why);

}  // namespace faultpath::check
