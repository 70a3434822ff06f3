#!/usr/bin/env bash
# Naming a process for ever: its id alone is used again by a stranger some day, its id with its time
# of birth is not.

# The time at which a process was started, in ticks since boot (proc(5), field 22 of stat).
process_birth() {
    local stat
    stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
    # The second field is the name in parentheses and may hold spaces; the birth is the 20th field
    # after it.
    set -- ${stat##*) }
    # A zombie has ended: its parent has not asked for its status yet.
    [ "$1" != Z ] || return 1
    printf '%s' "${20}"
}

# process_alive FILE: does the process live whose id and birth are in FILE?
process_alive() {
    local pid birth
    [ -f "$1" ] && read -r pid birth < "$1" || return 1
    [ "$(process_birth "$pid")" = "$birth" ]
}
