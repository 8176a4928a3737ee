// Files of the host, by pread and pwrite.
#include <faultpath/fd_store.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>

namespace faultpath {

namespace {

class FdStore final : public Store {
 public:
  FdStore(int fd, std::uint64_t size) : fd_(fd), size_(size) {}

  Result<std::uint64_t> read(std::uint64_t offset, std::byte* to, std::uint64_t bytes) override {
    std::uint64_t done = 0;
    while (done < bytes) {
      const ssize_t n = pread(fd_, to + done, bytes - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return static_cast<Errno>(errno);
      if (n == 0) break;
      done += static_cast<std::uint64_t>(n);
    }
    return done;
  }

  Result<void> write(std::uint64_t offset, const std::byte* from, std::uint64_t bytes) override {
    std::uint64_t done = 0;
    while (done < bytes) {
      const ssize_t n = pwrite(fd_, from + done, bytes - done, static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return static_cast<Errno>(errno);
      if (n == 0) return Errno::eio;
      done += static_cast<std::uint64_t>(n);
    }
    return {};
  }

  std::uint64_t size() override { return size_; }

  void closed() override {
    ::close(fd_);
    delete this;
  }

 private:
  ~FdStore() = default;
  int fd_;
  std::uint64_t size_;
};

// Takes the descriptor over, in success and failure.
Result<File> make_file(Machine& machine, int fd, FileMode mode) {
  struct stat st{};
  if (fstat(fd, &st) != 0) {
    const auto error = static_cast<Errno>(errno);
    ::close(fd);
    return error;
  }
  if (!S_ISREG(st.st_mode)) {
    ::close(fd);
    return Errno::enodev;
  }
  auto* store = new (std::nothrow) FdStore(fd, static_cast<std::uint64_t>(st.st_size));
  if (store == nullptr) {
    ::close(fd);
    return Errno::enomem;
  }
  auto file = machine.new_file(*store, mode);
  if (!file) store->closed();
  return file;
}

}  // namespace

Result<File> open_file(Machine& machine, const char* path, FileMode mode) {
  int flags = O_CLOEXEC;
  if (mode.readable && mode.writable) {
    flags |= O_RDWR;
  } else {
    flags |= mode.writable ? O_WRONLY : O_RDONLY;
  }
  const int fd = ::open(path, flags);
  if (fd < 0) return static_cast<Errno>(errno);
  return make_file(machine, fd, mode);
}

Result<File> file_from_fd(Machine& machine, int fd, FileMode mode) {
  const int flags = fcntl(fd, F_GETFL);
  if (flags < 0) return static_cast<Errno>(errno);
  const int access = flags & O_ACCMODE;
  if ((mode.readable && access == O_WRONLY) || (mode.writable && access == O_RDONLY)) {
    return Errno::eacces;
  }
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return static_cast<Errno>(errno);
  return make_file(machine, own, mode);
}

}  // namespace faultpath
