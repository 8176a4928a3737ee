// Grace periods: what was unlinked stays what it was until everybody who may have found it is gone.
//
// Stages are bare: an object and a word that names it, and CPUs that read it in a section of each
// kind while others unlink it, retire it, and advance the epoch.
#include "check/model/at_rest.h"
#include "check/scenes/scenes.h"
#include "pagetable/flush.h"
#include "vma/mm.h"

namespace faultpath::check {

namespace {

using memory::Cpu;
using memory::MachineCore;
using memory::SlabKind;
using vma::AnonRoot;

Cpu& cpu_of(Script& c) { return static_cast<Cpu&>(*c.soft().block()); }
MachineCore& core_of(Script& c) { return *cpu_of(c).machine; }

/// An engine object (an anon root will do), and the one word that readers find it by.
struct Published {
  env::atomic<AnonRoot*> name;
  AnonRoot* object = nullptr;

  AnonRoot* find() const { return name.load(env::acquire); }
  void unlink_and_retire(Script& c) {
    object->refs.store(7, env::relaxed);  // shared with readers: a place where searches switch
    name.store(nullptr, env::release);
    memory::RetireBatch batch;
    batch.add_object(SlabKind::anon_root, object);
    core_of(c).retire(cpu_of(c), batch);
  }
};

/// Twice, so that a reader may be kept between.
void look_at(const AnonRoot* found, Script& c) {
  if (found == nullptr) return;
  const bool whole = found->refs.load(env::relaxed) == 7;
  c.expect(whole && found->refs.load(env::relaxed) == 7, "a reader's object is another one");
}

Published& publish(Stage& s) {
  s.bare = true;
  auto& p = s.state<Published>();
  Cpu& system = s.machine().core().cpu(0);
  p.object =
      static_cast<AnonRoot*>(s.machine().core().allocate_object(system, SlabKind::anon_root));
  p.object->refs.store(7, env::relaxed);
  p.name.store(p.object, env::release);
  // The object is free or waits; nothing else has changed.
  s.at_rest = [&s] {
    std::string why;
    vma::Mm* const spaces[] = {&s.space(0).mm()};
    return at_rest({&s.machine().core(), spaces, {}, {}}, &why) ? std::string() : why;
  };
  return p;
}

// The reader has found the object and not looked at it; then it is retired.
constexpr Cue kLooksTooLate[] = {{0, "look_at"}, {1, ""}, {0, ""}};
constexpr Planted kPlanted[] = {{Guard::retire_through_epochs, kLooksTooLate}};

template <class Read>
void build_reader(Stage& s, Read read) {
  Published& p = publish(s);
  s.cpu("reader", [&p, read](Script& c) { read(p, c); });
  s.cpu("retirer", [&p](Script& c) { p.unlink_and_retire(c); });
  s.cpu("advancer", [](Script& c) { core_of(c).quiesce(cpu_of(c)); });
}

constexpr Scene kEpochReader{
    .name = "reader-in-an-epoch-section-beside-a-grace-period",
    .ids = "B04 B67 I7",
    .story =
        "One CPU looks at an object in an epoch section, a second one unlinks and retires it, a "
        "third one advances the epoch twice and hands back what is ripe. The object may not be "
        "free before the section ends, whenever the three began.",
    .build =
        [](Stage& s) {
          build_reader(s, [](Published& p, Script& c) {
            sync::EpochSection section(core_of(c).epochs(), cpu_of(c).epoch);
            look_at(p.find(), c);
          });
        },
    .planted = kPlanted,
};

constexpr Scene kNestedReader{
    .name = "reader-in-nested-epoch-sections-beside-a-grace-period",
    .ids = "B04 I7",
    .story =
        "The same with a section inside the reader's section: the end of the inner one ends "
        "nothing.",
    .build =
        [](Stage& s) {
          build_reader(s, [](Published& p, Script& c) {
            sync::EpochSection section(core_of(c).epochs(), cpu_of(c).epoch);
            const AnonRoot* const found = p.find();
            {
              sync::EpochSection inner(core_of(c).epochs(), cpu_of(c).epoch);
            }
            look_at(found, c);
          });
        },
    .planted = kPlanted,
};

constexpr Scene kAccessReader{
    .name = "reader-in-an-access-section-beside-a-grace-period",
    .ids = "B67 I3 I7",
    .story =
        "The same with a reader in an access section, as the walker is: the advance asks for no "
        "epoch, it sees that the section is open and waits for it to close.",
    .build =
        [](Stage& s) {
          build_reader(s, [](Published& p, Script& c) {
            const std::uint64_t before = detail::open_section(cpu_of(c));
            look_at(p.find(), c);
            detail::close_section(cpu_of(c), before);
          });
        },
    .planted = kPlanted,
};

constexpr Scene kInterruptsOffReader{
    .name = "reader-with-interrupts-off-beside-a-grace-period",
    .ids = "B29 B38 B67 I3 I7",
    .story =
        "The same with a reader that has interrupts off, as a speculative fault has when it goes "
        "through the tables.",
    .build =
        [](Stage& s) {
          build_reader(s, [](Published& p, Script& c) {
            pagetable::InterruptsOff off(cpu_of(c));
            look_at(p.find(), c);
          });
        },
    .planted = kPlanted,
};

// --- two CPUs, every schedule ------------------------------------------------------------------------

constexpr Scene kReaderAndQuiesce{
    .name = "reader-beside-retire-and-quiesce",
    .ids = "B04 I7",
    .story =
        "One CPU looks at an object in an epoch section, another one unlinks it, retires it and "
        "waits for two grace periods. When that is over the object is free, and the reader has "
        "left or has not found it.",
    .build =
        [](Stage& s) {
          Published& p = publish(s);
          s.cpu("reader", [&p](Script& c) {
            sync::EpochSection section(core_of(c).epochs(), cpu_of(c).epoch);
            look_at(p.find(), c);
          });
          s.cpu("retirer", [&p](Script& c) {
            p.unlink_and_retire(c);
            core_of(c).quiesce(cpu_of(c));
          });
        },
    .planted = kPlanted,
    .preemptions = 3,
};

constexpr Scene kTwoAdvances{
    .name = "two-cpus-advance-the-epoch",
    .ids = "I7 I10",
    .story =
        "Two CPUs try to advance the epoch while a third one looks at an object and a fourth one "
        "retires it. One attempt at a time counts; the epoch goes up by one for each that "
        "succeeds, and no reader is left behind by two.",
    .build =
        [](Stage& s) {
          Published& p = publish(s);
          s.cpu("reader", [&p](Script& c) {
            sync::EpochSection section(core_of(c).epochs(), cpu_of(c).epoch);
            const std::uint64_t entered = core_of(c).epochs().now();
            look_at(p.find(), c);
            c.expect(core_of(c).epochs().now() <= entered + 1,
                     "the epoch went on without a reader");
          });
          s.cpu("retirer", [&p](Script& c) { p.unlink_and_retire(c); });
          const auto advance = [](Script& c) {
            core_of(c).try_advance(cpu_of(c));
            core_of(c).try_advance(cpu_of(c));
          };
          s.cpu("one", advance);
          s.cpu("other", advance);
        },
};

// --- the VMA tree --------------------------------------------------------------------------------------

/// A tree of two levels whose slots stand for nothing: twenty neighbours of sixteen units each.
struct Grove {
  static constexpr unsigned kSlots = 20;
  static constexpr Addr kEach = 16;
  vma::Tree tree;
  std::uint64_t stand_ins[kSlots] = {};

  vma::Vma* vma(unsigned i) { return reinterpret_cast<vma::Vma*>(&stand_ins[i]); }
  void commit(Script& c, auto&& change) {
    vma::NodeSource nodes{core_of(c), cpu_of(c), {}};
    {
      vma::TreeEdit edit(tree, nodes.pool());
      c.expect(change(edit), "a tree node was not to be had");
      edit.commit();
    }
    core_of(c).retire(cpu_of(c), nodes.batch);
  }
  void plant(Script& c) {
    commit(c, [this](vma::TreeEdit& edit) {
      bool ok = true;
      for (unsigned i = 0; i < kSlots; ++i)
        ok = ok && edit.insert(i * kEach, (i + 1) * kEach, vma(i));
      return ok;
    });
  }
  /// Slot 4 gives its upper half to slot 5.
  void move_border(Script& c) {
    commit(c, [this](vma::TreeEdit& edit) {
      return edit.update(4 * kEach, {4 * kEach, 4 * kEach + 8, vma(4)}) &&
             edit.update(5 * kEach, {4 * kEach + 8, 6 * kEach, vma(5)});
    });
  }
  /// Slots 7 to 18 go: leaves are joined.
  void cut(Script& c) {
    commit(c, [](vma::TreeEdit& edit) {
      bool ok = true;
      for (unsigned i = 7; i < 19; ++i) ok = ok && edit.erase(i * kEach);
      return ok;
    });
  }
};

/// One view, read in parts with time in between: what it says goes together, whatever is edited. (The
/// pauses look at a word that the editor writes, so that searches switch there.)
void read_grove(Grove& grove, Flag& pause, Script& c) {
  sync::EpochSection section(core_of(c).epochs(), cpu_of(c).epoch);
  const vma::TreeView view = grove.tree.view();
  (void)pause.raised();
  const vma::TreeSlot four = view.covering(4 * Grove::kEach);
  (void)pause.raised();
  const vma::TreeSlot five = view.next(four);
  c.expect(four.vma == grove.vma(4) && five.vma == grove.vma(5), "a slot is not found");
  c.expect(four.end == five.start, "one view has two states of the tree");
  (void)pause.raised();
  c.expect(view.covering(19 * Grove::kEach).vma == grove.vma(19), "a slot is not found");
  const char* why = "";
  c.expect(view.check(&why), "a view is no tree");
}

constexpr Cue kReadsDeadNodes[] = {{0, "Flag::raised"}, {1, ""}, {0, ""}};
constexpr Planted kTreePlanted[] = {{Guard::retire_through_epochs, kReadsDeadNodes}};

constexpr Scene kTreeReader{
    .name = "tree-reader-beside-edits",
    .ids = "B04 B12 I7",
    .story =
        "One CPU reads the VMA tree in an epoch section, without a lock. A second one moves a "
        "border "
        "between two slots and then cuts most others out, a third one waits for grace periods. The "
        "reader's view is one state of the tree, and its nodes are there until it has left.",
    .build =
        [](Stage& s) {
          s.bare = true;
          auto& grove = s.state<Grove>();
          Flag& pause = s.flag();
          s.cpu("reader", [&](Script& c) { read_grove(grove, pause, c); });
          Script& editor = s.cpu("editor", [&](Script& c) {
            grove.move_border(c);
            grove.cut(c);
            pause.raise();
          });
          s.cpu("advancer", [](Script& c) { core_of(c).quiesce(cpu_of(c)); });
          grove.plant(editor);
        },
    .planted = kTreePlanted,
};

constexpr Scene kTreeReaderTwice{
    .name = "tree-reader-in-two-sections",
    .ids = "B04 B12 I7",
    .story =
        "One CPU reads the VMA tree twice, in a section each. Another one edits it and waits for "
        "grace periods. Each view is whole, and the second is not older than the first.",
    .build =
        [](Stage& s) {
          s.bare = true;
          auto& grove = s.state<Grove>();
          Flag& pause = s.flag();
          s.cpu("reader", [&](Script& c) {
            read_grove(grove, pause, c);
            const bool moved = grove.tree.covering(5 * Grove::kEach - 1).vma == grove.vma(5);
            read_grove(grove, pause, c);
            sync::EpochSection section(core_of(c).epochs(), cpu_of(c).epoch);
            const vma::TreeSlot border = grove.tree.covering(5 * Grove::kEach - 1);
            c.expect(!moved || border.vma == grove.vma(5), "a later view is an older one");
          });
          Script& editor = s.cpu("editor", [&](Script& c) {
            grove.move_border(c);
            core_of(c).quiesce(cpu_of(c));
            pause.raise();
          });
          grove.plant(editor);
        },
    .planted = kTreePlanted,
};

constexpr const Scene* kScenes[] = {
    &kEpochReader,      &kNestedReader, &kAccessReader, &kInterruptsOffReader,
    &kReaderAndQuiesce, &kTwoAdvances,  &kTreeReader,   &kTreeReaderTwice,
};

}  // namespace

std::span<const Scene* const> epoch_scenes() { return kScenes; }

}  // namespace faultpath::check
