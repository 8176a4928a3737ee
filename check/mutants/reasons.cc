#include "check/mutants/reasons.h"

namespace faultpath::check {

const char* awaits_weak_memory(Guard guard) {
  switch (guard) {
    case Guard::fence_retire: return "unlinking stores, then the load of the epoch";
    case Guard::fence_flush_entries: return "changed entries, then the load of who is inside";
    case Guard::fence_flush_requests: return "requests, then the loads of `parked` and `section`";
    case Guard::fence_unpark: return "`parked` cleared, then the load of `posted`";
    case Guard::fence_interrupts_off: return "`section` odd, then the loads of sequence and tables";
    case Guard::fence_nested_access: return "`section` odd, then the load of `posted`";
    case Guard::fence_heavy: return "the heavy half of the asymmetric pair";
    default: return nullptr;
  }
}

const char* why_it_survives(Guard guard) {
  switch (guard) {
    case Guard::file_size_under_page_lock:
      return "a file's size never changes yet: truncation comes later";
    case Guard::page_identity_under_lock:
      return "a page does not leave its file before the file dies: truncation comes later";
    case Guard::table_still_linked:
      return "a table goes only with every VMA that has entries in it, all marked before, so the "
             "sequence has changed; and writeback finds nothing in a table that was emptied";
    case Guard::walk_insert_same_section:
      return "a CPU answers between its sections only, and a nested user neither answers nor "
             "inserts";
    default: return nullptr;
  }
}

}  // namespace faultpath::check
