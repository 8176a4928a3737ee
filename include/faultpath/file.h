// File: an open file that can be mapped. Mappings of one File share its page cache.
#pragma once

#include <faultpath/result.h>
#include <faultpath/store.h>

#include <cstdint>

namespace faultpath {

namespace cache {
class FileObject;
}

/// How a file was opened; decides EACCES as mmap(2) does.
struct FileMode {
  bool readable = true;
  bool writable = false;
};

/// A reference to an open file of one Machine. Move-only; destroying it closes this reference. The
/// file itself lives until its last mapping is gone too; dirty pages are written back then.
/// Thread-safe; not from a signal handler, and a handler that interrupts one of these calls may not
/// use a SoftCpu (a page lock may be held below it on its own stack). Two
/// Files opened on one host file are two files: they do not share pages.
class File {
 public:
  File(File&& other) noexcept : object_(other.object_) { other.object_ = nullptr; }
  File& operator=(File&& other) noexcept;
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File();

  /// Bytes; what lies beyond the page that holds the last byte is SIGBUS to touch.
  std::uint64_t size() const;
  /// Writes every dirty page to the store, as fsync(2): stores that guests made before the call are
  /// in it. Stores made meanwhile stay dirty. EIO or the store's own error on the first failure.
  Result<void> sync();
  /// Writes through the page cache, as pwrite(2): mappings see it at once. Does not extend the
  /// file. Returns bytes written (less at the end of file), ENOMEM, EIO where the page could not be
  /// read first, EBADF where the file is not open for writing.
  Result<std::uint64_t> write_at(std::uint64_t offset, const void* from, std::uint64_t bytes);
  /// Reads through the page cache, as pread(2); EBADF where it is not open for reading.
  Result<std::uint64_t> read_at(std::uint64_t offset, void* to, std::uint64_t bytes);

  /// Engine use.
  explicit File(cache::FileObject* object) : object_(object) {}
  cache::FileObject* object() const { return object_; }

 private:
  cache::FileObject* object_;
};

}  // namespace faultpath
