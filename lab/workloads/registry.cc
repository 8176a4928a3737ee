#include "lab/workloads/registry.h"

#include <faultpath/config.h>

#include "lab/workloads/allocator.h"
#include "lab/workloads/workload.h"

namespace faultpath::lab {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

MemoryNeed one_area(const EbizzyOptions&) { return {kAreaBytes, 0}; }
/// The file's pages and the copies of them.
MemoryNeed file_and_copies(const EbizzyOptions&) { return {2 * kAreaBytes, 0}; }
MemoryNeed little(const EbizzyOptions&) { return {2 * kMiB, 0}; }
MemoryNeed one_part(const EbizzyOptions&) { return {64 * kMiB, 2 * kMiB}; }
MemoryNeed chunks(const EbizzyOptions& o) {
  const std::uint64_t chunk = page_ceil(o.chunk_bytes + 2 * kPageSize);
  return {chunk, o.chunks * chunk + 2 * kTopPad};
}

std::vector<WorkloadInfo> make() {
  std::vector<WorkloadInfo> list;
  const auto add = [&list](std::string name, std::string description, std::string counted,
                           std::uint64_t verify_ops,
                           MemoryNeed (*need)(const EbizzyOptions&)) -> WorkloadInfo& {
    WorkloadInfo& w = list.emplace_back();
    w.name = std::move(name);
    w.description = std::move(description);
    w.counted = std::move(counted);
    w.verify_ops = verify_ops;
    w.need = need;
    return w;
  };
  const auto with_file = [](WorkloadInfo& w, bool shared, bool warm = true) {
    w.file = true;
    w.shared_file = shared;
    w.warm_file = warm;
  };
  const std::uint64_t area_pages = kAreaBytes / kPageSize;
  const std::uint64_t once_and_some = area_pages + area_pages / 4 + 3;

  add("page_fault1", "will-it-scale: faults on 128 MiB of anonymous memory",
      "a byte written to the next page; munmap and mmap behind the last page", once_and_some,
      one_area);
  with_file(add("page_fault2", "will-it-scale: faults on a private mapping of a 128 MiB file",
                "a byte written to the next page; munmap and mmap behind the last page",
                once_and_some, file_and_copies),
            false);
  with_file(add("page_fault3", "will-it-scale: faults on a shared mapping of a 128 MiB file",
                "a byte written to the next page; munmap and mmap behind the last page",
                once_and_some, one_area),
            true);
  add("brk1", "will-it-scale: the break one page up and down; threads share one break",
      "one brk call, half of them up; a refused one counts where threads share the break", 2000,
      little);
  add("malloc1", "will-it-scale: malloc(128 MiB) and free, as the calls that glibc makes of them",
      "mmap, write of the chunk header (one fault), munmap", 500, little);
  add("mmap1", "will-it-scale: mmap and munmap of 128 MiB of anonymous memory, untouched",
      "one mmap and its munmap", 500, little);
  with_file(add("mmap2", "will-it-scale: mmap and munmap of a 128 MiB file, private, untouched",
                "one mmap and its munmap", 500, little),
            false, false);
  with_file(
      add("tlb_flush1", "will-it-scale: write, drop and read a page of a private file mapping",
          "a page written, dropped with MADV_DONTNEED and read back: two faults, one flush", 2048,
          file_and_copies),
      false);
  add("tlb_flush2", "will-it-scale: write, drop and read a page of 1 MiB of anonymous memory",
      "a page written, dropped with MADV_DONTNEED and read back: two faults, one flush", 1000,
      little);
  with_file(add("tlb_flush3", "will-it-scale: write, drop and read a page of a shared file mapping",
                "a page written, dropped with MADV_DONTNEED and read back: two faults, one flush",
                2048, one_area),
            true);
  add("ebizzy", "ebizzy 0.3: copies of big chunks, allocated, searched and freed without pause",
      "one record: allocate a chunk, copy and search it (-T: touch its pages), free it", 20, chunks)
      .options = {"-m", "-M", "-T", "-n", "-s"};
  add("fault_vs_mmap",
      "faults at random in 64 MiB of anonymous memory a task, while one more thread maps and "
      "unmaps",
      "a byte written to a random untouched page, by the faulting tasks; the mapper's calls do not "
      "count",
      64 * kMiB / kPageSize * 5 / 4, one_part)
      .mapper = true;
  WorkloadInfo& prot =
      add("lat_sig_prot", "after lmbench's lat_sig prot: the time of an access that is refused",
          "a store to a page of a shared file mapping that may only be read: SIGSEGV, a handler, "
          "and again; the handler's time is measured between and subtracted",
          5000, little);
  with_file(prot, false, false);
  prot.timed = true;

  WorkloadInfo& read =
      add("read2", "will-it-scale: read(2) of one file by all tasks, each at its own offset",
          "a read of 4 KiB from the page cache into resident guest memory", 600, little);
  with_file(read, false, false);
  read.one_file_bytes = kReadFileBytes;
  read.null_control = true;
  add("signal1", "will-it-scale: raise(SIGUSR1), a real signal of the host on every target",
      "a signal and its handler, and a touch of a resident guest word", 1000, little)
      .null_control = true;
  add("context_switch1",
      "will-it-scale: a byte to a partner and back over two real pipes; the partner is a thread in "
      "both modes",
      "half of a round trip, and of a touch of a resident guest word", 1000, little)
      .null_control = true;
  return list;
}

}  // namespace

const std::vector<WorkloadInfo>& workloads() {
  static const std::vector<WorkloadInfo> list = make();
  return list;
}

const WorkloadInfo* find_workload(std::string_view name) {
  for (const WorkloadInfo& w : workloads()) {
    if (w.name == name) return &w;
  }
  return nullptr;
}

std::uint64_t machine_bytes(const WorkloadInfo& workload, int tasks, bool one_space,
                            const EbizzyOptions& ebizzy) {
  const auto n = static_cast<std::uint64_t>(tasks);
  const MemoryNeed need = workload.need(ebizzy);
  const std::uint64_t pages = n * need.per_task + (one_space ? 1 : n) * need.per_space;
  // Tables and the page cache's index take about 1 in 500; freed pages wait in the caches of Cpus,
  // and freed tables for a grace period.
  return pages + pages / 16 + 32 * kMiB + n * 8 * kMiB;
}

}  // namespace faultpath::lab
