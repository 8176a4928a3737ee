#!/usr/bin/env bash
# Usage: format.sh [--check]
# Formats every C++ file of the project in place; --check only reports differences and fails.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(-i)
if [[ ${1:-} == --check ]]; then mode=(--dry-run --Werror); fi
mapfile -t files < <(find include src lab tools tests bench examples fuzz check \
  -type f \( -name '*.cc' -o -name '*.h' \) 2>/dev/null | sort)
if [[ ${#files[@]} -eq 0 ]]; then exit 0; fi
clang-format-19 "${mode[@]}" "${files[@]}"
