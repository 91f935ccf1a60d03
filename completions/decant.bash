# Completion of decant for bash. What there is, the program itself is asked: its help lists commands and flags.

_decant_commands() {
    decant --help 2>/dev/null | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

_decant_flags() {
    decant "$1" --help 2>/dev/null | sed -n 's/^ *\(-[a-z], \)\{0,1\}\(--[a-z-]*\).*/\2/p'
}

_decant_formats() {
    decant formats 2>/dev/null | sed -n 's/^\([a-z]*\)[ \t].*/\1/p'
}

_decant() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} words=

    COMPREPLY=()
    if ((COMP_CWORD == 1)); then
        words="$(_decant_commands) --help --version"
    elif [[ $prev == --to && $command == extract ]]; then
        words="npy raw"
    elif [[ $prev == --to ]]; then
        words=$(_decant_formats)
    elif [[ $prev == --layout ]]; then
        words="canonical aligned congruent"
    elif [[ $command == help ]]; then
        words=$(_decant_commands)
    elif [[ $cur == -* ]]; then
        words=$(_decant_flags "$command")
    else
        compopt -o filenames 2>/dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        return
    fi
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _decant decant
