#!/usr/bin/env bash
# Cuts the power of saves that give their inputs up, and of their recoveries, on real file systems, slice by slice until there
# were so many states of each; goes on where it was stopped. build/cuts/slices has a line a slice: its file system, its first
# seed, how many states, how many more of recoveries, how many of all went on when there was room.
#
#     tests/crash/cuts.sh [STATES]     20000
set -euo pipefail
cd "$(dirname "$0")/../.."

wanted=${1:-20000} saves=10 each=300 # states of so many saves
slices=build/cuts/slices
mkdir -p build/cuts
touch "$slices"

# cut KIND SEED: a line of its own, once it is done.
cut() {
    local log=build/cuts/$1.$2.log
    KINDS=$1 FIRST=$2 STATES=$each DECANT=build/release/decant DECANT_BUILD=build/release \
        python3 tests/cli/test_consume_cuts.py >"$log" 2>&1 || {
        grep -A 30 CUT= "$log" || tail -n 40 "$log"
        return 1
    }
    if grep -q skipped "$log"; then
        echo "not run: $(grep -m 1 skipped "$log")"
        return 77
    fi
    sed -n "s/^$1: \([0-9]*\) states, and \([0-9]*\) of .*; \([0-9]*\) went .*/$1 $2 \1 \2 \3/p" "$log" >>"$slices"
    rm "$log"
}

# Most of the time goes into waiting for the kernel: more of them at once than there are processors.
running=0
for ((seed = 1000; (seed - 1000) / saves * each < wanted; seed += saves)); do
    for kind in ext4 xfs btrfs; do
        grep -q "^$kind $seed " "$slices" && continue
        if ((running == 2 * $(nproc))); then
            wait -n
            running=$((running - 1))
        fi
        cut "$kind" "$seed" &
        running=$((running + 1))
    done
done
while ((running--)); do
    wait -n
done
awk '{ states[$1] += $3; nested[$1] += $4; late[$1] += $5 }
    END { for (kind in states) printf "%s: %d states, and %d of recoveries; %d went on when there was room\n",
        kind, states[kind], nested[kind], late[kind] }' "$slices"
