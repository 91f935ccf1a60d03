#!/usr/bin/env bash
# Each public header stands alone, as C11 and as C++17, with every compiler that is here.
set -uo pipefail
cd "$DECANT_SOURCE/include"

failed=0
for header in decant/*.h; do
    for compiler in "gcc -std=c11 -xc" "clang -std=c11 -xc" "g++ -std=c++17 -xc++" "clang++ -std=c++17 -xc++"; do
        # Twice: a header without a guard does not stand it. C wants a declaration in every file.
        printf '#include <%s>\n#include <%s>\ntypedef int declaration;\n' "$header" "$header" |
            $compiler -fsyntax-only -pedantic -Wall -Wextra -Werror -I. - || {
            echo "$header does not stand alone: $compiler"
            failed=1
        }
    done
done
exit $failed
