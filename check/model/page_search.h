// The search: places the floating events of a Problem so that every result is right.
//
// Points of time are gone through in order. What floats is placed as late as it can be: when a
// result would be wrong, or when its interval ends. So a run that is explained by the order in which
// things happened to end costs one pass. A floating event that changes nothing (a fault) is settled
// at once where its result is right.
#pragma once

#include <cstdint>

#include "check/model/page_problem.h"

namespace faultpath::check {

inline constexpr unsigned kMostGenerations = 6;  ///< of one page: DONTNEEDs in progress, and one
inline constexpr unsigned kMostWrites = 64;      ///< to objects, while private mappings look on

// These three are copied for every branch, as far as they are in use; nothing initialises the rest.

/// What a private page holds, in one generation.
struct Content {
  bool copy;             ///< false: no page of its own yet, the file's page is seen
  Values words[kWords];  ///< a copy: what each slot may hold
};

/// A page of one space, at some moment.
struct PageState {
  enum class Backing : std::uint8_t { anonymous, private_file, shared };
  bool exists;  ///< its space does
  bool mapped;
  bool beyond;
  Prot prot;
  Backing backing;
  std::uint8_t object;
  std::uint16_t since;                 ///< the point at which it was mapped
  std::uint8_t newest;                 ///< generation
  std::uint8_t generation[kMostCpus];  ///< the oldest that a CPU may still look at
  Content content[kMostGenerations];

  bool readable() const { return mapped && prot != Prot::none; }
  bool writable() const { return mapped && has(prot, Prot::write); }
};

/// All pages of a problem, and what has been placed.
struct Moment {
  struct Write {
    std::uint16_t point;
    std::uint8_t object;
    std::uint8_t slot;
    std::uint8_t old_value;
  };
  Floats active;  ///< floats that have begun and are not placed
  unsigned writes;
  std::uint8_t generation_of[kMostFloats];     ///< a placed DONTNEED's
  std::uint8_t objects[kMostObjects][kWords];  ///< numbers of values
  PageState pages[kMostCells];
  Write write[kMostWrites];
};

/// Where the search got no further, for the account.
struct Stuck {
  bool set = false;
  bool in_setup = false;
  unsigned point = 0;     ///< the furthest point reached
  Item item{};            ///< what could not be right there
  Values held = 0;        ///< a load: what the word may have held, in any order tried
  bool unmapped = false;  ///< in some order the page was not mapped,
  bool no_right = false;  ///< or the right was missing,
  bool beyond = false;    ///< or it lay beyond the end of the file,
  bool allowed = false;   ///< or nothing forbade the access
};

class Search {
 public:
  /// True if there is an order.
  bool solve(const Problem& p);
  /// After solve() returned false.
  const Stuck& stuck() const { return stuck_; }
  /// A limit did not suffice: solve()'s false means nothing.
  const char* too_large() const { return too_large_; }

 private:
  bool run(Moment& m, unsigned k);
  bool try_others(const Moment& m, unsigned k, Floats floats);
  /// A float takes effect. False: it cannot, here.
  bool place(Moment& m, unsigned number, unsigned k);
  bool change(Moment& m, const Item& item, unsigned k, std::uint8_t* generation);
  bool map(Moment& m, const Item& item, unsigned k);
  bool dontneed(Moment& m, const Item& item, std::uint8_t* generation);
  /// How many generations a timed access may have met; which one is the branch.
  unsigned choices(const Moment& m, const Item& item) const;
  bool perform(Moment& m, const Item& item, unsigned k, unsigned choice);
  bool fault_right(const Moment& m, const Item& item) const;
  void settle_faults(Moment& m) const;
  void end_dontneed(Moment& m, unsigned number) const;
  void forget_generations(Moment& m, std::uint8_t cell, unsigned below) const;
  void look_at_newest(Moment& m, std::uint8_t cell) const;
  void drop_unseen(Moment& m, std::uint8_t cell) const;
  void make_copy(const Moment& m, const PageState& page, Content& content, unsigned begin) const;
  bool copy_matters(const Moment& m, const Item& item, const PageState& page, unsigned k) const;
  bool write_object(Moment& m, const Item& item, std::uint8_t object, unsigned k);
  void copy_to(Moment& to, const Moment& from) const;
  void begin_at(Moment& m) const;
  bool run_setup(Moment& m);
  bool seen_before(const Moment& m, unsigned k);
  void note(const Moment& m, const Item& item, unsigned k);

  const Event& event(const Item& item) const { return (*p_->history)[item.event]; }

  const Problem* p_ = nullptr;
  const char* too_large_ = nullptr;
  bool in_setup_ = false;
  Stuck stuck_;
  unsigned branches_ = 0;

  // Moments from which there was no way on. Entries of former problems are told by their round.
  static constexpr unsigned kRemembered = 1u << 17;
  struct Memory {
    std::uint64_t key;
    std::uint32_t round;
  };
  unsigned remembered_ = 0;
  std::uint32_t round_ = 0;
  Memory memory_[kRemembered] = {};
  Moment first_;
};

}  // namespace faultpath::check
