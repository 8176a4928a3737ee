// Speculative page faults, v11 (May 2018): no mmap lock. Its checks in its order; docs/SPF.md has
// the table. Where a defect of v11 is mended, the guard's name says so.
#include "base/guards.h"
#include "fault/access.h"
#include "fault/fault.h"
#include "pagetable/flush.h"

namespace faultpath::fault {

namespace {

/// Holds get_vma's reference.
class VmaRef {
 public:
  VmaRef(Cpu& cpu, Mm& mm, Addr a) : cpu_(cpu), mm_(mm), vma_(mm.get_vma(a)) {}
  ~VmaRef() {
    if (vma_ != nullptr) mm_.put_vma(cpu_, vma_);
  }
  VmaRef(const VmaRef&) = delete;
  VmaRef& operator=(const VmaRef&) = delete;
  Vma* get() const { return vma_; }

 private:
  Cpu& cpu_;
  Mm& mm_;
  Vma* vma_;
};

// Steps 12 and 13: the upper levels, then the entry, with interrupts off: tables are freed only
// after this section.
bool find_entry(Fault& f) {
  pagetable::InterruptsOff off(f.cpu);
  f.leaf = f.mm.tables.find_leaf(f.page);
  if (!f.leaf) return false;
  f.seen = Pte(f.leaf.at(f.page, 0).load(env::acquire));
  return true;
}

// Steps 2 to 15. True: settled.
bool attempt(Fault& f, Outcome* outcome) {
  const auto pass_on = [&f](Counter why) {
    f.passed_on = why;
    return false;
  };

  const VmaRef ref(f.cpu, f.mm, f.address());  // 2: two writes to the tree lock, one to the VMA
  if (ref.get() == nullptr) return pass_on(Counter::spf_no_vma);
  f.live = ref.get();

  f.sequence = f.live->sequence.read_begin();  // 3
  if ((f.sequence & 1) != 0) return pass_on(Counter::spf_vma_changed);

  if (f.live->file() != nullptr) return pass_on(Counter::spf_vma_notsup);  // 4: vm_ops
  if (!f.live->ever_faulted()) return pass_on(Counter::spf_vma_notsup);    // 5: no anon_vma
  f.vma = f.live->view();                                                  // 6
  if ((f.vma.flags & vma::kVmUffdMissing) != 0) return pass_on(Counter::spf_vma_notsup);
  if ((f.vma.flags & vma::kVmGrowsDown) != 0) return pass_on(Counter::spf_vma_notsup);  // 7
  if (f.address() < f.vma.start || f.address() >= f.vma.end) {                          // 8
    return pass_on(Counter::spf_vma_changed);
  }
  if (const Outcome no = refusal(f.what, f.vma); !no.ok()) {  // 9, 10: key and rights
    // v11 ended here without looking again, and with MAPERR. Ours is final only if the rights that
    // forbade the access are the VMA's rights now (D9), and says ACCERR (B35).
    if (env::guard<Guard::access_recheck_sequence>() && f.live->sequence.changed(f.sequence)) {
      return pass_on(Counter::spf_vma_changed);
    }
    *outcome = env::guard<Guard::spf_access_code>()
                   ? no
                   : Outcome::signal(kSigSegv, kSegvMapErr, f.what.reported, f.what.access);
    f.cpu.count(Counter::spf_vma_access);
    return true;
  }
  if ((f.vma.flags & vma::kVmInterleave) != 0) return pass_on(Counter::spf_vma_notsup);  // 11

  if (!find_entry(f)) return pass_on(Counter::spf_vma_notsup);                         // 12, 13
  if (f.live->sequence.changed(f.sequence)) return pass_on(Counter::spf_vma_changed);  // 14

  if (resolve(f) == Resolved::pass_on) return false;  // 15
  *outcome = Outcome::done();
  f.cpu.count(Counter::spf);
  return true;
}

}  // namespace

bool speculate(Cpu& cpu, Mm& mm, const GuestFault& what, Outcome* outcome) {
  // 0: with one task in the space there is nobody to wait for.
  if (mm.policy.single_thread_bypass && mm.users.load(env::relaxed) <= 1) {
    cpu.count(Counter::spf_bypassed);
    return false;
  }
  cpu.count(Counter::spf_entered);
  Fault f(cpu, mm, what);
  f.stability = Stability::sequence;  // 1
  if (attempt(f, outcome)) return true;
  cpu.count(f.passed_on);
  return false;
}

}  // namespace faultpath::fault
