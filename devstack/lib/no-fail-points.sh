#!/usr/bin/env bash
# Searches built programs for the places at which tests let a process die (integration/fail-points).
# Release builds have none.
#
#   devstack/lib/no-fail-points.sh PROGRAM…      exit 1: a program has some, which are listed
set -euo pipefail
root=$(cd -- "$(dirname -- "$(readlink -f -- "$0")")/../.." && pwd)
[ $# -gt 0 ] || { echo "no-fail-points: name the programs to search" >&2; exit 2; }
mapfile -t names < <(sed -n 's/^    [A-Za-z]* = "\([a-z-]*\)",$/\1/p' "$root/integration/fail-points/src/point.rs")
[ ${#names[@]} -ge 37 ] || { echo "no-fail-points: cannot read the list of places: found ${#names[@]}" >&2; exit 2; }
names+=(EBBTIDE_DIE_AT)
bad=
for program in "$@"; do
    [ -s "$program" ] || { echo "no-fail-points: $program is no program" >&2; exit 2; }
    # Exit 1 of grep: nothing found. Names stand one behind the other in a program, so each is
    # sought by itself.
    found=$(printf '%s\n' "${names[@]}" | while read -r name; do ! LC_ALL=C grep -aqF -- "$name" "$program" || printf ' %s' "$name"; done)
    if [ -n "$found" ]; then echo "$program has places to die at:$found" >&2; bad=1; fi
done
[ -z "$bad" ]
