// Which pages a history is judged by, and which of them belong together.
#include <algorithm>

#include "check/model/page_problem.h"

namespace faultpath::check {

std::uint8_t Pages::node_of(std::uint8_t space, std::uint64_t page) const {
  const std::uint8_t family = family_[space];
  for (unsigned i = 0; i < nodes_; ++i) {
    if (node_[i].page == page && node_[i].family == family) return static_cast<std::uint8_t>(i);
  }
  return kNone;
}

bool Pages::in_group(unsigned group, std::uint8_t space, std::uint64_t page) const {
  const std::uint8_t n = node_of(space, page);
  return n != kNone && node_[n].group == group;
}

void Pages::join(std::uint8_t a, std::uint8_t b) {
  // A group's number is that of its first page.
  const std::uint8_t to = std::min(node_[a].group, node_[b].group);
  const std::uint8_t from = std::max(node_[a].group, node_[b].group);
  if (to == from) return;
  for (unsigned i = 0; i < nodes_; ++i) {
    if (node_[i].group == from) node_[i].group = to;
  }
}

// Two pages that name one page of a file belong together if the file can change: by write_at, or
// through a shared mapping. (A shared anonymous object is mapped at one place of a family.)
void Pages::join_by_objects() {
  bool changes[State::kFiles + 1] = {};
  bool any = false;
  for (const Event& e : history_->events()) {
    if (e.file == 0) continue;
    if (e.kind == Kind::file_write || (e.kind == Kind::map && e.shared)) {
      any = changes[e.file] = true;
    }
  }
  if (!any) return;
  struct Named {
    std::uint8_t file;
    std::uint8_t node;
    std::uint64_t page;
  };
  constexpr unsigned kMostNamed = 128;
  Named named[kMostNamed];
  unsigned count = 0;
  for (const Event& e : history_->events()) {
    if (e.kind != Kind::map || !e.ok || e.file == 0 || !changes[e.file]) continue;
    for (unsigned n = 0; n < nodes_; ++n) {
      if (node_[n].family != family_[e.space] || !e.covers(node_[n].page)) continue;
      const std::uint64_t page = e.file_page + (node_[n].page - e.page());
      for (unsigned i = 0; i < count; ++i) {
        if (named[i].file == e.file && named[i].page == page) {
          join(named[i].node, static_cast<std::uint8_t>(n));
        }
      }
      if (count == kMostNamed) {
        too_large_ = "mappings of files";
        return;
      }
      named[count++] = {e.file, static_cast<std::uint8_t>(n), page};
    }
  }
}

bool Pages::find(const State& start, const History& history) {
  start_ = &start;
  history_ = &history;
  too_large_ = history.overflowed() ? "events of a run" : nullptr;
  nodes_ = 0;
  for (unsigned i = 0; i < kMostSpaces; ++i) family_[i] = static_cast<std::uint8_t>(i);
  for (const Event& e : history.events()) {
    if (e.space >= kMostSpaces || e.child >= kMostSpaces) {
      too_large_ = "spaces";
    } else if (e.cpu >= kMostCpus) {
      too_large_ = "CPUs";
    } else if (e.file > State::kFiles) {
      too_large_ = "files";
    } else if (e.kind == Kind::fork && e.ok) {
      family_[e.child] = family_[e.space];
    }
  }
  if (too_large_ != nullptr) return false;
  for (const Event& e : history.events()) {
    if (!is_access(e.kind) || node_of(e.space, e.page()) != kNone) continue;
    if (nodes_ == kMostNodes) {
      too_large_ = "pages that are accessed";
      return false;
    }
    node_[nodes_] = {family_[e.space], static_cast<std::uint8_t>(nodes_), e.page()};
    ++nodes_;
  }
  if (nodes_ > 1) join_by_objects();
  // Numbers without gaps, in the order of the groups' first pages.
  groups_ = 0;
  for (unsigned i = 0; i < nodes_; ++i) {
    if (node_[i].group != i) continue;
    for (unsigned j = i; j < nodes_; ++j) {
      if (node_[j].group == i) node_[j].group = static_cast<std::uint8_t>(groups_);
    }
    ++groups_;
  }
  return too_large_ == nullptr;
}

}  // namespace faultpath::check
