#!/bin/sh
# Makes .venv at the top of the tree, with the Python packages that tests compare decant with.
# Exit status 77: no registry gave them, so what needs them is skipped.
set -eu
cd "$(dirname "$0")/../.."

wanted=tests/oracle/requirements.txt
if cmp -s "$wanted" .venv/installed.txt; then
    exit 0
fi

rm -rf .venv
mkdir -p build
if ! { python3 -m venv .venv &&
    .venv/bin/pip install --no-deps --only-binary :all: --retries 1 --timeout 20 -r "$wanted"; } >build/venv.log 2>&1; then
    echo "venv: no registry gave the packages of $wanted, so what needs them is skipped; see build/venv.log" >&2
    exit 77
fi
cp "$wanted" .venv/installed.txt
