// lat_sig_prot, after what lmbench's `lat_sig prot` measures: the time of an access that is refused.
#pragma once

#include <string>

#include "lab/stats/rounds.h"
#include "lab/targets/refusals.h"
#include "lab/workloads/workload.h"

namespace faultpath::lab {

/// One operation stores to a page of a shared file mapping that may only be read: refused with
/// SIGSEGV, which a handler counts; then the store is tried again. Blocks of such stores take turns
/// with blocks of the handler alone, whose time is subtracted.
template <MemoryTarget T>
class LatSigProt : public Workload<T> {
 public:
  static constexpr std::uint64_t kBlock = 2048;

  struct Shared {};
  LatSigProt(const Seat<T>& seat, Shared&) : Workload<T>(seat) {}

  bool set_up() {
    Mapping<typename T::File> what;
    what.file = this->seat_.file;
    what.shared = true;
    what.writable = false;
    page_ = this->target().map(this->target().page_size(), what);
    if (page_ == 0) return this->broken("mmap");
    // The page is there from now on: all that an access can lack is the right to write.
    if (!this->expect(page_, 0, "the page", 0)) return false;
    return refusals_.open(this->target(), page_) || this->broken("installing the handlers");
  }

  void run() {
    Meter& m = this->meter();
    while (m.running()) {
      const std::uint64_t n = std::min(kBlock, m.left());
      const bool inside = m.measured() && n == kBlock;
      const std::uint64_t begin = ticks();
      const std::uint64_t refused = refusals_.refuse(n);
      const std::uint64_t half = ticks();
      const std::uint64_t called = refusals_.deliver(n);
      const std::uint64_t almost = ticks();
      refusals_.plain(n);
      const std::uint64_t end = ticks();
      if (refused != n) {
        m.fail("a store to a page that may only be read: %s, not SIGSEGV with SEGV_ACCERR there",
               refusals_.odd().c_str());
        return;
      }
      if (called != n) {
        m.fail("the handler was called %llu times, not %llu",
               static_cast<unsigned long long>(called), static_cast<unsigned long long>(n));
        return;
      }
      m.count(n);
      if (inside && m.measured()) rounds_.add({half - begin, almost - half, end - almost});
    }
    m.report(middle_half(rounds_.kept(), kBlock));
    std::string why;
    if (!m.failed() && !refusals_.settled(why)) m.fail("%s", why.c_str());
  }

  /// The page is as it was, and so is the file.
  void check() {
    if (page_ == 0 || this->meter().failed()) return;
    T& t = this->target();
    if (this->seat_.plant == Plant::memory) {
      t.protect(page_, t.page_size(), true);
      this->plant_at(page_);
      t.protect(page_, t.page_size(), false);
    }
    this->plant_in_file();
    for (Addr a = page_; a < page_ + t.page_size(); ++a) {
      if (!this->expect(a, 0, "the page", 0)) return;
    }
    if (this->deep()) this->expect_file([](std::uint64_t) { return 0; }, 64 * 1024);
  }

 private:
  Addr page_ = 0;
  Refusals<T> refusals_;
  Rounds rounds_;
};

}  // namespace faultpath::lab
