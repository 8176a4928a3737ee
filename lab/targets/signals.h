// Signal handlers of this process, on loan to workloads that send themselves real signals.
#pragma once

#include <csignal>
#include <cstdint>

namespace faultpath::lab {

using SignalHandler = void (*)(int, siginfo_t*, void*);

/// Keeps a handler installed, and the signal let through to the calling thread. The first user
/// installs, the last one puts back what was there; all users of one signal have the same handler.
class SignalUse {
 public:
  SignalUse(int signal, SignalHandler handler);
  SignalUse(const SignalUse&) = delete;
  SignalUse& operator=(const SignalUse&) = delete;
  ~SignalUse();
  bool ok() const { return ok_; }

 private:
  int signal_;
  bool ok_;
};

/// A handler that does nothing but count, for the thread that it runs in.
void count_signal(int signal, siginfo_t* info, void* context);
std::uint64_t signals_counted();

}  // namespace faultpath::lab
