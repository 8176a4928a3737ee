// Guards: the checks that each answer a known race, by name.
//
// Engine code writes `if (env::guard<Guard::recheck_under_table_lock>() && changed) ...`. Natively
// that folds to the check. The simulated world can switch one off and must then find the bug that
// it answers. docs/SCENARIOS.md says which scenario each one belongs to.
#pragma once

namespace faultpath {

enum class Guard {
  recheck_under_table_lock,   ///< the VMA sequence is compared again with the table lock held
  recheck_before_table_lock,  ///< ... and before, so that a dead table is not touched
  table_still_linked,         ///< the dead flag is read under the table's lock
  pte_still_as_expected,      ///< the entry is compared under the table lock
  file_size_under_page_lock,  ///< the size is read again with the page locked (B20)
  page_identity_under_lock,   ///< ... and the page still belongs to that file and index
  access_recheck_sequence,    ///< a forbidden access is final only if the VMA did not change (D9)
  spf_access_code,            ///< a speculative SIGSEGV carries ACCERR (B35)
  trylock_bounded,            ///< the interrupts-off trylock loop ends (B38)
  fork_marks_parent,          ///< fork keeps parents marked until the flush is answered (B26)
  zap_does_not_mark,          ///< DONTNEED under the shared lock leaves the sequence alone (B31)
  flush_before_release,       ///< frames are released after the flush was answered (I6)
  flush_owed_by_others,       ///< a zap that found nothing still waits for another's flush (B48)
  cow_clear_flush_set,        ///< an entry is replaced by clear, flush, set (B64)
  copy_holds_reference,       ///< a fault that copies keeps a reference to the source (B56, B59)
  born_marked,                ///< a new VMA is marked until its operation ends (B02, B28)
  unlinked_stays_marked,      ///< a VMA that left the tree is never even again (I1)
  retire_through_epochs,      ///< tables, nodes and VMAs wait for a grace period (B04, B29, B37)
  walk_insert_same_section,   ///< a TLB insert is dropped if a flush was answered since the walk
  dirty_after_flush,          ///< a zapped dirty page is marked dirty after the flush (B66)
  init_before_publish,        ///< a page is filled before its entry is set (B63)
};

}  // namespace faultpath
