#include "check/search/jobs.h"

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace faultpath::check {

namespace {

bool write_all(int fd, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const char*>(from);
  while (bytes != 0) {
    const ssize_t n = ::write(fd, at, bytes);
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

bool read_all(int fd, void* to, std::size_t bytes) {
  auto* at = static_cast<char*>(to);
  while (bytes != 0) {
    const ssize_t n = ::read(fd, at, bytes);
    if (n <= 0) return false;
    at += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

struct Worker {
  pid_t pid = 0;
  int orders = -1;   ///< we write job numbers
  int answers = -1;  ///< we read length and text
  bool busy = false;
  unsigned job = 0;
};

[[noreturn]] void serve(int orders, int answers, const std::function<std::string(unsigned)>& work) {
  unsigned job = 0;
  while (read_all(orders, &job, sizeof job)) {
    const std::string text = work(job);
    const std::uint64_t length = text.size();
    if (!write_all(answers, &length, sizeof length) ||
        !write_all(answers, text.data(), text.size())) {
      break;
    }
  }
  _exit(0);
}

Worker start(const std::vector<Worker>& others, const std::function<std::string(unsigned)>& work) {
  int orders[2];
  int answers[2];
  if (pipe(orders) != 0 || pipe(answers) != 0) {
    std::perror("faultpath check: pipe");
    std::exit(4);
  }
  std::fflush(nullptr);
  Worker w;
  w.pid = fork();
  if (w.pid < 0) {
    std::perror("faultpath check: fork");
    std::exit(4);
  }
  if (w.pid == 0) {
    for (const Worker& o : others) {
      if (o.orders >= 0) close(o.orders);
      if (o.answers >= 0) close(o.answers);
    }
    close(orders[1]);
    close(answers[0]);
    serve(orders[0], answers[1], work);
  }
  close(orders[0]);
  close(answers[1]);
  w.orders = orders[1];
  w.answers = answers[0];
  return w;
}

void stop(Worker& w) {
  close(w.orders);
  close(w.answers);
  w.orders = w.answers = -1;
  int status = 0;
  waitpid(w.pid, &status, 0);
}

}  // namespace

void run_jobs(unsigned count, unsigned workers, const std::function<std::string(unsigned)>& work,
              const std::function<void(unsigned, const std::string&)>& done) {
  if (workers > count) workers = count;
  std::vector<Worker> pool;
  pool.reserve(workers);
  for (unsigned i = 0; i < workers; ++i) pool.push_back(start(pool, work));
  unsigned next = 0;
  unsigned finished = 0;
  while (finished < count) {
    for (Worker& w : pool) {
      if (w.busy || next == count) continue;
      w.job = next++;
      w.busy = true;
      (void)write_all(w.orders, &w.job, sizeof w.job);
    }
    std::vector<pollfd> ready;
    ready.reserve(pool.size());
    for (const Worker& w : pool) ready.push_back({w.busy ? w.answers : -1, POLLIN, 0});
    if (poll(ready.data(), ready.size(), -1) < 0) continue;
    for (std::size_t i = 0; i < pool.size(); ++i) {
      if (ready[i].revents == 0) continue;
      Worker& w = pool[i];
      std::uint64_t length = 0;
      std::string text;
      bool alive = read_all(w.answers, &length, sizeof length);
      if (alive) {
        text.resize(length);
        alive = read_all(w.answers, text.data(), length);
      }
      if (!alive) text.clear();
      w.busy = false;
      ++finished;
      const unsigned job = w.job;
      if (!alive) {
        stop(w);
        w = start(pool, work);
      }
      done(job, text);
    }
  }
  for (Worker& w : pool) stop(w);
}

}  // namespace faultpath::check
