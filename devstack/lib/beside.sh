# One command beside the rest of a long script. It has a process group of its own, so that it ends
# as a whole, and its own log, so that the lines of both do not mix.
#
#   beside_begins NAME LOG COMMAND…   starts COMMAND; what it says goes to LOG
#   beside_ends                       waits for it, prints LOG, returns its status
#   beside_abort                      ends it if it still runs; fails where there is nothing to end
#
# Needs devstack/lib/part-times.sh: the table at the end has a row for the command.

beside_pid=
beside_name=
beside_log=

beside_begins() {
    beside_name=$1
    beside_log=$2
    shift 2
    mkdir -p -- "$(dirname -- "$beside_log")"
    printf '\n==> %s, beside what follows (its log: %s)\n' "$beside_name" "$beside_log"
    rm -f -- "$beside_log.seconds"
    setsid bash -c 'log=$1; shift; status=0; "$@" || status=$?; echo "$SECONDS" >"$log.seconds"; exit "$status"' \
        beside "$beside_log" "$@" >"$beside_log" 2>&1 </dev/null &
    beside_pid=$!
}

beside_ends() {
    local status=0
    wait "$beside_pid" || status=$?
    beside_pid=
    sed 's/^/   | /' -- "$beside_log"
    part_beside "$beside_name" "$(cat -- "$beside_log.seconds")"
    [ "$status" -eq 0 ] || printf '%s has failed with status %d\n' "$beside_name" "$status" >&2
    return "$status"
}

beside_abort() {
    [ -n "$beside_pid" ] || return 1
    kill -- "-$beside_pid" 2>/dev/null || true
    wait "$beside_pid" 2>/dev/null || true
    beside_pid=
    echo "$beside_name was ended before its time; the end of what it said ($beside_log):" >&2
    tail -n 15 -- "$beside_log" >&2
}
