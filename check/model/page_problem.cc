#include "check/model/page_problem.h"

#include <algorithm>

namespace faultpath::check {

namespace {

constexpr std::uint32_t bit(unsigned cell) { return std::uint32_t{1} << cell; }

/// Does the event change mappings of pages of its range?
constexpr bool is_change(const Event& e) {
  switch (e.kind) {
    case Kind::map:
    case Kind::unmap: return e.ok;
    // Before the VMA that was refused others may have been changed.
    case Kind::protect: return e.ok || e.error == Errno::enomem || e.error == Errno::eacces;
    // Holes are skipped; the rest happens.
    case Kind::dontneed: return e.ok || e.error == Errno::enomem;
    default: return false;
  }
}
constexpr Item::Type type_of(Kind k) {
  switch (k) {
    case Kind::load: return Item::Type::load;
    case Kind::store: return Item::Type::store;
    case Kind::map: return Item::Type::map;
    case Kind::unmap: return Item::Type::unmap;
    case Kind::protect: return Item::Type::protect;
    case Kind::dontneed: return Item::Type::dontneed;
    case Kind::fork: return Item::Type::fork;
    case Kind::file_write: return Item::Type::file_write;
    default: return Item::Type::fault;
  }
}

/// Fills a Problem, step by step in the order of the functions.
class Posing {
 public:
  explicit Posing(Problem& out) : p_(out), events_(out.history->events()) {}

  /// Cells that are accessed, and those that they were copied from; words that are loaded.
  template <class InGroup>
  void find_cells(InGroup&& in_group) {
    for (const Event& e : events_) {
      if (!is_access(e.kind) || !in_group(e)) continue;
      const std::uint8_t c = add_cell(e.space, e.page());
      // A set-up's accesses meet one generation only.
      if (c != kNone && !e.setup()) p_.cell[c].cpus |= bit(e.cpu);
      if (e.kind == Kind::load) add_slot(e);
    }
    for (std::size_t i = events_.size(); i-- > 0;) {
      const Event& e = events_[i];
      if (e.kind != Kind::fork || !e.ok) continue;
      for (unsigned c = 0; c < p_.cells; ++c) {
        if (p_.cell[c].space != e.child) continue;
        p_.born |= bit(c);
        add_cell(e.space, p_.cell[c].page);
      }
    }
  }

  /// Pages of files that the cells name, and whether they change while private mappings look on.
  void find_objects() {
    add_value(0);
    bool shared = false;
    for (unsigned i = 0; i < events_.size(); ++i) {
      const Event& e = events_[i];
      if (e.kind != Kind::map || !e.ok || (e.file == 0 && !e.shared)) continue;
      for (unsigned c = 0; c < p_.cells; ++c) {
        if (p_.cell[c].space != e.space || !e.covers(p_.cell[c].page)) continue;
        shared = shared || e.shared;
        if (!e.shared) private_file_ |= bit(c);
        add_object(object_of(i, p_.cell[c].page));
      }
    }
    if (private_file_ == 0) return;
    private_file_ |= p_.born;  // a private mapping stays one in a child
    for (const Event& e : events_) {
      if (e.setup()) continue;
      p_.written = p_.written || (e.kind == Kind::file_write && e.ok) ||
                   (e.kind == Kind::store && shared && cell_of(e) != kNone);
    }
  }

  void make_items() {
    for (unsigned i = 0; i < events_.size(); ++i) {
      const Event& e = events_[i];
      Item item;
      item.type = type_of(e.kind);
      item.event = static_cast<std::uint8_t>(i);
      switch (e.kind) {
        case Kind::load:
        case Kind::store:
        case Kind::fault: make_access(item, e); break;
        case Kind::file_write: make_file_write(item, e); break;
        case Kind::map:
        case Kind::unmap:
        case Kind::protect:
        case Kind::dontneed: make_change(item, e); break;
        case Kind::fork: make_fork(item, e); break;
        case Kind::no_memory:
        case Kind::refused:
        case Kind::sync:
        case Kind::quiesce:
        case Kind::leave: break;
      }
      make_copy(item, e);
    }
    // Now all values that were ever stored are known.
    const auto look_up = [this](Item& item) {
      if (item.type == Item::Type::load) item.value = find_value(events_[item.event].value);
    };
    for (unsigned i = 0; i < p_.setups; ++i) look_up(p_.setup[i]);
    for (unsigned i = 0; i < p_.timeds; ++i) look_up(p_.timed[i]);
  }

  // Sorts all moments. At one step: beginnings, then instants in their order, then ends, so that
  // what touches at a step counts as overlapping.
  void sort_points() {
    std::uint64_t key[kMostPoints];
    unsigned n = 0;
    const auto add = [&](std::uint64_t time, Point::Type type, unsigned item) {
      key[n++] = time << 16 | static_cast<std::uint64_t>(type) << 8 | item;
    };
    for (unsigned i = 0; i < p_.floats; ++i) {
      const Event& e = events_[p_.floating[i].event];
      add(e.begin, Point::Type::begin, i);
      add(e.kind == Kind::store ? e.instant : e.end, Point::Type::end, i);
    }
    for (unsigned i = 0; i < p_.timeds; ++i) {
      add(events_[p_.timed[i].event].instant, Point::Type::timed, i);
    }
    std::sort(key, key + n);
    p_.points = n;
    for (unsigned k = 0; k < n; ++k) {
      const auto type = static_cast<Point::Type>(key[k] >> 8 & 0xff);
      const auto item = static_cast<std::uint8_t>(key[k] & 0xff);
      p_.point[k] = {type, item};
      if (type == Point::Type::begin) p_.floating[item].begin = static_cast<std::uint16_t>(k);
    }
    p_.last_write = 0;
    for (unsigned k = 0; k < n && p_.written; ++k) {
      const Point at = p_.point[k];
      const Item& item = at.type == Point::Type::timed ? p_.timed[at.item] : p_.floating[at.item];
      if (item.type == Item::Type::store || item.type == Item::Type::file_write) p_.last_write = k;
    }
    // A store's own copy of a file's page begins with it.
    for (unsigned i = 0; i < p_.floats; ++i) {
      if (p_.floating[i].type != Item::Type::copy) continue;
      for (unsigned t = 0; t < p_.timeds; ++t) {
        if (p_.timed[t].event == p_.floating[i].event) p_.timed[t].begin = p_.floating[i].begin;
      }
    }
  }

 private:
  std::uint8_t cell_of(const Event& e) const { return p_.cell_of(e.space, e.page()); }

  /// What a map event, given by its number, puts at the page.
  ObjectId object_of(unsigned map, std::uint64_t page) const {
    const Event& e = events_[map];
    const std::uint64_t offset = page - e.page();
    if (e.file != 0) return {e.file, kNone, e.file_page + offset};
    return {0, static_cast<std::uint8_t>(map), offset};
  }

  void make_access(Item& item, const Event& e) {
    item.cell = cell_of(e);
    if (item.cell == kNone) return;
    if (e.kind == Kind::fault) {
      add_change(item, e);
      return;
    }
    item.slot = slot(e);
    if (e.kind == Kind::store && item.slot != kNone) item.value = add_value(e.value);
    add_instant(item, e);
  }

  void make_file_write(Item& item, const Event& e) {
    item.object = find_object({e.file, kNone, e.file_page});
    if (!e.ok || item.object == kNone) return;
    item.slot = slot(e);
    if (item.slot == kNone) return;
    item.value = add_value(e.value);
    if (e.instant != 0) {
      add_instant(item, e);
    } else {
      add_change(item, e);
    }
  }

  void make_change(Item& item, const Event& e) {
    if (!is_change(e)) return;
    item.must = e.ok || e.kind == Kind::dontneed;
    for (unsigned c = 0; c < p_.cells; ++c) {
      const std::uint64_t page = p_.cell[c].page;
      if (p_.cell[c].space != e.space || !e.covers(page)) continue;
      item.cell = static_cast<std::uint8_t>(c);
      if (e.kind == Kind::map && (e.file != 0 || e.shared)) {
        const ObjectId object = object_of(item.event, page);
        item.object = find_object(object);
        item.beyond =
            e.file != 0 && object.page >= page_ceil(p_.start->files[e.file].size) >> kPageShift;
      }
      add_change(item, e);
    }
  }

  void make_fork(Item& item, const Event& e) {
    if (!e.ok) return;
    for (unsigned c = 0; c < p_.cells; ++c) {
      if (p_.cell[c].space != e.child) continue;
      item.child = static_cast<std::uint8_t>(c);
      item.cell = p_.cell_of(e.space, p_.cell[c].page);
      if (item.cell != kNone) add_change(item, e);
    }
  }

  /// An access that writes may have copied a file's page whatever became of it.
  void make_copy(const Item& of, const Event& e) {
    const bool writes =
        e.kind == Kind::store ||
        ((e.kind == Kind::fault || e.kind == Kind::no_memory) && e.access == Access::write);
    if (!p_.written || !writes || e.setup()) return;
    Item copy;
    copy.type = Item::Type::copy;
    copy.must = false;
    copy.event = of.event;
    copy.cell = cell_of(e);
    if (copy.cell != kNone && (private_file_ & bit(copy.cell)) != 0) add_float(copy);
  }

  std::uint8_t add_cell(std::uint8_t space, std::uint64_t page) {
    std::uint8_t c = p_.cell_of(space, page);
    if (c != kNone) return c;
    if (p_.cells == kMostCells) return fail("pages times spaces");
    c = static_cast<std::uint8_t>(p_.cells++);
    p_.cell[c] = {space, page, 0};
    return c;
  }
  void add_slot(const Event& e) {
    const unsigned word = e.word();
    if (word >= kWords) {
      fail("words of a page");
    } else if (p_.slot_of[word] == kNone) {
      p_.slot_of[word] = static_cast<std::uint8_t>(p_.slots);
      p_.word_of[p_.slots++] = static_cast<std::uint8_t>(word);
    }
  }
  std::uint8_t slot(const Event& e) {
    const unsigned word = e.word();
    return word < kWords ? p_.slot_of[word] : fail("words of a page");
  }
  std::uint8_t find_value(std::uint64_t v) const {
    for (unsigned i = 0; i < p_.values; ++i) {
      if (p_.value[i] == v) return static_cast<std::uint8_t>(i);
    }
    return kNone;
  }
  std::uint8_t add_value(std::uint64_t v) {
    const std::uint8_t known = find_value(v);
    if (known != kNone) return known;
    if (p_.values == kMostValues) return fail("different values");
    p_.value[p_.values] = v;
    return static_cast<std::uint8_t>(p_.values++);
  }
  std::uint8_t find_object(const ObjectId& id) const {
    for (unsigned i = 0; i < p_.objects; ++i) {
      if (p_.object[i] == id) return static_cast<std::uint8_t>(i);
    }
    return kNone;
  }
  void add_object(const ObjectId& id) {
    if (find_object(id) != kNone) return;
    if (p_.objects == kMostObjects) {
      fail("pages of files");
      return;
    }
    p_.object[p_.objects++] = id;
    if (id.file == 0 || id.file > State::kFiles || id.page >= State::kFilePages) return;
    for (unsigned s = 0; s < p_.slots; ++s) {
      add_value(p_.start->files[id.file].words[id.page][p_.word_of[s]]);
    }
  }
  void add_float(const Item& item) {
    if (p_.floats == kMostFloats) {
      fail("events that float");
      return;
    }
    if (item.type == Item::Type::fault) p_.faults |= Floats{1} << p_.floats;
    p_.floating[p_.floats++] = item;
  }
  void add_setup(const Item& item) {
    if (p_.setups == History::kMost) {
      fail("events of the set-up");
    } else {
      p_.setup[p_.setups++] = item;
    }
  }
  std::uint8_t fail(const char* what) {
    if (p_.too_large == nullptr) p_.too_large = what;
    return kNone;
  }
  void add_change(const Item& item, const Event& e) {
    if (e.setup()) {
      add_setup(item);
    } else {
      add_float(item);
    }
  }
  void add_instant(const Item& item, const Event& e) {
    if (e.setup()) {
      add_setup(item);
    } else {
      p_.timed[p_.timeds++] = item;
    }
  }

  Problem& p_;
  const std::span<const Event> events_;
  std::uint32_t private_file_ = 0;  ///< cells that may be private pages of a file
};

}  // namespace

std::uint8_t Problem::cell_of(std::uint8_t space, std::uint64_t page) const {
  for (unsigned i = 0; i < cells; ++i) {
    if (cell[i].space == space && cell[i].page == page) return static_cast<std::uint8_t>(i);
  }
  return kNone;
}

void Pages::pose(unsigned group, Problem& p) const {
  p.start = start_;
  p.history = history_;
  p.too_large = nullptr;
  p.cells = p.objects = p.slots = p.values = p.setups = p.floats = p.timeds = p.points = 0;
  p.born = 0;
  p.faults = 0;
  p.written = false;
  for (std::uint8_t& s : p.slot_of) s = kNone;
  Posing posing(p);
  posing.find_cells([&](const Event& e) { return in_group(group, e.space, e.page()); });
  posing.find_objects();
  posing.make_items();
  posing.sort_points();
}

}  // namespace faultpath::check
