// What env.h's types call: the way from engine code into the simulated world. Not for others.
#pragma once

#include <atomic>

#include "world.h"

namespace faultpath::sim::hooks {

/// A fibre is running: points are points. Else (set-up, checks at rest) everything is plain memory.
extern bool active;

/// The CPU's turn to perform `kind` on `at`; returns when it has been chosen, with the step
/// recorded. Nothing of another CPU happens before the next call into here.
void turn(OpKind kind, const void* at, Site site);

// After the turn, what the operation did: happens-before, and the value for the trace.
void loaded(const void* at, std::memory_order order, std::uint64_t value);
void stored(const void* at, std::memory_order order, std::uint64_t value);
void exchanged(const void* at, std::memory_order order, std::uint64_t old_value);
void locked(const void* at);
void unlocked(const void* at);
void fenced();
void fenced_everywhere();

/// A guest's own access (not the engine's copying): its step is the access's instant.
void accessed();
/// Memory changed by the step just taken, beside the place it names.
void wrote(const void* at, std::size_t bytes);

/// A plain field is about to be read or written.
void plain(const void* at, bool write);
/// The same, for a word that only pools touch: also in dead memory.
void pooled(const void* at, bool write);
/// An atomic is being made anew.
void made(const void* at);

void park(const void* at, bool holds_value);
void unpark(const void* at, bool all, Site site);

void born(const void* at, std::uint64_t bytes);
void died(const void* at, std::uint64_t bytes);
void lock_born(const void* at);
void lock_died(const void* at);

void assertion_failed(const char* what, const char* file, int line);
void unmarked_write();

bool guard_on(unsigned guard);
std::uint64_t now_ns();
/// Memory of the machine that the scene makes; one at a time.
bool map_region(std::uint64_t frames, std::uint64_t object_bytes, std::uint64_t payload_bytes,
                std::uint64_t table_bytes, std::byte** payload, std::byte** objects,
                std::byte** tables);

}  // namespace faultpath::sim::hooks
