// Frame: what the engine knows about one page frame; one cache line each.
#pragma once

#include <faultpath/config.h>

#include <cstdint>

#include "env.h"
#include "sync/sleep_lock.h"

namespace faultpath::memory {

/// Index of a frame in the machine's region.
using Pfn = std::uint32_t;
inline constexpr Pfn kNoPfn = 0xffffffff;

enum class FrameKind : std::uint8_t {
  free,   ///< in the buddy allocator (first frame of its block) or in a Cpu's cache
  anon,   ///< a guest page that belongs to the spaces that map it
  cache,  ///< a page of a file
  table,  ///< a page table
  index,  ///< an inner node of a file's page index, or an unmap's list of entries
  slab,   ///< holds engine objects
  zero,   ///< the one page of zeroes
};

/// Flags of a page-cache page, written with the page locked (dirty also after a flush).
inline constexpr std::uint32_t kPageUptodate = 1;
inline constexpr std::uint32_t kPageDirty = 2;

/// The frame table is never freed: any Frame may be read at any time, whatever the frame is by
/// then.
///
/// Who may write what:
///   refs      anybody who holds a reference may add one; a reference is taken from an entry only
///             under that entry's table lock, from a file's index while the file lives (its pages
///             do not leave before it does).
///   kind      who owns the frame alone: between allocation and publication, after the last put.
///   lock, dead, occupied   tables: `dead` is written under the parent's and this lock, `occupied`
///             under this lock.
///   page_lock, flags, owner, index   page-cache pages; the last two change with the page locked.
///   next, prev   who owns the frame: a free list, a slab list, a gather, a retire list.
struct alignas(64) Frame {
  env::atomic<std::uint32_t> refs;
  env::atomic<FrameKind> kind;
  env::var<std::uint8_t> order;  ///< free blocks: log2 of their frames
  env::var<std::uint8_t> level;  ///< tables: 0 holds PTEs, 3 is the root
  env::var<std::uint8_t> slab_kind;
  env::SpinLock lock;                ///< tables: the page-table lock (PTL) of this table
  env::atomic<std::uint32_t> dead;   ///< tables: 1 once unlinked from its parent
  env::var<std::uint32_t> occupied;  ///< tables: entries that are not empty; slabs: objects out
  sync::SleepLock page_lock;
  env::atomic<std::uint32_t> flags;
  env::var<Pfn> next;
  env::var<Pfn> prev;
  env::atomic<void*> owner;          ///< cache pages: the file; slabs: first free object
  env::atomic<std::uint64_t> index;  ///< cache pages: page index in the file
};
static_assert(sizeof(Frame) == 64, "a frame's metadata is one cache line");

}  // namespace faultpath::memory
