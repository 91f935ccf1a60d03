#!/usr/bin/env bash
# What the completions of each shell offer, at the places that differ. DECANT: the program.
set -euo pipefail
cd "$DECANT_SOURCE"
PATH=$(dirname "$DECANT"):$PATH
failed=0

# check SHELL LINE WANTED...: what is offered for the last word of LINE has each WANTED.
check() {
    local shell=$1 line=$2 offered word
    shift 2
    command -v "$shell" >/dev/null || {
        [[ ${CI:-} != true ]] || failed=1
        echo "skipped: there is no $shell"
        return 0
    }
    offered=$("offer_$shell" "$line" | tr -s '[:space:]' ' ')
    for word in "$@"; do
        [[ " $offered " == *" $word "* ]] || {
            echo "$shell: '$line' does not offer $word: $offered"
            failed=1
        }
    done
}

offer_bash() {
    bash --norc -c 'source completions/decant.bash
        read -ra COMP_WORDS <<<"$1"
        [[ $1 != *" " ]] || COMP_WORDS+=("")
        COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
        _decant
        printf "%s\n" "${COMPREPLY[@]}"' bash "$1"
}

offer_fish() {
    fish --no-config -c 'source completions/decant.fish; complete -C "$argv[1]"' "$1"
}

# What _decant hands to the completion system, which is stood in for.
offer_zsh() {
    zsh -f -c 'compadd() { shift; print -l -- "$@" }
        _describe() { print -l -- "${(@)${(@P)2}%%:*}" }
        _files() { print -l -- * }
        source completions/_decant
        words=(${(z)1}) CURRENT=$#words
        [[ $1 != *" " ]] || { words+=("") CURRENT=$#words }
        _decant' zsh "$1"
}

for shell in bash zsh fish; do
    check "$shell" "decant " convert plan inspect ls diff formats
    check "$shell" "decant convert --" --output --force --layout --json
    check "$shell" "decant convert --to " burnpack safetensors
    check "$shell" "decant extract a.bpk --to " npy raw
    check "$shell" "decant convert --layout " canonical aligned congruent
    check "$shell" "decant help " convert
    check "$shell" "decant convert READ" README.md
done

# The layouts are spelled out in three files: the program must know each.
for layout in canonical aligned congruent; do
    decant plan --layout "$layout" --help >/dev/null || failed=1
done
exit "$failed"
