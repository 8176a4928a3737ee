#include "lab/targets/signals.h"

#include <array>
#include <atomic>
#include <mutex>

namespace faultpath::lab {
namespace {

struct Loan {
  int users = 0;
  struct sigaction before{};
};

std::mutex g_lock;
std::array<Loan, 65> g_loans;

thread_local std::atomic<std::uint64_t> t_counted{0};

}  // namespace

SignalUse::SignalUse(int signal, SignalHandler handler) : signal_(signal), ok_(true) {
  {
    const std::lock_guard<std::mutex> hold(g_lock);
    Loan& loan = g_loans[static_cast<std::size_t>(signal)];
    if (loan.users == 0) {
      struct sigaction action{};
      action.sa_sigaction = handler;
      action.sa_flags = SA_SIGINFO;
      sigemptyset(&action.sa_mask);
      ok_ = sigaction(signal, &action, &loan.before) == 0;
    }
    if (ok_) ++loan.users;
  }
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

SignalUse::~SignalUse() {
  if (!ok_) return;
  const std::lock_guard<std::mutex> hold(g_lock);
  Loan& loan = g_loans[static_cast<std::size_t>(signal_)];
  if (--loan.users == 0) sigaction(signal_, &loan.before, nullptr);
}

void count_signal(int, siginfo_t*, void*) {
  t_counted.store(t_counted.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

std::uint64_t signals_counted() { return t_counted.load(std::memory_order_relaxed); }

}  // namespace faultpath::lab
