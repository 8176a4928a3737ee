// One judgement's question, made ready for the search: the events of some pages that belong
// together, sorted into points of time, with words and values numbered.
#pragma once

#include <cstdint>

#include "check/model/history.h"
#include "check/model/page_model.h"

namespace faultpath::check {

inline constexpr unsigned kMostNodes = 32;  ///< pages of families that are accessed
inline constexpr unsigned kMostSpaces = 32;
inline constexpr unsigned kMostCpus = 16;
inline constexpr unsigned kMostCells = 16;    ///< of one problem
inline constexpr unsigned kMostObjects = 16;  ///< of one problem
inline constexpr unsigned kMostFloats = 64;   ///< of one problem
inline constexpr unsigned kMostPoints = History::kMost + 2 * kMostFloats;
inline constexpr unsigned kMostValues = 64;
inline constexpr std::uint8_t kNone = 0xff;

/// A set of numbered values; bit 0 is the value 0.
using Values = std::uint64_t;
/// A set of numbered floats.
using Floats = std::uint64_t;

/// Is the page that the event names looked at by it?
constexpr bool is_access(Kind k) { return k == Kind::load || k == Kind::store || k == Kind::fault; }

/// A page of one space.
struct CellId {
  std::uint8_t space = 0;
  std::uint64_t page = 0;  ///< its address divided by the page size
  std::uint32_t cpus = 0;  ///< who accesses it in the run
};

/// A page of a file, or of the object that a shared anonymous mapping made.
struct ObjectId {
  std::uint8_t file = 0;
  std::uint8_t maker = kNone;  ///< no file: the index of the map event
  std::uint64_t page = 0;
  friend bool operator==(const ObjectId&, const ObjectId&) = default;
};

/// An event as it concerns one cell.
struct Item {
  enum class Type : std::uint8_t {
    load,
    store,
    file_write,
    map,
    unmap,
    protect,
    dontneed,
    fork,
    fault,
    copy,  ///< an access that writes may have made the private copy of a file's page, without or
           ///< before a store
  };
  Type type = Type::load;
  bool must = true;     ///< false: it may have happened or not
  bool beyond = false;  ///< map: this page is wholly beyond the end of its file
  std::uint8_t event = 0;
  std::uint8_t cell = kNone;
  std::uint8_t child = kNone;   ///< fork: the child's cell
  std::uint8_t object = kNone;  ///< map, file_write
  std::uint8_t slot = kNone;    ///< load, store, file_write: which word; kNone: nobody loads it
  std::uint8_t value = kNone;   ///< its number; kNone: nobody ever stored it
  std::uint16_t begin = 0;      ///< the point at which the interval begins
};

/// A moment of the run, in order.
struct Point {
  enum class Type : std::uint8_t { begin, timed, end };
  Type type = Type::timed;
  std::uint8_t item = 0;  ///< a float's number, or a timed item's
};

struct Problem {
  const State* start = nullptr;
  const History* history = nullptr;
  const char* too_large = nullptr;  ///< which of the limits above did not suffice

  unsigned cells = 0;
  CellId cell[kMostCells];
  std::uint32_t born = 0;  ///< cells whose space a fork makes

  unsigned objects = 0;
  ObjectId object[kMostObjects];
  bool written = false;     ///< objects change during the run while private mappings look at them
  unsigned last_write = 0;  ///< the last point at which they can

  unsigned slots = 0;  ///< words that somebody loads
  std::uint8_t slot_of[kWords];
  std::uint8_t word_of[kWords];
  unsigned values = 0;
  std::uint64_t value[kMostValues];

  unsigned setups = 0;
  Item setup[History::kMost];
  unsigned floats = 0;
  Item floating[kMostFloats];
  Floats faults = 0;  ///< floats that change nothing
  unsigned timeds = 0;
  Item timed[History::kMost];
  unsigned points = 0;
  Point point[kMostPoints];

  std::uint8_t cell_of(std::uint8_t space, std::uint64_t page) const;
};

/// The pages that a history is judged by, and which of them belong together.
class Pages {
 public:
  /// False: a limit did not suffice.
  bool find(const State& start, const History& history);
  /// Groups of pages that are judged together, numbered from 0.
  unsigned groups() const { return groups_; }
  /// Makes the group's problem; look at its `too_large`.
  void pose(unsigned group, Problem& out) const;
  const char* too_large() const { return too_large_; }

 private:
  struct Node {
    std::uint8_t family = 0;
    std::uint8_t group = 0;
    std::uint64_t page = 0;
  };
  std::uint8_t node_of(std::uint8_t space, std::uint64_t page) const;
  void join(std::uint8_t a, std::uint8_t b);
  void join_by_objects();
  bool in_group(unsigned group, std::uint8_t space, std::uint64_t page) const;

  const State* start_ = nullptr;
  const History* history_ = nullptr;
  const char* too_large_ = nullptr;
  std::uint8_t family_[kMostSpaces] = {};
  unsigned nodes_ = 0;
  Node node_[kMostNodes];
  unsigned groups_ = 0;
};

}  // namespace faultpath::check
