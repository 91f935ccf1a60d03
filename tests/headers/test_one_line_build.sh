#!/usr/bin/env bash
# One line over the list of sources builds the library, without a configure step, and it links libc alone.
set -euo pipefail
cd "$DECANT_SOURCE"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

cc -std=c11 -Iinclude -Isrc -shared -fPIC -o "$work/libdecant.so" -Wl,-z,defs $(cat src/sources.list)

needs=$(readelf -d "$work/libdecant.so" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
[[ $needs == libc.so.6 ]] || {
    printf 'needs more than libc:\n%s\n' "$needs"
    exit 1
}

# What needs another library is left out, and says so.
cat >"$work/omitted.c" <<'C'
#include <decant/decant.h>
int main(void)
{
    decant_model *model = NULL;
    char hex[DECANT_DIGEST];
    decant_error err = {0};
    decant_transform_options options = DECANT_TRANSFORM_OPTIONS_INIT;
    const char *const rename[] = {"s/a/b/"};
    int right = !decant_model_create(&model, &err) &&
                decant_digest(model, NULL, NULL, NULL, hex, &err) == DECANT_UNSUPPORTED && err.hint[0];

    options.rename = rename;
    options.rename_count = 1;
    right = right && decant_transform((const decant_model *const *)&model, NULL, 1, &options, &model, &err) ==
                         DECANT_UNSUPPORTED && err.hint[0];
    decant_model_close(&model);
    return !right;
}
C
cc -std=c11 -Iinclude -o "$work/omitted" "$work/omitted.c" "$work/libdecant.so"
"$work/omitted"

# The list is whole: no source of the library is missing from it.
diff <(sort src/sources.list) <(find src -name '*.c' | sort)
