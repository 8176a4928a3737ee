// What events do to pages, and which results are right: the model's rules.
#include "check/model/page_search.h"

#include <bit>
#include <cstddef>
#include <cstring>

namespace faultpath::check {

namespace {

using Backing = PageState::Backing;

constexpr Values bit(std::uint8_t value) { return Values{1} << value; }

}  // namespace

// --- moments ----------------------------------------------------------------------------------

void Search::copy_to(Moment& to, const Moment& from) const {
  to.active = from.active;
  to.writes = from.writes;
  std::memcpy(to.generation_of, from.generation_of, p_->floats);
  std::memcpy(to.objects, from.objects, p_->objects * sizeof from.objects[0]);
  std::memcpy(to.write, from.write, from.writes * sizeof from.write[0]);
  for (unsigned c = 0; c < p_->cells; ++c) {
    const PageState& page = from.pages[c];
    const std::size_t used = offsetof(PageState, content) + (page.newest + 1u) * sizeof(Content);
    std::memcpy(static_cast<void*>(&to.pages[c]), &page, used);
  }
}

void Search::begin_at(Moment& m) const {
  m.active = 0;
  m.writes = 0;
  std::memset(m.generation_of, 0, sizeof m.generation_of);
  for (unsigned o = 0; o < p_->objects; ++o) {
    const ObjectId& id = p_->object[o];
    const bool known = id.file != 0 && id.page < State::kFilePages;
    for (unsigned s = 0; s < p_->slots; ++s) {
      m.objects[o][s] = 0;
      if (!known) continue;
      const std::uint64_t v = p_->start->files[id.file].words[id.page][p_->word_of[s]];
      while (p_->value[m.objects[o][s]] != v) ++m.objects[o][s];
    }
  }
  for (unsigned c = 0; c < p_->cells; ++c) {
    PageState& page = m.pages[c];
    std::memset(static_cast<void*>(&page), 0, offsetof(PageState, content) + sizeof(Content));
    page.exists = (p_->born >> c & 1) == 0;
    page.object = kNone;
  }
}

// --- generations ------------------------------------------------------------------------------

// The first `below` generations are nobody's any more.
void Search::forget_generations(Moment& m, std::uint8_t cell, unsigned below) const {
  if (below == 0) return;
  PageState& page = m.pages[cell];
  const auto less = [below](std::uint8_t g) {
    return static_cast<std::uint8_t>(g > below ? g - below : 0);
  };
  std::memmove(static_cast<void*>(page.content), page.content + below,
               (page.newest + 1u - below) * sizeof(Content));
  page.newest = less(page.newest);
  for (std::uint8_t& g : page.generation) g = less(g);
  for (unsigned f = 0; f < p_->floats; ++f) {
    if (p_->floating[f].cell == cell) m.generation_of[f] = less(m.generation_of[f]);
  }
}

// What excludes DONTNEED comes before it or after its end: every CPU has moved on.
void Search::look_at_newest(Moment& m, std::uint8_t cell) const {
  forget_generations(m, cell, m.pages[cell].newest);
}

void Search::drop_unseen(Moment& m, std::uint8_t cell) const {
  const PageState& page = m.pages[cell];
  unsigned oldest = page.newest;
  for (std::uint32_t cpus = p_->cell[cell].cpus; cpus != 0 && oldest != 0; cpus &= cpus - 1) {
    const unsigned g = page.generation[std::countr_zero(cpus)];
    if (g < oldest) oldest = g;
  }
  forget_generations(m, cell, oldest);
}

void Search::end_dontneed(Moment& m, unsigned number) const {
  const std::uint8_t cell = p_->floating[number].cell;
  const std::uint8_t g = m.generation_of[number];
  if (g == 0) return;
  for (std::uint8_t& seen : m.pages[cell].generation) {
    if (seen < g) seen = g;
  }
  drop_unseen(m, cell);
}

// --- contents ---------------------------------------------------------------------------------

// Each word was read at an instant since `begin`, and since the page was mapped. Not since the last
// DONTNEED: one that meets no entry does not hinder a fault that has read the file and will make one.
void Search::make_copy(const Moment& m, const PageState& page, Content& content,
                       unsigned begin) const {
  for (unsigned s = 0; s < p_->slots; ++s) content.words[s] = bit(m.objects[page.object][s]);
  for (unsigned i = 0; i < m.writes; ++i) {
    const Moment::Write& w = m.write[i];
    if (w.object == page.object && w.point > begin && w.point >= page.since) {
      content.words[w.slot] |= bit(w.old_value);
    }
  }
  content.copy = true;
}

// A copy made now tells itself from the file's page only if that changes later, or did just now.
bool Search::copy_matters(const Moment& m, const Item& item, const PageState& page,
                          unsigned k) const {
  if (k <= p_->last_write) return true;
  for (unsigned i = 0; i < m.writes; ++i) {
    if (m.write[i].object == page.object && m.write[i].point > item.begin) return true;
  }
  return false;
}

bool Search::write_object(Moment& m, const Item& item, std::uint8_t object, unsigned k) {
  if (item.slot == kNone) return true;
  std::uint8_t& word = m.objects[object][item.slot];
  if (p_->written && !in_setup_) {
    if (m.writes == kMostWrites) {
      too_large_ = "stores to files";
      return false;
    }
    m.write[m.writes++] = {static_cast<std::uint16_t>(k), object, item.slot, word};
  }
  word = item.value;
  return true;
}

// --- what floats ------------------------------------------------------------------------------

bool Search::map(Moment& m, const Item& item, unsigned k) {
  const Event& e = event(item);
  PageState& page = m.pages[item.cell];
  if (page.mapped && !e.fixed) return false;  // it went where something was
  look_at_newest(m, item.cell);
  page.mapped = true;
  page.prot = e.prot;
  page.beyond = item.beyond;
  page.object = item.object;
  page.since = static_cast<std::uint16_t>(p_->written ? k : 0);
  page.backing = e.shared      ? Backing::shared
                 : e.file != 0 ? Backing::private_file
                               : Backing::anonymous;
  Content& content = page.content[0];
  content.copy = page.backing == Backing::anonymous;
  for (unsigned s = 0; s < p_->slots; ++s) content.words[s] = bit(0);
  return true;
}

bool Search::dontneed(Moment& m, const Item& item, std::uint8_t* generation) {
  PageState& page = m.pages[item.cell];
  *generation = page.newest;
  if (!page.mapped) return !event(item).ok;  // without a hole only where there was none
  if (page.backing == Backing::shared) return true;
  if (page.newest + 1u == kMostGenerations) {
    too_large_ = "DONTNEEDs at one time";
    return false;
  }
  Content& content = page.content[++page.newest];
  content.copy = page.backing == Backing::anonymous;
  for (unsigned s = 0; s < p_->slots; ++s) content.words[s] = bit(0);
  *generation = page.newest;
  return true;
}

bool Search::change(Moment& m, const Item& item, unsigned k, std::uint8_t* generation) {
  if (item.type == Item::Type::file_write) return write_object(m, item, item.object, k);
  PageState& page = m.pages[item.cell];
  if (!page.exists) return false;
  switch (item.type) {
    case Item::Type::map: return map(m, item, k);
    case Item::Type::unmap:
      look_at_newest(m, item.cell);
      page.mapped = false;
      return true;
    case Item::Type::protect:
      if (!page.mapped) return false;
      look_at_newest(m, item.cell);
      page.prot = event(item).prot;
      return true;
    case Item::Type::fork:
      look_at_newest(m, item.cell);
      std::memcpy(static_cast<void*>(&m.pages[item.child]), &page,
                  offsetof(PageState, content) + sizeof(Content));
      return true;
    case Item::Type::dontneed: return dontneed(m, item, generation);
    case Item::Type::copy: {
      Content& content = page.content[page.newest];
      if (!page.writable() || page.beyond || page.backing != Backing::private_file ||
          content.copy || !copy_matters(m, item, page, k)) {
        return false;
      }
      make_copy(m, page, content, item.begin);
      return true;
    }
    case Item::Type::fault: return fault_right(m, item);
    case Item::Type::load:
    case Item::Type::store:
    case Item::Type::file_write: break;
  }
  return false;
}

bool Search::place(Moment& m, unsigned number, unsigned k) {
  const Item& item = p_->floating[number];
  std::uint8_t generation = 0;
  if (!change(m, item, k, &generation)) return false;
  m.generation_of[number] = generation;
  if (item.type == Item::Type::dontneed) drop_unseen(m, item.cell);
  // An access that faults several times may copy several times.
  if (item.type != Item::Type::copy) m.active &= ~(Floats{1} << number);
  return true;
}

bool Search::fault_right(const Moment& m, const Item& item) const {
  const Event& e = event(item);
  const PageState& page = m.pages[item.cell];
  if (!page.exists) return false;
  const bool right = e.access == Access::write ? page.writable() : page.readable();
  if (e.signal == kSigSegv && e.code == kSegvMapErr) return !page.mapped;
  if (e.signal == kSigSegv && e.code == kSegvAccErr) return page.mapped && !right;
  if (e.signal == kSigBus && e.code == kBusAdrErr) return right && page.beyond;
  return false;
}

void Search::settle_faults(Moment& m) const {
  for (Floats left = m.active & p_->faults; left != 0; left &= left - 1) {
    const int f = std::countr_zero(left);
    if (fault_right(m, p_->floating[f])) m.active &= ~(Floats{1} << f);
  }
}

// --- what has its instant ---------------------------------------------------------------------

unsigned Search::choices(const Moment& m, const Item& item) const {
  if (item.type == Item::Type::file_write) return 1;
  const PageState& page = m.pages[item.cell];
  return page.newest + 1u - page.generation[event(item).cpu];
}

bool Search::perform(Moment& m, const Item& item, unsigned k, unsigned choice) {
  if (item.type == Item::Type::file_write) return write_object(m, item, item.object, k);
  PageState& page = m.pages[item.cell];
  const bool store = item.type == Item::Type::store;
  if (!page.exists || page.beyond || !(store ? page.writable() : page.readable())) return false;
  if (page.backing == Backing::shared) {
    if (store) return write_object(m, item, page.object, k);
    return m.objects[page.object][item.slot] == item.value;
  }
  std::uint8_t& generation = page.generation[event(item).cpu];
  generation = static_cast<std::uint8_t>(generation + choice);
  Content& content = page.content[generation];
  if (store) {
    if (!content.copy) make_copy(m, page, content, item.begin);
    if (item.slot != kNone) content.words[item.slot] = bit(item.value);
  } else if (!content.copy) {
    if (m.objects[page.object][item.slot] != item.value) return false;
  } else {
    if (item.value == kNone || (content.words[item.slot] & bit(item.value)) == 0) return false;
    content.words[item.slot] = bit(item.value);  // now it is known
  }
  if (choice != 0) drop_unseen(m, item.cell);
  return true;
}

}  // namespace faultpath::check
