// A word of guest memory that is there already: touching it is an access that no policy sees.
#pragma once

#include "lab/workloads/workload.h"

namespace faultpath::lab {

template <MemoryTarget T>
class WithResidentWord : public Workload<T> {
 public:
  explicit WithResidentWord(const Seat<T>& seat) : Workload<T>(seat) {}

 protected:
  bool map_word() {
    word_ = this->target().map(this->target().page_size(), {});
    return word_ != 0 ? touch() : this->broken("mmap");
  }
  bool touch() {
    if (FP_LIKELY(this->target().write_word(word_, ++touched_))) return true;
    --touched_;
    return this->broken("write", word_);
  }
  bool check_word() {
    if (word_ == 0 || this->meter().failed()) return false;
    this->plant_at(word_);
    std::uint64_t found = 0;
    if (!this->target().read_word(word_, found)) return this->broken("read", word_);
    if (found == touched_) return true;
    this->meter().fail("the resident word holds %llu, not %llu",
                       static_cast<unsigned long long>(found),
                       static_cast<unsigned long long>(touched_));
    return false;
  }

 private:
  Addr word_ = 0;
  std::uint64_t touched_ = 0;
};

}  // namespace faultpath::lab
