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
    Outcome o;
    o.major_ = major;
    return o;
  }
  static constexpr Outcome signal(std::uint8_t number, std::uint8_t code, Addr address,
                                  Access access, std::uint8_t pkey = 0) {
    Outcome o;
    o.kind_ = Kind::signal;
    o.number_ = number;
    o.code_ = code;
    o.address_ = address;
    o.access_ = access;
    o.pkey_ = pkey;
    return o;
  }
  static constexpr Outcome out_of_memory(Addr address) {
    Outcome o;
    o.kind_ = Kind::out_of_memory;
    o.address_ = address;
    return o;
  }
  static constexpr Outcome interrupted() {
    Outcome o;
    o.kind_ = Kind::interrupted;
    return o;
  }
  static constexpr Outcome refused(RefusedReason reason, Addr address) {
    Outcome o;
    o.kind_ = Kind::refused;
    o.reason_ = reason;
    o.address_ = address;
    return o;
  }

  constexpr Kind kind() const { return kind_; }
  constexpr bool ok() const { return kind_ == Kind::done; }
  constexpr explicit operator bool() const { return ok(); }
  constexpr bool is_signal() const { return kind_ == Kind::signal; }
  /// A fault that waited for I/O, as Linux counts it; meaningful for `done`.
  constexpr bool major() const { return major_; }
  constexpr std::uint8_t signal_number() const { return number_; }
  constexpr std::uint8_t signal_code() const { return code_; }
  constexpr std::uint8_t pkey() const { return pkey_; }
  constexpr Access access() const { return access_; }
  /// si_addr of a signal; the address asked for in the other failures.
  constexpr Addr address() const { return address_; }
  constexpr RefusedReason reason() const { return reason_; }

  friend constexpr bool operator==(const Outcome&, const Outcome&) = default;

 private:
  Addr address_ = 0;
  Kind kind_ = Kind::done;
  std::uint8_t number_ = 0;
  std::uint8_t code_ = 0;
  std::uint8_t pkey_ = 0;
  Access access_ = Access::read;
  RefusedReason reason_ = RefusedReason::none;
  bool major_ = false;
};

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
