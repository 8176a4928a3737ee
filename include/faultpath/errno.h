// Error numbers of calls: Linux's numbers on every host, so that an emulator can pass them on.
#pragma once

namespace faultpath {

enum class Errno : int {
  eperm = 1,
  enoent = 2,
  eintr = 4,
  eio = 5,
  enxio = 6,
  ebadf = 9,
  eagain = 11,
  enomem = 12,
  eacces = 13,
  efault = 14,
  ebusy = 16,
  eexist = 17,
  enodev = 19,
  einval = 22,
  emfile = 24,
  efbig = 27,
  enospc = 28,
  enosys = 38,
  eoverflow = 75,
  eopnotsupp = 95,
};

/// The name a person knows ("ENOMEM"); "E?" for a number that the library never returns itself.
constexpr const char* to_string(Errno e) {
  switch (e) {
    case Errno::eperm: return "EPERM";
    case Errno::enoent: return "ENOENT";
    case Errno::eintr: return "EINTR";
    case Errno::eio: return "EIO";
    case Errno::enxio: return "ENXIO";
    case Errno::ebadf: return "EBADF";
    case Errno::eagain: return "EAGAIN";
    case Errno::enomem: return "ENOMEM";
    case Errno::eacces: return "EACCES";
    case Errno::efault: return "EFAULT";
    case Errno::ebusy: return "EBUSY";
    case Errno::eexist: return "EEXIST";
    case Errno::enodev: return "ENODEV";
    case Errno::einval: return "EINVAL";
    case Errno::emfile: return "EMFILE";
    case Errno::efbig: return "EFBIG";
    case Errno::enospc: return "ENOSPC";
    case Errno::enosys: return "ENOSYS";
    case Errno::eoverflow: return "EOVERFLOW";
    case Errno::eopnotsupp: return "EOPNOTSUPP";
  }
  return "E?";
}

}  // namespace faultpath
