# Completion of decant for fish. What there is, the program itself is asked: its help lists commands and flags.

function __decant_commands
    decant --help 2>/dev/null | string match -rg '^  ([a-z]+) +(?:[A-Z\[][^ ]*(?: [^ ]+)*)? {2,}(.*)' | paste - -
end

# The flags of the command on the line, one a line: its long name, and what it does.
function __decant_flags
    set -l words (commandline -opc)
    test (count $words) -gt 1; or return
    decant $words[2] --help 2>/dev/null | string match -rg '^ *(?:-[a-z], )?(--[a-z-]+)(?: [A-Z][^ ]*)? {2,}(.*)' | paste - -
end

function __decant_formats
    decant formats 2>/dev/null | string match -rg '^([a-z]+)\s'
end

complete -c decant -n __fish_use_subcommand -f -a '(__decant_commands)'
complete -c decant -n '__fish_seen_subcommand_from help' -f -a '(__decant_commands)'
complete -c decant -n 'not __fish_use_subcommand; and string match -q -- "-*" (commandline -ct)' -f -a '(__decant_flags)'
complete -c decant -n 'not __fish_use_subcommand; and not __fish_seen_subcommand_from extract' -l to -x -a '(__decant_formats)'
complete -c decant -n '__fish_seen_subcommand_from extract' -l to -x -a 'npy raw'
complete -c decant -n 'not __fish_use_subcommand' -l layout -x -a 'canonical aligned congruent'
complete -c decant -n 'not __fish_use_subcommand' -s o -l output -r
