#include "check/model/page_search.h"

#include <bit>
#include <cstring>

namespace faultpath::check {

namespace {

using Backing = PageState::Backing;

constexpr unsigned kMostBranches = 2'000'000;
/// So few branches are faster tried twice than looked up.
constexpr unsigned kBranchesBeforeMemory = 64;

constexpr Values bit(std::uint8_t value) { return Values{1} << value; }

}  // namespace

// --- the search -------------------------------------------------------------------------------

bool Search::try_others(const Moment& m, unsigned k, Floats floats) {
  for (; floats != 0; floats &= floats - 1) {
    Moment next;
    copy_to(next, m);
    if (place(next, static_cast<unsigned>(std::countr_zero(floats)), k) && run(next, k)) {
      return true;
    }
  }
  return false;
}

bool Search::run(Moment& m, unsigned k) {
  for (;; ++k) {
    settle_faults(m);
    if (k == p_->points) return true;
    const Point at = p_->point[k];
    if (at.type == Point::Type::begin) {
      m.active |= Floats{1} << at.item;
      continue;
    }
    const Floats others = m.active & ~p_->faults;

    if (at.type == Point::Type::timed) {
      const Item& item = p_->timed[at.item];
      const unsigned ways = choices(m, item);
      if (others == 0 && ways == 1) {
        if (perform(m, item, k, 0)) continue;
        note(m, item, k);
        return false;
      }
      if (seen_before(m, k)) return false;
      for (unsigned way = 0; way < ways; ++way) {
        Moment next;
        copy_to(next, m);
        if (!perform(next, item, k, way)) {
          note(m, item, k);
        } else if (run(next, k + 1)) {
          return true;
        }
      }
      return try_others(m, k, others);
    }

    const Floats self = Floats{1} << at.item;
    const Item& item = p_->floating[at.item];
    if ((m.active & self) == 0) {
      if (item.type == Item::Type::dontneed) end_dontneed(m, at.item);
      continue;
    }
    if (!item.must) {
      // It never happened, or at the last moment, or after others that float.
      Moment next;
      copy_to(next, m);
      const bool can = place(next, at.item, k);
      const bool late = item.type == Item::Type::copy && k > p_->last_write;
      if (!can && (others == self || late)) {
        m.active &= ~self;
        continue;
      }
      if (seen_before(m, k)) return false;
      next.active &= ~self;
      if (can && run(next, k + 1)) return true;
      copy_to(next, m);
      next.active &= ~self;
      return run(next, k + 1) || try_others(m, k, others & ~self);
    }
    // Now, or after others that float.
    if (others == self) {
      if (place(m, at.item, k)) {
        if (item.type == Item::Type::dontneed) end_dontneed(m, at.item);
        continue;
      }
      note(m, item, k);
      return false;
    }
    if (seen_before(m, k)) return false;
    if ((others & self) != 0) {
      Moment next;
      copy_to(next, m);
      if (!place(next, at.item, k)) {
        note(m, item, k);
      } else if (run(next, k)) {
        return true;
      }
    } else {
      note(m, item, k);  // a fault whose signal was never right so far
    }
    return try_others(m, k, others & ~self);
  }
}

bool Search::run_setup(Moment& m) {
  in_setup_ = true;
  for (unsigned i = 0; i < p_->setups; ++i) {
    const Item& item = p_->setup[i];
    const bool timed = item.type == Item::Type::load || item.type == Item::Type::store;
    std::uint8_t generation = 0;
    const bool right = timed ? perform(m, item, 0, 0) : change(m, item, 0, &generation);
    // A call that failed in the middle did what it could.
    if (!right && item.must) {
      note(m, item, i);
      return false;
    }
    if (item.type == Item::Type::dontneed) look_at_newest(m, item.cell);
  }
  in_setup_ = false;
  return true;
}

bool Search::solve(const Problem& p) {
  p_ = &p;
  too_large_ = nullptr;
  stuck_ = {};
  branches_ = 0;
  remembered_ = 0;
  ++round_;
  begin_at(first_);
  return run_setup(first_) && run(first_, 0);
}

// True: there is no way on from here, as an earlier try found; or there were too many tries.
bool Search::seen_before(const Moment& m, unsigned k) {
  if (too_large_ != nullptr) return true;
  if (++branches_ < kBranchesBeforeMemory) return false;
  if (branches_ > kMostBranches) {
    too_large_ = "orders to try";
    return true;
  }
  std::uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&hash](std::uint64_t v) {
    hash = (hash ^ v) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
  };
  add(k);
  add(m.active);
  for (unsigned o = 0; o < p_->objects; ++o) {
    for (unsigned s = 0; s < p_->slots; ++s) add(m.objects[o][s]);
  }
  for (unsigned i = 0; i < m.writes; ++i) {
    const Moment::Write& w = m.write[i];
    add(std::uint64_t{w.point} << 32 | w.object << 16 | w.slot << 8 | w.old_value);
  }
  for (unsigned f = 0; f < p_->floats; ++f) add(m.generation_of[f]);
  for (unsigned c = 0; c < p_->cells; ++c) {
    const PageState& page = m.pages[c];
    add(std::uint64_t{page.exists} << 0 | std::uint64_t{page.mapped} << 1 |
        std::uint64_t{page.beyond} << 2 | static_cast<std::uint64_t>(page.prot) << 8 |
        static_cast<std::uint64_t>(page.backing) << 16 | std::uint64_t{page.object} << 24 |
        std::uint64_t{page.newest} << 32 | std::uint64_t{page.since} << 40);
    for (std::uint32_t cpus = p_->cell[c].cpus; cpus != 0; cpus &= cpus - 1) {
      add(page.generation[std::countr_zero(cpus)]);
    }
    for (unsigned g = 0; g <= page.newest; ++g) {
      const Content& content = page.content[g];
      add(content.copy);
      if (!content.copy) continue;
      for (unsigned s = 0; s < p_->slots; ++s) add(content.words[s]);
    }
  }
  for (unsigned at = static_cast<unsigned>(hash) % kRemembered;; at = (at + 1) % kRemembered) {
    Memory& entry = memory_[at];
    if (entry.round != round_) {
      // Half full: what comes now is tried without a record.
      if (remembered_ < kRemembered / 2) {
        entry = {hash, round_};
        ++remembered_;
      }
      return false;
    }
    if (entry.key == hash) return true;
  }
}

// The item cannot be right at this moment: kept, if no order tried so far came further.
void Search::note(const Moment& m, const Item& item, unsigned k) {
  if (!stuck_.set || k > stuck_.point) {
    stuck_ = {};
    stuck_.set = true;
    stuck_.point = k;
    stuck_.in_setup = in_setup_;
    stuck_.item = item;
  }
  if (k != stuck_.point || item.event != stuck_.item.event || item.cell == kNone) return;
  const PageState& page = m.pages[item.cell];
  if (!page.exists || !page.mapped) {
    stuck_.unmapped = true;
    return;
  }
  const bool write = event(item).kind == Kind::store || event(item).access == Access::write;
  if (!(write ? page.writable() : page.readable())) {
    stuck_.no_right = true;
  } else if (page.beyond) {
    stuck_.beyond = true;
  } else {
    stuck_.allowed = true;
    if (item.type != Item::Type::load) return;
    if (page.backing == Backing::shared) {
      stuck_.held |= bit(m.objects[page.object][item.slot]);
      return;
    }
    for (unsigned g = page.generation[event(item).cpu]; g <= page.newest; ++g) {
      stuck_.held |= page.content[g].copy ? page.content[g].words[item.slot]
                                          : bit(m.objects[page.object][item.slot]);
    }
  }
}

}  // namespace faultpath::check
