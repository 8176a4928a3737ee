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
  clean_after_flush,          ///< a page is called clean only after a flush that a zap owes (B66)
  init_before_publish,        ///< a page is filled before its entry is set (B63)
  parts_stay_listed,          ///< a part cut off a file's VMA stays listed to the flush (I8, B50)

  // Per-VMA locks (vma/vma_lock.h).
  vma_lock_drains_readers,       ///< a writer waits for the faults that hold the VMA (B01)
  vma_lock_same_space,           ///< a locked VMA is the caller's space's (B14)
  vma_lock_recheck,              ///< ... and no writer has it (B14)
  vma_lock_bounds,               ///< ... and it covers the address (B14)
  vma_lock_detach_drains,        ///< a VMA that left the tree waits for late readers (B11, B14)
  vma_lock_lookup_afresh,        ///< a lookup that is repeated begins at the root (B12)
  vma_lock_wake_in_section,      ///< who steps back from another space's VMA keeps that space (B11)
  vma_fields_after_lock,         ///< a VMA's fields are read after it has been locked (B05)
  anon_prepare_under_mmap_lock,  ///< a first fault reads neighbours under the mmap lock (B18)
  bad_access_under_lock,  ///< rights and key that forbid an access are read under the VMA lock (B17)
  bad_access_code,        ///< ... and the signal says which of them did (B17)

  // The stand-alone fences (docs/LOCKING.md says what each orders).
  fence_retire,          ///< what unlinks is visible before the epoch is read
  fence_flush_entries,   ///< changed entries are visible before who is inside is read
  fence_flush_requests,  ///< posted requests are visible before `parked` and sections are read
  fence_unpark,          ///< `parked` is visibly clear before `posted` is read
  fence_interrupts_off,  ///< the section is visibly odd before sequence and tables are read
  fence_nested_access,   ///< a handler's section is visibly odd before `posted` is read
  fence_heavy,           ///< the heavy half of the pair, in flushes and in epoch advances
};

inline constexpr Guard kAllGuards[] = {
    Guard::recheck_under_table_lock,
    Guard::recheck_before_table_lock,
    Guard::table_still_linked,
    Guard::pte_still_as_expected,
    Guard::file_size_under_page_lock,
    Guard::page_identity_under_lock,
    Guard::access_recheck_sequence,
    Guard::spf_access_code,
    Guard::trylock_bounded,
    Guard::fork_marks_parent,
    Guard::zap_does_not_mark,
    Guard::flush_before_release,
    Guard::flush_owed_by_others,
    Guard::cow_clear_flush_set,
    Guard::copy_holds_reference,
    Guard::born_marked,
    Guard::unlinked_stays_marked,
    Guard::retire_through_epochs,
    Guard::walk_insert_same_section,
    Guard::clean_after_flush,
    Guard::init_before_publish,
    Guard::parts_stay_listed,
    Guard::vma_lock_drains_readers,
    Guard::vma_lock_same_space,
    Guard::vma_lock_recheck,
    Guard::vma_lock_bounds,
    Guard::vma_lock_detach_drains,
    Guard::vma_lock_lookup_afresh,
    Guard::vma_lock_wake_in_section,
    Guard::vma_fields_after_lock,
    Guard::anon_prepare_under_mmap_lock,
    Guard::bad_access_under_lock,
    Guard::bad_access_code,
    Guard::fence_retire,
    Guard::fence_flush_entries,
    Guard::fence_flush_requests,
    Guard::fence_unpark,
    Guard::fence_interrupts_off,
    Guard::fence_nested_access,
    Guard::fence_heavy,
};
inline constexpr unsigned kGuardCount = sizeof(kAllGuards) / sizeof(kAllGuards[0]);

constexpr const char* name_of(Guard g) {
  switch (g) {
    case Guard::recheck_under_table_lock: return "recheck_under_table_lock";
    case Guard::recheck_before_table_lock: return "recheck_before_table_lock";
    case Guard::table_still_linked: return "table_still_linked";
    case Guard::pte_still_as_expected: return "pte_still_as_expected";
    case Guard::file_size_under_page_lock: return "file_size_under_page_lock";
    case Guard::page_identity_under_lock: return "page_identity_under_lock";
    case Guard::access_recheck_sequence: return "access_recheck_sequence";
    case Guard::spf_access_code: return "spf_access_code";
    case Guard::trylock_bounded: return "trylock_bounded";
    case Guard::fork_marks_parent: return "fork_marks_parent";
    case Guard::zap_does_not_mark: return "zap_does_not_mark";
    case Guard::flush_before_release: return "flush_before_release";
    case Guard::flush_owed_by_others: return "flush_owed_by_others";
    case Guard::cow_clear_flush_set: return "cow_clear_flush_set";
    case Guard::copy_holds_reference: return "copy_holds_reference";
    case Guard::born_marked: return "born_marked";
    case Guard::unlinked_stays_marked: return "unlinked_stays_marked";
    case Guard::retire_through_epochs: return "retire_through_epochs";
    case Guard::walk_insert_same_section: return "walk_insert_same_section";
    case Guard::clean_after_flush: return "clean_after_flush";
    case Guard::init_before_publish: return "init_before_publish";
    case Guard::parts_stay_listed: return "parts_stay_listed";
    case Guard::vma_lock_drains_readers: return "vma_lock_drains_readers";
    case Guard::vma_lock_same_space: return "vma_lock_same_space";
    case Guard::vma_lock_recheck: return "vma_lock_recheck";
    case Guard::vma_lock_bounds: return "vma_lock_bounds";
    case Guard::vma_lock_detach_drains: return "vma_lock_detach_drains";
    case Guard::vma_lock_lookup_afresh: return "vma_lock_lookup_afresh";
    case Guard::vma_lock_wake_in_section: return "vma_lock_wake_in_section";
    case Guard::vma_fields_after_lock: return "vma_fields_after_lock";
    case Guard::anon_prepare_under_mmap_lock: return "anon_prepare_under_mmap_lock";
    case Guard::bad_access_under_lock: return "bad_access_under_lock";
    case Guard::bad_access_code: return "bad_access_code";
    case Guard::fence_retire: return "fence_retire";
    case Guard::fence_flush_entries: return "fence_flush_entries";
    case Guard::fence_flush_requests: return "fence_flush_requests";
    case Guard::fence_unpark: return "fence_unpark";
    case Guard::fence_interrupts_off: return "fence_interrupts_off";
    case Guard::fence_nested_access: return "fence_nested_access";
    case Guard::fence_heavy: return "fence_heavy";
  }
  return "?";
}

// Every guard is listed, at its own value (a guard is a bit of a mask in the simulated world).
static_assert([] {
  for (unsigned i = 0; i < kGuardCount; ++i) {
    if (static_cast<unsigned>(kAllGuards[i]) != i) return false;
  }
  return name_of(static_cast<Guard>(kGuardCount))[0] == '?';
}());
static_assert(kGuardCount <= 64);

}  // namespace faultpath
