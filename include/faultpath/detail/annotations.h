// Clang's thread-safety attributes under short names; nothing under other compilers.
#pragma once

#if defined(__clang__)
#define FP_TSA(x) __attribute__((x))
#else
#define FP_TSA(x)
#endif

#define FP_CAPABILITY(name) FP_TSA(capability(name))
#define FP_SCOPED_CAPABILITY FP_TSA(scoped_lockable)
#define FP_GUARDED_BY(x) FP_TSA(guarded_by(x))
#define FP_PT_GUARDED_BY(x) FP_TSA(pt_guarded_by(x))
#define FP_REQUIRES(...) FP_TSA(requires_capability(__VA_ARGS__))
#define FP_REQUIRES_SHARED(...) FP_TSA(requires_shared_capability(__VA_ARGS__))
#define FP_ACQUIRE(...) FP_TSA(acquire_capability(__VA_ARGS__))
#define FP_ACQUIRE_SHARED(...) FP_TSA(acquire_shared_capability(__VA_ARGS__))
#define FP_RELEASE(...) FP_TSA(release_capability(__VA_ARGS__))
#define FP_RELEASE_SHARED(...) FP_TSA(release_shared_capability(__VA_ARGS__))
#define FP_TRY_ACQUIRE(...) FP_TSA(try_acquire_capability(__VA_ARGS__))
#define FP_EXCLUDES(...) FP_TSA(locks_excluded(__VA_ARGS__))
#define FP_ASSERT_HELD(x) FP_TSA(assert_capability(x))
#define FP_ASSERT_HELD_SHARED(x) FP_TSA(assert_shared_capability(x))
#define FP_RETURN_CAPABILITY(x) FP_TSA(lock_returned(x))
#define FP_NO_THREAD_SAFETY_ANALYSIS FP_TSA(no_thread_safety_analysis)

#define FP_LIKELY(x) __builtin_expect(!!(x), 1)
#define FP_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define FP_ALWAYS_INLINE inline __attribute__((always_inline))
#define FP_NOINLINE __attribute__((noinline))
