// Machine and File as the public headers name them.
#include <faultpath/address_space.h>
#include <faultpath/machine.h>

#include "cache/file_object.h"
#include "change/change.h"
#include "memory/machine_core.h"

namespace faultpath {

using memory::MachineCore;
using memory::SystemCpu;

Result<Machine> Machine::create(const MachineOptions& options) {
  Errno why{};
  MachineCore* core = MachineCore::create(options, &why);
  if (core == nullptr) return why;
  return Machine(core);
}

Machine::~Machine() {
  if (core_ != nullptr) MachineCore::destroy(core_);
}

Result<AddressSpace> Machine::new_space(const SpaceOptions& options) {
  if ((options.brk_start & ~kPageMask) != 0 || (options.lowest_address & ~kPageMask) != 0 ||
      options.lowest_address == 0 || options.mmap_base > kUserEnd || options.max_map_count == 0) {
    return Errno::einval;
  }
  SystemCpu system(*core_);
  vma::Mm* mm = change::create_mm(*core_, system.get(), options);
  if (mm == nullptr) return Errno::enomem;
  return AddressSpace(mm);
}

Result<File> Machine::new_file(Store& store, FileMode mode) {
  SystemCpu system(*core_);
  cache::FileObject* file =
      cache::FileObject::create(*core_, system.get(), &store, mode, store.size());
  if (file == nullptr) return Errno::enomem;
  return File(file);
}

void Machine::quiesce() {
  SystemCpu system(*core_);
  core_->quiesce(system.get());
}

MemoryInfo Machine::memory() const { return core_->memory_info(); }
Counters Machine::counters() const { return core_->counters(); }
int Machine::memory_fd() const { return core_->fd(); }

// --- File -------------------------------------------------------------------------------------

File& File::operator=(File&& other) noexcept {
  if (this != &other) {
    File old(static_cast<File&&>(*this));
    object_ = other.object_;
    other.object_ = nullptr;
  }
  return *this;
}

File::~File() {
  if (object_ == nullptr) return;
  SystemCpu system(object_->core());
  object_->put(system.get());
}

std::uint64_t File::size() const { return object_->size(); }

Result<void> File::sync() {
  SystemCpu system(object_->core());
  return object_->write_back(system.get(), 0, ~std::uint64_t{0});
}

Result<std::uint64_t> File::write_at(std::uint64_t offset, const void* from, std::uint64_t bytes) {
  SystemCpu system(object_->core());
  return object_->write_at(system.get(), offset, from, bytes);
}

Result<std::uint64_t> File::read_at(std::uint64_t offset, void* to, std::uint64_t bytes) {
  SystemCpu system(object_->core());
  return object_->read_at(system.get(), offset, to, bytes);
}

}  // namespace faultpath
