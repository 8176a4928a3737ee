#include "check/tables/bad_access.h"

#include <faultpath/format.h>

#include "check/tables/fault_codes.h"

namespace faultpath::check {

namespace {

constexpr Addr kFirst = 0x400000;
constexpr unsigned kRights = 8;

/// A space with one page a combination of rights, key, and "has a page".
class Side {
 public:
  static constexpr unsigned kPages = kRights * 2 * 2;

  Side(Machine& machine, SoftCpu& cpu, Arch arch, PolicySpec policy, unsigned keys)
      : cpu_(cpu), space_(machine.new_space({.policy = policy, .arch = arch}).value()) {
    for (unsigned i = 0; i < kPages; ++i) {
      const Addr at = page(i);
      (void)space_.map(cpu_, {.address = at,
                              .length = kPageSize,
                              .prot = Prot::read | Prot::write,
                              .placement = Placement::fixed});
      if (populated(i)) {
        cpu_.enter(space_);
        (void)cpu_.store<std::uint64_t>(at, i);
        cpu_.leave();
      }
      const int key = key_of(i) < keys ? static_cast<int>(key_of(i)) : 0;
      (void)space_.protect(cpu_, at, kPageSize, prot(i), key);
    }
  }

  static Addr page(unsigned i) { return kFirst + i * kPageSize; }
  static Prot prot(unsigned i) { return static_cast<Prot>(i % kRights); }
  static unsigned key_of(unsigned i) { return i / kRights % 2; }
  static bool populated(unsigned i) { return i >= kRights * 2; }

  Outcome take(const Decoded& fault, Counters& gained) {
    cpu_.enter(space_);
    const Counters before = cpu_.counters();
    const Outcome outcome = cpu_.fault(fault);
    gained = cpu_.counters();
    gained -= before;
    cpu_.leave();
    return outcome;
  }

 private:
  SoftCpu& cpu_;
  AddressSpace space_;
};

std::string rights_text(unsigned i) {
  const Prot p = Side::prot(i);
  std::string s;
  s += has(p, Prot::read) ? 'r' : '-';
  s += has(p, Prot::write) ? 'w' : '-';
  s += has(p, Prot::exec) ? 'x' : '-';
  s += " key " + std::to_string(Side::key_of(i));
  return s + (Side::populated(i) ? ", a page there" : ", empty");
}

/// As the kernel counts: one fault, which is minor or was refused, never both.
std::string wrong_count(const Outcome& outcome, const Counters& c) {
  if (c.faults != 1) return std::to_string(c.faults) + " faults counted";
  if (c.fault_signals != (outcome.is_signal() ? 1u : 0u)) return "signals miscounted";
  if (c.minor_faults + c.major_faults != (outcome.ok() ? 1u : 0u)) return "minor faults miscounted";
  return {};
}

}  // namespace

BadAccessTable compare_bad_access(Machine& machine, SoftCpu& cpu, Arch arch, PolicySpec one,
                                  PolicySpec other) {
  BadAccessTable table;
  const unsigned keys = arch == Arch::x86 || arch == Arch::powerpc || arch == Arch::arm64 ? 2 : 1;
  Side left(machine, cpu, arch, one, keys);
  Side right(machine, cpu, arch, other, keys);
  for (unsigned i = 0; i < Side::kPages; ++i) {
    if (Side::key_of(i) >= keys) continue;
    for_each_legal_fault(arch, Side::page(i), [&](std::string_view code, const Decoded& fault) {
      if (!table.difference.empty()) return;
      Counters left_counts;
      Counters right_counts;
      const Outcome a = left.take(fault, left_counts);
      const Outcome b = right.take(fault, right_counts);
      ++table.rows;
      if (a.is_signal()) ++table.refusals;
      std::string why;
      if (!(a == b)) {
        why = to_string(one) + " says " + to_string(a) + " (key " + std::to_string(a.pkey()) +
              "), " + to_string(other) + " says " + to_string(b) + " (key " +
              std::to_string(b.pkey()) + ")";
      } else if (why = wrong_count(a, left_counts); !why.empty()) {
        why += " under " + to_string(one);
      } else if (why = wrong_count(b, right_counts); !why.empty()) {
        why += " under " + to_string(other);
      }
      if (!why.empty()) {
        table.difference = std::string(code) + " on " + rights_text(i) + ": " + why;
      }
    });
  }
  return table;
}

}  // namespace faultpath::check
