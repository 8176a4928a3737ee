#include "lab/report/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>

namespace faultpath::lab {
namespace {

std::string error_text(int error) { return std::strerror(error); }

// Where a path leads: itself, or the end of its symbolic links.
std::string resolved(const std::string& path) {
  std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), std::free);
  return real ? std::string(real.get()) : path;
}

enum class Kind { absent, regular, directory, special };

// /dev/stdout may lead to a regular file; replacing that would lose what was printed.
bool is_standard_stream(const struct stat& st) {
  for (const int fd : {STDOUT_FILENO, STDERR_FILENO}) {
    struct stat stream;
    if (::fstat(fd, &stream) == 0 && stream.st_dev == st.st_dev && stream.st_ino == st.st_ino) {
      return true;
    }
  }
  return false;
}

Kind kind_of(const std::string& path, mode_t* mode) {
  struct stat st;
  if (::stat(path.c_str(), &st) != 0) return Kind::absent;
  *mode = st.st_mode & 07777;
  if (S_ISREG(st.st_mode)) return is_standard_stream(st) ? Kind::special : Kind::regular;
  return S_ISDIR(st.st_mode) ? Kind::directory : Kind::special;
}

mode_t default_mode() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return 0666 & ~mask;
}

// Makes the temporary file; its name replaces `name`.
int make_temporary(std::string& name, const std::string& target) {
  name = target + ".XXXXXX";
  return ::mkostemp(name.data(), O_CLOEXEC);
}

bool write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const auto n = ::write(fd, content.data(), content.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    content.remove_prefix(static_cast<std::size_t>(n));
  }
  return true;
}

}  // namespace

std::string probe_output_file(const std::string& path) {
  if (path.empty()) return "no file name";
  mode_t mode = 0;
  const auto target = resolved(path);
  switch (kind_of(target, &mode)) {
    case Kind::directory: return error_text(EISDIR);
    case Kind::special: return ::access(target.c_str(), W_OK) == 0 ? "" : error_text(errno);
    case Kind::regular:
      if (::access(target.c_str(), W_OK) != 0) return error_text(errno);
      break;
    case Kind::absent:
      if (path.back() == '/') return error_text(EISDIR);
      break;
  }
  std::string name;
  const int fd = make_temporary(name, target);
  if (fd < 0) return error_text(errno);
  ::close(fd);
  ::unlink(name.c_str());
  return "";
}

std::string write_output_file(const std::string& path, std::string_view content) {
  mode_t mode = default_mode();
  const auto target = resolved(path);
  const auto kind = kind_of(target, &mode);
  if (kind == Kind::directory) return error_text(EISDIR);
  if (kind == Kind::special) {
    const int fd = ::open(target.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0) return error_text(errno);
    const bool written = write_all(fd, content);
    const int error = errno;
    ::close(fd);
    return written ? "" : error_text(error);
  }
  std::string name;
  const int fd = make_temporary(name, target);
  if (fd < 0) return error_text(errno);
  bool done = write_all(fd, content) && ::fchmod(fd, mode) == 0 && ::fsync(fd) == 0;
  int error = errno;
  if (::close(fd) != 0 && done) {
    done = false;
    error = errno;
  }
  if (done && ::rename(name.c_str(), target.c_str()) != 0) {
    done = false;
    error = errno;
  }
  if (!done) ::unlink(name.c_str());
  return done ? "" : error_text(error);
}

}  // namespace faultpath::lab
