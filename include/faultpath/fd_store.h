// Files of the host as Stores.
#pragma once

#include <faultpath/file.h>
#include <faultpath/machine.h>
#include <faultpath/result.h>

namespace faultpath {

/// Opens `path` (open(2), no O_CREAT) and makes a File of it. The error is open's, or ENOMEM.
Result<File> open_file(Machine& machine, const char* path, FileMode mode);

/// Makes a File over a duplicate of an open descriptor; the caller keeps its own.
/// EACCES if the descriptor is not open for what `mode` says.
Result<File> file_from_fd(Machine& machine, int fd, FileMode mode);

}  // namespace faultpath
