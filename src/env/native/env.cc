// The native world's out-of-line half: threads, clock, membarrier, memory of the host.
#include "env.h"

#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <climits>

namespace faultpath::env {

void yield(Site) noexcept { sched_yield(); }

std::uint64_t now_ns() noexcept {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000u +
         static_cast<std::uint64_t>(t.tv_nsec);
}

bool heavy_fence_available() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void heavy_fence(Site) noexcept {
#if FP_ENV_TSAN
  // The light half is a sequentially consistent read-modify-write in this build: a full barrier on
  // this side is its equal.
  static atomic<std::uint64_t> word;
  word.fetch_add(1, seq_cst);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
  syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
#endif
}

namespace {
// A futex works on the bare 32-bit word; the atomic is exactly that.
static_assert(sizeof(atomic<std::uint32_t>) == 4);
std::uint32_t* futex_word(atomic<std::uint32_t>& word) {
  return reinterpret_cast<std::uint32_t*>(&word);
}
}  // namespace

void park(atomic<std::uint32_t>& word, std::uint32_t expected, std::uint64_t timeout_ns,
          Site) noexcept {
  timespec t{};
  t.tv_sec = static_cast<time_t>(timeout_ns / 1'000'000'000u);
  t.tv_nsec = static_cast<long>(timeout_ns % 1'000'000'000u);
  syscall(SYS_futex, futex_word(word), FUTEX_WAIT_PRIVATE, expected, timeout_ns == 0 ? nullptr : &t,
          nullptr, 0);
}

void unpark_one(atomic<std::uint32_t>& word, Site) noexcept {
  syscall(SYS_futex, futex_word(word), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void unpark_all(atomic<std::uint32_t>& word, Site) noexcept {
  syscall(SYS_futex, futex_word(word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
}

void SpinLock::lock_slow() noexcept {
  for (unsigned spins = 0;; ++spins) {
    if (word_.load(relaxed) == 0 && word_.exchange(1, acquire) == 0) return;
    if (spins < 200) {
      pause();
    } else {
      yield();
    }
  }
}

bool map_region(std::uint64_t frames, std::uint64_t table_bytes, bool prefault,
                Region& out) noexcept {
  const std::uint64_t bytes = frames * kPageSize;
  const int fd = memfd_create("faultpath-frames", MFD_CLOEXEC);
  if (fd < 0) return false;
  void* frames_at = MAP_FAILED;
  void* tables_at = MAP_FAILED;
  if (ftruncate(fd, static_cast<off_t>(bytes)) == 0) {
    frames_at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_NORESERVE | (prefault ? MAP_POPULATE : 0), fd, 0);
    tables_at = mmap(nullptr, table_bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | (prefault ? MAP_POPULATE : 0), -1, 0);
  }
  if (frames_at == MAP_FAILED || tables_at == MAP_FAILED) {
    if (frames_at != MAP_FAILED) munmap(frames_at, bytes);
    if (tables_at != MAP_FAILED) munmap(tables_at, table_bytes);
    close(fd);
    return false;
  }
  out.payload = static_cast<std::byte*>(frames_at);
  out.objects = out.payload;
  out.tables = static_cast<std::byte*>(tables_at);
  out.frames = frames;
  out.table_bytes = table_bytes;
  out.fd = fd;
  return true;
}

void unmap_region(Region& region) noexcept {
  munmap(region.payload, region.frames * kPageSize);
  munmap(region.tables, region.table_bytes);
  close(region.fd);
  region = Region{};
}

}  // namespace faultpath::env
