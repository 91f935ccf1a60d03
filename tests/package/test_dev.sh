#!/usr/bin/env bash
# ./dev says in one line what is wrong with its words, before it does anything.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$DECANT_SOURCE/dev" "$work"
mkdir "$work/build"

# refused LINE WORD...: the first of what is said.
refused() {
    local said line=$1
    shift
    if said=$("$work/dev" "$@" 2>&1); then
        echo "dev $*: was not refused"
        exit 1
    fi
    [[ ${said%%$'\n'*} == "$line" && -d $work/build ]] || {
        printf 'dev %s: expected "%s", said:\n%s\n' "$*" "$line" "$said"
        exit 1
    }
}

refused "dev: unknown command 'biuld'" biuld
refused "dev: unknown command '--jobs'" --jobs
for command in demo check nightly format clean; do
    refused "dev: $command takes no words, but 'dev' was given" "$command" dev
done
presets="dev dev-clang asan tsan fuzz coverage release static"
refused "dev: build: there is no preset 'relase'; the presets are: $presets" build relase
refused "dev: install: --prefix lacks its value" install --prefix
refused "dev: install: --prefix lacks its value" install --prefix --strip
refused "dev: install: --prefix lacks its value" install --strip --prefix ""
refused "dev: install: '--perfix' is no option; --prefix DIR says where to" install --perfix /opt
refused "dev: install: '/opt' is no option; --prefix DIR says where to" install /opt
