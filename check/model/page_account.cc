#include "check/model/page_account.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace faultpath::check {

namespace {

std::string pages_text(const Event& e) {
  const std::uint64_t pages = page_ceil(e.length) >> kPageShift;
  return fmt::format("{:#x}, {} page{}", e.address, pages, pages == 1 ? "" : "s");
}

std::string error_text(const Event& e) {
  return e.ok ? std::string() : fmt::format(": {}", to_string(e.error));
}

const char* signal_text(const Event& e) {
  if (e.signal == kSigSegv && e.code == kSegvMapErr) return "SIGSEGV (MAPERR)";
  if (e.signal == kSigSegv && e.code == kSegvAccErr) return "SIGSEGV (ACCERR)";
  if (e.signal == kSigSegv && e.code == kSegvPkuErr) return "SIGSEGV (PKUERR)";
  if (e.signal == kSigBus && e.code == kBusAdrErr) return "SIGBUS (ADRERR)";
  if (e.signal == kSigBus && e.code == kBusAdrAln) return "SIGBUS (ADRALN)";
  return "a signal that does not exist";
}

/// Does the event concern one of the problem's pages, or their files? (Also where the model has no
/// use for it: a fork whose child is not looked at may be what a person looks for.)
bool concerns(const Problem& p, const Event& e) {
  for (unsigned c = 0; c < p.cells; ++c) {
    if (p.cell[c].space != e.space) continue;
    const std::uint64_t page = p.cell[c].page;
    switch (e.kind) {
      case Kind::load:
      case Kind::store:
      case Kind::fault:
      case Kind::refused:
      case Kind::no_memory:
        if (page == e.page()) return true;
        break;
      case Kind::map:
      case Kind::unmap:
      case Kind::protect:
      case Kind::dontneed:
      case Kind::sync:
        if (e.covers(page)) return true;
        break;
      case Kind::fork: return true;
      case Kind::file_write:
      case Kind::quiesce:
      case Kind::leave: break;
    }
  }
  for (unsigned o = 0; o < p.objects && e.file != 0; ++o) {
    if (p.object[o].file != e.file) continue;
    if (e.kind == Kind::sync) return true;
    if (e.kind == Kind::file_write && p.object[o].page == e.file_page) return true;
  }
  return false;
}

/// What a page without the right, or with it, is called.
std::string state_text(const Stuck& stuck, bool write) {
  std::string text;
  const auto add = [&text](bool is, const char* words) {
    if (!is) return;
    if (!text.empty()) text += " or ";
    text += words;
  };
  add(stuck.unmapped, "not mapped");
  add(stuck.no_right, write ? "without the right to write" : "without any right");
  add(stuck.beyond, "beyond the end of its file");
  return text;
}

std::string values_text(const Problem& p, Values set) {
  std::string text;
  for (unsigned i = 0; i < p.values; ++i) {
    if ((set >> i & 1) == 0) continue;
    if (!text.empty()) text += " or ";
    text += text_of_value(p.value[i]);
  }
  return text;
}

/// Who ever stored the value, and where: a hint at whose page this is.
std::string origin_text(const Problem& p, const Event& load) {
  if (load.value == 0) return {};
  for (const Event& e : p.history->events()) {
    if (e.kind != Kind::store || e.value != load.value) continue;
    if (e.address == load.address && e.space == load.space) return {};
    return fmt::format(" {} was stored by cpu {} to {:#x} in space {} at step {}.",
                       text_of_value(e.value), e.cpu, e.address, e.space, e.instant);
  }
  return fmt::format(" Nobody stored {}.", text_of_value(load.value));
}

std::string load_text(const Problem& p, const Stuck& stuck, const Event& e) {
  std::string text =
      fmt::format("cpu {} loaded {} at step {}", e.cpu, text_of_value(e.value), e.instant);
  const std::string state = state_text(stuck, false);
  if (!state.empty()) text += fmt::format("; the page was then {}", state);
  if (stuck.held != 0) {
    text += fmt::format("; word {} {}held {}", e.word(), state.empty() ? "then " : "or ",
                        values_text(p, stuck.held));
  }
  return text + "." + origin_text(p, e);
}

/// What kept a fault's signal from being right.
std::string fault_text(const Event& e) {
  const char* what = "was there a reason for it";
  if (e.signal == kSigSegv && e.code == kSegvMapErr) what = "was the page not mapped";
  if (e.signal == kSigSegv && e.code == kSegvAccErr) what = "did a mapped page forbid it";
  if (e.signal == kSigBus && e.code == kBusAdrErr) what = "did it lie beyond the end of its file";
  return fmt::format("cpu {} got {} for a {}; at no instant of steps {}..{} {}.", e.cpu,
                     signal_text(e), to_string(e.access), e.begin, e.end, what);
}

std::string sentence(const Problem& p, const Stuck& stuck) {
  if (!stuck.set) return "No order was found.";
  const Event& e = (*p.history)[stuck.item.event];
  switch (e.kind) {
    case Kind::load: return load_text(p, stuck, e);
    case Kind::store:
      return fmt::format("cpu {} stored {} at step {}; the page was then {}.", e.cpu,
                         text_of_value(e.value), e.instant, state_text(stuck, true));
    case Kind::fault: return fault_text(e);
    case Kind::map:
      return fmt::format("cpu {}'s map chose {:#x}, where something was mapped all the time.",
                         e.cpu, e.address);
    case Kind::protect:
    case Kind::dontneed:
      return fmt::format("cpu {}'s {} found no hole; the page was not mapped all the time.", e.cpu,
                         name_of(e.kind));
    default: break;
  }
  return fmt::format("cpu {}'s {} could not take effect.", e.cpu, name_of(e.kind));
}

}  // namespace

const char* text_of(Prot prot) {
  static constexpr const char* kTexts[8] = {"---", "r--", "-w-", "rw-", "--x", "r-x", "-wx", "rwx"};
  return kTexts[static_cast<unsigned>(prot) & 7];
}

std::string text_of_value(std::uint64_t value) {
  constexpr std::uint64_t kPoison = 0xcccccccccccccccc;
  if (value == kPoison) return "the poison of a freed frame";
  return value < 1'000'000 ? fmt::format("{}", value) : fmt::format("{:#x}", value);
}

std::string text_of(const Event& e) {
  std::string text;
  if (e.setup()) {
    text = "before the run ";
  } else if (e.instant != 0) {
    text = fmt::format("step {} ", e.instant);
  } else {
    text = fmt::format("step {}..{} ", e.begin, e.end);
  }
  text += fmt::format("cpu {} ", e.cpu);
  if (e.space != 0) text += fmt::format("in space {} ", e.space);
  text += name_of(e.kind);
  switch (e.kind) {
    case Kind::load:
    case Kind::store:
      return text + fmt::format(" {:#x} word {} = {}", e.address & kPageMask, e.word(),
                                text_of_value(e.value));
    case Kind::fault:
      return text +
             fmt::format(" on a {} of {:#x}: {}", to_string(e.access), e.address, signal_text(e));
    case Kind::refused:
    case Kind::no_memory:
      return text + fmt::format(" for a {} of {:#x}", to_string(e.access), e.address);
    case Kind::map:
      text += fmt::format(" {}, {}, {}", pages_text(e), text_of(e.prot),
                          e.shared ? "shared" : "private");
      if (e.file != 0) text += fmt::format(", file {} page {}", e.file, e.file_page);
      if (e.fixed) text += ", fixed";
      break;
    case Kind::protect: text += fmt::format(" {}, {}", pages_text(e), text_of(e.prot)); break;
    case Kind::unmap:
    case Kind::dontneed: text += " " + pages_text(e); break;
    case Kind::fork: text += e.ok ? fmt::format(" to space {}", e.child) : ""; break;
    case Kind::file_write:
      text += fmt::format(" file {} page {} word {} = {}", e.file, e.file_page, e.word(),
                          text_of_value(e.value));
      break;
    case Kind::sync:
      text += e.file != 0 ? fmt::format(" file {}", e.file) : " " + pages_text(e);
      break;
    case Kind::quiesce:
    case Kind::leave: break;
  }
  return text + error_text(e);
}

std::string account(const Problem& p, const Stuck& stuck) {
  std::string text = p.cells == 1 ? "page" : "pages";
  for (unsigned c = 0; c < p.cells; ++c) {
    text += fmt::format("{} {:#x} of space {}", c == 0 ? "" : ",", p.cell[c].page << kPageShift,
                        p.cell[c].space);
  }
  text += ": no order of these events gives every result\n";

  std::vector<const Event*> shown;
  for (const Event& e : p.history->events()) {
    if (concerns(p, e)) shown.push_back(&e);
  }
  const auto before = [](const Event* a, const Event* b) {
    if (a->setup() != b->setup()) return a->setup();
    const std::uint64_t at_a = a->instant != 0 ? a->instant : a->begin;
    const std::uint64_t at_b = b->instant != 0 ? b->instant : b->begin;
    return at_a != at_b ? at_a < at_b : a < b;  // else as they were added
  };
  std::sort(shown.begin(), shown.end(), before);
  for (const Event* e : shown) {
    const bool here = stuck.set && e == &(*p.history)[stuck.item.event];
    text += fmt::format("{} {}", here ? " >" : "  ", text_of(*e));
    // Where a copy of a file's page may be as old as the store that made it.
    if (p.written && e->kind == Kind::store && !e->setup() && e->begin != e->instant) {
      text += fmt::format(" (begun at step {})", e->begin);
    }
    text += "\n";
  }
  return text + sentence(p, stuck);
}

}  // namespace faultpath::check
