// Result<T>: a value, or Linux's error number. The library never throws.
#pragma once

#include <faultpath/errno.h>

#include <new>
#include <type_traits>
#include <utility>

namespace faultpath {

template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : ok_(true) { ::new (&storage_.value) T(std::move(value)); }  // NOLINT: implicit
  Result(Errno error) : ok_(false) { storage_.error = error; }                  // NOLINT: implicit
  Result(Result&& other) noexcept : ok_(other.ok_) {
    if (ok_) {
      ::new (&storage_.value) T(std::move(other.storage_.value));
    } else {
      storage_.error = other.storage_.error;
    }
  }
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;
  Result& operator=(Result&&) = delete;
  ~Result() {
    if (ok_) storage_.value.~T();
  }

  bool has_value() const { return ok_; }
  explicit operator bool() const { return ok_; }

  /// The value. Calling it on an error is a programming error and traps, as dereferencing null
  /// does.
  T& value() & {
    if (!ok_) __builtin_trap();
    return storage_.value;
  }
  T&& value() && {
    if (!ok_) __builtin_trap();
    return std::move(storage_.value);
  }
  const T& value() const& {
    if (!ok_) __builtin_trap();
    return storage_.value;
  }
  T value_or(T other) && { return ok_ ? std::move(storage_.value) : std::move(other); }
  T& operator*() & { return value(); }
  T* operator->() { return &value(); }

  /// The error; traps on a value.
  Errno error() const {
    if (ok_) __builtin_trap();
    return storage_.error;
  }

 private:
  union Storage {
    Storage() {}
    ~Storage() {}
    T value;
    Errno error;
  } storage_;
  bool ok_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  constexpr Result() = default;
  constexpr Result(Errno error) : error_(error), ok_(false) {}  // NOLINT: implicit
  constexpr bool has_value() const { return ok_; }
  constexpr explicit operator bool() const { return ok_; }
  void value() const {
    if (!ok_) __builtin_trap();
  }
  Errno error() const {
    if (ok_) __builtin_trap();
    return error_;
  }

 private:
  Errno error_{};
  bool ok_ = true;
};

}  // namespace faultpath
