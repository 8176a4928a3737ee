// Machine: the physical side. Frames, slabs, attached Cpus. Outlives its spaces, files and Cpus.
#pragma once

#include <faultpath/arch.h>
#include <faultpath/counters.h>
#include <faultpath/file.h>
#include <faultpath/policy.h>
#include <faultpath/result.h>
#include <faultpath/types.h>

#include <cstdint>

namespace faultpath {

class AddressSpace;

namespace memory {
class MachineCore;
}

struct MachineOptions {
  /// Guest memory in bytes, rounded down to whole frames; page tables and the engine's own objects
  /// come out of it too. At least 1 MiB. ENOMEM if the host cannot give the address range.
  std::uint64_t memory_bytes = std::uint64_t{64} << 20;
  /// Have the host back every frame now, so that no later access pays for it.
  bool prefault = false;
  /// How many SoftCpus may be attached at once.
  std::uint32_t max_cpus = 128;
  /// Fill freed frames with 0xcc: a test aid that makes use after free visible.
  bool poison_freed_frames = false;
};

struct SpaceOptions {
  PolicySpec policy{};
  /// Whose access rules the space's SoftCpus follow. SoftCpu::fault() takes any machine's.
  Arch arch = Arch::x86;
  /// Top-down placement starts below this address.
  Addr mmap_base = 0x7ffff7fff000;
  /// No mapping below this one (mmap_min_addr).
  Addr lowest_address = 0x10000;
  /// Where the heap that brk moves begins; page aligned.
  Addr brk_start = 0x555555560000;
  /// Bytes that a mapping that grows down may have (RLIMIT_STACK).
  std::uint64_t stack_limit = std::uint64_t{8} << 20;
  /// The most VMAs (vm.max_map_count).
  std::uint32_t max_map_count = 65530;
};

/// Where the frames are. in_use counts everything that is not free: guest pages, page tables,
/// engine objects, caches of Cpus.
struct MemoryInfo {
  std::uint64_t frames = 0;
  std::uint64_t free = 0;     ///< in the buddy allocator
  std::uint64_t cached = 0;   ///< free, in caches of Cpus
  std::uint64_t retired = 0;  ///< waiting for a grace period (tables) or holding freed objects
  std::uint64_t slab = 0;     ///< hold engine objects
  std::uint64_t in_use = 0;   ///< frames - free - cached - retired - slab
};

/// Move-only handle. Thread-safe, except that destruction must be the last thing done to a machine:
/// after its spaces, files and SoftCpus. After a host fork() the child must not use it: frames are
/// shared memory.
class Machine {
 public:
  /// EINVAL for nonsense, ENOMEM for more than the host gives, ENOSYS where the host lacks
  /// membarrier(2).
  static Result<Machine> create(const MachineOptions& options = {});
  Machine(Machine&& other) noexcept : core_(other.core_) { other.core_ = nullptr; }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  Machine& operator=(Machine&&) = delete;
  ~Machine();

  /// A new empty address space. ENOMEM when frames are short.
  Result<AddressSpace> new_space(const SpaceOptions& options = {});
  /// A file over a store of the embedder's; see open_file() for files of the host.
  Result<File> new_file(Store& store, FileMode mode);

  /// Returns everything that is free but parked somewhere (caches of Cpus, retired objects, empty
  /// slab pages) to the buddy allocator. Waits for a grace period; not from a signal handler.
  void quiesce();
  MemoryInfo memory() const;
  /// Counters of all Cpus that are or ever were attached, summed.
  Counters counters() const;
  /// The memfd behind the frames; owned by the machine.
  int memory_fd() const;

  /// Engine use.
  memory::MachineCore& core() const { return *core_; }

 private:
  explicit Machine(memory::MachineCore* core) : core_(core) {}
  memory::MachineCore* core_;
};

}  // namespace faultpath
