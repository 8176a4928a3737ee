#!/usr/bin/env bash
# Usage: check_headers.sh COMPILER INCLUDE_DIR [MORE_INCLUDE_DIRS...]
# Compiles each public header by itself as C++20, as a user's first include would.
set -euo pipefail
compiler=$1
include=$2
flags=(-std=c++20 -fsyntax-only -Wall -Wextra -Wshadow -Wundef -Werror -x c++)
shift
for directory in "$@"; do flags+=(-I "$directory"); done

mapfile -t headers < <(cd "$include" && find faultpath -name '*.h' 2>/dev/null | sort)
failed=0
for header in ${headers[@]+"${headers[@]}"}; do
  if ! echo "#include <$header>" | "$compiler" "${flags[@]}" -; then
    echo "$header: does not compile by itself as C++20 with $compiler" >&2
    failed=$((failed + 1))
  fi
done
echo "headers: ${#headers[@]} checked with $compiler, $failed failed"
[[ $failed -eq 0 ]]
