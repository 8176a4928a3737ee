#include "check/scene/by_hand.h"

namespace faultpath::check {

namespace {

// `text` names a function or a file; before an `@`, the kind of operation.
bool names(const sim::Op& op, std::string_view text) {
  const std::size_t at = text.find('@');
  if (at != text.npos) {
    if (text.substr(0, at) != sim::name_of(op.kind)) return false;
    text.remove_prefix(at + 1);
  }
  return std::string_view(op.site.function_name()).find(text) != std::string_view::npos ||
         std::string_view(op.site.file_name()).find(text) != std::string_view::npos;
}

}  // namespace

// A cue's place is met when the CPU comes to it from elsewhere: several operations in a row in one
// function are one meeting.
sim::Choice ByHand::choose(const sim::Question& q) {
  while (at_ != cues_.size()) {
    const Cue& cue = cues_[at_];
    if ((q.enabled >> cue.cpu & 1) == 0) {
      missed_ = missed_ || !cue.until.empty();
    } else if (cue.until.empty()) {
      return {static_cast<std::uint8_t>(cue.cpu), false};
    } else {
      const bool here = names(q.pending[cue.cpu], cue.until);
      if (here && !standing_) ++seen_;
      standing_ = here;
      if (seen_ < cue.nth) return {static_cast<std::uint8_t>(cue.cpu), false};
    }
    ++at_;
    seen_ = 0;
    standing_ = false;
  }
  return {static_cast<std::uint8_t>(default_cpu(q)), false};
}

}  // namespace faultpath::check
