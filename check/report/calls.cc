#include "check/report/calls.h"

#include <fmt/format.h>

#include "check/report/text.h"

namespace faultpath::check {

namespace {

std::string range(const Event& e) {
  if (e.length >= kUserEnd) return "everything";
  const std::uint64_t pages = page_ceil(e.length) >> kPageShift;
  return fmt::format("{:#x}, {} page{}", e.address, pages, pages == 1 ? "" : "s");
}

std::string what(const Event& e) {
  switch (e.kind) {
    case Kind::load: return fmt::format("load {:#x}", e.address);
    case Kind::store: return fmt::format("store {:#x} = {}", e.address, number(e.value));
    case Kind::fault:
    case Kind::refused:
    case Kind::no_memory:
      return fmt::format("{} {:#x}", e.access == Access::write ? "store" : "load", e.address);
    case Kind::map: {
      std::string s =
          fmt::format("map {}, {} {}", range(e), rights(e.prot), e.shared ? "shared" : "private");
      if (e.file != 0) s += fmt::format(", file{} page {}", e.file, e.file_page);
      return s;
    }
    case Kind::unmap: return "unmap " + range(e);
    case Kind::protect: return fmt::format("protect {}, {}", range(e), rights(e.prot));
    case Kind::dontneed: return "dontneed " + range(e);
    case Kind::fork: return fmt::format("fork, child mm{}", e.child);
    case Kind::sync: return e.file != 0 ? fmt::format("sync file{}", e.file) : "msync " + range(e);
    case Kind::file_write:
      return fmt::format("write_at file{} page {} word {} = {}", e.file, e.file_page, e.address / 8,
                         number(e.value));
    case Kind::quiesce: return "quiesce";
    case Kind::leave: return "leave or enter a space";
  }
  return "a call";
}

}  // namespace

std::string asked(const Event& e) {
  return e.space == 0 ? what(e) : fmt::format("{} (mm{})", what(e), e.space);
}

std::string result(const Event& e) {
  switch (e.kind) {
    case Kind::load: return "= " + number(e.value);
    case Kind::refused: return "refused";
    case Kind::no_memory: return "out of memory";
    case Kind::fault:
      if (e.signal == kSigBus) return "SIGBUS";
      return fmt::format("SIGSEGV ({})", e.code == kSegvMapErr   ? "MAPERR"
                                         : e.code == kSegvAccErr ? "ACCERR"
                                                                 : number(e.code));
    default: return e.ok ? "" : to_string(e.error);
  }
}

std::string asked(std::span<const sim::Site> sites) {
  // The files of src/change/ are named after the calls; a fault is an access's.
  static constexpr struct {
    std::string_view file;
    std::string_view call;
  } kFiles[] = {
      {"map.cc", "map"}, {"unmap.cc", "unmap"}, {"protect.cc", "protect"},
      {"brk.cc", "brk"}, {"fork.cc", "fork"},
  };
  std::string_view other;
  for (const sim::Site& site : sites) {
    const std::string_view file = file_of(site);
    for (const auto& f : kFiles) {
      if (file == f.file) return std::string(f.call);
    }
    const std::string function = function_of(site);
    if (file == "advise.cc") return function == "advise" ? "dontneed" : "msync";
    if (function.starts_with("SoftCpu::load")) other = "a load";
    if (function.starts_with("SoftCpu::store")) other = "a store";
    if (other.empty() && file == "file_object.cc") other = "a call on a file";
    if (other.empty() && function == "MachineCore::try_advance") other = "quiesce";
  }
  return std::string(other);
}

}  // namespace faultpath::check
