// Refused stores on the host: real SIGSEGVs. The handler returns, and the processor tries the store
// again; after the last one of a block it leaves with siglongjmp.
#pragma once

#include <pthread.h>
#include <setjmp.h>  // NOLINT: sigsetjmp is not in <csetjmp>

#include <csignal>
#include <cstdio>
#include <optional>
#include <string>

#include "lab/targets/host_target.h"
#include "lab/targets/refusals.h"
#include "lab/targets/signals.h"

namespace faultpath::lab {

/// What the handler of a thread needs to know; none: the fault is not ours.
struct HostBlock {
  sigjmp_buf end;
  void* page = nullptr;
  std::uint64_t left = 0;
  std::uint64_t right = 0;
  int odd_signal = 0;  ///< of the first delivery that was not SIGSEGV with SEGV_ACCERR
  int odd_code = 0;
};
inline thread_local HostBlock* volatile t_host_block = nullptr;

/// Of SIGSEGV and SIGBUS.
inline void host_refused(int signal, siginfo_t* info, void*) {
  HostBlock* b = t_host_block;
  if (b == nullptr || info->si_addr != b->page) {
    // A defect of the program: it dies of the same access, once more.
    std::signal(signal, SIG_DFL);
    return;
  }
  if (signal == SIGSEGV && info->si_code == SEGV_ACCERR) {
    ++b->right;
  } else {
    b->odd_signal = signal;
    b->odd_code = info->si_code;
    b->left = 1;
  }
  if (--b->left == 0) siglongjmp(b->end, 1);
}

template <>
class Refusals<HostTask> {
 public:
  bool open(HostTask&, Addr page) {
    block_.page = reinterpret_cast<void*>(static_cast<std::uintptr_t>(page));  // NOLINT
    thread_ = pthread_self();
    segv_.emplace(SIGSEGV, host_refused);
    bus_.emplace(SIGBUS, host_refused);
    user_.emplace(SIGUSR1, count_signal);
    return segv_->ok() && bus_->ok() && user_->ok();
  }

  FP_NOINLINE std::uint64_t refuse(std::uint64_t n) {
    const std::uint64_t before = block_.right;
    block_.left = n;
    t_host_block = &block_;
    if (sigsetjmp(block_.end, 1) == 0) {
      *static_cast<volatile std::uint8_t*>(block_.page) = 0xa5;
      stored_ = true;
    }
    t_host_block = nullptr;
    return stored_ ? 0 : block_.right - before;
  }
  /// To the calling thread, so that other tasks of the process are left alone. By the library's
  /// call: ThreadSanitizer would keep the signal of a bare system call for later.
  std::uint64_t deliver(std::uint64_t n) {
    const std::uint64_t before = signals_counted();
    for (std::uint64_t i = 0; i < n; ++i) pthread_kill(thread_, SIGUSR1);
    return signals_counted() - before;
  }
  void plain(std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) pthread_kill(thread_, 0);
  }

  /// This kernel counts no fault for an access that it refuses.
  bool settled(std::string&) const { return true; }
  std::string odd() const {
    if (stored_) return "the store went through";
    char text[64];
    std::snprintf(text, sizeof text, "signal %d with code %d", block_.odd_signal, block_.odd_code);
    return text;
  }

 private:
  HostBlock block_;
  pthread_t thread_{};
  bool stored_ = false;
  std::optional<SignalUse> segv_, bus_, user_;
};

}  // namespace faultpath::lab
