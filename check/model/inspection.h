// One look at a machine at rest: what the laws of at_rest.h work with.
#pragma once

#include <fmt/format.h>

#include <string>
#include <utility>

#include "cache/file_object.h"
#include "check/model/at_rest.h"

namespace faultpath::check {

/// The private members that the laws are about. (At rest nobody holds a lock, nor needs one.)
struct Inspect {
  using Core = memory::MachineCore;
  using File = cache::FileObject;

  static std::uint32_t frames(const Core& core) {
    return static_cast<std::uint32_t>(core.region_.frames);
  }
  static bool attach_locked(const Core& core) { return core.attach_lock_.is_locked(); }
  static const memory::Slab& slab(const Core& core, unsigned kind) { return core.slabs_[kind]; }
  static bool locked(const memory::Slab& slab) { return slab.lock_.is_locked(); }
  static memory::Pfn partial(const memory::Slab& slab) FP_NO_THREAD_SAFETY_ANALYSIS {
    return slab.partial_;
  }
  static std::uint32_t per_page(const memory::Slab& slab) { return slab.per_page_; }
  static const memory::Buddy& buddy(const Core& core) { return core.buddy_; }
  static bool locked(const memory::Buddy& buddy) { return buddy.lock_.is_locked(); }
  static memory::Pfn head(const memory::Buddy& buddy, unsigned order) FP_NO_THREAD_SAFETY_ANALYSIS {
    return buddy.heads_[order];
  }
  static vma::Vma* first_mapping(const File& file) FP_NO_THREAD_SAFETY_ANALYSIS {
    return file.mappings_;
  }
  static std::uint64_t root(const File& file) { return file.root_.load(env::relaxed); }
  static std::uint32_t refs(const File& file) { return file.refs_.load(env::relaxed); }
  static bool index_locked(const File& file) { return file.index_lock_.is_locked(); }
  static const vma::TreeNode* root(const vma::TreeView& view) { return view.root_; }
};

class Inspection {
 public:
  /// Runs all laws, group by group, as long as what later groups walk is in one piece.
  bool run(const Rest& rest, std::string* why);

 private:
  using Pfn = memory::Pfn;
  using Frame = memory::Frame;
  using FrameKind = memory::FrameKind;
  using Pte = pagetable::Pte;

  static constexpr unsigned kMostFrames = 1u << 14;
  static constexpr unsigned kMostVmas = 256;
  static constexpr unsigned kMostFiles = 64;
  static constexpr unsigned kMostRanges = 64;
  static constexpr unsigned kMostSpaces = 64;
  static constexpr unsigned kFullEvery = 64;
  static constexpr unsigned kMostLines = 12;

  /// Who has a frame.
  enum class Holder : std::uint8_t { none, buddy, cpu_cache, retired, table, index, page };
  struct Named {
    std::uint32_t refs;  ///< references that were found
    Holder holder;
  };
  struct Listed {
    vma::Vma* vma;
    std::uint8_t space;
    bool in_rmap;
  };
  struct KnownFile {
    cache::FileObject* file;
    std::uint32_t refs;
    const MemoryStore* store;
  };
  struct KnownRoot {
    vma::AnonRoot* root;
    std::uint32_t refs;
  };
  struct Ranges {
    unsigned count = 0;
    bool all = false;  ///< too many: everything
    Range range[kMostRanges];
    void add(Range r);
  };

  // Groups of laws.
  void locks_and_cpus();
  void spaces();
  void vmas(unsigned space) FP_NO_THREAD_SAFETY_ANALYSIS;
  void reverse_maps();
  void file_pages();
  void page_tables();
  void free_frames() FP_NO_THREAD_SAFETY_ANALYSIS;
  void every_frame();
  void objects();
  void translations() FP_NO_THREAD_SAFETY_ANALYSIS;
  void counters();
  void contents();

  void file_level(const KnownFile& known, Pfn node, unsigned height, std::uint64_t base);
  std::uint32_t walk(unsigned space, Pfn table, unsigned level, Addr base, bool all);
  std::uint32_t visit(unsigned space, Pfn table, unsigned level, Addr base, unsigned index,
                      bool all);
  void leaf(unsigned space, Addr a, Pte entry);
  void free_frame(Pfn pfn, Holder holder);
  void lost(Pfn pfn, const Frame& frame);
  void held_twice(Pfn pfn, Holder holder);
  void objects_of(memory::SlabKind kind, const char* what, std::uint64_t alive);
  void lost_vmas();
  std::uint64_t parked_objects(unsigned kind) const FP_NO_THREAD_SAFETY_ANALYSIS;
  bool is_parked(const void* object) const FP_NO_THREAD_SAFETY_ANALYSIS;

  KnownFile* known(cache::FileObject* file);
  static std::uint64_t nodes_below(const vma::TreeNode* node);
  std::string text_of(unsigned space, const vma::Vma& v) const;
  std::string text_of(Pfn pfn) const;
  static const char* text_of(FrameKind kind);
  static const char* text_of(Holder holder);

  memory::MachineCore& core() const { return *rest_->core; }
  Frame& frame(Pfn pfn) const { return rest_->core->frame(pfn); }
  std::uint32_t cpus() const { return rest_->core->cpu_limit(); }

  /// The same, and what is broken cannot be walked.
  template <class... Args>
  void nonsense(fmt::format_string<Args...> format, Args&&... args) {
    wrong(format, std::forward<Args>(args)...);
    walkable_ = false;
  }
  template <class... Args>
  void wrong(fmt::format_string<Args...> format, Args&&... args) {
    ++wrongs_;
    if (why_ == nullptr || wrongs_ > kMostLines) return;
    if (!why_->empty()) *why_ += '\n';
    fmt::format_to(std::back_inserter(*why_), format, std::forward<Args>(args)...);
  }

  const Rest* rest_ = nullptr;
  std::string* why_ = nullptr;
  unsigned wrongs_ = 0;
  bool walkable_ = true;
  unsigned calls_ = 0;
  bool full_ = false;  ///< this call reads every entry of every table

  std::uint32_t frames_ = 0;
  unsigned vmas_ = 0;
  unsigned files_ = 0;
  unsigned roots_ = 0;
  std::uint64_t nodes_ = 0;   ///< of all trees
  std::uint64_t tables_ = 0;  ///< of the space being walked
  std::uint64_t all_tables_ = 0;
  std::uint64_t cached_ = 0;
  std::uint64_t retired_ = 0;
  Ranges ranges_;     ///< of the space being walked
  vma::TreeSlot at_;  ///< the slot that was looked at last
  Listed vma_[kMostVmas];
  KnownFile file_[kMostFiles];
  KnownRoot root_[kMostVmas];
  std::uint32_t slab_pages_[memory::kSlabKinds];
  std::uint64_t slab_objects_[memory::kSlabKinds];
  Named named_[kMostFrames];
};

}  // namespace faultpath::check
