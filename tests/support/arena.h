// The little language of the semantics tests: an arena of pages at kBase, and steps on it that read
// like the sequences they test.
//
//   map(0, 4, "rw", "pa");               // fixed, pages 0..3, private anonymous
//   EXPECT_EQ(r(0), "00");               // one byte, or MAPERR, ACCERR, BUS, OOM
//   EXPECT_EQ(protect(0, 9, "r"), "ENOMEM");
//   EXPECT_EQ(vmas(), "[0,4)r");
//
// A step that nobody compares with anything must succeed, else the test fails.
#pragma once

#include <faultpath/faultpath.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace faultpath {

inline void PrintTo(const PolicySpec& spec, std::ostream* out) { *out << to_string(spec); }
inline void PrintTo(Errno error, std::ostream* out) { *out << to_string(error); }
inline void PrintTo(const Outcome& outcome, std::ostream* out) { *out << to_string(outcome); }

namespace test {

inline constexpr std::uint64_t kPage = kPageSize;
/// Page 0 of the arena: nothing is mapped from 512 pages before it to 8192 pages after it.
inline constexpr Addr kBase = 0x100000000000;
inline constexpr long kArenaLow = -512;
inline constexpr long kArenaHigh = 8192;

constexpr Addr at(long page, std::uint64_t offset = 0) {
  return kBase + static_cast<Addr>(page) * kPage + offset;
}

// ---- words --------------------------------------------------------------------------------------

/// "ok", "MAPERR", "ACCERR", "BUS", "BUS_ADRALN", "OOM", "INTERRUPTED", "REFUSED".
inline const char* name(const Outcome& o) {
  switch (o.kind()) {
    case Outcome::Kind::done: return "ok";
    case Outcome::Kind::signal:
      if (o.signal_number() == kSigBus) return o.signal_code() == kBusAdrErr ? "BUS" : "BUS_ADRALN";
      if (o.signal_number() != kSigSegv) return "signal?";
      if (o.signal_code() == kSegvMapErr) return "MAPERR";
      if (o.signal_code() == kSegvAccErr) return "ACCERR";
      return "SEGV?";
    case Outcome::Kind::out_of_memory: return "OOM";
    case Outcome::Kind::interrupted: return "INTERRUPTED";
    case Outcome::Kind::refused: return "REFUSED";
  }
  return "?";
}

/// "r", "rw", "rwx", "none", ... to a Prot.
inline Prot rights(std::string_view text) {
  Prot prot = Prot::none;
  if (text == "none") return prot;
  for (char c : text) {
    switch (c) {
      case 'r': prot = prot | Prot::read; break;
      case 'w': prot = prot | Prot::write; break;
      case 'x': prot = prot | Prot::exec; break;
      default: ADD_FAILURE() << "rights: " << text;
    }
  }
  return prot;
}

inline std::string rights_text(Prot prot) {
  std::string text;
  if (has(prot, Prot::read)) text += 'r';
  if (has(prot, Prot::write)) text += 'w';
  if (has(prot, Prot::exec)) text += 'x';
  return text.empty() ? "none" : text;
}

/// A byte as r() shows it: two hexadecimal digits.
inline std::string hex(unsigned value) {
  char text[8];
  std::snprintf(text, sizeof text, "%02x", value & 0xff);
  return text;
}

inline std::string text(const Result<void>& result) {
  return result ? "0" : to_string(result.error());
}

/// An address that a call returned: "A+16P", "A-1P", "elsewhere" outside the arena; or the error.
inline std::string text(const Result<Addr>& result) {
  if (!result) return to_string(result.error());
  const Addr a = result.value();
  if (a < at(kArenaLow) || a >= at(kArenaHigh)) return "elsewhere";
  const bool below = a < kBase;
  const std::uint64_t distance = below ? kBase - a : a - kBase;
  std::string said = "A";
  if (distance >= kPage) said += (below ? "-" : "+") + std::to_string(distance / kPage) + "P";
  if (distance % kPage) said += (below ? "-" : "+") + std::to_string(distance % kPage);
  return said;
}

/// What a step gave, as text. One that goes out of scope uncompared must have succeeded.
class Step {
 public:
  Step(std::string step, std::string said, bool success)
      : step_(std::move(step)), said_(std::move(said)), success_(success) {}
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;
  ~Step() {
    if (!looked_at_ && !success_) ADD_FAILURE() << step_ << ": " << said_;
  }

  friend bool operator==(const Step& step, std::string_view expected) {
    step.looked_at_ = true;
    return step.said_ == expected;
  }
  friend std::ostream& operator<<(std::ostream& out, const Step& step) {
    step.looked_at_ = true;
    return out << step.said_ << "  <- " << step.step_;
  }

 private:
  std::string step_;
  std::string said_;
  bool success_;
  mutable bool looked_at_ = false;
};

// ---- files --------------------------------------------------------------------------------------

/// A Store in memory that remembers how it was used and fails on request. The bytes may be looked
/// at while no one else uses the file.
class MemoryStore final : public Store {
 public:
  /// F(n): every byte of page i is 0x40 + i.
  explicit MemoryStore(std::uint64_t bytes) : bytes_(bytes) {
    for (std::uint64_t i = 0; i < bytes; ++i) {
      bytes_[i] = static_cast<std::byte>(0x40 + i / kPage);
    }
  }

  Result<std::uint64_t> read(std::uint64_t offset, std::byte* to, std::uint64_t bytes) override {
    ++reads;
    if (const int error = fail_reads.load(); error != 0) return static_cast<Errno>(error);
    if (offset >= bytes_.size()) return std::uint64_t{0};
    const std::uint64_t n = std::min<std::uint64_t>(bytes, bytes_.size() - offset);
    std::memcpy(to, bytes_.data() + offset, n);
    return n;
  }
  Result<void> write(std::uint64_t offset, const std::byte* from, std::uint64_t bytes) override {
    ++writes;
    if (const int error = fail_writes.load(); error != 0) return static_cast<Errno>(error);
    if (offset > bytes_.size() || bytes > bytes_.size() - offset) {
      ++overruns;
      return Errno::efbig;
    }
    std::memcpy(bytes_.data() + offset, from, bytes);
    return {};
  }
  std::uint64_t size() override { return bytes_.size(); }
  void closed() override { ++closes; }

  unsigned byte(std::uint64_t offset) const { return static_cast<unsigned>(bytes_.at(offset)); }

  /// An error number, or 0.
  std::atomic<int> fail_reads{0};
  std::atomic<int> fail_writes{0};
  std::atomic<int> reads{0};
  std::atomic<int> writes{0};
  /// Writes that would have gone beyond the end of the file.
  std::atomic<int> overruns{0};
  std::atomic<int> closes{0};

 private:
  std::vector<std::byte> bytes_;
};

inline constexpr FileMode kReadWrite{.readable = true, .writable = true};
inline constexpr FileMode kReadOnly{.readable = true, .writable = false};
inline constexpr FileMode kWriteOnly{.readable = false, .writable = true};

/// An open file over a MemoryStore that the World keeps.
struct TestFile {
  MemoryStore* store;
  File file;
  operator const File*() const { return &file; }  // NOLINT: implicit, as an argument of map()
};

// ---- machine and processes ----------------------------------------------------------------------

inline MachineOptions test_machine() {
  MachineOptions options;
  options.poison_freed_frames = true;
  return options;
}

/// A machine with one SoftCpu that the processes of a test take turns on. Its end checks that all
/// memory came back.
class World {
 public:
  explicit World(const MachineOptions& options = test_machine())
      : machine(Machine::create(options).value()), cpu(machine) {
    machine.quiesce();
    in_use_at_start_ = machine.memory().in_use;
  }
  ~World() {
    cpu.leave();
    machine.quiesce();
    EXPECT_EQ(machine.memory().in_use, in_use_at_start_) << "frames are left in use";
  }
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  void enter(AddressSpace& space) {
    if (inside_ != &space) cpu.enter(space);
    inside_ = &space;
  }
  void leave(const AddressSpace& space) {
    if (inside_ == &space) leave();
  }
  void leave() {
    cpu.leave();
    inside_ = nullptr;
  }

  TestFile file_of(std::uint64_t bytes, FileMode mode = kReadWrite) {
    stores_.push_back(std::make_unique<MemoryStore>(bytes));
    return {stores_.back().get(), machine.new_file(*stores_.back(), mode).value()};
  }
  /// F(n).
  TestFile file(std::uint64_t pages, FileMode mode = kReadWrite) {
    return file_of(pages * kPage, mode);
  }
  std::uint64_t in_use_at_start() const { return in_use_at_start_; }

 private:
  std::vector<std::unique_ptr<MemoryStore>> stores_;

 public:
  Machine machine;
  SoftCpu cpu;

 private:
  const AddressSpace* inside_ = nullptr;
  std::uint64_t in_use_at_start_ = 0;
};

/// The arena of one address space. Every step switches the World's SoftCpu to it.
class Process {
 public:
  Process(World& world, const SpaceOptions& options)
      : world_(&world),
        space_(std::make_unique<AddressSpace>(world.machine.new_space(options).value())) {}
  Process(World& world, AddressSpace space)
      : world_(&world), space_(std::make_unique<AddressSpace>(std::move(space))) {}
  Process(Process&&) = default;
  Process& operator=(Process&& other) noexcept {
    exit();
    world_ = other.world_;
    space_ = std::move(other.space_);
    return *this;
  }
  ~Process() { exit(); }

  void exit() {
    if (space_) world_->leave(*space_);
    space_.reset();
  }
  AddressSpace& space() {
    world_->enter(*space_);
    return *space_;
  }
  SoftCpu& cpu() {
    world_->enter(*space_);
    return world_->cpu;
  }

  // Calls by address and length. Types: pa, sa (private, shared anonymous), pf, sf (file).
  Result<Addr> mmap(Addr address, std::uint64_t length, std::string_view prot,
                    std::string_view type, Placement placement = Placement::hint,
                    const File* file = nullptr, std::uint64_t offset = 0) {
    EXPECT_TRUE(type == "pa" || type == "sa" || type == "pf" || type == "sf") << type;
    EXPECT_EQ(type[1] == 'f', file != nullptr) << "type " << type;
    MapRequest request;
    request.address = address;
    request.length = length;
    request.prot = rights(prot);
    request.shared = type[0] == 's';
    request.placement = placement;
    request.file = file;
    request.offset = offset;
    Result<Addr> result = space().map(cpu(), request);
    if (result) {
      EXPECT_EQ(result.value() % kPage, 0u) << "a mapping within a page";
    }
    return result;
  }
  Step munmap(Addr address, std::uint64_t length) {
    return call("munmap", address, length, space().unmap(cpu(), address, length));
  }
  Step mprotect(Addr address, std::uint64_t length, std::string_view prot) {
    return call("mprotect", address, length, space().protect(cpu(), address, length, rights(prot)));
  }
  Step madvise(Addr address, std::uint64_t length, Advice advice) {
    return call("madvise", address, length, space().advise(cpu(), address, length, advice));
  }
  Step msync(Addr address, std::uint64_t length) {
    return call("msync", address, length, space().sync(cpu(), address, length));
  }

  // The same by pages of the arena.
  Step map(long page, std::uint64_t pages, std::string_view prot, std::string_view type,
           const File* file = nullptr, std::uint64_t offset = 0) {
    const auto result = mmap(at(page), pages * kPage, prot, type, Placement::fixed, file, offset);
    const bool success = result && result.value() == at(page);
    return Step("map at page " + std::to_string(page), success ? "ok" : text(result), success);
  }
  Step unmap(long page, std::uint64_t pages) { return munmap(at(page), pages * kPage); }
  Step protect(long page, std::uint64_t pages, std::string_view prot) {
    return mprotect(at(page), pages * kPage, prot);
  }
  Step dontneed(long page, std::uint64_t pages) {
    return madvise(at(page), pages * kPage, Advice::dontneed);
  }
  Step sync(long page, std::uint64_t pages) { return msync(at(page), pages * kPage); }

  // One byte.
  Step r(long page, std::uint64_t offset = 0) { return read(at(page, offset)); }
  Step w(long page, unsigned value, std::uint64_t offset = 0) {
    return write(at(page, offset), value);
  }
  Step read(Addr a) {
    const Loaded<std::uint8_t> loaded = cpu().load<std::uint8_t>(a);
    check_signal(loaded.outcome(), a, Access::read);
    return Step("read " + text(Result<Addr>(a)),
                loaded ? hex(loaded.value()) : name(loaded.outcome()), loaded.has_value());
  }
  Step write(Addr a, unsigned value) {
    const Outcome outcome = cpu().store<std::uint8_t>(a, static_cast<std::uint8_t>(value));
    check_signal(outcome, a, Access::write);
    return Step("write " + text(Result<Addr>(a)), name(outcome), outcome.ok());
  }

  /// The VMAs of the arena: "[0,2)r [3,4)rw".
  std::string vmas() {
    return list([](const VmaInfo& v) { return rights_text(v.prot); });
  }
  /// With the flags of a maps line: "[0,1)rw-p [7,8)rw-s".
  std::string maps() {
    return list([](const VmaInfo& v) {
      std::string flags = "----";
      if (has(v.prot, Prot::read)) flags[0] = 'r';
      if (has(v.prot, Prot::write)) flags[1] = 'w';
      if (has(v.prot, Prot::exec)) flags[2] = 'x';
      flags[3] = v.shared ? 's' : 'p';
      return flags;
    });
  }
  /// With file offsets in pages: "[0,3)r@0 [5,8)r@5".
  std::string vmas_at_offsets() {
    return list([](const VmaInfo& v) {
      EXPECT_EQ(v.offset % kPage, 0u);
      return rights_text(v.prot) + "@" + std::to_string(v.offset / kPage);
    });
  }
  /// How many VMAs the whole space has.
  std::uint32_t count() {
    std::uint32_t visited = 0;
    space().for_each_vma(cpu(), [&](const VmaInfo&) { ++visited; });
    EXPECT_EQ(space().info(cpu()).map_count, visited);
    return visited;
  }
  SpaceInfo info() { return space().info(cpu()); }

  Process fork() { return Process(*world_, std::move(space().fork(cpu())).value()); }

 private:
  static Step call(const char* what, Addr address, std::uint64_t length,
                   const Result<void>& result) {
    char step[96];
    std::snprintf(step, sizeof step, "%s(0x%llx, 0x%llx)", what,
                  static_cast<unsigned long long>(address),
                  static_cast<unsigned long long>(length));
    return Step(step, text(result), result.has_value());
  }
  static void check_signal(const Outcome& outcome, Addr a, Access access) {
    if (!outcome.is_signal()) return;
    EXPECT_EQ(outcome.address(), a);
    EXPECT_EQ(to_string(outcome.access()), std::string(to_string(access)));
  }
  template <class F>
  std::string list(F&& suffix) {
    std::string said;
    Addr last_end = 0;
    space().for_each_vma(cpu(), [&](const VmaInfo& v) {
      EXPECT_LT(v.start, v.end);
      EXPECT_GE(v.start, last_end) << "VMAs overlap or are out of order";
      last_end = v.end;
      if (v.start < at(kArenaLow) || v.start >= at(kArenaHigh)) return;
      if (!said.empty()) said += ' ';
      said += '[' + std::to_string(page_of(v.start)) + ',' + std::to_string(page_of(v.end)) + ')' +
              suffix(v);
    });
    return said;
  }
  static long page_of(Addr a) {
    return (static_cast<long>(a) - static_cast<long>(kBase)) / static_cast<long>(kPage);
  }

  World* world_;
  std::unique_ptr<AddressSpace> space_;
};

// ---- the fixture --------------------------------------------------------------------------------

/// Every policy; spf also without its single-thread bypass, so that tests with one thread reach the
/// speculative path too; and vma-lock with both ways to refuse an access.
inline std::vector<PolicySpec> all_policies() {
  std::vector<PolicySpec> specs;
  for (Policy p : kAllPolicies) specs.emplace_back(p);
  PolicySpec always_spf(Policy::spf);
  always_spf.single_thread_bypass = false;
  specs.push_back(always_spf);
  PolicySpec slow_refusal(Policy::vma_lock);
  slow_refusal.bad_access_fast = false;
  specs.push_back(slow_refusal);
  return specs;
}

inline std::string policy_test_name(const testing::TestParamInfo<PolicySpec>& info) {
  std::string said(name_of(info.param.policy));
  std::replace(said.begin(), said.end(), '-', '_');
  if (!info.param.single_thread_bypass) said += "_no_bypass";
  if (!info.param.bad_access_fast) said += "_slow_refusal";
  return said;
}

inline SpaceOptions space_under(const PolicySpec& policy) {
  SpaceOptions options;
  options.policy = policy;
  return options;
}

/// A World and one process in it, whose steps a test calls without naming it.
class ArenaTest : public testing::TestWithParam<PolicySpec>, protected World, protected Process {
 protected:
  ArenaTest() : Process(static_cast<World&>(*this), space_under(GetParam())) {}

  using Process::cpu;
  using Process::space;
  SoftCpu& softcpu() { return World::cpu; }
  World& world() { return *this; }

  /// An empty arena again.
  void fresh() { fresh(space_under(GetParam())); }
  void fresh(const SpaceOptions& options) {
    exit();
    static_cast<Process&>(*this) = Process(world(), options);
  }
  /// A fresh arena that allows `limit` VMAs.
  void fresh_with_limit(std::uint32_t limit) {
    SpaceOptions options = space_under(GetParam());
    options.max_map_count = limit;
    fresh(options);
  }
};

#define FP_FOR_ALL_POLICIES(suite)                                                                \
  INSTANTIATE_TEST_SUITE_P(Policies, suite, testing::ValuesIn(::faultpath::test::all_policies()), \
                           ::faultpath::test::policy_test_name)

}  // namespace test
}  // namespace faultpath
