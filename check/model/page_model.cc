#include "check/model/page_model.h"

#include <fmt/format.h>

#include "check/model/page_account.h"
#include "check/model/page_problem.h"
#include "check/model/page_search.h"

namespace faultpath::check {

namespace {

// Tens of kilobytes, used again for every run: not worth the stack's.
struct Workplace {
  Pages pages;
  Problem problem;
  Search search;
};

bool too_large(std::string* why, const char* what) {
  if (why != nullptr) *why = fmt::format("the model has no room for so many {}", what);
  return false;
}

}  // namespace

bool explain(const State& at_start, const History& history, std::string* why) {
  static Workplace work;
  if (!work.pages.find(at_start, history)) return too_large(why, work.pages.too_large());
  for (unsigned group = 0; group < work.pages.groups(); ++group) {
    work.pages.pose(group, work.problem);
    if (work.problem.too_large != nullptr) return too_large(why, work.problem.too_large);
    if (work.search.solve(work.problem)) continue;
    if (work.search.too_large() != nullptr) return too_large(why, work.search.too_large());
    if (why != nullptr) *why = account(work.problem, work.search.stuck());
    return false;
  }
  return true;
}

}  // namespace faultpath::check
