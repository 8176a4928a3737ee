#!/usr/bin/env bash
# Usage: sanitized.sh COMMAND...
# Runs a command with address-space randomisation off where that is allowed: the sanitizers of
# GCC 12 fail at random on kernels with vm.mmap_rnd_bits above 28. Findings end the program.
set -euo pipefail
export TSAN_OPTIONS="halt_on_error=1:second_deadlock_stack=1${TSAN_OPTIONS:+:$TSAN_OPTIONS}"
export UBSAN_OPTIONS="print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"
if command -v setarch >/dev/null && setarch -R true 2>/dev/null; then
  exec setarch -R "$@"
fi
exec "$@"
