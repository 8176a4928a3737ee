// The ten-line example of the README: a page that may be read, a forbidden store, and one fault.
#include <faultpath/faultpath.h>

#include <cstdio>
namespace fp = faultpath;

int main() {
  auto machine = fp::Machine::create({.memory_bytes = 64 << 20}).value();
  auto space = machine.new_space({.policy = fp::Policy::spf}).value();
  fp::SoftCpu cpu(machine);  // one per thread
  cpu.enter(space);
  auto page = space.map(cpu, {.length = 4096, .prot = fp::Prot::read}).value();
  auto bad = cpu.store<int>(page, 42);  // Signal: SIGSEGV, SEGV_ACCERR, write at ...
  std::puts(fp::to_string(bad).c_str());
  (void)space.protect(cpu, page, 4096, fp::Prot::read | fp::Prot::write);
  (void)cpu.store<int>(page, 42);  // one minor fault
  std::printf("%d, %llu minor faults\n", cpu.load<int>(page).value(),
              (unsigned long long)cpu.counters().minor_faults);
}
