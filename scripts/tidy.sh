#!/usr/bin/env bash
# Usage: tidy.sh [BUILD_DIR]
# Runs clang-tidy over the sources of the engine and of the checker; BUILD_DIR (build/ci-clang) has
# compile_commands.json. An engine source is built twice, with the machine's environment and with
# the simulated world's, and read as both.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${1:-build/ci-clang}
if [[ ! -f $build/compile_commands.json ]]; then
  echo "tidy: configure first: cmake --preset ci-clang" >&2
  exit 2
fi
mapfile -t files < <(find src/env/native src/{base,sync,arch,memory,pagetable,vma,cache} \
  src/{fault,change,space,mmu} src/env/sim check -name '*.cc' 2>/dev/null | sort)
if [[ ${#files[@]} -eq 0 ]]; then
  echo "tidy: no engine sources"
  exit 0
fi
# The count of suppressed warnings is noise; findings go to standard output.
if printf '%s\0' "${files[@]}" | xargs -0 -P2 -n1 clang-tidy-19 --quiet -p "$build" \
    2> >(grep -Ev '^[0-9]+ (warnings?|errors?)( and [0-9]+ errors?)? (generated|treated as errors?)' >&2); then
  echo "tidy: ${#files[@]} files, no findings"
else
  echo "tidy: findings, see above" >&2
  exit 1
fi
