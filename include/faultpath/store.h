// Store: what is behind a file. The engine reads and writes whole pages through it.
#pragma once

#include <faultpath/result.h>

#include <cstddef>
#include <cstdint>

namespace faultpath {

/// Backing of a file, implemented by the embedder (or by open_file() for a file of the host).
///
/// Threads: read and write may be called from several threads at once for different pages, never
/// for one page at a time twice. They are called with engine locks held: they must not call back
/// into the library. Ownership: a Store stays valid until closed() has been called, once, after the
/// last use; the implementation may free itself there.
class Store {
 public:
  /// Fills `bytes` bytes at `to` from byte `offset`. Returns how many bytes there were before the
  /// end of the file (the rest is zeroed by the caller), or an error: SIGBUS for that access.
  virtual Result<std::uint64_t> read(std::uint64_t offset, std::byte* to, std::uint64_t bytes) = 0;
  /// Writes `bytes` bytes at `from` to byte `offset`; all of them, or an error.
  virtual Result<void> write(std::uint64_t offset, const std::byte* from, std::uint64_t bytes) = 0;
  /// The file's size in bytes; asked once, when the file is opened.
  virtual std::uint64_t size() = 0;
  /// The library has let go of this store.
  virtual void closed() = 0;

 protected:
  ~Store() = default;
};

}  // namespace faultpath
