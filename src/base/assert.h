// Assertions of the engine: on in debug, sanitizer and simulated builds, nothing in release.
#pragma once

#include "env.h"

#ifndef FAULTPATH_ASSERTS
#define FAULTPATH_ASSERTS 0
#endif

#if FAULTPATH_ASSERTS
#define FP_ASSERT(x) ((x) ? void(0) : ::faultpath::env::assertion_failed(#x, __FILE__, __LINE__))
#else
#define FP_ASSERT(x) (true ? void(0) : void(x))
#endif
