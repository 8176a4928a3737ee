// Forbidden accesses: refused under the VMA lock at once, in the words of the slow path, for every
// fault code of six machines. One CPU: a table rather than an interleaving.
#include "check/tables/bad_access.h"
#include "check/scenes/scenes.h"

namespace faultpath::check {

namespace {

constexpr Cue kAlone[] = {{0, ""}};
constexpr Planted kCodePlanted[] = {{Guard::bad_access_code, kAlone}};

template <Arch kArch>
void build_table(Stage& s) {
  s.bare = true;
  s.cpu("table", [](Script& c) {
    c.leave();
    const BadAccessTable t = compare_bad_access(c.stage().machine(), c.soft(), kArch,
                                                c.stage().policy(), Policy::mmap_lock);
    c.expect(t.refusals != 0 && t.refusals != t.rows, "the table refuses nothing, or everything");
    c.expect(t.difference.empty(), t.difference.c_str());
  });
}

template <Arch kArch>
constexpr Scene table_of(std::string_view name) {
  return {
      .name = name,
      .ids = "B17 I13",
      .story =
          "Every fault that this machine can report of a program, in mappings of every combination "
          "of "
          "rights and keys, with and without a page, under the policy and under the mmap lock: the "
          "signals are the same in number, code, address, access and key, and count the same.",
      .build = build_table<kArch>,
      .planted = kCodePlanted,
      .call_steps = 100'000'000,
  };
}

constexpr Scene kX86 = table_of<Arch::x86>("bad-access-x86");
constexpr Scene kArm64 = table_of<Arch::arm64>("bad-access-arm64");
constexpr Scene kArm = table_of<Arch::arm>("bad-access-arm");
constexpr Scene kPowerpc = table_of<Arch::powerpc>("bad-access-powerpc");
constexpr Scene kRiscv = table_of<Arch::riscv>("bad-access-riscv");
constexpr Scene kS390 = table_of<Arch::s390>("bad-access-s390");

// The VMA has been let go; it is unmapped, and its memory is free, before its key is read.
constexpr Cue kReadTooLate[] = {{0, "Vma::start", 2}, {1, ""}, {0, ""}};
constexpr Planted kUnderLockPlanted[] = {{Guard::bad_access_under_lock, kReadTooLate}};

constexpr Scene kUnderLock{
    .name = "refusal-decided-before-the-unlock",
    .ids = "B17 I7 I13",
    .story =
        "A store is refused under the VMA's lock. What the signal says, the protection key above "
        "all, is read while the lock is held: afterwards another CPU may unmap the VMA, and its "
        "memory is another one's.",
    .build =
        [](Stage& s) {
          s.cpu("refused", [](Script& c) { c.store(page(0), 10); });
          Script& unmapper = s.cpu("unmapper", [](Script& c) { c.unmap(page(0), 1); });
          unmapper.map(page(0), 1, {.prot = Prot::read});
        },
    .planted = kUnderLockPlanted,
    .only = Policy::vma_lock,
};

constexpr Scene kKeyChanges{
    .name = "refusal-by-a-key-that-is-being-changed",
    .ids = "B17 I13",
    .story =
        "A load is denied by the key of a page that is there. Before the fault has looked at the "
        "VMA, "
        "another CPU gives it a key that denies nothing. The program hears of the key, or of "
        "nothing: "
        "never that reading is forbidden, which it has not been at any time.",
    .build =
        [](Stage& s) {
          Script& reader = s.cpu("reader", [](Script& c) {
            const Outcome o = c.soft().load<std::uint64_t>(page(0)).outcome();
            c.expect(o.ok() || o.signal_code() == kSegvPkuErr, "refused, and not by a key");
          });
          s.cpu("protector", [](Script& c) {
            (void)c.stage().space(0).protect(c.soft(), page(0), kPageSize, Prot::read, 0);
          });
          reader.map(page(0), 1);
          reader.store(page(0), 1);
          (void)s.space(0).protect(reader.soft(), page(0), kPageSize, Prot::read, 1);
          reader.soft().set_pkru(1u << 2);
          s.bare = true;  // the model knows no keys
        },
};

constexpr const Scene* kScenes[] = {&kX86,   &kArm64, &kArm,       &kPowerpc,
                                    &kRiscv, &kS390,  &kUnderLock, &kKeyChanges};

}  // namespace

std::span<const Scene* const> bad_access_scenes() { return kScenes; }

}  // namespace faultpath::check
