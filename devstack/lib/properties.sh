#!/usr/bin/env bash
# Runs the property tests with fresh random inputs, round after round, until a round fails.
# ./devstack/test runs them with one fixed seed, so that the same commit gives the same result.
#
#   devstack/lib/properties.sh [ROUNDS] [-E FILTER]   10 rounds unless told; the filter is nextest's
#
# proptest writes the input of a failure into a file beside the test. Commit that file with the fix:
# every later run tries that input first.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "$0")")/../.."
case ${1:-} in -h|--help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;; esac
rounds=10
case ${1:-} in [1-9]*) rounds=$1; shift ;; esac
case ${1:-} in -E) only=${2:?"-E needs a filter of nextest"}; shift 2 ;; esac
[ $# -eq 0 ] || { echo "properties: what is $*?" >&2; exit 2; }

# Crates with property tests that need no server and no program of ours.
servers='package(ebbtide-integration-tests) | package(ebbtide-agent) | package(oslo-messaging) | package(ebbtide-bus)'
mapfile -t crates < <(git ls-files '*/Cargo.toml' | xargs grep -l '^proptest' |
    xargs sed -n 's/^name = "\(.*\)"$/\1/p' | sort -u)
[ "${#crates[@]}" -gt 0 ] || { echo "properties: no crate has property tests" >&2; exit 1; }
filter=
for crate in "${crates[@]}"; do filter+="${filter:+ | }package($crate)"; done

for round in $(seq "$rounds"); do
    # proptest takes any 64-bit number; printing it makes the round repeatable.
    PROPTEST_RNG_SEED=$(od -An -N7 -tu8 /dev/urandom | tr -d ' ')
    export PROPTEST_RNG_SEED
    printf 'Round %s of %s: PROPTEST_RNG_SEED=%s\n' "$round" "$rounds" "$PROPTEST_RNG_SEED"
    cargo nextest run --locked --workspace -E "(($filter) - ($servers)) & (${only:-all()})"
done
