#!/usr/bin/env bash
# Kills saves that give their inputs up, and their recoveries, on real file systems, slice by slice until so many saves were
# killed on each; goes on where it was stopped. build/kills/slices has a line a slice: its first seed, the file system, runs,
# saves that were killed, recoveries that were.
#
#     tests/crash/kills.sh [KILLS [FILE_SYSTEM...]]     10000 ext4 xfs btrfs tmpfs
set -euo pipefail
cd "$(dirname "$0")/../.."

wanted=${1:-10000} each=1000 kinds=("${@:2}")
((${#kinds[@]})) || kinds=(ext4 xfs btrfs tmpfs)
slices=build/kills/slices
mkdir -p build/kills
touch "$slices"

# slice KIND FIRST: a line of its own, once it is done.
slice() {
    local log=build/kills/$1.$2.log
    KINDS=$1 FIRST=$2 RUNS=$each TMPDIR=${TMPDIR:-/dev/shm} DECANT=build/release/decant DECANT_BUILD=build/release \
        python3 tests/cli/test_consume_stopped.py Stopped.test_killed_at_any_time_it_ends_as_it_was_or_as_it_was_to_be \
        >"$log" 2>&1 || {
        tail -n 40 "$log"
        exit 1
    }
    if grep -q skipped "$log"; then
        echo "not run on every file system: $(grep -m 1 skipped "$log")"
        exit 77
    fi
    sed -n "s/^$1 \([0-9]*\) runs, \([0-9]*\) killed, \([0-9]*\) recoveries.*/$2 $1 \1 \2 \3/p" "$log" >>"$slices"
    rm "$log"
}

for kind in "${kinds[@]}"; do
    for ((first = 1; $(awk -v kind="$kind" '$2 == kind { n += $4 } END { print n + 0 }' "$slices") < wanted; first += each)); do
        grep -q "^$first $kind " "$slices" || slice "$kind" "$first"
    done
done
awk '{ runs[$2] += $3; saves[$2] += $4; recoveries[$2] += $5 }
    END { for (kind in runs) printf "%s: %d runs, %d saves and %d recoveries killed; all ended as they were or as they were to be\n",
        kind, runs[kind], saves[kind], recoveries[kind] }' "$slices" | sort
