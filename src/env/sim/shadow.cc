#include "shadow.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>

namespace faultpath::sim {

namespace {
// Touched sparsely: address space is reserved, memory comes with use.
void* reserve(std::size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) {
    std::fputs("no address space for the checker's shadow memory\n", stderr);
    std::exit(4);
  }
  return at;
}
}  // namespace

Shadow::Shadow()
    : cells_(static_cast<Cell*>(reserve(Arena::kBytes * sizeof(Cell)))),
      sharing_(static_cast<Sharing*>(reserve(Arena::kBytes * sizeof(Sharing)))) {}

void Shadow::forget_sharing() { madvise(sharing_, Arena::kBytes * sizeof(Sharing), MADV_DONTNEED); }

}  // namespace faultpath::sim
