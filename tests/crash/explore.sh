#!/usr/bin/env bash
# Stops saves that give their inputs up, and their recoveries, in scenes that seeds make up, slice by slice until that many
# states were seen; goes on where it was stopped. build/explore/slices has a line a slice: its first scene, how many scenes,
# states, how many of these are of stopped recoveries.
#
#     tests/crash/explore.sh [STATES]     5000000
set -euo pipefail
cd "$(dirname "$0")/../.."

program=build/release/tests/crash_consume wanted=${1:-5000000} each=4 first=1000
slices=build/explore/slices
mkdir -p build/explore
touch "$slices"

# explore SCENE: a line of its own, once it is done.
explore() {
    local log=build/explore/$1.log
    EXPLORE_SCENES=$1,$each "$program" >"$log" 2>&1 || {
        grep -A 4 EXPLORE= "$log" || tail -n 20 "$log"
        return 1
    }
    sed -n "s/^\([1-9][0-9]*\) states, \([0-9]*\) of .*/$1 $each \1 \2/p" "$log" >>"$slices"
    rm "$log"
}

total() {
    awk '{ states += $3; nested += $4 } END { print states + 0, nested + 0 }' "$slices"
}

for ((scene = first; $(total | cut -d ' ' -f 1) < wanted; scene += each * $(nproc))); do
    jobs=()
    for ((i = 0; i < $(nproc); i++)); do
        grep -q "^$((scene + i * each)) " "$slices" && continue
        explore $((scene + i * each)) &
        jobs+=($!)
    done
    for job in "${jobs[@]}"; do
        wait "$job"
    done
done
read -r states nested <<<"$(total)"
echo "$states states, $nested of them of stopped recoveries, of $(wc -l <"$slices") slices; all are recovered from"
