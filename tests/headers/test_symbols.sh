#!/usr/bin/env bash
# The libraries define decant_* for others to see and nothing else, and the shared one needs libc alone.
set -euo pipefail
cd "$DECANT_BUILD"

check_names() {
    local file=$1
    shift
    local names stray
    names=$(nm "$@" --defined-only -P "$file" | awk 'NF > 1 { print $1 }')
    grep -q '^decant_' <<<"$names" || {
        echo "$file exports nothing"
        exit 1
    }
    stray=$(grep -v '^decant_' <<<"$names" || true)
    [[ -z $stray ]] || {
        printf '%s exports what is not decant_*:\n%s\n' "$file" "$stray"
        exit 1
    }
}
check_names libdecant.so -D
check_names libdecant.a -g

needs=$(readelf -d libdecant.so | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
[[ $needs == libc.so.6 ]] || {
    printf 'libdecant.so needs more than libc:\n%s\n' "$needs"
    exit 1
}
