#!/usr/bin/env bash
# Shows that the tests bite: each line of mutants.txt breaks the code in one way, and some test must fail of it.
#
#     tests/crash/mutants.sh [TEXT]     only those whose description holds TEXT
set -euo pipefail
cd "$(dirname "$0")/../.."

build=build/mutants
tests=(tests/unit/pour/test_journal.c tests/unit/pour/test_runs.c tests/unit/pour/test_given.c
    tests/crash/test_meddling.c tests/crash/test_losing.c tests/unit/output/test_file.c tests/unit/pour/test_pour.c
    tests/unit/pour/test_crew.c tests/fault/test_pour.c tests/crash/test_pour.c tests/memory/test_laziness.c
    tests/unit/pour/test_outputs.c tests/unit/pour/test_recover.c tests/unit/api/test_consume.c
    tests/fault/test_outputs.c tests/fault/test_consume.c tests/crash/test_outputs.c tests/crash/test_consume.c)
flags=(-std=gnu11 -D_GNU_SOURCE= -O1 -g -w -fsanitize=address,undefined -fno-sanitize-recover=all -Iinclude -Isrc -Itests
    "-DTEST_DATA=\"$PWD/tests/data\"" "-DTEST_SCRATCH=\"$PWD/$build\"")
# The system calls that tests/support/syscalls.c stands in for, as CMake has them.
mapfile -t wraps < <(sed -n '/^foreach(call /,/)$/p' tests/CMakeLists.txt | sed 's/^foreach(call//; s/)$//' | tr -s ' ' '\n' |
    sed -n 's/^[a-z]/-Wl,--wrap=&/p')
rm -rf "$build"
mkdir -p "$build"

object() {
    echo "$build/$(tr / _ <<<"${1%.c}").o"
}

# link TEST OBJECT...: makes TEST's program of its own object, the library's, and support.
link() {
    local test=$1
    shift
    cc "${flags[@]}" -o "$(object "$test").run" "$(object "$test")" "$@" "$support" "${wraps[@]}" $(pkg-config --libs cmocka jansson) -lpthread
}

mapfile -t sources < <(grep -v -x src/base/alloc.c src/sources.list)
objects=()
for file in "${sources[@]}" tests/support/*.c "${tests[@]}"; do
    echo cc "${flags[@]@Q}" -c -o "$(object "$file")" "$file"
done | xargs -P 2 -d '\n' -I{} bash -c '{}'
for file in "${sources[@]}"; do
    objects+=("$(object "$file")")
done
support=$build/support.a # of which each program takes what it needs
ar rcs "$support" "$build"/tests_support_*.o

# run OBJECT...: whether every test passes. One that does not is asked first the next time: mutants of one file stand together.
run() {
    local i test
    for i in "${!tests[@]}"; do
        test=${tests[i]}
        link "$test" "$@"
        timeout 300 "$(object "$test").run" >"$build/log" 2>&1 || {
            tests=("$test" "${tests[@]:0:i}" "${tests[@]:i+1}")
            return 1
        }
    done
}

run "${objects[@]}" || {
    cat "$build/log"
    echo "mutants: the tests fail without any"
    exit 1
}

killed=0 alive=0
while IFS='|' read -r what file program; do
    [[ $what == \#* || -z $what || $what != *"${1:-}"* ]] && continue
    read -r what <<<"$what"
    read -r file <<<"$file"
    mutant=$build/mutant.c
    sed -e "$program" "$file" >"$mutant"
    if cmp -s "$file" "$mutant"; then
        echo "mutants: '$what' changes nothing in $file"
        alive=$((alive + 1))
        continue
    fi
    cc "${flags[@]}" -c -o "$build/mutant.o" "$mutant"
    if run "${objects[@]/#$(object "$file")/$build/mutant.o}"; then
        echo "alive   $what"
        alive=$((alive + 1))
    else
        echo "killed  $what: ${tests[0]}"
        killed=$((killed + 1))
    fi
done <tests/crash/mutants.txt
echo "$killed killed, $alive alive"
((alive == 0 && killed > 0))
