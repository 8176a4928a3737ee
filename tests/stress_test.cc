// Everything at once in one space, and what must hold while it happens.
//
//   stress_test [--seconds N] [--policy P|all] [--seed S] [--threads N]
//
// Threads map, unmap, protect, drop, fork and touch pages of
//
//   own pages    one thread's each, in between those of the others, so that VMAs merge and split
//                across owners. The owner keeps a model of them: every content, signal and error is
//                checked exactly.
//   tracked      anonymous pages of all threads. Calls on a chunk of them take turns, so the state
//                of each page is known, and an access may have an outcome only if a state that its
//                page was in meanwhile permits it.
//   wild         anonymous pages of all threads, without turns: any signal is permitted.
//   private file the same over a private mapping of a file.
//   shared file  two views of one file. Each thread has a word in each page, which must hold what
//                it stored last through either view, whatever was unmapped, dropped or synced.
//
// Stored words name their page and storer and a number that counts up, so that a load tells whether
// the word belongs to the page, and whether it was stored before a call that must have erased it.
// Exit status: 0, 1 after a violation (one line says which), 2 for wrong arguments.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <faultpath/faultpath.h>

namespace faultpath {
namespace {

constexpr Addr kBase = 0x100000000000;
constexpr unsigned kOwnPages = 48;  // of each thread
constexpr unsigned kOwnRun = 6;     // and how many of them lie together
constexpr unsigned kChunkPages = 8;
constexpr unsigned kTrackedPages = 48;
constexpr unsigned kWildPages = 32;
constexpr unsigned kPrivateFilePages = 16;
constexpr unsigned kSharedFilePages = 16;
constexpr unsigned kMaxThreads = 64;  // a word in each page of the shared file
constexpr std::uint64_t kPoison = 0xcccccccccccccccc;

struct Options {
  unsigned seconds = 5;
  unsigned threads = 4;
  std::uint64_t seed = 1;
  std::vector<PolicySpec> policies;
};

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {  // splitmix64
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  unsigned below(unsigned n) { return static_cast<unsigned>((next() >> 32) * n >> 32); }
  bool one_in(unsigned n) { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

// ---- words --------------------------------------------------------------------------------------

enum class Kind : std::uint8_t { file = 0x46, own = 0x4f, shared = 0x53 };

/// A word: kind, thread, page, and the number of the store.
struct Word {
  std::uint64_t bits = 0;
  static Word make(Kind kind, unsigned thread, unsigned page, std::uint64_t number) {
    return {static_cast<std::uint64_t>(kind) << 56 | std::uint64_t{thread} << 48 |
            std::uint64_t{page} << 32 | (number & 0xffffffff)};
  }
  Kind kind() const { return static_cast<Kind>(bits >> 56); }
  unsigned thread() const { return (bits >> 48) & 0xff; }
  unsigned page() const { return (bits >> 32) & 0xffff; }
  std::uint64_t number() const { return bits & 0xffffffff; }
};

// ---- files --------------------------------------------------------------------------------------

/// Every word of page i is make(file, 0, first_page + i, 0).
class WordStore final : public Store {
 public:
  WordStore(unsigned pages, unsigned first_page) : words_(pages * kWordsPerPage) {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      words_[i] = initial(first_page + static_cast<unsigned>(i / kWordsPerPage));
    }
  }
  static std::uint64_t initial(unsigned page) { return Word::make(Kind::file, 0, page, 0).bits; }

  Result<std::uint64_t> read(std::uint64_t offset, std::byte* to, std::uint64_t bytes) override {
    if (offset >= size()) return std::uint64_t{0};
    const std::uint64_t n = std::min(bytes, size() - offset);
    const std::lock_guard lock(mutex_);
    std::memcpy(to, reinterpret_cast<const std::byte*>(words_.data()) + offset, n);
    return n;
  }
  Result<void> write(std::uint64_t offset, const std::byte* from, std::uint64_t bytes) override {
    if (offset > size() || bytes > size() - offset) return Errno::efbig;
    std::this_thread::yield();  // a store takes its time, and others go on meanwhile
    const std::lock_guard lock(mutex_);
    std::memcpy(reinterpret_cast<std::byte*>(words_.data()) + offset, from, bytes);
    return {};
  }
  std::uint64_t size() override { return words_.size() * sizeof(std::uint64_t); }
  void closed() override { ++closes; }

  std::uint64_t word(unsigned page, unsigned index) {
    const std::lock_guard lock(mutex_);
    return words_[page * kWordsPerPage + index];
  }
  std::atomic<int> closes{0};

 private:
  static constexpr std::size_t kWordsPerPage = kPageSize / sizeof(std::uint64_t);
  std::mutex mutex_;
  std::vector<std::uint64_t> words_;
};

// ---- violations ---------------------------------------------------------------------------------

class Referee {
 public:
  Referee(std::string policy, std::uint64_t seed) : policy_(std::move(policy)), seed_(seed) {}

  [[gnu::format(printf, 2, 3)]] void violation(const char* format, ...) {
    const std::lock_guard lock(mutex_);
    ++violations_;
    stop_.store(true, std::memory_order_relaxed);
    if (violations_ > 1) return;
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    std::fprintf(stderr, "stress: violation: policy %s, seed %" PRIu64 ": %s\n", policy_.c_str(),
                 seed_, text);
  }
  bool stopped() const { return stop_.load(std::memory_order_relaxed); }
  void stop() { stop_.store(true, std::memory_order_relaxed); }
  unsigned violations() {
    const std::lock_guard lock(mutex_);
    return violations_;
  }

 private:
  const std::string policy_;
  const std::uint64_t seed_;
  std::mutex mutex_;
  unsigned violations_ = 0;
  std::atomic<bool> stop_{false};
};

// ---- pages of all threads -----------------------------------------------------------------------

// States of a page; as bits, so that "one of these" can be said.
enum State : std::uint8_t { kUnmapped = 1, kNone = 2, kRead = 4, kWrite = 8, kAnyState = 15 };

constexpr Prot prot_of(State s) {
  return s == kWrite ? Prot::read | Prot::write : s == kRead ? Prot::read : Prot::none;
}

struct SharedPage {
  /// Version << 4 | states that the page may be in. Not used for wild pages.
  std::atomic<std::uint64_t> state{kUnmapped};
  /// Stores of thread t up to number erased[t] must be gone.
  std::atomic<std::uint32_t> erased[kMaxThreads]{};
};

/// Pages of all threads that lie together.
struct SharedArea {
  const char* name = "";
  bool tracked = false;
  unsigned first_page = 0;  // of the arena
  const File* file = nullptr;
  std::vector<SharedPage> pages;
  std::vector<std::mutex> turns;  // of each chunk of a tracked area

  SharedArea(const char* area_name, bool is_tracked, unsigned first, unsigned count, const File* f)
      : name(area_name),
        tracked(is_tracked),
        first_page(first),
        file(f),
        pages(count),
        turns(count / kChunkPages) {}
  std::uint64_t base_word(unsigned i) const {
    return file == nullptr ? 0 : WordStore::initial(first_page + i);
  }
};

/// The test under one policy.
struct Arena {
  Arena(Machine& m, AddressSpace& s, Referee& r, const Options& o, const File& private_file,
        File& the_shared_file, WordStore& the_shared_store)
      : machine(m),
        space(s),
        referee(r),
        threads(o.threads),
        seed(o.seed),
        tracked("tracked", true, o.threads * kOwnPages, kTrackedPages, nullptr),
        wild("wild", false, tracked.first_page + kTrackedPages, kWildPages, nullptr),
        private_file_area("private file", false, wild.first_page + kWildPages, kPrivateFilePages,
                          &private_file),
        shared_file(the_shared_file),
        shared_store(the_shared_store),
        shared_file_page(file_pages_begin(o) + kPrivateFilePages) {}

  static unsigned file_pages_begin(const Options& o) {
    return o.threads * kOwnPages + kTrackedPages + kWildPages;
  }
  static Addr address(unsigned page, std::uint64_t offset = 0) {
    return kBase + page * kPageSize + offset;
  }

  Machine& machine;
  AddressSpace& space;
  Referee& referee;
  const unsigned threads;
  const std::uint64_t seed;
  SharedArea tracked;
  SharedArea wild;
  SharedArea private_file_area;
  File& shared_file;
  WordStore& shared_store;          // behind it
  const unsigned shared_file_page;  // of the first view; the second follows
  /// Stores to shared pages that thread t has completed.
  std::atomic<std::uint32_t> completed[kMaxThreads]{};
  /// What thread t stored last to page i of the shared file; its own, read by all at the end.
  std::uint64_t last_in_file[kMaxThreads][kSharedFilePages] = {};
  std::atomic<std::uint64_t> operations{0};
};

std::uint64_t states_of(std::uint64_t word) { return word & kAnyState; }

// ---- a thread -----------------------------------------------------------------------------------

class Player {
 public:
  Player(Arena& arena, unsigned index)
      : arena_(arena),
        space_(arena.space),
        referee_(arena.referee),
        index_(index),
        random_(arena.seed * 1000003 + index),
        cpu_(arena.machine),
        own_(kOwnPages) {
    for (unsigned page = 0; page < kSharedFilePages; ++page) {
      arena_.last_in_file[index_][page] = WordStore::initial(arena_.shared_file_page + page);
    }
  }

  void run() {
    if (!cpu_.attached()) return violation("SoftCpu not attached");
    cpu_.enter(space_);
    std::uint64_t operations = 0;
    while (!referee_.stopped()) {
      step();
      ++operations;
    }
    cpu_.leave();
    arena_.operations += operations;
  }

 private:
  struct OwnPage {
    State state = kUnmapped;
    bool shared = false;
    std::uint64_t words[2] = {};  // first and last of the page
  };

  [[gnu::format(printf, 2, 3)]] void violation(const char* format, ...) {
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    referee_.violation("thread %u: %s", index_, text);
  }

  void step() {
    unsigned left = random_.below(100);
    const auto percent = [&](unsigned part) {
      const bool chosen = left < part;
      left -= part;  // wraps at the choice, after which nobody asks
      return chosen;
    };
    if (percent(4)) return map_own();
    if (percent(2)) return unmap_own();
    if (percent(3)) return protect_own();
    if (percent(2)) return drop_own();
    if (percent(16)) return touch_shared(arena_.tracked);
    if (percent(5)) return change_tracked();
    if (percent(8)) return touch_shared(arena_.wild);
    if (percent(4)) return change_wild(arena_.wild);
    if (percent(4)) return touch_shared(arena_.private_file_area);
    if (percent(2)) return change_wild(arena_.private_file_area);
    if (percent(8)) return touch_shared_file();
    if (percent(2)) return change_shared_file();
    if (percent(2)) return transient();
    if (percent(1)) {
      switch (random_.below(12)) {
        case 0:
        case 1:
        case 2: return fork();
        case 3: return look_around();
        case 4: return switch_context();
        default: break;
      }
    }
    touch_own();
  }

  // ---- own pages --------------------------------------------------------------------------------

  /// Where own page i lies: runs of the threads alternate.
  unsigned own_page(unsigned i) const {
    return ((i / kOwnRun) * arena_.threads + index_) * kOwnRun + i % kOwnRun;
  }
  static std::uint64_t word_offset(unsigned slot) { return slot == 0 ? 0 : kPageSize - 8; }

  struct Range {
    unsigned first;
    unsigned count;
  };
  /// A part of one run of own pages.
  Range own_range() {
    const unsigned run = random_.below(kOwnPages / kOwnRun) * kOwnRun;
    const unsigned first = random_.below(kOwnRun);
    return {run + first, 1 + random_.below(kOwnRun - first)};
  }
  static Addr address(unsigned page, std::uint64_t offset = 0) {
    return Arena::address(page, offset);
  }
  State random_rights() {
    const unsigned n = random_.below(8);
    return n == 0 ? kNone : n <= 2 ? kRead : kWrite;
  }
  MapRequest request(unsigned page, unsigned count, State rights) const {
    MapRequest r;
    r.address = address(page);
    r.length = count * kPageSize;
    r.prot = prot_of(rights);
    r.placement = Placement::fixed;
    return r;
  }

  void map_own() {
    const Range range = own_range();
    const State rights = random_rights();
    MapRequest r = request(own_page(range.first), range.count, rights);
    r.shared = random_.one_in(4);
    if (!mapped_at(space_.map(cpu_, r), r.address)) return;
    for (unsigned i = range.first; i < range.first + range.count; ++i) {
      own_[i] = {rights, r.shared, {}};
    }
    if (random_.one_in(4)) check_own(range);
  }

  void unmap_own() {
    const Range range = own_range();
    const Result<void> result =
        space_.unmap(cpu_, address(own_page(range.first)), range.count * kPageSize);
    if (!result) return violation("munmap of own pages: %s", to_string(result.error()));
    for (unsigned i = range.first; i < range.first + range.count; ++i) own_[i] = {};
    check_own(range);
  }

  void protect_own() {
    const Range range = own_range();
    const State rights = random_rights();
    const Result<void> result = space_.protect(cpu_, address(own_page(range.first)),
                                               range.count * kPageSize, prot_of(rights));
    unsigned changed = 0;
    while (changed < range.count && own_[range.first + changed].state != kUnmapped) {
      own_[range.first + changed].state = rights;
      ++changed;
    }
    expect_result("mprotect of own pages", result, changed < range.count);
    if (random_.one_in(2)) check_own(range);
  }

  void drop_own() {
    const Range range = own_range();
    const Result<void> result = space_.advise(cpu_, address(own_page(range.first)),
                                              range.count * kPageSize, Advice::dontneed);
    bool hole = false;
    for (unsigned i = range.first; i < range.first + range.count; ++i) {
      hole = hole || own_[i].state == kUnmapped;
      if (!own_[i].shared) own_[i].words[0] = own_[i].words[1] = 0;
    }
    expect_result("DONTNEED of own pages", result, hole);
    if (random_.one_in(2)) check_own(range);
  }

  void check_own(Range range) {
    for (unsigned i = range.first; i < range.first + range.count; ++i) {
      load_own(i, random_.below(2));
    }
  }

  void load_own(unsigned i, unsigned slot) {
    const OwnPage& page = own_[i];
    const Addr a = address(own_page(i), word_offset(slot));
    const Loaded<std::uint64_t> loaded = cpu_.load<std::uint64_t>(a);
    if (!expect_own("load", i, loaded.outcome(), a, page.state, Access::read)) return;
    if (loaded && loaded.value() != page.words[slot]) {
      violation("own page %u, word %u: 0x%" PRIx64 " in place of 0x%" PRIx64 "%s", own_page(i),
                slot, loaded.value(), page.words[slot], guess(loaded.value()));
    }
  }

  void touch_own() {
    const Range range = own_range();
    const unsigned i = range.first;
    const unsigned slot = random_.below(2);
    OwnPage& page = own_[i];
    const Addr a = address(own_page(i), word_offset(slot));
    switch (random_.below(8)) {
      case 0: {  // a read-modify-write
        const Loaded<std::uint64_t> old = cpu_.fetch_add<std::uint64_t>(a, 1);
        if (!expect_own("fetch_add", i, old.outcome(), a, page.state, Access::write)) return;
        if (!old) return;
        if (old.value() != page.words[slot]) {
          violation("own page %u, word %u: fetch_add found 0x%" PRIx64 ", not 0x%" PRIx64 "%s",
                    own_page(i), slot, old.value(), page.words[slot], guess(old.value()));
        }
        page.words[slot] = old.value() + 1;
        return;
      }
      case 1: {  // a whole page: only the words that are known may be other than zero
        alignas(8) std::uint64_t copy[kPageSize / 8];
        const Copied copied = cpu_.copy_in(copy, address(own_page(i)), kPageSize);
        if (!expect_own("copy_in", i, copied.outcome, address(own_page(i)), page.state,
                        Access::read)) {
          return;
        }
        if (copied.bytes != (copied.ok() ? kPageSize : 0)) {
          violation("copy_in of own page %u: %" PRIu64 " bytes", own_page(i), copied.bytes);
        }
        if (!copied.ok()) return;
        for (std::size_t w = 0; w < std::size(copy); ++w) {
          const std::uint64_t expected = w == 0                     ? page.words[0]
                                         : w == std::size(copy) - 1 ? page.words[1]
                                                                    : 0;
          if (copy[w] != expected) {
            return violation("own page %u, word at %zu: 0x%" PRIx64 " in place of 0x%" PRIx64 "%s",
                             own_page(i), w * 8, copy[w], expected, guess(copy[w]));
          }
        }
        return;
      }
      case 2:
      case 3: return load_own(i, slot);
      default: {
        const std::uint64_t word = Word::make(Kind::own, index_, own_page(i), ++own_number_).bits;
        const Outcome stored = cpu_.store<std::uint64_t>(a, word);
        if (!expect_own("store", i, stored, a, page.state, Access::write)) return;
        if (stored) page.words[slot] = word;
        return;
      }
    }
  }

  /// False after a violation.
  bool expect_own(const char* what, unsigned i, const Outcome& outcome, Addr a, State state,
                  Access access) {
    if (permitted(outcome, a, state, access)) return true;
    violation("%s of own page %u (%s): %s", what, own_page(i), state_text(state).c_str(),
              to_string(outcome).c_str());
    return false;
  }

  // ---- pages of all -----------------------------------------------------------------------------

  void touch_shared(SharedArea& area) {
    const unsigned i = random_.below(static_cast<unsigned>(area.pages.size()));
    SharedPage& page = area.pages[i];
    const unsigned slot = random_.below(2);
    const Addr a = address(area.first_page + i, word_offset(slot));
    std::uint32_t erased[kMaxThreads];
    for (unsigned t = 0; t < arena_.threads; ++t) {
      erased[t] = page.erased[t].load(std::memory_order_acquire);
    }
    const std::uint64_t before = page.state.load(std::memory_order_acquire);
    const bool stores = random_.one_in(2);
    Outcome outcome;
    if (stores) {
      outcome = cpu_.store<std::uint64_t>(
          a, Word::make(Kind::shared, index_, area.first_page + i, ++shared_number_).bits);
      arena_.completed[index_].store(shared_number_, std::memory_order_release);
    } else {
      const Loaded<std::uint64_t> loaded = cpu_.load<std::uint64_t>(a);
      outcome = loaded.outcome();
      if (loaded) check_shared_word(area, i, loaded.value(), erased);
    }
    const std::uint64_t after = page.state.load(std::memory_order_acquire);
    std::uint64_t states = kAnyState;
    if (area.tracked && (after >> 4) - (before >> 4) <= 1) {
      states = states_of(before) | states_of(after);
    }
    if (!permitted(outcome, a, states, stores ? Access::write : Access::read)) {
      violation("%s of %s page %u (%s): %s", stores ? "store" : "load", area.name,
                area.first_page + i, state_text(states).c_str(), to_string(outcome).c_str());
    }
  }

  void check_shared_word(const SharedArea& area, unsigned i, std::uint64_t value,
                         const std::uint32_t* erased) {
    if (value == area.base_word(i)) return;
    const unsigned page = area.first_page + i;
    const Word word{value};
    if (word.kind() != Kind::shared || word.page() != page || word.thread() >= arena_.threads) {
      return violation("load of %s page %u: 0x%" PRIx64 " was never stored there%s", area.name,
                       page, value, guess(value));
    }
    if (erased != nullptr && word.number() <= erased[word.thread()]) {
      violation("load of %s page %u: store %" PRIu64
                " of thread %u is back; all up to %u were "
                "erased",
                area.name, page, word.number(), word.thread(), erased[word.thread()]);
    }
  }

  /// What has been stored to shared pages before now.
  struct Stored {
    std::uint32_t numbers[kMaxThreads];
  };
  Stored stored_so_far() const {
    Stored stored{};
    for (unsigned t = 0; t < arena_.threads; ++t) {
      stored.numbers[t] = arena_.completed[t].load(std::memory_order_acquire);
    }
    return stored;
  }
  void erased(SharedPage& page, const Stored& stored) {
    for (unsigned t = 0; t < arena_.threads; ++t) {
      std::uint32_t floor = page.erased[t].load(std::memory_order_relaxed);
      while (floor < stored.numbers[t] &&
             !page.erased[t].compare_exchange_weak(floor, stored.numbers[t],
                                                   std::memory_order_acq_rel)) {
      }
    }
  }

  static void publish(SharedPage& page, std::uint64_t states) {
    const std::uint64_t version = page.state.load(std::memory_order_relaxed) >> 4;
    page.state.store((version + 1) << 4 | states, std::memory_order_release);
  }

  /// One call on a part of one chunk, whose turn is taken.
  void change_tracked() {
    SharedArea& area = arena_.tracked;
    const unsigned chunk = random_.below(kTrackedPages / kChunkPages);
    const unsigned begin = random_.below(kChunkPages);
    const unsigned count = 1 + random_.below(kChunkPages - begin);
    const unsigned first = chunk * kChunkPages + begin;
    const unsigned page = area.first_page + first;
    const State rights = random_rights();
    const std::lock_guard turn(area.turns[chunk]);

    State old[kChunkPages];
    unsigned mapped_prefix = 0;  // pages before the first hole
    bool hole = false;
    bool any_mapped = false;
    for (unsigned i = 0; i < count; ++i) {
      old[i] = static_cast<State>(
          states_of(area.pages[first + i].state.load(std::memory_order_relaxed)));
      hole = hole || old[i] == kUnmapped;
      any_mapped = any_mapped || old[i] != kUnmapped;
      if (!hole) ++mapped_prefix;
    }
    const auto become = [&](State now, unsigned changed) {
      for (unsigned i = 0; i < changed; ++i) publish(area.pages[first + i], old[i] | now);
    };
    const auto became = [&](State now, unsigned changed) {
      for (unsigned i = 0; i < changed; ++i) publish(area.pages[first + i], now);
    };
    const Stored stored = stored_so_far();
    const auto erase = [&] {
      for (unsigned i = 0; i < count; ++i) erased(area.pages[first + i], stored);
    };

    switch (random_.below(8)) {
      case 0:
      case 1: {
        become(rights, count);  // in one step: nobody sees the pages unmapped
        const MapRequest r = request(page, count, rights);
        if (!mapped_at(space_.map(cpu_, r), r.address)) return;
        became(rights, count);
        return erase();
      }
      case 2: {
        if (!any_mapped) become(rights, count);
        MapRequest r = request(page, count, rights);
        r.placement = Placement::fixed_noreplace;
        const Result<Addr> result = space_.map(cpu_, r);
        if (any_mapped) {
          if (result || result.error() != Errno::eexist) {
            violation("fixed_noreplace over mapped pages %u+%u: %s", page, count,
                      result ? "success" : to_string(result.error()));
          }
          return;
        }
        if (!mapped_at(result, r.address)) return;
        return became(rights, count);
      }
      case 3:
      case 4: {
        become(kUnmapped, count);
        const Result<void> result = space_.unmap(cpu_, address(page), count * kPageSize);
        if (!result) return violation("munmap of tracked pages: %s", to_string(result.error()));
        became(kUnmapped, count);
        erase();
        const Loaded<std::uint64_t> loaded = cpu_.load<std::uint64_t>(address(page));
        if (!permitted(loaded.outcome(), address(page), kUnmapped, Access::read)) {
          violation("load of tracked page %u, just unmapped: %s", page,
                    to_string(loaded.outcome()).c_str());
        }
        return;
      }
      case 5:
      case 6: {
        become(rights, mapped_prefix);
        const Result<void> result =
            space_.protect(cpu_, address(page), count * kPageSize, prot_of(rights));
        became(rights, mapped_prefix);
        return expect_result("mprotect of tracked pages", result, hole);
      }
      default: {
        const Result<void> result =
            space_.advise(cpu_, address(page), count * kPageSize, Advice::dontneed);
        expect_result("DONTNEED of tracked pages", result, hole);
        return erase();
      }
    }
  }

  /// One call on any part, whatever others do to it meanwhile.
  void change_wild(SharedArea& area) {
    const unsigned size = static_cast<unsigned>(area.pages.size());
    const unsigned first = random_.below(size);
    const unsigned count = 1 + random_.below(std::min(size - first, kChunkPages));
    const unsigned page = area.first_page + first;
    const State rights = random_rights();
    const Stored stored = stored_so_far();
    const unsigned what = random_.below(8);
    if (what <= 2) {
      MapRequest r = request(page, count, rights);
      r.file = area.file;
      if (r.file != nullptr) r.offset = first * kPageSize;
      if (!mapped_at(space_.map(cpu_, r), r.address)) return;
    } else if (what <= 4) {
      const Result<void> result = space_.unmap(cpu_, address(page), count * kPageSize);
      if (!result) return violation("munmap of %s: %s", area.name, to_string(result.error()));
    } else if (what <= 6) {
      const Result<void> result =
          space_.protect(cpu_, address(page), count * kPageSize, prot_of(rights));
      if (!result && result.error() != Errno::enomem) {
        violation("mprotect of %s: %s", area.name, to_string(result.error()));
      }
      return;
    } else {
      const Result<void> result =
          space_.advise(cpu_, address(page), count * kPageSize, Advice::dontneed);
      if (!result && result.error() != Errno::enomem) {
        return violation("DONTNEED of %s: %s", area.name, to_string(result.error()));
      }
    }
    for (unsigned i = 0; i < count; ++i) erased(area.pages[first + i], stored);
  }

  // ---- the shared file --------------------------------------------------------------------------

  void touch_shared_file() {
    const unsigned page = random_.below(kSharedFilePages);
    const unsigned view = random_.below(2);
    const unsigned thread = random_.one_in(4) ? random_.below(arena_.threads) : index_;
    const Addr a = address(arena_.shared_file_page + view * kSharedFilePages + page, thread * 8);
    std::uint64_t& last = arena_.last_in_file[index_][page];
    if (thread == index_ && random_.one_in(2)) {
      const std::uint64_t word =
          Word::make(Kind::shared, index_, arena_.shared_file_page + page, ++file_number_).bits;
      if (random_.one_in(16)) {  // by the handle, as another process would
        const Result<std::uint64_t> written =
            arena_.shared_file.write_at(page * kPageSize + thread * 8, &word, 8);
        if (!written) return violation("write_at: %s", to_string(written.error()));
        if (written.value() != 8) return violation("write_at wrote %" PRIu64, written.value());
        last = word;
        return;
      }
      const Outcome stored = cpu_.store<std::uint64_t>(a, word);
      if (stored) last = word;
      if (!permitted(stored, a, kAnyState, Access::write)) {
        violation("store to the shared file: %s", to_string(stored).c_str());
      }
      return;
    }
    const Loaded<std::uint64_t> loaded = cpu_.load<std::uint64_t>(a);
    if (!permitted(loaded.outcome(), a, kAnyState, Access::read)) {
      return violation("load from the shared file: %s", to_string(loaded.outcome()).c_str());
    }
    if (loaded) check_file_word(page, thread, loaded.value(), "");
  }

  void check_file_word(unsigned page, unsigned thread, std::uint64_t value, const char* where) {
    const Word word{value};
    const bool initial = value == WordStore::initial(arena_.shared_file_page + page);
    const bool belongs = initial || (word.kind() == Kind::shared && word.thread() == thread &&
                                     word.page() == arena_.shared_file_page + page);
    if (!belongs) {
      violation("shared file%s, page %u, word of thread %u: 0x%" PRIx64 " was never stored there%s",
                where, page, thread, value, guess(value));
    } else if (thread == index_ && value != arena_.last_in_file[index_][page]) {
      violation("shared file%s, page %u: 0x%" PRIx64 " in place of 0x%" PRIx64 ", stored last",
                where, page, value, arena_.last_in_file[index_][page]);
    }
  }

  void change_shared_file() {
    const unsigned first = random_.below(kSharedFilePages);
    const unsigned count = 1 + random_.below(kSharedFilePages - first);
    const unsigned view = random_.below(2);
    const unsigned page = arena_.shared_file_page + view * kSharedFilePages + first;
    const State rights = random_rights();
    switch (random_.below(8)) {
      case 0:
      case 1:
      case 2: {
        MapRequest r = request(page, count, rights);
        r.shared = true;
        r.file = &arena_.shared_file;
        r.offset = first * kPageSize;
        mapped_at(space_.map(cpu_, r), r.address);
        return;
      }
      case 3: {
        const Result<void> unmapped = space_.unmap(cpu_, address(page), count * kPageSize);
        if (!unmapped) violation("munmap of the file: %s", to_string(unmapped.error()));
        return;
      }
      case 4:
        return may_have_holes(
            "mprotect of the file",
            space_.protect(cpu_, address(page), count * kPageSize, prot_of(rights)));
      case 5:
        return may_have_holes(
            "DONTNEED of the file",
            space_.advise(cpu_, address(page), count * kPageSize, Advice::dontneed));
      case 6: return may_have_holes("msync", space_.sync(cpu_, address(page), count * kPageSize));
      default: {
        const Result<void> synced = arena_.shared_file.sync();
        if (!synced) return violation("sync of the file: %s", to_string(synced.error()));
        for (unsigned i = 0; i < kSharedFilePages; ++i) {
          check_file_word(i, index_, arena_.shared_store.word(i, index_), " in the store");
        }
        std::uint64_t word = 0;
        const Result<std::uint64_t> read =
            arena_.shared_file.read_at(first * kPageSize + index_ * 8, &word, 8);
        if (!read || read.value() != 8) return violation("read_at of the file failed");
        return check_file_word(first, index_, word, " by read_at");
      }
    }
  }

  // ---- other things -----------------------------------------------------------------------------

  /// Maps somewhere, uses it, unmaps it.
  void transient() {
    const unsigned count = 1 + random_.below(16);
    MapRequest r;
    r.length = count * kPageSize;
    r.prot = Prot::read | Prot::write;
    r.shared = random_.one_in(4);
    const Result<Addr> mapped = space_.map(cpu_, r);
    if (!mapped) return violation("mmap anywhere: %s", to_string(mapped.error()));
    const Addr base = mapped.value();
    for (unsigned i = 0; i < count; ++i) {
      const Addr a = base + i * kPageSize + random_.below(kPageSize / 8) * 8;
      if (random_.one_in(2)) {
        const Loaded<std::uint64_t> loaded = cpu_.load<std::uint64_t>(a);
        if (!loaded) {
          return violation("load of a new page: %s", to_string(loaded.outcome()).c_str());
        }
        if (loaded.value() != 0) {
          return violation("a new page holds 0x%" PRIx64 "%s", loaded.value(),
                           guess(loaded.value()));
        }
      }
      const Outcome stored = cpu_.store<std::uint64_t>(a, base + i);
      if (!stored) return violation("store to a new page: %s", to_string(stored).c_str());
      const Loaded<std::uint64_t> again = cpu_.load<std::uint64_t>(a);
      if (!again || again.value() != base + i) return violation("a new page lost a store");
    }
    const Result<void> unmapped = space_.unmap(cpu_, base, r.length);
    if (!unmapped) violation("munmap of new pages: %s", to_string(unmapped.error()));
  }

  /// A child that shares pages with its parent until one of them writes; then it goes.
  void fork() {
    Result<AddressSpace> forked = space_.fork(cpu_);
    if (!forked) return violation("fork: %s", to_string(forked.error()));
    AddressSpace child = std::move(forked).value();
    std::vector<OwnPage> other = own_;  // what the one that is not running has

    switch_to(child, other);
    for (int n = 0; n < 16; ++n) touch_own();
    for (int n = 0; n < 8; ++n) {
      const unsigned shared = random_.below(kTrackedPages);
      const Loaded<std::uint64_t> loaded =
          cpu_.load<std::uint64_t>(address(arena_.tracked.first_page + shared));
      if (loaded) check_shared_word(arena_.tracked, shared, loaded.value(), nullptr);
      const unsigned page = random_.below(kSharedFilePages);
      const Loaded<std::uint64_t> word =
          cpu_.load<std::uint64_t>(address(arena_.shared_file_page + page, index_ * 8));
      if (word) check_file_word(page, index_, word.value(), " in the child");
    }
    switch_to(space_, other);
    for (int n = 0; n < 16; ++n) touch_own();
    switch_to(child, other);
    check_own({0, kOwnPages});
    switch_to(space_, other);
    check_own({0, kOwnPages});
  }

  /// Between parent and child: the models change places, and what is shared is in both.
  void switch_to(AddressSpace& space, std::vector<OwnPage>& other) {
    for (unsigned i = 0; i < kOwnPages; ++i) {
      if (own_[i].shared) other[i] = own_[i];
    }
    own_.swap(other);
    cpu_.enter(space);
  }

  void look_around() {
    Addr last_end = 0;
    bool sound = true;
    space_.for_each_vma(cpu_, [&](const VmaInfo& v) {
      sound = sound && v.start < v.end && v.start >= last_end && v.start % kPageSize == 0 &&
              v.end % kPageSize == 0;
      last_end = v.end;
    });
    if (!sound) violation("VMAs overlap or are out of order");
    (void)space_.info(cpu_);
  }

  void switch_context() {
    cpu_.leave();
    const Outcome outcome = cpu_.store<std::uint64_t>(address(own_page(0)), kPoison);
    if (outcome != Outcome::refused(RefusedReason::not_entered, address(own_page(0)))) {
      violation("store outside the space: %s", to_string(outcome).c_str());
    }
    cpu_.enter(space_);
  }

  // ---- what is permitted ------------------------------------------------------------------------

  /// May an access end so, if its page was in one of `states` meanwhile?
  static bool permitted(const Outcome& outcome, Addr a, std::uint64_t states, Access access) {
    const std::uint64_t good = access == Access::read ? kRead | kWrite : kWrite;
    if (outcome.ok()) return (states & good) != 0;
    if (!outcome.is_signal() || outcome.signal_number() != kSigSegv) return false;
    if (outcome.address() != a || outcome.access() != access) return false;
    if (outcome.signal_code() == kSegvMapErr) return (states & kUnmapped) != 0;
    if (outcome.signal_code() != kSegvAccErr) return false;
    return (states & kAnyState & ~(good | kUnmapped)) != 0;
  }
  static std::string state_text(std::uint64_t states) {
    std::string text;
    const auto add = [&](std::uint64_t bit, const char* word) {
      if ((states & bit) == 0) return;
      if (!text.empty()) text += '|';
      text += word;
    };
    add(kUnmapped, "unmapped");
    add(kNone, "none");
    add(kRead, "r");
    add(kWrite, "rw");
    return text;
  }
  static const char* guess(std::uint64_t value) {
    if (value == kPoison) return " (a freed frame)";
    switch (Word{value}.kind()) {
      case Kind::file: return " (a file's)";
      case Kind::own: return " (of an own page)";
      case Kind::shared: return " (of a shared page)";
    }
    return "";
  }

  bool mapped_at(const Result<Addr>& result, Addr a) {
    if (result && result.value() == a) return true;
    violation("mmap at 0x%" PRIx64 ": %s", a, result ? "elsewhere" : to_string(result.error()));
    return false;
  }
  void expect_result(const char* what, const Result<void>& result, bool hole) {
    if (hole ? !result && result.error() == Errno::enomem : result.has_value()) return;
    violation("%s %s a hole: %s", what, hole ? "with" : "without",
              result ? "success" : to_string(result.error()));
  }
  void may_have_holes(const char* what, const Result<void>& result) {
    if (result || result.error() == Errno::enomem) return;
    violation("%s: %s", what, to_string(result.error()));
  }

  Arena& arena_;
  AddressSpace& space_;
  Referee& referee_;
  const unsigned index_;
  Random random_;
  SoftCpu cpu_;
  std::vector<OwnPage> own_;
  std::uint64_t own_number_ = 0;
  std::uint32_t shared_number_ = 0;
  std::uint64_t file_number_ = 0;
};

// ---- one policy ---------------------------------------------------------------------------------

void check_counters(const Counters& c, Referee& referee) {
  if (c.faults != c.minor_faults + c.major_faults + c.fault_signals + c.fault_oom) {
    referee.violation("counters: %" PRIu64 " faults, but %" PRIu64 " minor, %" PRIu64
                      " major, %" PRIu64 " signals, %" PRIu64 " out of memory",
                      c.faults, c.minor_faults, c.major_faults, c.fault_signals, c.fault_oom);
  }
  const std::uint64_t settled = c.spf + c.spf_vma_access + c.vma_lock_success + c.classic_settled;
  if (c.faults != settled || c.classic_entered != c.classic_settled) {
    referee.violation("counters: %" PRIu64 " faults, %" PRIu64 " settled; classic: %" PRIu64
                      " entered, %" PRIu64 " settled",
                      c.faults, settled, c.classic_entered, c.classic_settled);
  }
}

/// False after a violation.
bool run_policy(const Options& options, const PolicySpec& policy) {
  Referee referee(to_string(policy), options.seed);
  const unsigned file_pages = Arena::file_pages_begin(options);
  WordStore private_store(kPrivateFilePages, file_pages);
  WordStore shared_store(kSharedFilePages, file_pages + kPrivateFilePages);
  MachineOptions machine_options;
  machine_options.memory_bytes = (std::uint64_t{4096} + options.threads * 2048) * kPageSize;
  machine_options.max_cpus = options.threads + 8;
  machine_options.poison_freed_frames = true;
  Result<Machine> made = Machine::create(machine_options);
  if (!made) {
    referee.violation("Machine::create: %s", to_string(made.error()));
    return false;
  }
  Machine machine = std::move(made).value();
  machine.quiesce();
  const std::uint64_t in_use_at_start = machine.memory().in_use;

  std::uint64_t operations = 0;
  {
    Result<File> private_file =
        machine.new_file(private_store, {.readable = true, .writable = false});
    Result<File> shared_file = machine.new_file(shared_store, {.readable = true, .writable = true});
    SpaceOptions space_options;
    space_options.policy = policy;
    std::optional<Result<AddressSpace>> space(machine.new_space(space_options));
    if (!private_file || !shared_file || !*space) {
      referee.violation("files and space could not be made");
      return false;
    }
    const auto arena =
        std::make_unique<Arena>(machine, space->value(), referee, options, private_file.value(),
                                shared_file.value(), shared_store);
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < options.threads; ++t) {
      threads.emplace_back([&arena, t] { std::make_unique<Player>(*arena, t)->run(); });
    }
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(options.seconds);
    while (!referee.stopped() && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    referee.stop();
    for (std::thread& thread : threads) thread.join();
    operations = arena->operations;

    space.reset();
    const Result<void> synced = shared_file->sync();
    if (!synced) referee.violation("last sync: %s", to_string(synced.error()));
    for (unsigned t = 0; t < options.threads && referee.violations() == 0; ++t) {
      for (unsigned page = 0; page < kSharedFilePages; ++page) {
        const std::uint64_t last = arena->last_in_file[t][page];
        if (shared_store.word(page, t) != last) {
          referee.violation("store of the shared file, page %u, word of thread %u: 0x%" PRIx64
                            " in place of 0x%" PRIx64,
                            page, t, shared_store.word(page, t), last);
        }
      }
    }
  }

  machine.quiesce();
  const MemoryInfo memory = machine.memory();
  if (memory.in_use != in_use_at_start) {
    referee.violation("%" PRIu64 " frames in use at the end, %" PRIu64 " at the start",
                      memory.in_use, in_use_at_start);
  }
  if (private_store.closes != 1 || shared_store.closes != 1) {
    referee.violation("stores closed %d and %d times", private_store.closes.load(),
                      shared_store.closes.load());
  }
  const Counters counters = machine.counters();
  check_counters(counters, referee);
  std::printf("stress: policy %s, %u threads, %u s, %" PRIu64 " operations, %" PRIu64
              " faults, %u violations\n",
              to_string(policy).c_str(), options.threads, options.seconds, operations,
              counters.faults, referee.violations());
  std::fflush(stdout);
  return referee.violations() == 0;
}

// ---- arguments ----------------------------------------------------------------------------------

bool parse_number(const char* text, std::uint64_t low, std::uint64_t high, std::uint64_t& number) {
  char* end = nullptr;
  if (text == nullptr || *text < '0' || *text > '9') return false;
  number = std::strtoull(text, &end, 0);
  return *end == '\0' && number >= low && number <= high;
}

std::optional<Options> parse(int argc, char** argv) {
  Options options;
  std::string_view policies = "all";
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : nullptr;
    std::uint64_t number = 0;
    if (option == "--policy" && value != nullptr) {
      policies = value;
    } else if (option == "--seconds" && parse_number(value, 1, 1000000, number)) {
      options.seconds = static_cast<unsigned>(number);
    } else if (option == "--threads" && parse_number(value, 1, kMaxThreads, number)) {
      options.threads = static_cast<unsigned>(number);
    } else if (option == "--seed" && parse_number(value, 0, ~std::uint64_t{0}, number)) {
      options.seed = number;
    } else {
      return std::nullopt;
    }
  }
  if (policies == "all") {
    for (Policy p : kAllPolicies) options.policies.emplace_back(p);
    return options;
  }
  const Result<PolicySpec> policy = parse_policy(policies);
  if (!policy) return std::nullopt;
  options.policies.push_back(policy.value());
  return options;
}

int run(int argc, char** argv) {
  const std::optional<Options> options = parse(argc, argv);
  if (!options) {
    std::fprintf(stderr,
                 "usage: %s [--seconds N] [--policy P|all] [--seed S] [--threads N (1..%u)]\n",
                 argv[0], kMaxThreads);
    return 2;
  }
  bool good = true;
  for (const PolicySpec& policy : options->policies) good = run_policy(*options, policy) && good;
  return good ? 0 : 1;
}

}  // namespace
}  // namespace faultpath

int main(int argc, char** argv) { return faultpath::run(argc, argv); }
