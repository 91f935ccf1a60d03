#!/usr/bin/env bash
# What a packager asks of the build: the release is hardened; the same source gives the same bytes wherever it lies; and a
# static program, which needs nothing of the system that it runs on, works.
set -euo pipefail
grep -q '^CMAKE_BUILD_TYPE:.*=Release$' "$DECANT_BUILD/CMakeCache.txt" || {
    echo "only a release is hardened"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() {
    echo "$*"
    exit 1
}

for file in "$DECANT" "$(readlink -f "$DECANT_BUILD/libdecant.so")"; do
    headers=$(readelf -hldW "$file") symbols=$(readelf -sW --dyn-syms "$file")
    grep -q 'Type: *DYN' <<<"$headers" || fail "$file is loaded at a fixed address"
    grep -q 'GNU_RELRO' <<<"$headers" || fail "$file: what is relocated stays writable"
    grep -qE 'BIND_NOW|Flags:.* NOW' <<<"$headers" || fail "$file binds late"
    grep -qE 'GNU_STACK.* RW ' <<<"$headers" || fail "$file has a stack that can be executed"
    grep -q '__stack_chk_fail' <<<"$symbols" || fail "$file has no guarded stack"
    grep -qE '__[a-z]+_chk' <<<"$symbols" || fail "$file calls no fortified function"
    ! grep -qE 'RPATH|RUNPATH' <<<"$headers" || fail "$file looks for libraries in a path of its own"
done

for place in here there/and/elsewhere; do
    mkdir -p "$work/$place"
    cp -r "$DECANT_SOURCE"/{CMakeLists.txt,CMakePresets.json,cmake,include,src,cli,docs,completions,examples,README.md,CHANGELOG.md,SECURITY.md,LICENSE} \
        "$work/$place"
    (cd "$work/$place" && cmake --preset static -Wno-dev && cmake --build --preset static -j "$(nproc)") >"$work/log" 2>&1 ||
        { tail -n 20 "$work/log"; fail "the static program does not build"; }
done
program=$work/here/build/static/decant
cmp "$program" "$work/there/and/elsewhere/build/static/decant" || fail "the same source gave other bytes in another place"

headers=$(readelf -ldW "$program")
! grep -qE 'NEEDED|INTERP' <<<"$headers" || fail "the static program needs others"
cp "$DECANT_SOURCE/tests/data/st-one.safetensors" "$work/in.safetensors"
"$program" convert -q "$work/in.safetensors" -o "$work/out.bpk"
"$program" diff "$work/in.safetensors" "$work/out.bpk" >"$work/log"
