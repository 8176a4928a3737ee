// What a step did, in words.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "check/model/history.h"
#include "check/report/names.h"
#include "check/report/weight.h"
#include "env/sim/world.h"

namespace faultpath::check {

/// Of one run. What is passed to it outlives it.
class Wording {
 public:
  Wording(const Names& names, std::span<const sim::Step> steps, std::span<const Weighed> weighed,
          const sim::Violation& violation);

  /// `rmw    mm0.pte[0x400000]: frame 27 w d a -> frame 27 r d a`
  std::string step(std::size_t i) const;
  /// Steps [from, end) on neighbouring words of a page: `read   frame 27 words 0-7 = 30 0 (7 times)`.
  std::string page(std::size_t from, std::size_t end) const;
  /// A guest's access at its instant: `load 0x400000 = 30, in frame 32 word 0 (TLB hit)`.
  std::string access(const Event& e) const;
  /// `about to lock frame 26 lock (table L0 of 0x400000)`. `stuck`: for ever.
  std::string pending(const sim::Op& op, bool stuck = false) const;

 private:
  struct Life {
    std::size_t step;
    memory::Pfn frame;
    bool dead;
  };

  std::string place(sim::Place place, const sim::Site& site) const;
  bool died_of_it(std::size_t i) const;
  std::string death(std::size_t i) const;

  const Names& names_;
  std::span<const sim::Step> steps_;
  std::span<const Weighed> weighed_;
  const sim::Violation& violation_;
  std::vector<Life> lives_;  ///< frames allocated and freed in the run
};

}  // namespace faultpath::check
