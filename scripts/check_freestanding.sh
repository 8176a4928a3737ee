#!/usr/bin/env bash
# Usage: check_freestanding.sh [TREE]
# The engine must need nothing of the host: compiles its rooms against src/env/bare, links them
# into one object and looks at what remains undefined. Allowed: the four mem* functions that every
# C++ compiler asks for, and faultpath_bare_*, the functions of the bare environment.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

mapfile -t sources < <(find src/{base,sync,arch,memory,pagetable,vma,cache,fault,change,space,mmu} \
  -name '*.cc' 2>/dev/null | sort)
if [[ ${#sources[@]} -eq 0 ]]; then
  echo "freestanding: no engine sources yet"
  exit 0
fi
if [[ ! -f src/env/bare/env.h ]]; then
  echo "freestanding: src/env/bare/env.h is missing" >&2
  exit 1
fi

out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

version=$(sed -n 's/^project(Faultpath VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt 2>/dev/null || true)
flags=(-std=c++23 -O2 -Wall -Wextra -Wno-interference-size -fno-exceptions -fno-rtti
  -fno-threadsafe-statics -fno-stack-protector -fno-asynchronous-unwind-tables -fno-pic -fno-pie
  -fvisibility=hidden -U_FORTIFY_SOURCE "-DFAULTPATH_VERSION=\"$version\""
  -I src/env/bare -I src -I include)
if [[ $(uname -m) == x86_64 ]]; then flags+=(-mcx16); fi

object_of() { local name=${1#src/}; echo "$out/${name//\//.}.o"; }

compile() {
  local source=$1
  if ! g++ "${flags[@]}" -c "$source" -o "$(object_of "$source")"; then
    echo "$source: does not compile against src/env/bare" >&2
    touch "$out/failed"
  fi
}

# Two compilers at a time: every other file each.
half() {
  local i
  for ((i = $1; i < ${#sources[@]}; i += 2)); do compile "${sources[i]}"; done
}
half 0 &
half 1
wait $!
if [[ -e $out/failed ]]; then exit 1; fi

objects=()
for source in "${sources[@]}"; do objects+=("$(object_of "$source")"); done
ld -r -o "$out/engine.o" "${objects[@]}"

allowed='^(memcpy|memmove|memset|memcmp|faultpath_bare_[A-Za-z0-9_]*)$'
undefined() { nm -u "$1" | awk '{ print $2 }' | grep -Ev "$allowed" || true; }

count=0
for symbol in $(undefined "$out/engine.o"); do
  count=$((count + 1))
  for source in "${sources[@]}"; do
    if grep -qxF -- "$symbol" <(undefined "$(object_of "$source")"); then
      echo "$source: needs $(c++filt -- "$symbol")"
    fi
  done
done
if [[ $count -gt 0 ]]; then
  echo "freestanding: $count undefined symbols that no bare environment offers" >&2
  exit 1
fi
echo "freestanding: ${#sources[@]} files link with nothing but mem* and faultpath_bare_*"
