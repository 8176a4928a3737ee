// Stage: what a scene plays on. A machine in the arena, spaces, files, and the CPUs with scripts.
#pragma once

#include <faultpath/address_space.h>
#include <faultpath/machine.h>

#include <deque>
#include <string>

#include "check/model/history.h"
#include "check/model/page_model.h"
#include "check/scene/memory_store.h"
#include "check/scene/script.h"

namespace faultpath::check {

/// Where scenes map. Pages from kHere on share one leaf table; kThere's has no other mapping.
inline constexpr Addr kHere = 0x400000;
inline constexpr Addr kThere = 0x800000;
constexpr Addr page(unsigned i) { return kHere + i * kPageSize; }

class Stage {
 public:
  static constexpr unsigned kSpaces = 4;
  static constexpr unsigned kFiles = State::kFiles;

  /// Resets the world and makes a machine with one space of the policy (space 0).
  explicit Stage(const PolicySpec& policy, std::uint64_t seed = 0);
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // --- for scenes, before the run -----------------------------------------------------------------
  /// Another virtual CPU, inside `space`. The reference is good for the life of the stage.
  Script& cpu(const char* name, std::function<void(Script&)> body = {}, unsigned space = 0);
  /// A CPU that is inside no space and has no script: sets the scene up.
  Script& director() { return *director_; }
  /// A file of `pages` pages (word w of page p holds 1000 + 8p + w); returns its number, from 1.
  unsigned make_file(unsigned pages, bool writable = true);
  unsigned new_space(const SpaceOptions& options);
  /// Of a generated scene.
  std::uint64_t seed() const { return seed_; }
  /// A zeroed T in the arena.
  template <class T, class... Args>
  T& state(Args&&... args) {
    return *::new (sim::World::get().state(sizeof(T))) T(std::forward<Args>(args)...);
  }
  Flag& flag() { return state<Flag>(); }
  /// Called after each run in which nothing was found; returns what is wrong, or nothing.
  std::function<std::string()> at_rest;
  /// Not a scene of spaces: no laws at rest, no model.
  bool bare = false;

  // --- for scripts and the runner -------------------------------------------------------------------
  Machine& machine() { return *machine_; }
  AddressSpace& space(unsigned i) { return *slot(i); }
  bool has_space(unsigned i) const;
  void adopt(unsigned i, AddressSpace&& space);
  void destroy(unsigned i);
  File& file(unsigned number) { return *files_[number]; }
  MemoryStore& store(unsigned number) { return *stores_[number]; }
  unsigned file_count() const { return file_count_; }
  History& history() { return history_; }
  const State& model_state() const { return model_; }
  std::deque<Script>& scripts() { return scripts_; }
  const PolicySpec& policy() const { return policy_; }
  /// Ends the set-up: fills the CPUs' frame caches, gives every free frame stale contents.
  void finish();

 private:
  AddressSpace* slot(unsigned i) {
    return reinterpret_cast<AddressSpace*>(spaces_ + i * sizeof(AddressSpace));
  }

  PolicySpec policy_;
  std::uint64_t seed_;
  Machine* machine_;
  std::byte* spaces_;  ///< kSpaces AddressSpaces in the arena, by value; all zero: none there
  File* files_[kFiles + 1] = {};
  MemoryStore* stores_[kFiles + 1] = {};
  unsigned file_count_ = 0;
  unsigned cpu_count_ = 0;
  Script* director_;
  std::deque<Script> scripts_;
  std::deque<Script> directors_;
  History history_;
  State model_;
};

}  // namespace faultpath::check
