#!/usr/bin/env bash
# Usage: check_worlds.sh DIRECTORY...
# One binary holds one world: no executable in these directories has both the native and the
# simulated world's functions. Prints one line, or the offenders and exits 1.
set -euo pipefail

native='T faultpath::env::heavy_fence('
simulated='T faultpath::sim::World::run('
checked=0
natives=0
sims=0
bad=0
while IFS= read -r -d '' file; do
  symbols=$(nm -C "$file" 2>/dev/null || true)
  [[ -n $symbols ]] || continue
  checked=$((checked + 1))
  n=0
  s=0
  if grep -qF "$native" <<<"$symbols"; then n=1; natives=$((natives + 1)); fi
  if grep -qF "$simulated" <<<"$symbols"; then s=1; sims=$((sims + 1)); fi
  if [[ $n$s == 11 ]]; then
    echo "$file: holds the native and the simulated world"
    bad=1
  fi
done < <(find "$@" -maxdepth 1 -type f -executable -print0)
[[ $bad -eq 0 ]] || exit 1
# The markers must be real: both worlds have binaries here.
if [[ $natives -eq 0 || $sims -eq 0 ]]; then
  echo "worlds: found $natives native and $sims simulated binaries in $*: a marker is wrong"
  exit 1
fi
echo "worlds: $checked binaries, $natives native, $sims simulated, none both"
