// What one virtual CPU of a scene does: calls on the engine, each recorded for the model.
#pragma once

#include <faultpath/address_space.h>
#include <faultpath/soft_cpu.h>

#include <functional>
#include <string>

#include "check/model/history.h"
#include "env.h"

namespace faultpath::check {

class Stage;

/// A word that scripts wait for. Lives in the arena.
class Flag {
 public:
  void raise() { word_.store(1, env::release); }
  /// Waits until somebody has raised it.
  void await() {
    while (word_.load(env::acquire) == 0) env::yield();
  }
  bool raised() const { return word_.load(env::acquire) != 0; }

 private:
  env::atomic<std::uint32_t> word_;
};

/// How a scene maps.
struct How {
  Prot prot = Prot::read | Prot::write;
  bool shared = false;
  unsigned file = 0;       ///< number of a file of the stage; 0: anonymous
  unsigned file_page = 0;  ///< the file's page at the start
};

/// One virtual CPU: a SoftCpu, its script, and the recording calls that scripts are written in. The
/// same calls set a scene up before the run. Addresses are page-aligned, or name one of a page's
/// eight words: `page + 8 * word`.
class Script {
 public:
  Script(Stage& stage, unsigned cpu, const char* name, SoftCpu* soft, unsigned space)
      : stage_(stage), cpu_(cpu), name_(name), soft_(soft), home_(space), space_(space) {}

  // --- accesses -------------------------------------------------------------------------------
  /// Returns the value, or 0 where there is none (the model judges what came instead).
  std::uint64_t load(Addr a);
  void store(Addr a, std::uint64_t v);
  std::uint64_t fetch_add(Addr a, std::uint64_t v);

  // --- calls ----------------------------------------------------------------------------------
  Addr map(Addr at, unsigned pages, const How& how = {});  ///< MAP_FIXED
  void unmap(Addr at, unsigned pages);
  void protect(Addr at, unsigned pages, Prot prot);
  void dontneed(Addr at, unsigned pages);
  /// msync of the range.
  void sync(Addr at, unsigned pages);
  /// Forks the CPU's space; the child is space `child` of the stage. False: no memory.
  bool fork(unsigned child);
  void write_file(unsigned file, unsigned page, unsigned word, std::uint64_t v);
  void sync_file(unsigned file);
  /// Two grace periods, and everything that is ripe handed back.
  void quiesce();
  /// Leaves the space, or goes to another.
  void leave();
  void enter(unsigned space);
  /// Destroys a space that no CPU is inside.
  void destroy(unsigned space);

  /// A scene's own demand.
  void expect(bool holds, const char* what);
  /// The last call's outcome was no success.
  bool failed() const { return failed_; }
  bool refused() const { return refused_; }

  Stage& stage() const { return stage_; }
  unsigned cpu() const { return cpu_; }
  const char* name() const { return name_; }
  SoftCpu& soft() const { return *soft_; }
  unsigned space_index() const { return space_; }

  /// Forgets what a run has changed in here; the arena is restored by the world.
  void rewind() {
    space_ = home_;
    failed_ = refused_ = false;
  }

  /// Run by the runner.
  std::function<void(Script&)> body;
  /// A signal handler that may interrupt the script anywhere; empty: none.
  std::function<void(Script&)> handler;

 private:
  AddressSpace& space() const;
  void begin();
  Event event(Kind kind);
  void end(Event& e);
  Event access(Addr a, Access access, std::uint64_t value);
  void finish(Event& e, const Outcome& outcome);

  Stage& stage_;
  unsigned cpu_;
  const char* name_;
  SoftCpu* soft_;
  unsigned home_;   ///< the space it is inside when a run begins
  unsigned space_;  ///< and now
  bool failed_ = false;
  bool refused_ = false;
};

}  // namespace faultpath::check
