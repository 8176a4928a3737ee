#include "check/report/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "check/report/layout.h"
#include "check/report/names.h"
#include "check/report/text.h"

namespace faultpath::check {

namespace {

using memory::Frame;
using memory::FrameKind;
using memory::Pfn;
using pagetable::Pte;

class Painter {
 public:
  explicit Painter(const Survey& survey) : s_(survey), names_(survey) {}

  std::string paint() {
    for (unsigned i = 0; i < s_.spaces.size(); ++i) space(i);
    for (unsigned f = 1; f <= s_.stage.file_count(); ++f) file(f);
    for (const Script& script : s_.stage.scripts()) cpu(script);
    for (const std::string& what : s_.broken) line("BROKEN: {}", what);
    std::string out;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (i + 1 == kPictureLines && lines_.size() > kPictureLines) {
        out += fmt::format("... {} more lines\n", lines_.size() - i);
        break;
      }
      out += cut(lines_[i], kWidth) + '\n';
    }
    return out;
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    lines_.push_back(fmt::format(format, std::forward<Args>(args)...));
    while (lines_.back().ends_with(' ')) lines_.back().pop_back();
  }

  /// The value of a member in words of its own.
  template <class T>
  std::string value(const T& member, std::uint64_t v) const {
    return names_.value(sim::World::get().place_of(&member), v);
  }

  void space(unsigned i) {
    const vma::Mm& mm = *s_.spaces[i].mm;
    std::string state = fmt::format(
        "mmap_lock {}", value(mm.mmap_lock, layout::read<std::uint64_t>(&mm.mmap_lock, 0)));
    const auto word = layout::read<std::uint32_t>(&mm.tree_lock, 0);
    if (word != 0) state += ", tree_lock " + value(mm.tree_lock, word);
    if (const auto n = mm.flush_pending.load(env::relaxed); n != 0) {
      state += n == 1 ? ", a zap owes its flush" : fmt::format(", {} zaps owe their flushes", n);
    }
    line("{} ({}): {}", s_.spaces[i].name, name_of(mm.policy.policy), state);

    std::vector<bool> shown(s_.leaves.size());
    for (const Survey::Listed& l : s_.vmas) {
      if (l.space != i) continue;
      mapping(l);
      for (std::size_t k = 0; k < s_.leaves.size(); ++k) {
        const Survey::Leaf& leaf = s_.leaves[k];
        if (leaf.space != i || leaf.address < l.start || leaf.address >= l.end) continue;
        shown[k] = true;
        entry(leaf);
      }
    }
    bool first = true;
    for (std::size_t k = 0; k < s_.leaves.size(); ++k) {
      if (s_.leaves[k].space != i || shown[k]) continue;
      if (first) line("  in no mapping:");
      first = false;
      entry(s_.leaves[k]);
    }
    for (const Survey::Table& t : s_.tables) {
      if (t.space != i) continue;
      const Frame& f = s_.frame(t.pfn);
      if (f.lock.is_locked()) {
        line("  table L{} of {:#x} (frame {}) is locked", t.level, t.base, t.pfn);
      }
      if (f.dead.load(env::relaxed) != 0) {
        line("  table L{} of {:#x} (frame {}) is linked and marked dead", t.level, t.base, t.pfn);
      }
    }
  }

  void mapping(const Survey::Listed& l) {
    const vma::Vma& v = *l.vma;
    const std::uint32_t flags = v.flags();
    std::string what = "anon";
    if (v.file() != nullptr) {
      const unsigned number = s_.file_number(v.file());
      what = number != 0 ? fmt::format("file{}", number) : "shmem";
    }
    const std::uint64_t sequence = layout::read<std::uint64_t>(&v.sequence, 0);
    std::string more = fmt::format("sequence {}", value(v.sequence, sequence));
    if (const auto count = v.lock.count.load(env::relaxed); count != 0) {
      more = fmt::format("lock {:#x}, locked at {}", count, v.lock.sequence.load(env::relaxed));
    }
    if (v.ever_faulted()) more += ", ever faulted";
    if (const auto refs = v.refs.load(env::relaxed); refs != 1)
      more += fmt::format(", {} refs", refs);
    if (v.start() != l.start || v.end() != l.end) {
      more += fmt::format(", ITS OWN BOUNDS {:08x}-{:08x}", v.start(), v.end());
    }
    line("  {:08x}-{:08x} {}{} {:08x} {:<6} {}", l.start, l.end, rights(vma::prot_of(flags)),
         (flags & vma::kVmShared) != 0 ? 's' : 'p',
         v.file() != nullptr ? v.pgoff() << kPageShift : 0, what, more);
  }

  void entry(const Survey::Leaf& leaf) {
    line("    {:08x}  {:<20} {}", leaf.address, entry_text(leaf.pte),
         leaf.pte.has_frame() ? frame(leaf.pte.pfn(), false) : "");
  }

  /// What a file's page holds is shown with the file.
  std::string frame(Pfn p, bool with_file) const {
    if (p >= s_.frames) return "NO SUCH FRAME";
    const Frame& f = s_.frame(p);
    if (s_.kind(p) == FrameKind::zero) return "the zero page";
    std::string s = name_of(s_.kind(p));
    if (s_.kind(p) == FrameKind::free) s = "FREE";
    if (s_.kind(p) == FrameKind::cache) {
      s = fmt::format("page {}", f.index.load(env::relaxed));
      const auto flags = f.flags.load(env::relaxed);
      if (flags != 0) s += " " + value(f.flags, flags);
      if (f.page_lock.is_locked()) s += " locked";
    }
    const auto refs = f.refs.load(env::relaxed);
    s = fmt::format("{}, {} ref{}", s, refs, refs == 1 ? "" : "s");
    if (!with_file && s_.kind(p) == FrameKind::cache &&
        s_.file_number(f.owner.load(env::relaxed)) != 0) {
      return s;
    }
    std::uint64_t words[kWords];
    std::memcpy(words, s_.core.payload(p), sizeof words);
    return fmt::format("{:<16} {}", s, words_text(words));
  }

  static std::string words_text(const std::uint64_t (&words)[kWords]) {
    const auto is_stale = [](std::uint64_t w) { return w >> 32 == 0xdead; };  // Stage::finish
    const auto filled = std::count_if(words, words + kWords, [](auto w) { return w != 0; });
    if (filled == 0) return "all words 0";
    if (std::all_of(words, words + kWords, is_stale)) return "stale: never filled";
    if (filled > static_cast<long>(kWords) / 2) return "words " + numbers(words);
    std::string s;
    for (unsigned i = 0; i < kWords; ++i) {
      if (words[i] == 0) continue;
      s += fmt::format("{}word {}: {}", s.empty() ? "" : ", ", i,
                       is_stale(words[i]) ? "stale" : number(words[i]));
    }
    return s;
  }

  void file(unsigned number) {
    const cache::FileObject* const object = s_.stage.file(number).object();
    if (!Survey::sound(object)) return;
    line("file{}: {} pages", number, object->pages());
    for (Pfn p = 0; p < s_.frames; ++p) {
      if (s_.kind(p) != FrameKind::cache || s_.frame(p).owner.load(env::relaxed) != object)
        continue;
      const std::uint64_t index = s_.frame(p).index.load(env::relaxed);
      std::string behind;
      if (index < MemoryStore::kPages) {
        std::uint64_t words[kWords];
        std::uint64_t stored[kWords];
        std::memcpy(words, s_.core.payload(p), sizeof words);
        bool same = true;
        for (unsigned w = 0; w < kWords; ++w) {
          stored[w] = s_.stage.store(number).word(static_cast<unsigned>(index), w);
          same = same && stored[w] == words[w];
        }
        if (!same) behind = "in the store: " + words_text(stored);
      }
      line("  frame {:<4} {}", p, frame(p, true));
      if (!behind.empty()) line("             {}", behind);
    }
  }

  void cpu(const Script& script) {
    const memory::Cpu& cpu = s_.cpu(script);
    const unsigned inside = s_.space_of(cpu.space);
    const bool known = inside < s_.spaces.size();
    std::string state = known                  ? s_.spaces[inside].name
                        : cpu.space == nullptr ? "no space"
                                               : "a space that is gone";
    const std::uint64_t section = cpu.section.load(env::relaxed);
    if ((section & detail::kInEngine) != 0 && cpu.space != nullptr) state += ", in the engine";
    if ((section & 1) != 0) state += ", section open";
    const bool owes = cpu.flush.posted.load(env::relaxed) != cpu.flush.answered.load(env::relaxed);
    if (owes) state += ", has a flush to answer";
    line("cpu{} {} in {}{}", script.cpu(), script.name(), state,
         count_translations(cpu) == 0 ? "; no translations" : ":");
    for (const detail::TlbEntry& e : cpu.tlb) translation(e, known ? inside : ~0u, owes);
  }

  static unsigned count_translations(const memory::Cpu& cpu) {
    unsigned n = 0;
    for (const detail::TlbEntry& e : cpu.tlb) {
      if (e.read_tag != detail::kNoTag || e.write_tag != detail::kNoTag) ++n;
    }
    return n;
  }

  void translation(const detail::TlbEntry& e, unsigned inside, bool owes) {
    const bool write = e.write_tag != detail::kNoTag;
    const Addr a = write ? e.write_tag : e.read_tag;
    if (a == detail::kNoTag) return;
    const auto host = reinterpret_cast<const std::byte*>(  // NOLINT: what the TLB says
        static_cast<std::uintptr_t>(a + e.addend));
    const auto offset = static_cast<std::uint64_t>(host - s_.core.payload(0));
    std::string to = "nowhere";
    Pfn p = memory::kNoPfn;
    if (sim::World::get().contains(host) && offset / env::kPayloadBytes < s_.frames) {
      p = static_cast<Pfn>(offset / env::kPayloadBytes);
      to = fmt::format("frame {} {}", p, write ? "w" : "r");
    }
    const Pte pte = inside < s_.spaces.size() ? s_.pte(inside, a) : Pte();
    std::string wrong;
    if (!pte.present() || pte.pfn() != p || (write && !pte.writable())) {
      wrong = fmt::format("{}: its entry is {}", owes ? "stale (flush not answered)" : "STALE",
                          entry_text(pte));
    }
    line("    {:08x}  {:<20} {}", a, to, wrong);
  }

  const Survey& s_;
  const Names names_;
  std::vector<std::string> lines_;
};

}  // namespace

std::string picture(const Survey& survey) { return Painter(survey).paint(); }
std::string picture(Stage& stage) { return picture(Survey(stage)); }

}  // namespace faultpath::check
