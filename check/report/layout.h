// Where private members lie that a report names. Kept by hand, in the order of the headers; the sums
// below and tests/sim/report_test.cc notice when a header has changed.
#pragma once

#include <cstdint>
#include <cstring>

#include "cache/file_object.h"
#include "check/report/meaning.h"
#include "check/scene/memory_store.h"
#include "memory/machine_core.h"
#include "vma/mm.h"

namespace faultpath::check::layout {

/// What `offset` bytes into an object says.
template <class T>
T read(const void* object, std::size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(object) + offset, sizeof value);
  return value;
}

struct Member {
  std::uint32_t offset;
  std::uint32_t bytes;
  const char* name;
  Meaning meaning = Meaning::number;
};

// sync/
inline constexpr std::size_t kRwLockQueue = 64;  ///< everything before it: the word
inline constexpr Member kSpinRwLock[] = {{0, 4, "word"}, {4, 4, "next_ticket"}, {8, 4, "served"}};
static_assert(sizeof(sync::SpinRwLock) == 12);
static_assert(sizeof(sync::RwLock) == 128);
static_assert(sizeof(sync::SeqCount) == 8);
static_assert(sizeof(sync::SleepLock) == 4);

// vma/
inline constexpr std::size_t kTreeRoot = 0;
static_assert(sizeof(vma::Tree) == 16);

/// Counted from the end of Vma::rmap_prev.
inline constexpr Member kVmaPrivate[] = {
    {0, 8, "start", Meaning::bits},
    {8, 8, "end", Meaning::bits},
    {16, 8, "pgoff", Meaning::bits},
    {24, 4, "flags", Meaning::vma_flags},
    {28, 4, "ever_faulted"},
    {32, 8, "file", Meaning::pointer},
    {40, 8, "anon_root", Meaning::pointer},
    {48, 1, "chain_singular"},
};
static_assert(sizeof(vma::Vma) == 320);

// pagetable/
inline constexpr std::size_t kPageTableRoot = 8;
inline constexpr Member kPageTable[] = {{8, 4, "root"}, {16, 8, "count"}};
static_assert(sizeof(pagetable::PageTable) == 24);

// cache/
/// Counted from the core pointer behind FileObject::rmap_lock.
inline constexpr std::size_t kFileIndexRoot = 32;
inline constexpr Member kFilePrivate[] = {
    {8, 4, "refs"},
    {24, 8, "size"},
    {kFileIndexRoot, 8, "index"},
    {40, 4, "index_lock", Meaning::lock},
    {48, 8, "mappings", Meaning::pointer},
};
static_assert(sizeof(cache::FileObject) == 80);

// memory/
inline constexpr Member kSlab[] = {
    {0, 4, "lock", Meaning::lock}, {4, 4, "partial"}, {8, 4, "pages"}};
inline constexpr Member kBuddy[] = {{0, 4, "lock", Meaning::lock}, {48, 8, "free"}};
inline constexpr Member kEpochs[] = {{0, 4, "advance_lock", Meaning::lock}, {64, 8, "now"}};

/// Bytes from one object of a slab page to the next.
inline std::uint32_t slab_bytes(memory::SlabKind kind) {
  return (memory::slab_object_bytes(kind) + 63u) & ~63u;
}

}  // namespace faultpath::check::layout
