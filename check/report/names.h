// Names: what a place in the arena is, in words of somebody who knows kernels.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "check/report/meaning.h"
#include "check/report/survey.h"

namespace faultpath::check {

/// `frame 27 w d a`: writable or read-only, dirty, accessed. `none` for an empty one.
std::string entry_text(pagetable::Pte entry);

struct About {
  Meaning meaning = Meaning::unknown;
  memory::Pfn frame = memory::kNoPfn;  ///< payload, and a frame's own fields
  unsigned word = 0;                   ///< payload: which one of the eight
  unsigned bytes = 8;                  ///< of the word, 8 at most
};

/// Made at a moment, and good for that moment: what a frame is, and which VMA has which bounds, is
/// judged then. It keeps what it needs, so the stage may change afterwards.
///
/// What belongs to mm0 does not always say so: most scenes have no other space.
///
///   mm0.mmap_lock            vma[0x400000-0x402000].sequence      cpu1.flush.posted
///   mm0.pte[0x400000]        frame 17 lock (table L0 of 0x400000)
///   frame 12 word 3          file1.index[0]                       stack of cpu 2
class Names {
 public:
  explicit Names(Stage& stage) : Names(Survey(stage)) {}
  explicit Names(const Survey& survey);

  /// Names of a run: made at its end, and here are those of its beginning. What existed then is called
  /// as it was called then, also if it has been removed, freed or cut since.
  void look_back(Names before) { before_ = std::make_shared<const Names>(std::move(before)); }

  /// An unknown place as hex.
  std::string name(sim::Place place) const;
  /// A value of that place.
  std::string value(sim::Place place, std::uint64_t v) const;
  About about(sim::Place place) const;

 private:
  struct Field {
    sim::Place from;
    sim::Place end;
    Meaning meaning;
    bool certain;  ///< the object is where objects of its kind are in use
    std::string name;
  };
  /// The memory of one frame for engine objects, and its Frame.
  struct FrameNote {
    memory::FrameKind kind = memory::FrameKind::free;
    std::string what;   ///< `free`, `table L0 of 0x400000`
    std::string entry;  ///< `mm0.pte`; tables that are linked
    Addr base = 0;      ///< tables that are linked
    std::uint64_t span = 0;
  };

  void note_core(const Survey& s);
  void note_cpus(const Survey& s);
  void note_frames(const Survey& s);
  void note_spaces(const Survey& s);
  void note_vmas(const Survey& s);
  void note_roots(const Survey& s);
  void note_files(const Survey& s);
  void note_tree_nodes(const Survey& s);

  template <class T>
  void add(const T& member, std::string name, Meaning meaning = Meaning::number,
           bool certain = true) {
    add(&member, sizeof member, std::move(name), meaning, certain);
  }
  void add(const void* at, std::size_t bytes, std::string name, Meaning meaning,
           bool certain = true);
  template <class F>
  void for_each_object(const Survey& s, memory::SlabKind kind, F&& f);

  const Field* field(sim::Place place) const;
  const FrameNote& note(memory::Pfn p) const;
  std::string payload_word(sim::Place place) const;
  std::string frame_field(sim::Place place) const;
  std::string object_word(sim::Place place) const;
  std::string stack_name(sim::Place place) const;

  /// [from, from + frames * stride)
  struct Array {
    sim::Place from = 0;
    std::uint64_t stride = 1;
    bool has(sim::Place place, std::uint64_t count) const {
      return place >= from && place - from < count * stride;
    }
    memory::Pfn index(sim::Place place) const {
      return static_cast<memory::Pfn>((place - from) / stride);
    }
    std::uint64_t offset(sim::Place place) const { return (place - from) % stride; }
  };

  std::vector<FrameNote> frames_;
  Array frame_table_;
  Array objects_;
  Array payload_;
  std::multimap<sim::Place, Field> fields_;  ///< of two at one place, the one noted last counts
  std::shared_ptr<const Names> before_;
};

}  // namespace faultpath::check
