// What became of one guest access: done, a signal, or one of the ways in which it did not happen.
#pragma once

#include <faultpath/config.h>

#include <cstdint>
#include <type_traits>

namespace faultpath {

/// What an access wants to do.
enum class Access : std::uint8_t { read, write, exec };

/// Linux's signal numbers and codes, as an emulated program would receive them.
inline constexpr std::uint8_t kSigBus = 7;
inline constexpr std::uint8_t kSigKill = 9;
inline constexpr std::uint8_t kSigSegv = 11;
inline constexpr std::uint8_t kSegvMapErr = 1;
inline constexpr std::uint8_t kSegvAccErr = 2;
inline constexpr std::uint8_t kSegvPkuErr = 4;
inline constexpr std::uint8_t kSegvMteSErr = 9;
inline constexpr std::uint8_t kBusAdrAln = 1;
inline constexpr std::uint8_t kBusAdrErr = 2;
inline constexpr std::uint8_t kBusObjErr = 3;
inline constexpr std::uint8_t kSiKernel = 0x80;

/// Why the engine would not serve an access (counted as `refused`).
enum class RefusedReason : std::uint8_t {
  none,
  not_entered,  ///< the SoftCpu is not inside a space, or got no slot in its Machine
  nested,       ///< a fault in a signal handler that interrupted the engine on the same Cpu
  impossible,   ///< a fault code that no machine reports (SoftCpu::fault)
};

/// The outcome of an access. A small value; nothing is owned by it.
class [[nodiscard]] Outcome {
 public:
  enum class Kind : std::uint8_t { done, signal, out_of_memory, interrupted, refused };

  constexpr Outcome() = default;
  static constexpr Outcome done(bool major = false) {
    return {0, word(Kind::done) | std::uint64_t{major} << kMajorShift};
  }
  static constexpr Outcome signal(std::uint8_t number, std::uint8_t code, Addr address,
                                  Access access, std::uint8_t pkey = 0) {
    return {address, word(Kind::signal) | std::uint64_t{number} << kNumberShift |
                         std::uint64_t{code} << kCodeShift | std::uint64_t{pkey} << kKeyShift |
                         static_cast<std::uint64_t>(access) << kAccessShift};
  }
  static constexpr Outcome out_of_memory(Addr address) {
    return {address, word(Kind::out_of_memory)};
  }
  static constexpr Outcome interrupted() { return {0, word(Kind::interrupted)}; }
  static constexpr Outcome refused(RefusedReason reason, Addr address) {
    return {address, word(Kind::refused) | static_cast<std::uint64_t>(reason) << kReasonShift};
  }

  constexpr Kind kind() const { return static_cast<Kind>(byte(0)); }
  constexpr bool ok() const { return kind() == Kind::done; }
  constexpr explicit operator bool() const { return ok(); }
  constexpr bool is_signal() const { return kind() == Kind::signal; }
  /// A fault that waited for I/O, as Linux counts it; meaningful for `done`.
  constexpr bool major() const { return byte(kMajorShift) != 0; }
  constexpr std::uint8_t signal_number() const { return byte(kNumberShift); }
  constexpr std::uint8_t signal_code() const { return byte(kCodeShift); }
  constexpr std::uint8_t pkey() const { return byte(kKeyShift); }
  constexpr Access access() const { return static_cast<Access>(byte(kAccessShift)); }
  /// si_addr of a signal; the address asked for in the other failures.
  constexpr Addr address() const { return address_; }
  constexpr RefusedReason reason() const { return static_cast<RefusedReason>(byte(kReasonShift)); }

  friend constexpr bool operator==(const Outcome&, const Outcome&) = default;

 private:
  // Two words, and so two registers: as single bytes it would be written in parts and copied as a
  // whole, which costs a stall each time.
  static constexpr unsigned kNumberShift = 8;
  static constexpr unsigned kCodeShift = 16;
  static constexpr unsigned kKeyShift = 24;
  static constexpr unsigned kAccessShift = 32;
  static constexpr unsigned kReasonShift = 40;
  static constexpr unsigned kMajorShift = 48;

  constexpr Outcome(Addr address, std::uint64_t rest) : address_(address), rest_(rest) {}
  static constexpr std::uint64_t word(Kind kind) { return static_cast<std::uint64_t>(kind); }
  constexpr std::uint8_t byte(unsigned shift) const {
    return static_cast<std::uint8_t>(rest_ >> shift);
  }

  Addr address_ = 0;
  std::uint64_t rest_ = 0;
};
static_assert(sizeof(Outcome) == 16);

/// A loaded value, or the outcome that kept the load from happening.
template <class T>
class [[nodiscard]] Loaded {
 public:
  constexpr Loaded(T value) : value_(value) {}                     // NOLINT: implicit
  constexpr Loaded(const Outcome& failure) : outcome_(failure) {}  // NOLINT: implicit
  constexpr bool has_value() const { return outcome_.ok(); }
  constexpr explicit operator bool() const { return has_value(); }
  /// The value; traps where there is none.
  constexpr T value() const {
    if (!has_value()) __builtin_trap();
    return value_;
  }
  constexpr const Outcome& outcome() const { return outcome_; }

 private:
  Outcome outcome_;
  T value_{};
};

/// The outcome of a copy: how many bytes were moved before it stopped, and why it stopped.
struct [[nodiscard]] Copied {
  std::uint64_t bytes = 0;
  Outcome outcome;
  constexpr bool ok() const { return outcome.ok(); }
};

constexpr const char* to_string(Access a) {
  switch (a) {
    case Access::read: return "read";
    case Access::write: return "write";
    case Access::exec: return "exec";
  }
  return "?";
}

}  // namespace faultpath
