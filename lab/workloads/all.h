// From a workload's name to its class.
#pragma once

#include <string_view>

#include "lab/workloads/calls.h"
#include "lab/workloads/context_switch.h"
#include "lab/workloads/ebizzy.h"
#include "lab/workloads/fault_vs_mmap.h"
#include "lab/workloads/lat_sig.h"
#include "lab/workloads/page_fault.h"
#include "lab/workloads/read.h"
#include "lab/workloads/signal.h"
#include "lab/workloads/tlb_flush.h"

namespace faultpath::lab {

/// Calls `f.template operator()<W>()` with the class W of that name. False where there is none.
template <MemoryTarget T, class F>
bool with_workload(std::string_view name, F&& f) {
  using enum Backing;
  if (name == "page_fault1") return f.template operator()<PageFault<T, anonymous>>(), true;
  if (name == "page_fault2") return f.template operator()<PageFault<T, private_file>>(), true;
  if (name == "page_fault3") return f.template operator()<PageFault<T, shared_file>>(), true;
  if (name == "brk1") return f.template operator()<Brk1<T>>(), true;
  if (name == "malloc1") return f.template operator()<Malloc1<T>>(), true;
  if (name == "mmap1") return f.template operator()<MapUnmap<T, anonymous>>(), true;
  if (name == "mmap2") return f.template operator()<MapUnmap<T, private_file>>(), true;
  if (name == "tlb_flush1") return f.template operator()<TlbFlush<T, private_file>>(), true;
  if (name == "tlb_flush2") return f.template operator()<TlbFlush<T, anonymous>>(), true;
  if (name == "tlb_flush3") return f.template operator()<TlbFlush<T, shared_file>>(), true;
  if (name == "ebizzy") return f.template operator()<Ebizzy<T>>(), true;
  if (name == "fault_vs_mmap") return f.template operator()<FaultVsMmap<T>>(), true;
  if (name == "lat_sig_prot") return f.template operator()<LatSigProt<T>>(), true;
  if (name == "read2") return f.template operator()<Read2<T>>(), true;
  if (name == "signal1") return f.template operator()<Signal1<T>>(), true;
  if (name == "context_switch1") return f.template operator()<ContextSwitch1<T>>(), true;
  return false;
}

}  // namespace faultpath::lab
