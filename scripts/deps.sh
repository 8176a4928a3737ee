#!/usr/bin/env bash
# Usage: deps.sh build|test|bench|ci...
# Names the Debian packages that a kind of work needs and that are missing; root gets them
# installed. Silent when nothing is missing, and on systems without dpkg. FAULTPATH_DEPS=skip
# leaves the question to the build.
set -euo pipefail

if [[ ${FAULTPATH_DEPS:-} == skip ]] || ! command -v dpkg-query >/dev/null; then exit 0; fi

want=(g++ cmake ninja-build libfmt-dev libcli11-dev nlohmann-json3-dev libgtest-dev
      libboost-context-dev)
for kind in "$@"; do
  case $kind in
    build) ;;
    test) want+=(binutils) ;;
    bench) want+=(libbenchmark-dev valgrind) ;;
    ci) want+=(binutils clang-19 clang-tidy-19 clang-format-19 pkg-config) ;;
    *) echo "deps.sh: no kind of work named '$kind'" >&2; exit 2 ;;
  esac
done

installed=" $(dpkg-query -W -f '${db:Status-Status}:${Package} ' "${want[@]}" 2>/dev/null || true)"
missing=()
for package in "${want[@]}"; do
  [[ $installed == *" installed:$package "* ]] || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

echo "missing Debian packages: ${missing[*]}" >&2
if [[ $(id -u) -ne 0 ]]; then
  echo "install them: apt-get install ${missing[*]}" >&2
  exit 1
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >&2
apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
