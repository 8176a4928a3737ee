// What a person reads when the checker has found a bug: names of places, pictures, interleavings, and
// the report that is made of them.
#include "check/report/report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include "check/explore/random.h"
#include "check/explore/replay.h"
#include "check/explore/shrink.h"
#include "check/report/fold.h"
#include "check/report/interleaving.h"
#include "check/report/layout.h"
#include "check/report/names.h"
#include "check/report/picture.h"
#include "check/report/text.h"
#include "check/scene/play.h"
#include "env/sim/arena.h"

namespace faultpath::check {
namespace {

using sim::World;

sim::Place place_of(const void* at) { return World::get().place_of(at); }

bool has_text(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}
#define EXPECT_HAS(text, part) EXPECT_TRUE(has_text(text, part)) << (part) << " in\n" << (text)

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// A file of two pages, mapped privately from page 1 on, with a copy of it; anonymous memory of two
/// pages behind a gap, with one page; a second CPU.
struct ReportStage : testing::Test {
  Stage stage{PolicySpec(Policy::spf)};
  Script* first = nullptr;
  Script* second = nullptr;

  void SetUp() override {
    stage.make_file(2);
    first = &stage.cpu("first");
    second = &stage.cpu("second");
    first->map(page(0), 1, {.file = 1, .file_page = 1});
    first->map(page(4), 2);
    first->store(page(0) + 24, 33);
    first->store(page(4), 7);
    second->load(page(4));
    stage.finish();
  }
  vma::Mm& mm() { return stage.space(0).mm(); }
  vma::Vma& vma_at(Addr a) { return *mm().tree.covering(a).vma; }
  memory::MachineCore& core() { return stage.machine().core(); }
  memory::Cpu& cpu(const Script& s) { return static_cast<memory::Cpu&>(*s.soft().block()); }
  pagetable::Entry& entry(Addr a) { return mm().tables.find_leaf(a).at(a, 0); }
  memory::Pfn frame_at(Addr a) { return pagetable::Pte(entry(a).load(env::relaxed)).pfn(); }
  std::string name(const void* at) { return Names(stage).name(place_of(at)); }
};

// --- names ------------------------------------------------------------------------------------------

TEST_F(ReportStage, NamesOfLocksAndTrees) {
  EXPECT_EQ(name(&mm().mmap_lock), "mm0.mmap_lock");
  EXPECT_EQ(name(&mm().tree_lock), "mm0.tree_lock.word");
  EXPECT_EQ(name(&mm().tree), "mm0.tree.root");
  EXPECT_EQ(name(&mm().users), "mm0.users");
  EXPECT_EQ(name(&vma_at(page(4)).sequence), "vma[0x404000-0x406000].sequence");
  EXPECT_EQ(name(&vma_at(page(0)).refs), "vma[0x400000-0x401000].refs");
}

TEST_F(ReportStage, NamesOfCpus) {
  EXPECT_EQ(name(&cpu(*first).section), "cpu0.section");
  EXPECT_EQ(name(&cpu(*second).attention), "cpu1.attention");
  EXPECT_EQ(name(&cpu(*second).flush.posted), "cpu1.flush.posted");
  EXPECT_EQ(name(&cpu(*second).tlb[3].read_tag), "cpu1.tlb[3].read_tag");
  EXPECT_EQ(name(&core().cpu(0).section), "system cpu.section");
  EXPECT_EQ(name(&cpu(stage.director()).parked), "director.parked");
}

TEST_F(ReportStage, NamesOfFramesAndPages) {
  const memory::Pfn data = frame_at(page(4));
  EXPECT_EQ(name(&core().frame(data).refs), fmt::format("frame {} refs", data));
  EXPECT_EQ(name(core().payload(data) + 24), fmt::format("frame {} word 3", data));
  EXPECT_EQ(name(&entry(page(4))), "mm0.pte[0x404000]");

  const memory::Pfn leaf = core().pfn_of(*mm().tables.find_leaf(page(4)).meta);
  EXPECT_EQ(name(&core().frame(leaf).lock),
            fmt::format("frame {} lock (table L0 of 0x400000)", leaf));
  EXPECT_EQ(name(&mm().tables.root().at(page(0), 3)), "mm0.pgd[0x0]");

  first->dontneed(page(4), 1);
  EXPECT_EQ(name(core().payload(data) + 24), fmt::format("frame {} word 3 (free)", data));
}

TEST_F(ReportStage, NamesOfFilesAndOtherPlaces) {
  const cache::FileObject& file = *stage.file(1).object();
  EXPECT_EQ(name(&file.rmap_lock), "file1.rmap_lock.word");
  const Names names(stage);
  bool store_seen = false;
  const auto* const store = reinterpret_cast<const std::byte*>(&stage.store(1));
  for (std::size_t at = 0; at < sizeof(MemoryStore); at += 8) {
    std::uint64_t v = 0;
    std::memcpy(&v, store + at, sizeof v);
    if (v != 1000 + 8 + 3) continue;
    store_seen = true;
    EXPECT_EQ(names.name(place_of(store + at)), "store of file 1, page 1 word 3");
  }
  EXPECT_TRUE(store_seen);
  EXPECT_EQ(names.name(sim::Arena::kDataBytes + 2 * sim::Arena::kStackBytes + 40),
            "stack of cpu 2");
  EXPECT_EQ(names.name(place_of(&stage.flag())).substr(0, 2), "0x");
}

// The places that check/report/layout.h keeps by hand hold what the accessors say.
TEST_F(ReportStage, LayoutIsThatOfTheHeaders) {
  const vma::Vma& v = vma_at(page(0));
  const void* const behind = &v.rmap_prev + 1;
  const auto member = [&]<class T>(std::string_view name, T expected) {
    for (const layout::Member& m : layout::kVmaPrivate) {
      if (name == m.name) {
        EXPECT_EQ(layout::read<T>(behind, m.offset), expected) << name;
        EXPECT_EQ(sizeof(T), m.bytes) << name;
        return;
      }
    }
    ADD_FAILURE() << name;
  };
  ASSERT_NE(v.anon_root(), nullptr);
  member("start", v.start());
  member("end", v.end());
  member("pgoff", v.pgoff());
  member("flags", v.flags());
  member("ever_faulted", std::uint32_t{1});
  member("file", v.file());
  member("anon_root", v.anon_root());

  const cache::FileObject& file = *stage.file(1).object();
  const auto core_at = (reinterpret_cast<std::uintptr_t>(&file.rmap_lock + 1) + 7) & ~7ul;
  const void* const from = reinterpret_cast<const void*>(core_at);
  EXPECT_EQ(layout::read<const void*>(from, 0), &core());
  for (const layout::Member& m : layout::kFilePrivate) {
    const std::string_view n = m.name;
    if (n == "refs") {
      EXPECT_EQ(layout::read<std::uint32_t>(from, m.offset), 2u);  // and the VMA
    }
    if (n == "size") {
      EXPECT_EQ(layout::read<std::uint64_t>(from, m.offset), file.size());
    }
    if (n == "mappings") {
      EXPECT_EQ(layout::read<const void*>(from, m.offset), &v);
    }
    if (n == "index") {
      const auto root = layout::read<std::uint32_t>(from, m.offset);
      ASSERT_NE(root, 0u);
      EXPECT_EQ(core().frame(root - 1).kind.load(env::relaxed), memory::FrameKind::index);
    }
  }

  const auto root = layout::read<const vma::TreeNode*>(&mm().tree, layout::kTreeRoot);
  ASSERT_TRUE(Survey::sound(root));
  EXPECT_EQ(root->count, 2u);
  EXPECT_EQ(root->low[0], page(0));
  EXPECT_EQ(layout::read<memory::Pfn>(&mm().tables, layout::kPageTableRoot),
            core().pfn_of(*mm().tables.root().meta));
}

TEST_F(ReportStage, ValuesInWords) {
  const Names names(stage);
  const auto value = [&](const void* at, std::uint64_t v) { return names.value(place_of(at), v); };
  const auto mmap_word = [&] { return layout::read<std::uint64_t>(&mm().mmap_lock, 0); };
  EXPECT_EQ(value(&mm().mmap_lock, mmap_word()), "free");
  mm().mmap_lock.lock_read();
  EXPECT_EQ(value(&mm().mmap_lock, mmap_word()), "1 reader");
  mm().mmap_lock.unlock_read();
  mm().mmap_lock.lock_write();
  EXPECT_EQ(value(&mm().mmap_lock, mmap_word()), "writer");
  mm().mmap_lock.unlock_write();
  mm().tree_lock.lock_read();
  EXPECT_EQ(value(&mm().tree_lock, layout::read<std::uint32_t>(&mm().tree_lock, 0)), "1 reader");
  mm().tree_lock.unlock_read();

  const std::uint64_t word = entry(page(4)).load(env::relaxed);
  EXPECT_EQ(value(&entry(page(4)), word), fmt::format("frame {} w d a", frame_at(page(4))));
  EXPECT_EQ(value(&entry(page(4)), 0), "none");
  EXPECT_EQ(value(&vma_at(page(4)).sequence, 5), "5 (marked)");
  EXPECT_EQ(value(&vma_at(page(4)).sequence, 6), "6");
  EXPECT_EQ(value(&cpu(*first).section, detail::kInEngine + 7), "7 open, in engine");
  EXPECT_EQ(value(&core().frame(1).kind, 3), "table");
}

// What was freed, removed or cut in the run is called as it was called before.
TEST_F(ReportStage, NamesLookBack) {
  Names before(stage);
  const memory::Pfn data = frame_at(page(4));
  const void* const sequence = &vma_at(page(4)).sequence;
  first->unmap(page(4), 1);
  ASSERT_EQ(core().frame(data).kind.load(env::relaxed), memory::FrameKind::free);
  Names names(stage);
  EXPECT_EQ(names.name(place_of(sequence)), "vma[0x405000-0x406000].sequence");
  names.look_back(std::move(before));
  EXPECT_EQ(names.name(place_of(sequence)), "vma[0x404000-0x406000].sequence");
  EXPECT_EQ(names.name(place_of(core().payload(data))), fmt::format("frame {} word 0", data));
}

// --- pictures ---------------------------------------------------------------------------------------

TEST_F(ReportStage, PictureShowsMappingsPagesFilesAndTranslations) {
  const std::string p = picture(stage);
  EXPECT_HAS(p, "mm0 (spf): mmap_lock free");
  EXPECT_HAS(p, "00400000-00401000 rw-p 00001000 file1");
  EXPECT_HAS(p, "00404000-00406000 rw-p 00000000 anon   sequence 2, ever faulted");
  EXPECT_HAS(p, fmt::format("00404000  frame {} w d a", frame_at(page(4))));
  EXPECT_HAS(p, "anon, 1 ref      word 0: 7");
  // The copy of the file's page 1.
  EXPECT_HAS(p, "words 1008 1009 1010 33 1012 to 1015");
  EXPECT_HAS(p, "file1: 2 pages");
  EXPECT_HAS(p, "page 1 uptodate, 1 ref words 1008 to 1015");
  EXPECT_HAS(p, "cpu0 first in mm0:");
  EXPECT_FALSE(has_text(p, "STALE")) << p;
  EXPECT_LE(lines_of(p).size(), kPictureLines);
}

TEST_F(ReportStage, PictureShowsWhatIsLeftOver) {
  // The entry loses write, and nobody flushes; another one appears where no VMA is.
  const pagetable::Pte pte(entry(page(4)).load(env::relaxed));
  entry(page(4)).store(pte.without(pagetable::Pte::kWrite).word(), env::relaxed);
  entry(page(9)).store(pte.word(), env::relaxed);
  mm().mmap_lock.lock_write();
  mm().mark(vma_at(page(4)));
  mm().mmap_lock.unlock_write();
  const std::string p = picture(stage);
  EXPECT_HAS(p, "STALE: its entry is frame");
  EXPECT_HAS(p, "in no mapping:\n    00409000  frame");
  EXPECT_HAS(p, "sequence 3 (marked)");
}

TEST_F(ReportStage, PictureOfBrokenStructures) {
  const std::string whole = picture(stage);
  // A leaf entry that names no frame, a TLB entry to nowhere, an upper entry to a page, a tree whose
  // root is no node, and one that is its own child.
  entry(page(5)).store(pagetable::Pte::table(0xabcdef).word(), env::relaxed);
  cpu(*second).tlb[0].read_tag = page(0);
  cpu(*second).tlb[0].addend = 0x1234'5678'9abc'0000;
  EXPECT_HAS(picture(stage), "NO SUCH FRAME");
  EXPECT_HAS(picture(stage), "nowhere");

  mm().tables.root().entries[5].store(pagetable::Pte::table(frame_at(page(4))).word(),
                                      env::relaxed);
  EXPECT_HAS(picture(stage), "BROKEN: the level 2 table of mm0");

  auto* const node = layout::read<vma::TreeNode*>(&mm().tree, layout::kTreeRoot);
  node->level = 1;
  node->item[0] = node;
  EXPECT_HAS(picture(stage), "BROKEN: the tree of mm0 is broken");
  const std::uintptr_t wild = 0x5000;
  std::memcpy(static_cast<void*>(&mm().tree), &wild, sizeof wild);
  const std::string p = picture(stage);
  EXPECT_HAS(p, "BROKEN: the tree of mm0 is broken");
  EXPECT_LE(lines_of(p).size(), kPictureLines);
  EXPECT_NE(p, whole);
  for (const std::string& line : lines_of(p)) EXPECT_LE(line.size(), kWidth) << line;
}

// --- runs -------------------------------------------------------------------------------------------

const Scene* scene_named(std::string_view name) {
  for (const Scene* s : all_scenes()) {
    if (s->name == name) return s;
  }
  return nullptr;
}

TEST(Report, OfAPlantedBug) {
  Variant variant;
  variant.scene = scene_named("fork-against-speculative-copy");
  ASSERT_NE(variant.scene, nullptr);
  variant.policy = Policy::spf;
  variant.guards_off = guard_bit(Guard::fork_marks_parent);
  variant.structural = false;
  Play play(variant);
  World& world = World::get();

  RandomWalk walk(1);
  bool found = false;
  while (!found && walk.runs() < 20'000 && walk.next()) found = !play.run(walk);
  ASSERT_TRUE(found);
  Schedule failing = from_trace(world.trace());
  failing.fingerprint = play.fingerprint();
  const Schedule small = shrink(failing, [&](sim::Strategy& strategy, Schedule* executed) {
    const bool fails = !play.run(strategy);
    *executed = from_trace(world.trace());
    return fails;
  });
  const std::string command = "faultpath check --replay " + to_string(small);
  const std::string text = report(play, small, command);
  SCOPED_TRACE(text);

  const std::vector<std::string> lines = lines_of(text);
  ASSERT_FALSE(lines.empty());
  EXPECT_EQ(lines.back(), command);
  EXPECT_HAS(lines.front(), "fork-against-speculative-copy, policy spf");
  EXPECT_HAS(lines.front(), "fork_marks_parent");
  EXPECT_HAS(lines.front(), "VALUE after ");
  EXPECT_HAS(text, "No store may end up");
  EXPECT_HAS(text, "cpu0 forker ---");
  EXPECT_HAS(text, "cpu1 copier ---");
  EXPECT_HAS(text, "cpu2 writer ---");
  // The two ends of the bug: fork takes write, and the other CPU copies what is still stored to.
  EXPECT_HAS(text, " r d a  fork.cc:");
  EXPECT_HAS(text, "do_wp_page");
  EXPECT_HAS(text, "-- fork, child mm1");
  EXPECT_HAS(text, "store 0x400000 = 31, in frame");
  EXPECT_HAS(text, "mm1 (spf)");

  const auto begin = std::find(lines.begin(), lines.end(), "The run");
  const auto end = std::find(lines.begin(), lines.end(), "After the run");
  ASSERT_TRUE(begin < end && end != lines.end());
  EXPECT_LE(end - begin, static_cast<std::ptrdiff_t>(kInterleavingLines) + 4);
  for (auto it = lines.begin() + 1; it != lines.end() - 1; ++it) EXPECT_LE(it->size(), kWidth);

  // Telling a bug leaves the play as it was: the same again.
  EXPECT_EQ(report(play, small, command), text);
}

// Every place that engine code touches in a run has a name; and those of private members the right one.
TEST(Report, EveryPlaceOfARunHasAName) {
  Variant variant;
  variant.scene = scene_named("fork-against-speculative-copy");
  ASSERT_NE(variant.scene, nullptr);
  variant.policy = Policy::spf;
  Play play(variant);
  Replay in_turn{Schedule{}};
  play.run(in_turn);
  const Names names(play.stage());
  unsigned checked = 0;
  static constexpr struct {
    std::string_view function;
    std::string_view end;
  } kEnds[] = {{"Vma::start", ".start"},
               {"Vma::end", ".end"},
               {"Vma::flags", ".flags"},
               {"Vma::pgoff", ".pgoff"},
               {"Vma::ever_faulted", ".ever_faulted"},
               {"Vma::anon_root", ".anon_root"},
               {"Tree::view", ".tree.root"},
               {"EpochDomain::now", "epoch.now"}};
  for (const sim::Step& s : World::get().trace()) {
    if (s.place == sim::kNoPlace) continue;
    const std::string n = names.name(s.place);
    EXPECT_NE(n.substr(0, 2), "0x") << line_of(s.site);
    EXPECT_EQ(n.find('+'), std::string::npos) << n << " at " << line_of(s.site);
    for (const auto& e : kEnds) {
      if (function_of(s.site) != e.function) continue;
      EXPECT_TRUE(n.ends_with(e.end)) << n << " in " << e.function;
      ++checked;
    }
    if (function_of(s.site) == "Slab::take") {
      EXPECT_EQ(n.substr(0, 5), "slab ");
    }
  }
  EXPECT_GT(checked, 10u);
}

constexpr Scene kDemands{
    .name = "demands",
    .ids = "",
    .story = "The second CPU waits for the first, and is not content.",
    .build =
        [](Stage& s) {
          Flag& flag = s.flag();
          Script& first = s.cpu("first", [&flag](Script& c) {
            c.store(page(0), 5);
            flag.raise();
            c.unmap(page(0), 1);
          });
          s.cpu("second", [&flag](Script& c) {
            flag.await();
            c.expect(false, "this is not what was wanted");
          });
          first.map(page(0), 1);
        },
};

// A run that ends in the middle of a call says so.
TEST(Report, OfAViolationInTheRun) {
  Variant variant;
  variant.scene = &kDemands;
  Play play(variant);
  Schedule schedule;
  Replay in_turn{Schedule{}};
  ASSERT_FALSE(play.run(in_turn));
  // The first CPU is stopped inside its unmap.
  for (const sim::Step& s : World::get().trace()) {
    if (s.cpu == 0) schedule.append(0, false, 1);
    if (s.cpu == 0 && file_of(s.site) == "unmap.cc") break;
  }
  schedule.append(1, false, 10);
  const std::string text = report(play, schedule, "again");
  SCOPED_TRACE(text);
  EXPECT_HAS(lines_of(text).front(), "scene demands, policy mmap-lock: VALUE after ");
  EXPECT_HAS(text, "-- store 0x400000 = 5");
  EXPECT_HAS(text, "-- unmap, which does not end");
  EXPECT_HAS(text, "load   flag 0x");
  EXPECT_HAS(text, "  >>>  ");
  EXPECT_HAS(text, "value: cpu 1 (second): this is not what was wanted");
  EXPECT_HAS(text, "At the violation");
  EXPECT_HAS(text, "mmap_lock writer");
  EXPECT_EQ(lines_of(text).back(), "again");
}

constexpr Scene kInterrupted{
    .name = "interrupted",
    .ids = "",
    .story = "",
    .build =
        [](Stage& s) {
          Script& c = s.cpu("main", [](Script& m) { m.unmap(page(1), 1); });
          c.handler = [](Script& h) { h.store(page(0), 9); };
          c.map(page(0), 2);
          c.store(page(0), 1);
        },
    .injections = 1,
};

TEST(Report, MarksANestedHandler) {
  Variant variant;
  variant.scene = &kInterrupted;
  variant.policy = Policy::spf;
  Play play(variant);
  Schedule schedule;
  schedule.append(0, false, 3);
  schedule.append(0, true, 100);
  const std::string text = report(play, schedule, "again");
  SCOPED_TRACE(text);
  EXPECT_HAS(lines_of(text).front(), "nothing found");
  bool access = false;
  for (const std::string& line : lines_of(text)) {
    const bool nested = line.size() > 6 && line.substr(0, 7).find('*') != std::string::npos;
    if (has_text(line, "store 0x400000 = 9, in frame")) {
      access = true;
      EXPECT_TRUE(nested) << line;
    }
    if (has_text(line, "unmap.cc")) {
      EXPECT_FALSE(nested) << line;
    }
  }
  EXPECT_TRUE(access);
}

// --- text -------------------------------------------------------------------------------------------

struct Plain {
  template <class T>
  static sim::Site here(T) {
    return sim::Site::current();
  }
};

TEST(ReportText, FunctionsLoseWhatIsAroundTheirName) {
  EXPECT_EQ(function_of(Plain::here(std::vector<int>{})), "Plain::here");
  const auto lambda = [] { return sim::Site::current(); };
  // A lambda has the name of the function that it is in; here that is the test's body.
  EXPECT_HAS(function_of(lambda()), "TestBody");
  EXPECT_EQ(function_of(sim::Site{}), "");
  EXPECT_EQ(file_of(sim::Site::current()), "report_test.cc");
}

TEST(ReportText, NumbersInRows) {
  const std::uint64_t rising[] = {1000, 1001, 1002, 1003, 1004, 7};
  EXPECT_EQ(numbers(rising), "1000 to 1004 7");
  const std::uint64_t equal[] = {30, 0, 0, 0, 5, 5};
  EXPECT_EQ(numbers(equal), "30 0 (3 times) 5 5");
}

TEST(ReportText, LinesAreWrapped) {
  const std::string text =
      wrap(std::string(60, 'a') + ' ' + std::string(60, 'b') + "\n  short", ". ");
  EXPECT_EQ(text, ". " + std::string(60, 'a') + "\n. " + std::string(60, 'b') + "\n.   short\n");
}

TEST(ReportText, LoopsAreFolded) {
  const std::vector<std::string> lines = {"  1  begin",    "  2  try", "     ... more", "  5  try",
                                          "     ... more", "  8  try", "     ... more", " 11  end"};
  const std::vector<std::string> folded = {"  1  begin", "  2  try", "     ... more",
                                           "     ... and so again, 2 times", " 11  end"};
  EXPECT_EQ(without_repeats(lines, 5), folded);
}

}  // namespace
}  // namespace faultpath::check
