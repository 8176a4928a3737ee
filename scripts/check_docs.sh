#!/usr/bin/env bash
# Usage: check_docs.sh [TREE]
# Looks for what the code and the documentation name and that does not exist. Prints one line per
# finding (`path:line: what`) and exits 1, or one summary line.
#
#   ids     B01, I1, ...: cited in src/, include/, tests/, check/ or docs/, they are rows of
#           docs/SCENARIOS.md or headings of docs/INVARIANTS.md
#   guards  every guard of src/base/guards.h is in docs/SCENARIOS.md; every guard that the docs name
#           is one. A name in backticks with an underscore may be a guard or a word of the sources.
#   links   relative Markdown links of README.md and docs/ lead to files
set -euo pipefail
export LC_ALL=C
cd "${1:-$(dirname "$0")/..}"

scenarios=docs/SCENARIOS.md
invariants=docs/INVARIANTS.md
guards=src/base/guards.h
for file in "$scenarios" "$invariants" "$guards"; do
  if [[ ! -f $file ]]; then
    echo "$file:1: is missing"
    exit 1
  fi
done
mapfile -t docs < <(find docs -name '*.md' | sort)
[[ ! -f README.md ]] || docs+=(README.md)
code=()
for room in src include tests check; do [[ ! -d $room ]] || code+=("$room"); done
words=("${code[@]}")
for room in lab tools bench examples scripts CMakeLists.txt Makefile; do
  [[ ! -e $room ]] || words+=("$room")
done

# One awk over lists that the greps below make; each list begins with a line "=NAME".
# shellcheck disable=SC2016  # backticks are Markdown's
findings=$(
  {
    echo "=rows"
    grep -HnoE '^\| B[0-9]{2} \|' "$scenarios" || true
    grep -HnoE '^### I[0-9]{1,2} ' "$invariants" || true
    echo "=ids"
    grep -rnowE --include='*.h' --include='*.cc' --include='*.c' 'B[0-9]{2}|I[0-9]{1,2}' "${code[@]}" || true
    grep -HnowE 'B[0-9]{2}|I[0-9]{1,2}' "${docs[@]}" || true
    echo "=guards"
    sed -n '/^enum class Guard/,/^};/{=;p}' "$guards" | sed 'N;s/\n/:/' |
      sed -nE 's/^([0-9]+): +([a-z][a-z_0-9]*).*/\1:\2/p'
    echo "=words"
    grep -rhowE '[a-z][a-z0-9]*(_[a-z0-9]+)+' "${words[@]}" | sort -u
    echo "=documented"
    grep -oE '`[a-z_0-9]+`' "$scenarios" | tr -d '`' | sort -u
    echo "=named"
    grep -HnoE '`[a-z][a-z0-9]*(_[a-z0-9]+)+`|Guard::[a-z_0-9]+|^\| `[a-z_0-9]+` \|' "${docs[@]}" || true
    echo "=titles"
    grep -HnE '^#' "$scenarios"
  } | awk -v guards_file="$guards" -v scenarios="$scenarios" '
    # Takes "path:line:text" apart: `at` is path:line.
    function cut(s,   i, j) {
      i = index(s, ":")
      j = index(substr(s, i + 1), ":")
      at = substr(s, 1, i + j - 1)
      line = substr(s, i + 1, j - 1) + 0
      text = substr(s, i + j + 1)
    }
    /^=/ { list = substr($0, 2); next }
    list == "rows" {
      cut($0)
      gsub(/[^BI0-9]/, "", text)
      if (text in row) print at ": " text " is there twice"
      row[text] = 1
    }
    list == "ids" { cut($0); cited[n_cited++] = at " " text }
    list == "guards" { i = index($0, ":"); guard[substr($0, i + 1)] = substr($0, 1, i - 1) }
    list == "words" { word[$0] = 1 }
    list == "documented" { documented[$0] = 1 }
    list == "named" { cut($0); named[n_named++] = at " " text }
    list == "titles" { cut($0); if (text == "## Guards without a number") table_from = line }
    END {
      for (i = 0; i < n_cited; i++) {
        split(cited[i], part, " ")
        if (!(part[2] in row)) print part[1] ": " part[2] " is no " (part[2] ~ /^B/ ? "scenario" : "invariant")
      }
      for (name in guard)
        if (!(name in documented)) print guards_file ":" guard[name] ": guard " name " is not in " scenarios
      for (i = 0; i < n_named; i++) {
        j = index(named[i], " ")
        at = substr(named[i], 1, j - 1)
        text = substr(named[i], j + 1)
        # A guard for certain: qualified, or in the first column of the list of guards.
        certain = text ~ /^Guard::/
        if (text ~ /^\|/) {
          k = split(at, part, ":")
          certain = part[1] == scenarios && table_from && part[k] + 0 > table_from
        }
        gsub(/Guard::|[^a-z_0-9]/, "", text)
        if (text in guard) continue
        if (certain) print at ": " text " is no guard"
        else if (text ~ /_/ && !(text in word)) print at ": " text " is neither a guard nor a name in the sources"
      }
      n = 0
      for (id in row) n++
      g = 0
      for (name in guard) g++
      printf "=%d ids, %d guards\n", n, g
    }'
)
counts=$(sed -n 's/^=//p' <<<"$findings")
findings=$(sed '/^=/d' <<<"$findings")

# Links outside fenced blocks and code spans; `path:line target`.
links=$(awk '
  FNR == 1 { fenced = 0 }
  /^ *(```|~~~)/ { fenced = !fenced; next }
  fenced { next }
  {
    rest = $0
    gsub(/`[^`]*`/, "", rest)
    if (match(rest, /^\[[^]]+\]:[ ]*[^ ]+/)) {
      target = substr(rest, RSTART, RLENGTH)
      sub(/^\[[^]]+\]:[ ]*/, "", target)
      print FILENAME ":" FNR " " target
    }
    while (match(rest, /\]\([^)]*\)/)) {
      target = substr(rest, RSTART + 2, RLENGTH - 3)
      rest = substr(rest, RSTART + RLENGTH)
      sub(/^[ ]*</, "", target)
      sub(/[> ].*$/, "", target)
      print FILENAME ":" FNR " " target
    }
  }' "${docs[@]}")
linked=0
while read -r at target; do
  [[ -n $at && -n $target && $target != \#* && ! $target =~ ^[a-zA-Z][a-zA-Z+.-]*: ]] || continue
  linked=$((linked + 1))
  file=${at%%:*}
  path=${target%%#*}
  path=${path%%\?*}
  if [[ $path == /* || ! -e $(dirname "$file")/$path ]]; then
    findings+=$'\n'"$at: link to $target leads nowhere"
  fi
done <<<"$links"

findings=$(sed '/^$/d' <<<"$findings" | sort -t: -k1,1 -k2,2n -u -k3)
if [[ -n $findings ]]; then
  echo "$findings"
  exit 1
fi
echo "docs: ${#docs[@]} pages, $counts, $linked links, no findings"
