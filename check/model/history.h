// What happened in one run: every call and access of the virtual CPUs, as their scripts saw them.
#pragma once

#include <faultpath/errno.h>
#include <faultpath/outcome.h>
#include <faultpath/types.h>

#include <cstdint>
#include <span>

namespace faultpath::check {

enum class Kind : std::uint8_t {
  load,        ///< one aligned word of eight bytes was read, at `instant`
  store,       ///< one was written, at `instant`
  fault,       ///< an access that ended in a signal
  refused,     ///< an access that the engine would not serve; nothing to check
  no_memory,   ///< an access that ended in OutOfMemory
  map,         ///< `address` is the result if ok
  unmap,       ///< also a space that was destroyed: one unmap of everything
  protect,     ///< not ok: pages before the one that failed may have changed
  dontneed,    ///< not ok with ENOMEM: a hole was skipped, the rest happened
  fork,        ///< `child` is the new space
  sync,        ///< of a file or by msync: pages keep their contents
  file_write,  ///< write_at of one word: `file`, `file_page`, and `address` the byte in that page
  quiesce,
  leave,  ///< the CPU left its space
};

constexpr const char* name_of(Kind k) {
  switch (k) {
    case Kind::load: return "load";
    case Kind::store: return "store";
    case Kind::fault: return "fault";
    case Kind::refused: return "refused";
    case Kind::no_memory: return "no memory";
    case Kind::map: return "map";
    case Kind::unmap: return "unmap";
    case Kind::protect: return "protect";
    case Kind::dontneed: return "dontneed";
    case Kind::fork: return "fork";
    case Kind::sync: return "sync";
    case Kind::file_write: return "write_at";
    case Kind::quiesce: return "quiesce";
    case Kind::leave: return "leave";
  }
  return "?";
}

/// One call or access. A call may take effect at any instant in [begin, end]; an access that
/// succeeded has its instant. Steps count from 0 at the beginning of the run; what was done before
/// it has begin = end = 0 and took effect in the order in which it was added.
struct Event {
  Kind kind = Kind::refused;
  std::uint8_t cpu = 0;
  std::uint8_t space = 0;
  std::uint8_t child = 0;
  bool ok = true;
  bool fixed = false;     ///< map: over whatever was there. Else the range was free
  bool shared = false;    ///< map: stores reach the object. (A shared mapping of a file opened for
                          ///< reading only behaves as a private one: say so.)
  std::uint8_t file = 0;  ///< number of the file, 0: none
  std::uint8_t signal = 0;
  std::uint8_t code = 0;
  Access access = Access::read;
  Prot prot = Prot::none;
  Errno error{};
  Addr address = 0;
  std::uint64_t length = 0;     ///< in bytes, as given to the call
  std::uint64_t file_page = 0;  ///< map: the file's page at `address`
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t instant = 0;  ///< load, store; file_write if it is known, else 0
  std::uint64_t value = 0;

  bool setup() const { return end == 0 && instant == 0; }
  std::uint64_t page() const { return address >> kPageShift; }
  unsigned word() const { return static_cast<unsigned>((address & ~kPageMask) >> 3); }
  /// The page lies in the range of the call.
  bool covers(std::uint64_t p) const {
    return p >= page() && p - page() < page_ceil(length) >> kPageShift;
  }
};

/// The events of one run, in any order but for those of the set-up. Allocates nothing.
class History {
 public:
  static constexpr unsigned kMost = 256;

  void reset() {
    count_ = 0;
    overflowed_ = false;
  }
  void add(const Event& e) {
    if (count_ == kMost) {
      overflowed_ = true;
    } else {
      events_[count_++] = e;
    }
  }
  /// Forgets all but the first `count`: the set-up of a scene stays from run to run.
  void keep(unsigned count) {
    if (count < count_) count_ = count;
    overflowed_ = false;
  }
  unsigned size() const { return count_; }
  const Event& operator[](unsigned i) const { return events_[i]; }
  std::span<const Event> events() const { return {events_, count_}; }
  /// Something was not recorded for want of room.
  bool overflowed() const { return overflowed_; }

 private:
  unsigned count_ = 0;
  bool overflowed_ = false;
  Event events_[kMost];
};

}  // namespace faultpath::check
