// What a workload may do to memory, whoever serves it. Workloads are templates over a target, so
// that the loop that is measured is inlined for each.
#pragma once

#include <faultpath/config.h>

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "lab/run/control.h"

namespace faultpath::lab {

/// What to map; reading is always allowed.
template <class File>
struct Mapping {
  const File* file = nullptr;  ///< null: anonymous memory
  bool shared = false;
  bool writable = true;
};

/// One task's view of memory; used by the thread that entered it. A call that fails returns 0,
/// false or a negative number, and `why` then tells the reason.
template <class T>
concept MemoryTarget = requires(T t, const T c, typename T::File file, Addr a, std::uint64_t n,
                                const void* from, void* to, char* text, std::size_t room) {
  { file.fd } -> std::convertible_to<int>;
  t.enter();
  t.leave();
  { c.page_size() } -> std::convertible_to<std::uint64_t>;
  { t.map(n, Mapping<typename T::File>{}) } -> std::same_as<Addr>;
  { t.unmap(a, n) } -> std::same_as<bool>;
  { t.protect(a, n, true) } -> std::same_as<bool>;
  { t.dontneed(a, n) } -> std::same_as<bool>;
  { t.brk(a) } -> std::same_as<Addr>;
  { t.write(a, std::uint8_t{}) } -> std::same_as<bool>;
  { t.read(a) } -> std::same_as<int>;
  { t.write_word(a, std::uint64_t{}) } -> std::same_as<bool>;
  { t.read_word(a, n) } -> std::same_as<bool>;
  { t.copy(a, a, n) } -> std::same_as<bool>;
  { t.copy_out(a, from, n) } -> std::same_as<bool>;
  { t.sync(file) } -> std::same_as<bool>;
  { t.open(file) } -> std::same_as<bool>;
  { t.read_at(n, a, n) } -> std::same_as<std::int64_t>;
  { c.calls() } -> std::convertible_to<CallCounts>;
  { c.faults() } -> std::convertible_to<std::uint64_t>;
  c.why(text, room);
};

}  // namespace faultpath::lab
