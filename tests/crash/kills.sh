#!/usr/bin/env bash
# Kills saves that give their inputs up, and their recoveries, on real file systems, slice by slice until there were so many of
# each; goes on where it was stopped. build/kills/slices has a line a slice: its first seed, and how many runs it had on each.
#
#     tests/crash/kills.sh [RUNS]     10000
set -euo pipefail
cd "$(dirname "$0")/../.."

wanted=${1:-10000} each=100
slices=build/kills/slices
mkdir -p build/kills
touch "$slices"

for ((first = 1; first <= wanted; first += each)); do
    grep -q "^$first " "$slices" && continue
    FIRST=$first RUNS=$each DECANT=build/release/decant python3 tests/cli/test_consume_stopped.py \
        Stopped.test_killed_at_any_time_it_ends_as_it_was_or_as_it_was_to_be >"build/kills/$first.log" 2>&1 || {
        tail -n 40 "build/kills/$first.log"
        exit 1
    }
    if grep -q skipped "build/kills/$first.log"; then
        echo "not run on every file system: $(grep -m 1 skipped "build/kills/$first.log")"
        exit 77
    fi
    echo "$first $each" >>"$slices"
    rm "build/kills/$first.log"
done
echo "$(awk '{ runs += $2 } END { print runs + 0 }' "$slices") runs on each file system; all ended as they were or as they were to be"
