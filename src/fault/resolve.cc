// PTE level: what must the entry become, and making it so.
#include "base/assert.h"
#include "cache/file_object.h"
#include "fault/anon_prepare.h"
#include "fault/entry_lock.h"
#include "fault/fault.h"

namespace faultpath::fault {

using cache::PageStatus;
using memory::FrameKind;
using memory::kNoPfn;

namespace {

/// A frame of the fault's own until it is in an entry: freed if that does not come about.
class NewFrame {
 public:
  NewFrame(Fault& f, FrameKind kind)
      : f_(f), pfn_(f.mm.core->allocate_frame(f.cpu, kind, !f.speculative())) {}
  ~NewFrame() {
    if (pfn_ != kNoPfn) f_.mm.core->free_frame(f_.cpu, pfn_);
  }
  NewFrame(const NewFrame&) = delete;
  NewFrame& operator=(const NewFrame&) = delete;

  explicit operator bool() const { return pfn_ != kNoPfn; }
  Pfn pfn() const { return pfn_; }
  std::byte* payload() const { return f_.mm.core->payload(pfn_); }
  /// The entry owns it from now on.
  void give_away() { pfn_ = kNoPfn; }

 private:
  Fault& f_;
  Pfn pfn_;
};

/// A reference, dropped at the end.
class FrameRef {
 public:
  FrameRef(Fault& f, Pfn pfn) : f_(f), pfn_(pfn) {}
  ~FrameRef() {
    if (pfn_ != kNoPfn) f_.mm.core->put_frame(f_.cpu, pfn_);
  }
  FrameRef(const FrameRef&) = delete;
  FrameRef& operator=(const FrameRef&) = delete;
  void give_away() { pfn_ = kNoPfn; }

 private:
  Fault& f_;
  Pfn pfn_;
};

/// A page's lock; not held where it would have to be waited for and may not be.
class PageLock {
 public:
  PageLock(Frame& page, bool may_wait) FP_NO_THREAD_SAFETY_ANALYSIS : page_(page) {
    if (may_wait) page.page_lock.lock();
    held_ = may_wait || page.page_lock.try_lock();
  }
  ~PageLock() FP_NO_THREAD_SAFETY_ANALYSIS {
    if (held_) page_.page_lock.unlock();
  }
  PageLock(const PageLock&) = delete;
  PageLock& operator=(const PageLock&) = delete;
  explicit operator bool() const { return held_; }

 private:
  Frame& page_;
  bool held_;
};

/// The file's page under the fault, up to date, locked and referenced to the end of the scope, unless
/// its reference goes into the entry.
class FilePage {
 public:
  explicit FilePage(Fault& f)
      : f_(f),
        status_(f.vma.file->get_page_locked(f.cpu, f.vma.page_index(f.page), f.may_wait(), &pfn_,
                                            &f.major)) {}
  ~FilePage() {
    if (status_ != PageStatus::ok) return;
    f_.vma.file->unlock_page(pfn_);
    if (!given_) f_.mm.core->put_frame(f_.cpu, pfn_);
  }
  FilePage(const FilePage&) = delete;
  FilePage& operator=(const FilePage&) = delete;

  PageStatus status() const { return status_; }
  Pfn pfn() const { return pfn_; }
  void give_away() { given_ = true; }

 private:
  Fault& f_;
  Pfn pfn_ = kNoPfn;
  PageStatus status_;
  bool given_ = false;
};

Resolved out_of_memory(Fault& f) {
  if (!f.speculative()) return Resolved::out_of_memory;
  // A speculative fault may not wait for memory; the classic path may.
  f.passed_on = Counter::spf_no_memory;
  return Resolved::pass_on;
}

Resolved not_held(EntryLock::Result r) {
  return r == EntryLock::Result::pass_on ? Resolved::pass_on : Resolved::done;
}

Resolved from_status(PageStatus status) {
  switch (status) {
    case PageStatus::would_wait: return Resolved::pass_on;
    case PageStatus::beyond_end: return Resolved::beyond_end;
    case PageStatus::io_error: return Resolved::io_error;
    case PageStatus::no_memory: return Resolved::out_of_memory;
    case PageStatus::ok: break;
  }
  return Resolved::done;
}

// Private anonymous memory, nothing there yet.
Resolved do_anonymous_page(Fault& f) {
  if (!f.write()) {
    EntryLock lock(f);
    if (const auto r = lock.lock(); r != EntryLock::Result::held) return not_held(r);
    lock.fill(Pte::leaf(f.mm.core->zero_pfn(), f.rights(), false, false, true));
    f.cpu.count(Counter::zero_page_maps);
    return Resolved::done;
  }
  if (!prepare_anon(f)) return Resolved::pass_on;
  NewFrame page(f, FrameKind::anon);
  if (!page) return out_of_memory(f);
  if (env::guard<Guard::init_before_publish>()) env::payload_zero(page.payload());  // I14, B63
  EntryLock lock(f);
  if (const auto r = lock.lock(); r != EntryLock::Result::held) return not_held(r);
  lock.fill(Pte::leaf(page.pfn(), f.rights(), true, true, false));
  if (!env::guard<Guard::init_before_publish>()) env::payload_zero(page.payload());
  page.give_away();
  return Resolved::done;
}

// A file's page, mapped without the right to write: also of a shared mapping, so that the first
// store faults and marks the page dirty.
Resolved do_read_fault(Fault& f) {
  FilePage page(f);
  if (page.status() != PageStatus::ok) return from_status(page.status());
  EntryLock lock(f);
  if (const auto r = lock.lock(); r != EntryLock::Result::held) return not_held(r);
  lock.fill(Pte::leaf(page.pfn(), f.rights(), false, false, false));
  page.give_away();
  return Resolved::done;
}

// A store to a private file mapping: a copy of the file's page.
Resolved do_cow_fault(Fault& f) {
  if (!prepare_anon(f)) return Resolved::pass_on;
  NewFrame copy(f, FrameKind::anon);
  if (!copy) return Resolved::out_of_memory;
  FilePage page(f);
  if (page.status() != PageStatus::ok) return from_status(page.status());
  env::payload_copy(copy.payload(), f.mm.core->payload(page.pfn()));
  f.cpu.count(Counter::cow_copies);
  EntryLock lock(f);
  if (const auto r = lock.lock(); r != EntryLock::Result::held) return not_held(r);
  lock.fill(Pte::leaf(copy.pfn(), f.rights(), true, true, false));
  copy.give_away();
  return Resolved::done;
}

// A store to a shared file mapping, nothing mapped yet: the page becomes dirty before its entry can
// be written through (page_mkwrite's place).
Resolved do_shared_fault(Fault& f) {
  FilePage page(f);
  if (page.status() != PageStatus::ok) return from_status(page.status());
  cache::FileObject::mark_dirty(f.mm.core->frame(page.pfn()));
  EntryLock lock(f);
  if (const auto r = lock.lock(); r != EntryLock::Result::held) return not_held(r);
  lock.fill(Pte::leaf(page.pfn(), f.rights(), true, true, false));
  page.give_away();
  return Resolved::done;
}

// A store to a page of a shared file mapping that is there, read-only.
Resolved make_shared_writable(Fault& f) {
  const Pfn pfn = f.seen.pfn();
  Frame& page = f.mm.core->frame(pfn);
  {
    EntryLock lock(f);
    if (const auto r = lock.lock(); r != EntryLock::Result::held) return not_held(r);
    page.refs.fetch_add(1, env::relaxed);
  }
  FrameRef ref(f, pfn);
  const PageLock locked(page, f.may_wait());
  if (!locked) return Resolved::pass_on;
  const std::uint64_t index = f.vma.page_index(f.page);
  if (env::guard<Guard::page_identity_under_lock>() &&
      (page.owner.load(env::acquire) != f.vma.file || page.index.load(env::acquire) != index)) {
    return Resolved::done;  // the page left the file: look again
  }
  if (env::guard<Guard::file_size_under_page_lock>() && index >= f.vma.file->pages()) {
    return Resolved::beyond_end;
  }
  cache::FileObject::mark_dirty(page);
  EntryLock lock(f);
  if (const auto r = lock.lock(); r != EntryLock::Result::held) return not_held(r);
  // More rights need no flush: a Cpu with the old translation faults and finds this.
  pagetable::exchange_entry(lock.entry(), f.seen.with(Pte::kWrite | Pte::kDirty | Pte::kAccessed));
  return Resolved::done;
}

// A store to a page of a private mapping that is there, read-only: the page itself if it is ours
// alone, else a copy.
Resolved do_wp_page(Fault& f) {
  if (!prepare_anon(f)) return Resolved::pass_on;
  const Pfn old = f.seen.pfn();
  const bool zero = f.seen.special();
  Frame& old_page = f.mm.core->frame(old);
  {
    EntryLock lock(f);
    if (const auto r = lock.lock(); r != EntryLock::Result::held) return not_held(r);
    // Ours alone: this entry's reference is the only one, and nobody can take another from it
    // without this table lock. (Acquire: what the former sharers stored is visible.)
    if (!zero && old_page.kind.load(env::relaxed) == FrameKind::anon &&
        old_page.refs.load(env::acquire) == 1) {
      pagetable::exchange_entry(lock.entry(),
                                f.seen.with(Pte::kWrite | Pte::kDirty | Pte::kAccessed));
      f.cpu.count(Counter::cow_reuses);
      return Resolved::done;
    }
    // Held to the install: else the page could be freed and come back in this very entry with other
    // content while we copy, and the comparison would not notice (B56, B59).
    if (!zero && env::guard<Guard::copy_holds_reference>()) {
      old_page.refs.fetch_add(1, env::relaxed);
    }
  }
  FrameRef ref(f, !zero && env::guard<Guard::copy_holds_reference>() ? old : kNoPfn);
  NewFrame copy(f, FrameKind::anon);
  if (!copy) return out_of_memory(f);
  if (zero) {
    env::payload_zero(copy.payload());
  } else {
    env::payload_copy(copy.payload(), f.mm.core->payload(old));
    f.cpu.count(Counter::cow_copies);
  }
  {
    EntryLock lock(f);
    if (const auto r = lock.lock(); r != EntryLock::Result::held) return not_held(r);
    const Pte fresh = Pte::leaf(copy.pfn(), f.rights(), true, true, false);
    if (env::guard<Guard::cow_clear_flush_set>()) {
      // Clear, flush, set: never are the old page and the new one both in use (B64). A walker that
      // comes meanwhile faults, and waits for the table lock.
      pagetable::exchange_entry(lock.entry(), Pte());
      pagetable::flush_range(*f.mm.core, f.cpu, f.mm.cpus, f.page, f.page + kPageSize);
      lock.entry().store(fresh.word(), env::release);
    } else {
      pagetable::exchange_entry(lock.entry(), fresh);
      pagetable::flush_range(*f.mm.core, f.cpu, f.mm.cpus, f.page, f.page + kPageSize);
    }
    copy.give_away();
  }
  if (!zero) f.mm.core->put_frame(f.cpu, old);  // the entry's own reference
  return Resolved::done;
}

}  // namespace

Resolved resolve(Fault& f) {
  if (f.seen.none()) {
    if (f.vma.file == nullptr) return do_anonymous_page(f);
    FP_ASSERT(!f.speculative());
    if (!f.write()) return do_read_fault(f);
    return f.vma.shared() ? do_shared_fault(f) : do_cow_fault(f);
  }
  if (f.seen.present() && f.write() && !f.seen.writable()) {
    return f.vma.shared() ? make_shared_writable(f) : do_wp_page(f);
  }
  // The entry allows the access: another fault was first, or the translation was only stale. (An
  // entry hidden by PROT_NONE under a VMA with rights does not occur: protect changes both before
  // it lets anybody in.)
  FP_ASSERT(f.seen.present() || f.speculative());
  if (!f.seen.present()) {
    f.passed_on = Counter::spf_vma_changed;
    return Resolved::pass_on;
  }
  return Resolved::done;
}

Resolved link_and_resolve(Fault& f) {
  f.leaf = f.mm.tables.ensure_leaf(f.cpu, f.page);
  if (!f.leaf) return Resolved::out_of_memory;
  f.seen = Pte(f.leaf.at(f.page, 0).load(env::acquire));
  return resolve(f);
}

}  // namespace faultpath::fault
