#!/usr/bin/env bash
# NOTICE names what there is, and all recorded data: a corpus that is added stands in NOTICE, or
# below among those that we make ourselves.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "$0")")/../.."
# Vectors that were computed from the papers, and what our own programs write.
ours='^(scheduler/core/engine/vectors|tests/end-to-end/recorded|tenant/(bag|checkpointing|elastic|lifetime)/tests/vectors|fuzz/(regressions|seeds/(bag|batch|bus_message|lifetimes|run_record)))/'

named=$(grep -oE '^ +[a-z_-]+/[^ ,]+(, [a-z]+/[^ ,]+)*' NOTICE | tr -d ' ' | tr ',' '\n')
wrong=()
for path in $named; do
    [ -n "$(git ls-files -- "$path")" ] || wrong+=("NOTICE names $path, which is not in the repository")
done
while IFS= read -r file; do
    [[ ! $file =~ $ours ]] || continue
    for path in $named; do [[ $file != "$path"* ]] || continue 2; done
    wrong+=("$file is recorded or generated data and NOTICE does not say whose program made it")
done < <(git ls-files -- '*.gz' '*.jsonl' '*.tsv' '*/vectors/*' '*/recorded/*' '*/corpus/*' 'fuzz/seeds/*.json' '*/tests/data/*.json')
[ ${#wrong[@]} -eq 0 ] || { printf 'notice-test: %s\n' "${wrong[@]}" >&2; exit 1; }
echo "NOTICE names all recorded data."
