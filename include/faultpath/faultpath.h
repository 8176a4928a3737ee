// Faultpath: Linux's mmap semantics in user space, with page faults that do not wait for the
// address-space lock. Include this; see README.md for the ten-line example.
#pragma once

#include <faultpath/address_space.h>
#include <faultpath/arch.h>
#include <faultpath/config.h>
#include <faultpath/counters.h>
#include <faultpath/errno.h>
#include <faultpath/fd_store.h>
#include <faultpath/file.h>
#include <faultpath/format.h>
#include <faultpath/machine.h>
#include <faultpath/outcome.h>
#include <faultpath/policy.h>
#include <faultpath/result.h>
#include <faultpath/soft_cpu.h>
#include <faultpath/store.h>
#include <faultpath/types.h>
