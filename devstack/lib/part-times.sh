# Where the time of a long script goes: a table of its parts, and of the slowest compilations and
# tests among them.
#
#   part_begins NAME     the part before it has ended
#   part_beside NAME S   a command that ran beside other parts took S seconds
#   part_times [FILE [FOLDER]]
#                        prints the table; FILE is what nextest wrote about its tests (JUnit), and
#                        FOLDER holds Cargo's timing reports

part_names=()
part_starts=()
part_besides=()

part_begins() {
    part_names+=("$1")
    part_starts+=("$SECONDS")
}

part_beside() {
    part_besides+=("$(_part_row "$2" "$1 (beside the others)")")
}

_part_row() {
    printf '%4d:%02d  %s' $(($1 / 60)) $(($1 % 60)) "$2"
}

part_times() {
    local n=${#part_names[@]} i end
    [ "$n" -gt 0 ] || return 0
    printf '\n==> Where the time went\n'
    for ((i = 0; i < n; i++)); do
        end=${part_starts[i + 1]:-$SECONDS}
        printf '%s\n' "$(_part_row $((end - part_starts[i])) "${part_names[i]}")"
    done
    printf '%s\n' "$(_part_row "$SECONDS" 'in all')" ${part_besides[@]+"${part_besides[@]}"}
    [ ! -d "${2:-}" ] || /usr/bin/python3 devstack/lib/slow_builds.py "$2"
    [ ! -f "${1:-}" ] || /usr/bin/python3 devstack/lib/slow_tests.py "$1"
}
