// The host kernel's own memory. Tasks of this target run in forked processes: a break that wanders
// and a task that dies harm nobody else.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "lab/targets/target.h"

namespace faultpath::lab {

class HostTask {
 public:
  struct File {
    int fd = -1;
  };

  HostTask() : page_size_(static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE))) {}
  HostTask(const HostTask&) = delete;
  HostTask& operator=(const HostTask&) = delete;
  ~HostTask() {
    if (opened_ >= 0) close(opened_);
  }

  void enter() {}
  void leave() {}
  std::uint64_t page_size() const { return page_size_; }

  Addr map(std::uint64_t bytes, const Mapping<File>& what) {
    ++calls_.maps;
    const int prot = PROT_READ | (what.writable ? PROT_WRITE : 0);
    int flags = what.shared ? MAP_SHARED : MAP_PRIVATE;
    if (what.file == nullptr) flags |= MAP_ANONYMOUS;
    void* at = mmap(nullptr, bytes, prot, flags, what.file ? what.file->fd : -1, 0);
    if (at == MAP_FAILED) return errno_ = errno, 0;
    return reinterpret_cast<std::uintptr_t>(at);
  }
  bool unmap(Addr a, std::uint64_t bytes) {
    ++calls_.unmaps;
    return done(munmap(host(a), bytes));
  }
  bool protect(Addr a, std::uint64_t bytes, bool writable) {
    ++calls_.protects;
    return done(mprotect(host(a), bytes, PROT_READ | (writable ? PROT_WRITE : 0)));
  }
  FP_ALWAYS_INLINE bool dontneed(Addr a, std::uint64_t bytes) {
    ++calls_.advises;
    return done(madvise(host(a), bytes, MADV_DONTNEED));
  }
  /// The system call: the C library's idea of the break is not asked and not told.
  Addr brk(Addr wish) {
    ++calls_.breaks;
    const auto now = static_cast<Addr>(syscall(SYS_brk, wish));
    if (wish != 0 && now != wish) ++calls_.breaks_refused;
    return now;
  }

  FP_ALWAYS_INLINE bool write(Addr a, std::uint8_t v) {
    *static_cast<volatile std::uint8_t*>(host(a)) = v;
    return true;
  }
  FP_ALWAYS_INLINE int read(Addr a) { return *static_cast<volatile std::uint8_t*>(host(a)); }
  FP_ALWAYS_INLINE bool write_word(Addr a, std::uint64_t v) {
    *static_cast<volatile std::uint64_t*>(host(a)) = v;
    return true;
  }
  FP_ALWAYS_INLINE bool read_word(Addr a, std::uint64_t& v) {
    v = *static_cast<volatile std::uint64_t*>(host(a));
    return true;
  }
  bool copy(Addr to, Addr from, std::uint64_t bytes) {
    std::memcpy(host(to), host(from), bytes);
    return true;
  }
  bool copy_out(Addr to, const void* from, std::uint64_t bytes) {
    std::memcpy(host(to), from, bytes);
    return true;
  }
  /// Nothing to do: mappings and pread(2) see the same pages.
  bool sync(const File&) { return true; }

  /// Opens the file once more, for read_at(): a description of the task's own.
  bool open(const File& file) {
    char path[32];
    std::snprintf(path, sizeof path, "/proc/self/fd/%d", file.fd);
    opened_ = ::open(path, O_RDONLY | O_CLOEXEC);
    return done(opened_ < 0 ? -1 : 0);
  }
  std::int64_t read_at(std::uint64_t at, Addr to, std::uint64_t bytes) {
    const ssize_t got = pread(opened_, host(to), bytes, static_cast<off_t>(at));
    if (got < 0) errno_ = errno;
    return got;
  }

  const CallCounts& calls() const { return calls_; }
  std::uint64_t faults() const {
    rusage u{};
    getrusage(RUSAGE_THREAD, &u);
    return static_cast<std::uint64_t>(u.ru_minflt) + static_cast<std::uint64_t>(u.ru_majflt);
  }
  void why(char* text, std::size_t room) const {
    const char* name = strerrorname_np(errno_);
    std::snprintf(text, room, "%s", name ? name : "?");
  }

 private:
  static void* host(Addr a) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(a));  // NOLINT: addresses are ours
  }
  bool done(int result) {
    if (FP_LIKELY(result == 0)) return true;
    errno_ = errno;
    return false;
  }

  std::uint64_t page_size_;
  CallCounts calls_;
  int opened_ = -1;
  int errno_ = 0;
};

static_assert(MemoryTarget<HostTask>);

}  // namespace faultpath::lab
