#!/usr/bin/env bash
# Kills saves that give their inputs up, and their recoveries, on real file systems, slice by slice until so many saves were
# killed on each; goes on where it was stopped. build/kills/slices has a line a slice and file system: its first seed, the
# kind, runs, saves that were killed, recoveries that were.
#
#     tests/crash/kills.sh [KILLS]     10000
set -euo pipefail
cd "$(dirname "$0")/../.."

wanted=${1:-10000} each=1000
slices=build/kills/slices
mkdir -p build/kills
touch "$slices"

# The least on any file system, of the four.
killed() {
    awk '{ n[$2] += $4 } END { for (k in n) if (!least || n[k] < least) least = n[k]; print length(n) < 4 ? 0 : least }' "$slices"
}

for ((first = 1; $(killed) < wanted; first += each)); do
    grep -q "^$first " "$slices" && continue
    log=build/kills/$first.log
    FIRST=$first RUNS=$each TMPDIR=${TMPDIR:-/dev/shm} DECANT=build/release/decant DECANT_BUILD=build/release \
        python3 tests/cli/test_consume_stopped.py Stopped.test_killed_at_any_time_it_ends_as_it_was_or_as_it_was_to_be \
        >"$log" 2>&1 || {
        tail -n 40 "$log"
        exit 1
    }
    if grep -q skipped "$log"; then
        echo "not run on every file system: $(grep -m 1 skipped "$log")"
        exit 77
    fi
    sed -n "s/^\([a-z0-9]*\) \([0-9]*\) runs, \([0-9]*\) killed, \([0-9]*\) recoveries.*/$first \1 \2 \3 \4/p" "$log" >>"$slices"
    rm "$log"
done
awk '{ runs[$2] += $3; saves[$2] += $4; recoveries[$2] += $5 }
    END { for (kind in runs) printf "%s: %d runs, %d saves and %d recoveries killed; all ended as they were or as they were to be\n",
        kind, runs[kind], saves[kind], recoveries[kind] }' "$slices" | sort
