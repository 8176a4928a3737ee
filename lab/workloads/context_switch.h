// will-it-scale's context_switch1, a null control: real pipes of the host, whatever the target.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "lab/workloads/resident_word.h"

namespace faultpath::lab {

/// A thread that sends back each byte that comes to it. It runs where its maker may run, and ends
/// with it.
class EchoPartner {
 public:
  EchoPartner() = default;
  EchoPartner(const EchoPartner&) = delete;
  EchoPartner& operator=(const EchoPartner&) = delete;
  ~EchoPartner() {
    close_end(there_[1]);  // the partner reads the end of the stream
    if (thread_.joinable()) thread_.join();
    for (int* end : {&there_[0], &back_[0], &back_[1]}) close_end(*end);
  }

  /// False with errno.
  bool start() {
    if (pipe2(there_, O_CLOEXEC) != 0 || pipe2(back_, O_CLOEXEC) != 0) return false;
    try {
      thread_ = std::thread([this] { echo(); });
    } catch (const std::system_error& e) {
      errno = e.code().value();
      return false;
    }
    return true;
  }
  /// There and back; false where that fails or another byte comes back.
  bool round_trip(std::uint8_t byte) {
    std::uint8_t answer = 0;
    return send(there_[1], byte) && receive(back_[0], answer) && answer == byte;
  }

 private:
  static bool send(int fd, std::uint8_t byte) {
    ssize_t n = 0;
    while ((n = write(fd, &byte, 1)) < 0 && errno == EINTR) {
    }
    return n == 1;
  }
  static bool receive(int fd, std::uint8_t& byte) {
    ssize_t n = 0;
    while ((n = read(fd, &byte, 1)) < 0 && errno == EINTR) {
    }
    return n == 1;
  }
  static void close_end(int& fd) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
  void echo() {
    std::uint8_t byte = 0;
    while (receive(there_[0], byte) && send(back_[1], byte)) {
    }
    close_end(back_[1]);  // a task that still waits is told
  }

  int there_[2] = {-1, -1};
  int back_[2] = {-1, -1};
  std::thread thread_;
};

/// Two operations: a byte to the partner and back, and a touch of a resident word.
template <MemoryTarget T>
class ContextSwitch1 : public WithResidentWord<T> {
 public:
  struct Shared {};
  ContextSwitch1(const Seat<T>& seat, Shared&) : WithResidentWord<T>(seat) {}

  bool set_up() {
    if (!partner_.start()) {
      this->meter().fail("a partner over two pipes: %s", strerrorname_np(errno));
      return false;
    }
    return this->map_word();
  }
  void run() {
    Meter& m = this->meter();
    for (std::uint8_t byte = 1; m.running(); ++byte) {
      if (!partner_.round_trip(byte)) {
        m.fail("byte 0x%02x did not come back", static_cast<unsigned>(byte));
        return;
      }
      if (!this->touch()) return;
      m.count(2);
    }
  }
  void check() { this->check_word(); }

 private:
  EchoPartner partner_;
};

}  // namespace faultpath::lab
