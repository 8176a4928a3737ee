// An emulator hands in its guest's fault registers and gets the outcome: served, or the signal that
// Linux on that machine would send.
#include <faultpath/faultpath.h>

#include <cstdio>
namespace fp = faultpath;

// What an emulator does with a decoded fault.
static void show(const char* what, fp::SoftCpu& cpu, const fp::Decoded& decoded) {
  if (decoded.kind == fp::Decoded::Kind::impossible) {
    std::printf("%-34s %s\n", what, decoded.impossible);  // a broken emulator, not a fault
    return;
  }
  const fp::Outcome outcome = cpu.fault(decoded);
  std::printf("%-34s %s\n", what, fp::to_string(outcome).c_str());
}

int main() {
  auto machine = fp::Machine::create({.memory_bytes = 64 << 20}).value();
  auto space = machine.new_space({}).value();
  fp::SoftCpu cpu(machine);
  cpu.enter(space);
  const auto map = [&](fp::Prot prot) {
    return space.map(cpu, {.length = fp::kPageSize, .prot = prot}).value();
  };
  const fp::Addr data = map(fp::Prot::read | fp::Prot::write);
  const fp::Addr constants = map(fp::Prot::read);
  const fp::Addr code = map(fp::Prot::exec);

  // x86: the error code of #PF and CR2. Bits: 1 PROT, 2 WRITE, 4 USER, 0x10 INSTR, 0x20 PK.
  namespace x86 = fp::arch::x86;
  show("x86 store", cpu, x86::decode({.error_code = 0x6, .cr2 = data}));
  show("x86 store to constants", cpu, x86::decode({.error_code = 0x6, .cr2 = constants}));
  show("x86 load of code", cpu, x86::decode({.error_code = 0x4, .cr2 = code}));
  show("x86 key without a page", cpu, x86::decode({.error_code = 0x24, .cr2 = data}));

  // riscv: scause and stval. 12 fetch, 13 load, 15 store.
  namespace riscv = fp::arch::riscv;
  show("riscv fetch", cpu, riscv::decode({.scause = 12, .stval = code}));
  show("riscv load of code", cpu, riscv::decode({.scause = 13, .stval = code}));
  show("riscv store to nowhere", cpu, riscv::decode({.scause = 15, .stval = 0x10000}));
  show("riscv misaligned load", cpu, riscv::decode({.scause = 4, .stval = data, .sepc = code}));

  // arm64: ESR_EL1 and FAR_EL1, tag and all. EC 0x24 is a user's data abort; 7 a translation fault.
  namespace arm64 = fp::arch::arm64;
  const fp::Addr tagged = fp::Addr{0xab} << 56 | data;
  show("arm64 load through a tag", cpu, arm64::decode({.esr = 0x90000007, .far = tagged}));
  show("arm64 alignment", cpu, arm64::decode({.esr = 0x90000021, .far = data + 1}));
}
