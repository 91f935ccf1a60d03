#!/usr/bin/env bash
# What cmake --install laid down is found by CMake and by pkg-config, and works wherever the tree is moved to.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
consumer=$DECANT_SOURCE/tests/package/consumer
version=$(sed -n 's/^#define DECANT_VERSION_[A-Z]* *\([0-9][0-9]*\)$/\1/p' "$DECANT_SOURCE/include/decant/version.h" | paste -sd.)

expect() {
    local said
    said=$("$@")
    [[ $said == "$version" ]] || {
        echo "$*: said '$said', expected '$version'"
        exit 1
    }
}

has() {
    local file
    for file in "$@"; do
        [[ -f $work/moved/share/$file ]] || {
            echo "share/$file was not installed"
            exit 1
        }
    done
}

DESTDIR=$work/stage cmake --install "$DECANT_BUILD" --prefix /opt/decant >"$work/log"
mv "$work/stage/opt/decant" "$work/moved"
lib=$(dirname "$(find "$work/moved" -name libdecant.a)")

cmake -S "$consumer" -B "$work/cmake" -DCMAKE_PREFIX_PATH="$work/moved" -DCMAKE_BUILD_TYPE=Debug >"$work/log"
cmake --build "$work/cmake" >"$work/log"
expect "$work/cmake/with_decant"
expect "$work/cmake/with_decant_static"

export PKG_CONFIG_PATH=$lib/pkgconfig
[[ $(pkg-config --modversion decant) == "$version" ]]
cc -o "$work/shared" "$consumer/main.c" $(pkg-config --cflags --libs decant)
LD_LIBRARY_PATH=$lib expect "$work/shared"
static=$(pkg-config --static --libs-only-l decant)
cc -o "$work/static" "$consumer/main.c" $(pkg-config --cflags decant) "$lib/libdecant.a" ${static/-ldecant/}
expect "$work/static"

has man/man1/decant{,-convert,-plan,-inspect,-ls,-diff,-digest,-verify,-extract,-formats,-cat,-edit}.1
has bash-completion/completions/decant zsh/site-functions/_decant fish/vendor_completions.d/decant.fish
has decant/decant-1.schema.json
has doc/decant/{README.md,CHANGELOG.md,LICENSE,docs/cli.md,docs/architecture.md,docs/formats/burnpack.md}

# What the README links to is there too, but for what only the source has.
for link in $(grep -oE '\]\([^):]+\)' "$DECANT_SOURCE/README.md" | tr -d ']()' | sort -u); do
    [[ $link == include/decant || $link == CONTRIBUTING.md || -e $work/moved/share/doc/decant/$link ]] || {
        echo "README.md links to $link, which was not installed"
        exit 1
    }
done

"$work/moved/bin/decant" --version | grep -qF "$version"
