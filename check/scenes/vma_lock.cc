// Per-VMA locks: faults that hold their VMA alone, and writers that wait for them; VMAs whose memory
// becomes another VMA's between the walk and the lock.
#include "check/scenes/scenes.h"
#include "vma/mm.h"

namespace faultpath::check {

namespace {

constexpr Prot kRw = Prot::read | Prot::write;

/// A mapping that stays, so that the table stays too.
void keep_table(Script& c) {
  c.map(page(6), 1);
  c.store(page(6), 6);
}

//        page   0      1
//            [ rw ,   used ]
constexpr Cue kZappedUnderFault[] = {{0, "lock@EntryLock::"}, {1, ""}, {0, ""}};
constexpr Planted kDrainPlanted[] = {{Guard::vma_lock_drains_readers, kZappedUnderFault}};

constexpr Scene kDrains{
    .name = "writer-waits-for-faults-that-hold-a-vma",
    .ids = "B01 I1 I4",
    .story =
        "A fault holds its VMA and is about to fill the entry. Another CPU unmaps the VMA: it may "
        "not begin to clear entries before the fault is through, or the page is put in behind it "
        "and stays reachable.",
    .build =
        [](Stage& s) {
          s.cpu("faulter", [](Script& c) { c.store(page(0), 10); });
          Script& unmapper = s.cpu("unmapper", [](Script& c) {
            c.unmap(page(0), 2);
            c.load(page(0));
          });
          unmapper.map(page(0), 2);
          unmapper.store(page(1), 1);
          keep_table(unmapper);
        },
    .planted = kDrainPlanted,
    .only = Policy::vma_lock,
};

// The faulter has seen that nobody has the VMA. A writer takes it, and clears its entries.
constexpr Cue kCountedTooLate[] = {{0, "count_up"}, {1, "detach"}, {0, ""}, {1, ""}};
constexpr Planted kRecheckPlanted[] = {{Guard::vma_lock_recheck, kCountedTooLate}};

constexpr Scene kRecheck{
    .name = "vma-is-locked-while-a-fault-counts-in",
    .ids = "B14 I1 I4",
    .story =
        "A fault finds its VMA unlocked. Before it has counted itself in, another CPU locks the "
        "VMA, finds no reader to wait for, and unmaps it. The fault's second look at the sequence, "
        "with the count up, tells it.",
    .build =
        [](Stage& s) {
          s.cpu("faulter", [](Script& c) { c.store(page(0), 10); });
          Script& unmapper = s.cpu("unmapper", [](Script& c) { c.unmap(page(0), 2); });
          unmapper.map(page(0), 2);
          unmapper.store(page(1), 1);
          keep_table(unmapper);
        },
    .planted = kRecheckPlanted,
    .only = Policy::vma_lock,
};

//        space 0   page 0 [ V ]                      space 1   page 0 [ V ]
//        unmapped, and V's memory is free     ->     mapped, and V it is
constexpr Cue kRecycled[] = {{0, "count_up"}, {1, ""}, {0, ""}};
constexpr Planted kSpacePlanted[] = {{Guard::vma_lock_same_space, kRecycled}};

constexpr Scene kOtherSpace{
    .name = "vma-becomes-one-of-another-space",
    .ids = "B14 B11 I1 I7",
    .story =
        "A fault has found its VMA. Another CPU unmaps it and maps the same place in another "
        "space; "
        "the new VMA lies where the old one lay. The fault locks it, and it is unlocked, attached, "
        "and covers the address: only its space is another.",
    .build =
        [](Stage& s) {
          Script& faulter = s.cpu("faulter", [](Script& c) { c.store(page(0), 10); });
          Script& mapper = s.cpu("mapper", [](Script& c) {
            c.unmap(page(0), 1);
            c.enter(1);
            c.map(page(0), 1);
            c.store(page(0), 21);
          });
          keep_table(mapper);
          mapper.fork(1);
          mapper.map(page(0), 1);
          faulter.store(page(0), 1);
          faulter.dontneed(page(0), 1);
        },
    .planted = kSpacePlanted,
    .only = Policy::vma_lock,
};

//        page   0      1    ..   3
//            [  V  ]          [     ]
//            [     ]          [  V  ]
constexpr Planted kBoundsPlanted[] = {{Guard::vma_lock_bounds, kRecycled}};

constexpr Scene kOtherPlace{
    .name = "vma-becomes-one-of-another-place",
    .ids = "B14 I1 I7",
    .story =
        "A fault has found its VMA. Another CPU unmaps it and maps something elsewhere in the same "
        "space; the new VMA lies where the old one lay. It is unlocked, attached, and the space's: "
        "only the address is not in it.",
    .build =
        [](Stage& s) {
          Script& faulter = s.cpu("faulter", [](Script& c) { c.store(page(0), 10); });
          Script& mapper = s.cpu("mapper", [](Script& c) {
            c.unmap(page(0), 1);
            c.map(page(3), 1);
            c.store(page(3), 21);
          });
          keep_table(mapper);
          mapper.map(page(0), 1);
          faulter.store(page(0), 1);
          faulter.dontneed(page(0), 1);
        },
    .planted = kBoundsPlanted,
    .only = Policy::vma_lock,
};

constexpr Planted kResizedPlanted[] = {{Guard::vma_lock_bounds, kRecycled}};

constexpr Scene kResized{
    .name = "vma-shrinks-between-the-walk-and-the-lock",
    .ids = "B14 I1 I4",
    .story =
        "A fault has found its VMA. Another CPU unmaps the page under the fault, the last of "
        "three: "
        "the VMA stays, attached and unlocked again, and ends before the address.",
    .build =
        [](Stage& s) {
          s.cpu("faulter", [](Script& c) { c.store(page(2), 10); });
          Script& unmapper = s.cpu("unmapper", [](Script& c) {
            c.unmap(page(2), 1);
            c.load(page(2));
          });
          unmapper.map(page(0), 3);
          unmapper.store(page(0), 1);
        },
    .planted = kResizedPlanted,
    .only = Policy::vma_lock,
};

// Between its two lookups the faulter is in no section: the nodes of the old tree go.
constexpr Cue kOldView[] = {
    {0, "count_up"}, {1, "quiesce"}, {0, "load@lock_vma"}, {1, ""}, {0, ""}};
constexpr Planted kAfreshPlanted[] = {{Guard::vma_lock_lookup_afresh, kOldView}};

constexpr Scene kAfresh{
    .name = "lookup-is-repeated-after-its-section",
    .ids = "B12 I3 I7",
    .story =
        "A fault finds a VMA that is being detached, leaves its section, and looks again. "
        "Meanwhile "
        "the nodes of the tree that it saw are given back: the second look begins at the root.",
    .build =
        [](Stage& s) {
          s.cpu("faulter", [](Script& c) { c.store(page(0), 10); });
          Script& unmapper = s.cpu("unmapper", [](Script& c) {
            c.unmap(page(0), 1);
            c.quiesce();
          });
          keep_table(unmapper);
          unmapper.map(page(0), 1);
        },
    .planted = kAfreshPlanted,
    .only = Policy::vma_lock,
    .preemptions = 1,
};

// --- a VMA of space 1 that a fault of space 0 believes to be its own ------------------------------

/// What a fault has found in an older tree.
using Stale = env::atomic<vma::Vma*>;

/// A CPU that found it, and steps back from it in the end.
Stale& stale_reader(Stage& s) {
  auto& stale = s.state<Stale>();
  s.cpu("reader", [&stale](Script& c) {
    auto& cpu = static_cast<memory::Cpu&>(*c.soft().block());
    sync::EpochSection section(cpu.machine->epochs(), cpu.epoch);
    vma::Vma* const found = stale.load(env::acquire);
    if (found == nullptr) return;
    const auto r = vma::start_read(cpu, c.stage().space(0).mm(), *found);
    c.expect(r != vma::StartRead::held, "a VMA of another space was locked");
  });
  return stale;
}

/// Space 1, and the VMA in it.
void set_up_stale(Stage& s, Script& owner, Stale& stale) {
  owner.fork(1);
  owner.enter(1);
  owner.map(page(0), 1);
  owner.enter(0);
  stale.store(s.space(1).mm().tree.find(page(0)).vma, env::relaxed);
}

// The VMA is locked and has left the tree; the late reader has counted in, and not yet out.
constexpr Cue kLateReader[] = {{1, "detach"}, {0, "count_down"}, {1, ""}, {0, ""}};
constexpr Planted kDetachPlanted[] = {{Guard::vma_lock_detach_drains, kLateReader}};

constexpr Scene kDetach{
    .name = "vma-is-free-while-a-late-reader-counts-out",
    .ids = "B11 B14 I7",
    .story =
        "A fault counts itself in on a VMA that is being removed, and finds out; meanwhile the VMA "
        "is freed and becomes another one. When the fault counts itself out, it takes from the "
        "count of that one: the new VMA would have nobody, for ever. So who removes a VMA waits "
        "for "
        "late readers.",
    .build =
        [](Stage& s) {
          Stale& stale = stale_reader(s);
          Script& owner = s.cpu("owner", [](Script& c) {
            c.enter(1);
            c.unmap(page(0), 1);
            c.map(page(3), 1);
            c.store(page(3), 13);
          });
          set_up_stale(s, owner, stale);
        },
    .planted = kDetachPlanted,
    .only = Policy::vma_lock,
};

// The reader has counted in on a VMA of space 1, which is being destroyed and waits for it. It counts
// out; before it wakes the waiter, that one has seen the count, and is gone with its space.
constexpr Cue kSpaceGoes[] = {
    {0, "count_down"}, {1, "drain"}, {0, "wake_writer"}, {1, ""}, {0, ""}};
constexpr Planted kWakePlanted[] = {{Guard::vma_lock_wake_in_section, kSpaceGoes}};

constexpr Scene kWake{
    .name = "reader-wakes-a-writer-whose-space-goes",
    .ids = "B11 I7",
    .story =
        "A fault locks the VMA that it found, and it has become one of another space: it steps "
        "back. "
        "That space is being destroyed, and waits for the count to go down; as soon as it is, it "
        "may "
        "be gone, memory and all, before the fault wakes whoever waited. The fault is in an epoch "
        "section from before it found the VMA until it has.",
    .build =
        [](Stage& s) {
          Stale& stale = stale_reader(s);
          Script& owner = s.cpu("owner", [&stale](Script& c) {
            stale.store(nullptr, env::release);
            c.destroy(1);
            c.quiesce();
          });
          set_up_stale(s, owner, stale);
        },
    .planted = kWakePlanted,
    .only = Policy::vma_lock,
};

// --- what is read, and when -----------------------------------------------------------------------

// What the VMA says was read before it was locked; protect has come and gone since.
constexpr Cue kReadTooEarly[] = {{0, "start_read"}, {1, ""}, {0, ""}};
constexpr Planted kFieldsPlanted[] = {{Guard::vma_fields_after_lock, kReadTooEarly}};

constexpr Scene kFields{
    .name = "vma-is-read-before-it-is-locked",
    .ids = "B05 I1 I2",
    .story =
        "A fault has found its VMA and has not locked it. Another CPU takes write from it; the "
        "operation ends. If the fault knew the VMA's rights from before it locked it, it would "
        "store where nobody may store any more.",
    .build =
        [](Stage& s) {
          s.cpu("faulter", [](Script& c) { c.store(page(0), 10); });
          Script& protector = s.cpu("protector", [](Script& c) {
            c.protect(page(0), 1, Prot::read);
            c.load(page(0));
          });
          protector.map(page(0), 1);
          keep_table(protector);
        },
    .planted = kFieldsPlanted,
    .only = Policy::vma_lock,
};

//        page   0      1
//            [ rw, never had a page ][ r-, had one ]
constexpr Cue kNeighbourGoes[] = {{0, "Vma::ever_faulted", 3}, {1, ""}, {0, ""}};
constexpr Planted kPreparePlanted[] = {{Guard::anon_prepare_under_mmap_lock, kNeighbourGoes}};

constexpr Scene kPrepare{
    .name = "first-fault-looks-at-a-neighbour-that-goes",
    .ids = "B18 B07 I7",
    .story =
        "The first fault in a VMA may take over the anon root of a neighbour. It holds its own "
        "VMA, "
        "not that one, which another CPU unmaps: neighbours are read under the mmap lock, taken "
        "only if it is free.",
    .build =
        [](Stage& s) {
          s.cpu("faulter", [](Script& c) {
            c.store(page(0), 10);
            c.load(page(0));
          });
          Script& unmapper = s.cpu("unmapper", [](Script& c) { c.unmap(page(1), 1); });
          unmapper.map(page(0), 1, {.prot = kRw});
          unmapper.map(page(1), 1, {.prot = Prot::read | Prot::exec});
          unmapper.load(page(1));
          keep_table(unmapper);
        },
    .planted = kPreparePlanted,
    .only = Policy::vma_lock,
};

// The copier sees the entry read-only and copies; the writer still stores through its translation.
constexpr Cue kForkOwesFlush[] = {
    {0, "flush_range"}, {1, "flush_range"}, {2, ""}, {1, ""}, {0, ""}};
constexpr Planted kForkPlanted[] = {{Guard::fork_marks_parent, kForkOwesFlush}};

constexpr Scene kFork{
    .name = "fork-locks-the-parents-vmas",
    .ids = "B01 I5 I6",
    .story =
        "Fork has taken write from a page and owes the flush. A fault under the VMA's lock alone "
        "would copy the page for its space, while a third CPU goes on storing to the old one, "
        "which "
        "is the child's now.",
    .build =
        [](Stage& s) {
          Script& forker = s.cpu("forker", [](Script& c) { c.fork(1); });
          s.cpu("copier", [](Script& c) {
            c.store(page(0) + 8, 21);
            c.load(page(0));
          });
          Script& writer = s.cpu("writer", [](Script& c) { c.store(page(0), 31); });
          forker.map(page(0), 1);
          writer.store(page(0), 30);
        },
    .planted = kForkPlanted,
    .only = Policy::vma_lock,
    .preemptions = 1,
};

//        page   0    1
//   before   [ rw   rw ]       the writer has a translation of page 1
//   protect  [ rw ][ r- ]      the second VMA is new
constexpr Cue kBornUnlocked[] = {{0, "flush_range"}, {1, ""}, {2, ""}, {0, ""}};
constexpr Planted kBornPlanted[] = {{Guard::born_marked, kBornUnlocked}};

constexpr Scene kBorn{
    .name = "vma-is-locked-before-it-is-attached",
    .ids = "B02 I1 I2",
    .story =
        "A VMA that an operation makes is in the tree before the operation has ended. It is locked "
        "for write from before it is attached: a fault in it waits under the mmap lock, and does "
        "not say that a right is gone which another CPU still uses.",
    .build =
        [](Stage& s) {
          Script& protector =
              s.cpu("protector", [](Script& c) { c.protect(page(1), 1, Prot::read); });
          s.cpu("refused", [](Script& c) { c.store(page(1), 21); });
          Script& writer = s.cpu("writer", [](Script& c) { c.store(page(1) + 8, 31); });
          protector.map(page(0), 2);
          writer.store(page(1), 1);
        },
    .planted = kBornPlanted,
    .only = Policy::vma_lock,
    .preemptions = 1,
};

constexpr Scene kNoDeadlock{
    .name = "first-fault-and-a-writer-that-waits-for-it",
    .ids = "B18 I10 I11",
    .story =
        "A writer holds the mmap lock and waits for the fault that holds a VMA; the fault, the "
        "first one there, would like the mmap lock. It only tries, and goes the classic way.",
    .build =
        [](Stage& s) {
          s.cpu("faulter", [](Script& c) {
            c.store(page(0), 10);
            c.load(page(0));
          });
          Script& protector = s.cpu("protector", [](Script& c) {
            c.protect(page(0), 2, Prot::read | Prot::write | Prot::exec);
            c.protect(page(0), 1, kRw);
          });
          protector.map(page(0), 2);
          keep_table(protector);
        },
    .only = Policy::vma_lock,
};

constexpr Scene kTwoFirst{
    .name = "two-first-faults-link-one-table",
    .ids = "B18 I3 I8, rule: absent table",
    .story =
        "Two CPUs fault in two VMAs of which neither has had a page, nor a page table, while a "
        "third "
        "one unmaps a VMA beside them. Each holds its own VMA alone: tables are linked by whoever "
        "is first, under the parent table's lock, and one that a VMA still needs is not freed.",
    .build =
        [](Stage& s) {
          Script& left = s.cpu("left", [](Script& c) { c.store(page(0), 10); });
          s.cpu("right", [](Script& c) { c.store(page(2), 20); });
          s.cpu("unmapper", [](Script& c) { c.unmap(page(4), 1); });
          left.map(page(0), 1);
          left.map(page(2), 1, {.prot = kRw | Prot::exec});
          left.map(page(4), 1);
        },
    .only = Policy::vma_lock,
    .preemptions = 1,
};

constexpr const Scene* kScenes[] = {&kDrains, &kRecheck, &kOtherSpace, &kOtherPlace, &kResized,
                                    &kDetach, &kAfresh,  &kWake,       &kFields,     &kPrepare,
                                    &kFork,   &kBorn,    &kNoDeadlock, &kTwoFirst};

}  // namespace

std::span<const Scene* const> vma_lock_scenes() { return kScenes; }

}  // namespace faultpath::check
