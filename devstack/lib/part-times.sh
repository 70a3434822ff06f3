# Where the time of a long script goes: a table of its parts, and of the slowest tests among them.
#
#   part_begins NAME     the part before it has ended
#   part_times [FILE]    prints the table; FILE is what nextest wrote about its tests (JUnit)

part_names=()
part_starts=()

part_begins() {
    part_names+=("$1")
    part_starts+=("$SECONDS")
}

part_times() {
    local n=${#part_names[@]} i end
    [ "$n" -gt 0 ] || return 0
    printf '\n==> Where the time went\n'
    for ((i = 0; i < n; i++)); do
        end=${part_starts[i + 1]:-$SECONDS}
        printf '%4d:%02d  %s\n' $(((end - part_starts[i]) / 60)) $(((end - part_starts[i]) % 60)) "${part_names[i]}"
    done
    printf '%4d:%02d  in all\n' $((SECONDS / 60)) $((SECONDS % 60))
    [ ! -f "${1:-}" ] || /usr/bin/python3 devstack/lib/slow_tests.py "$1"
}
