#!/usr/bin/env bash
# Whether a command beside a script is waited for, judged, timed, and ended with all that it
# started.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "$0")")/../.."
. devstack/lib/part-times.sh
. devstack/lib/beside.sh
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
wrong() { echo "beside-test: $*" >&2; exit 1; }

! beside_abort || wrong "there was nothing to end"

beside_begins good "$work/good" bash -c 'echo said; echo too >&2' >/dev/null
# Not in a substitution: only the shell that started it can wait for it.
beside_ends >"$work/shown" || wrong "a command that is well has failed"
[ "$(cat -- "$work/shown")" = "   | said
   | too" ] || wrong "not all that it said was shown: $(cat -- "$work/shown")"

beside_begins bad "$work/bad" bash -c 'exit 3' >/dev/null
status=0
beside_ends >/dev/null 2>&1 || status=$?
[ "$status" -eq 3 ] || wrong "its status 3 came back as $status"
part_begins 'a part'
table=$(part_times)
grep -q 'bad (beside the others)$' <<<"$table" || wrong "the table has no row for it: $table"

# A pipe that all its processes hold open tells when the last of them has gone.
mkfifo "$work/alive"
beside_begins long "$work/long" bash -c 'exec 9>"$1"; sleep 600 & sleep 600' long "$work/alive" >/dev/null
exec 8<"$work/alive"
beside_abort 2>/dev/null || wrong "there was a command to end"
read -r -t 20 -u 8 _ && wrong "it said something" || [ $? -eq 1 ] || wrong "a process that it started lives on"
[ ! -e "$work/long.seconds" ] || wrong "a command that was ended has a time"
echo "A command beside the others is waited for, judged and ended."
