#!/usr/bin/env bash
# Usage: check_includes.sh [TREE]
# Enforces the order of the rooms under src/ and what the engine may name. Prints one line per
# finding (`path:line: what`) and exits 1, or one summary line.
#
# Rooms, lowest first; a file includes public headers, its own room and lower rooms only, and
# fault/ and change/ never include each other. Rooms up to mmu are the engine: no operating system,
# no allocation, no concurrency but through "env.h", and raw memory copies only on lines (or right
# under a line) that say with a comment `// objects:` why the bytes are not page payload.
set -euo pipefail
cd "${1:-$(dirname "$0")/..}"

mapfile -t files < <(find src include/faultpath -type f \( -name '*.h' -o -name '*.cc' \) \
  2>/dev/null | sort)
if [[ ${#files[@]} -eq 0 ]]; then
  echo "includes: no sources yet"
  exit 0
fi

awk '
BEGIN {
  n = split("base sync arch memory pagetable vma cache fault change space mmu store procfs", room_list, " ")
  for (i = 1; i <= n; i++) rank[room_list[i]] = i
  last_engine = rank["mmu"]
  split("atomic mutex thread shared_mutex chrono condition_variable semaphore barrier latch " \
        "future stop_token string vector memory functional iostream istream ostream iosfwd " \
        "sstream fstream map set list deque unordered_map unordered_set filesystem cstdio " \
        "csignal ctime", list, " ")
  for (i in list) banned_header[list[i]] = 1
  split("stddef.h stdint.h stdarg.h limits.h immintrin.h emmintrin.h x86intrin.h arm_neon.h", list, " ")
  for (i in list) plain_header[list[i]] = 1
}

function find(what) { printf "%s:%d: %s\n", FILENAME, FNR, what; findings++ }

# Whether `text` holds `pattern` as a whole word (or words).
function names(text, pattern) {
  return (" " text " ") ~ ("[^A-Za-z0-9_](" pattern ")[^A-Za-z0-9_]")
}

# The line without comments and with empty literals; keeps the state of block comments.
function strip(line,    out, c, two, quote, raw_end) {
  out = ""
  while (line != "") {
    if (in_comment) {
      i = index(line, "*/")
      if (!i) return out
      in_comment = 0
      line = substr(line, i + 2)
      continue
    }
    two = substr(line, 1, 2)
    c = substr(line, 1, 1)
    if (two == "//") return out
    if (two == "/*") { in_comment = 1; line = substr(line, 3); out = out " "; continue }
    # A quote after a digit separates digits.
    if (c == "\"" || (c == "\047" && out !~ /[0-9a-fA-F]$/)) {
      quote = c
      line = substr(line, 2)
      while (line != "" && substr(line, 1, 1) != quote)
        line = substr(line, substr(line, 1, 1) == "\\" ? 3 : 2)
      line = substr(line, 2)
      out = out quote quote
      continue
    }
    out = out c
    line = substr(line, 2)
  }
  return out
}

function check_include(line,    target, angle, other, slash) {
  if (match(line, /<[^>]*>/)) angle = 1
  else if (match(line, /"[^"]*"/)) angle = 0
  else { find("an include that is neither <...> nor \"...\""); return }
  target = substr(line, RSTART + 1, RLENGTH - 2)
  slash = index(target, "/")
  other = slash ? substr(target, 1, slash - 1) : ""

  if (angle) {
    if (other == "faultpath") return
    if (other in rank || other == "env" || other == "lab")
      find("<" target ">: write rooms in quotes")
    if (!strict) return
    if (target in banned_header) find("<" target "> in the engine")
    else if (target ~ /\.h$/ && !(target in plain_header)) find("<" target "> in the engine: a header of the system")
    else if (slash) find("<" target "> in the engine")
    return
  }
  if (target == "env.h" || target == "atomics.h" || target == "../native/atomics.h") return
  if (kind == "include") {
    if (slash) find("\"" target "\" in a public header: only <faultpath/...> and \"env.h\"")
    return
  }
  if (kind == "env") {
    if (slash) find("\"" target "\": env is the lowest room and includes no other")
    return
  }
  if (!slash) { find("\"" target "\": write \"room/file.h\""); return }
  if (other == "env") { find("\"" target "\": the environment is included as \"env.h\""); return }
  if (!(other in rank)) { find("\"" target "\": no room of src/"); return }
  if (room == other) return
  if ((room == "fault" && other == "change") || (room == "change" && other == "fault"))
    find("\"" target "\": fault and change do not include each other")
  else if (rank[other] > rank[room])
    find("\"" target "\": " room " is below " other)
}

function check_words(text, raw) {
  if (match(" " text " ", /[^A-Za-z0-9_]std::(this_thread|jthread|thread|atomic[a-z_]*|[a-z_]*mutex|chrono|condition_variable[a-z_]*|lock_guard|unique_lock|scoped_lock|shared_lock|call_once|async)[^A-Za-z0-9_]/))
    find("std:: concurrency or clock (" substr(" " text " ", RSTART + 1, RLENGTH - 2) ") in the engine")
  if (names(text, "thread_local|__thread")) find("thread_local in the engine")
  if (names(text, "malloc|calloc|realloc|aligned_alloc") && text ~ /(malloc|calloc|realloc|aligned_alloc)[ ]*\(/)
    find("malloc in the engine")
  if (names(text, "std::free")) find("std::free in the engine")
  # `new (place) T` is placement; everything else allocates.
  if (names(text, "operator +new")) find("operator new in the engine")
  else if ((" " text " ") ~ /[^A-Za-z0-9_]new([ ]+[^( ]|[ ]*$)/ || text ~ /new[ ]*\([ ]*std::nothrow/)
    find("a new expression in the engine (placement is written `new (`)")
  gsub(/=[ ]*delete[ ]*[;,]/, ";", text)
  if (names(text, "delete"))
    find("a delete expression in the engine")
  if (kind == "room" && (" " text) ~ /[^A-Za-z0-9_](__builtin_)?mem(set|cpy|move)[ ]*\(/ &&
      raw !~ /\/\/ objects:/ && previous !~ /^[ ]*\/\/ objects:/)
    find("a raw memory copy in the engine without `// objects:`")
}

FNR == 1 {
  checked++
  in_comment = 0
  previous = ""
  split(FILENAME, part, "/")
  room = part[2]
  if (part[1] == "include") { kind = "include"; strict = part[3] == "detail" }
  else if (room == "env") { kind = "env"; strict = 0 }
  else {
    kind = "room"
    if (!(room in rank)) { find("src/" room " is no room"); strict = 0 }
    else strict = rank[room] <= last_engine
  }
}

{
  was_comment = in_comment
  text = strip($0)
  if (!was_comment && $0 ~ /^[ \t]*#[ \t]*include/) check_include($0)
  else if (strict) check_words(text, $0)
  previous = $0
}

END {
  if (findings) exit 1
  printf "includes: %d files, no findings\n", checked
}
' "${files[@]}"
