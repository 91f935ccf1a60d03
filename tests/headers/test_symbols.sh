#!/usr/bin/env bash
# The libraries define decant_* for others to see and nothing else, and the shared one needs libc, and what was chosen for the build.
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
needs=$(grep -Ev '^(libc\.so\.6|libcrypto\.so\.[0-9]+|libpcre2-8\.so\.[0-9]+)$' <<<"$needs" || true)
[[ -z $needs ]] || {
    printf 'libdecant.so needs more than it may:\n%s\n' "$needs"
    exit 1
}
