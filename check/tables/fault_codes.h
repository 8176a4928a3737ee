// Every fault code of six machines that asks a VMA something, for tests and for the checker.
#pragma once

#include <faultpath/arch.h>

#include <functional>
#include <string_view>

namespace faultpath::check {

/// Calls `each` for every legal code of `arch` that decodes to an access at `at` (in the user's
/// half; below 2^32 for arm): registers are built and decoded. Key registers, where a machine has
/// them, come in three settings: nothing denied, and key 1 without access, and without writes.
/// `code` reads like "x86 error_code 0x7 (PROT WRITE USER)" and names what else was set.
void for_each_legal_fault(Arch arch, Addr at,
                          const std::function<void(std::string_view code, const Decoded&)>& each);

}  // namespace faultpath::check
