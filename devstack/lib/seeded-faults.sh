#!/usr/bin/env bash
# Shows that the tests which need no server would see a fault in how allocations are claimed,
# swapped, given back and adopted, or in the loop that drives a
# preemption: each patch of integration/seeded-faults is applied to a copy of the tree, and the
# tests over the model of Placement must fail there. On the
# copy as it is they must pass.
#
#   devstack/lib/seeded-faults.sh            all of them (a build of the Nova service's tests for
#                                            each: half an hour on two cores that have other work)
#   devstack/lib/seeded-faults.sh NAME…      only these
#   devstack/lib/seeded-faults.sh --check    only whether each patch still fits the tree (seconds;
#                                            ./devstack/test does this)
#
# What came of it is in target/seeded-faults/table.md. The copy has a target directory of its own:
# cargo would take what was built from a broken copy for
# the tree's own, because it is newer than the sources.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "$0")")/../.."
root=$PWD
faults=$root/integration/seeded-faults
case ${1:-} in -h|--help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;; esac

fail() { echo "seeded-faults: $*" >&2; exit 1; }
names() { for patch in "$faults"/*.patch; do basename -- "$patch" .patch; done; }

if [ "${1:-}" = --check ]; then
    for name in $(names); do
        patch --dry-run --silent --strip=1 --fuzz=0 --input="$faults/$name.patch" >/dev/null || fail "$name.patch does not fit the tree any more: make it anew"
    done
    exit 0
fi

if [ $# -gt 0 ]; then chosen=("$@"); else mapfile -t chosen < <(names); fi
for name in "${chosen[@]}"; do [ -f "$faults/$name.patch" ] || fail "there is no fault $name; there are: $(names | tr '\n' ' ')"; done

target=${CARGO_TARGET_DIR:-$root/target}
work=$target/seeded-faults
copy=$work/tree
export CARGO_TARGET_DIR=$work/target
mkdir -p "$copy" "$CARGO_TARGET_DIR/debug/deps"
# Sources keep their times, so that only what changed is built again.
rm -rf -- "$copy"
mkdir -p "$copy"
git ls-files -co --exclude-standard -z | while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done | tar --null --files-from=- -cf - | tar -C "$copy" -xf -
# What the tree has built is a beginning: packages of others are never written again and are linked,
# our own are copied.
if [ -d "$target/debug/.fingerprint" ] && [ ! -d "$CARGO_TARGET_DIR/debug/.fingerprint" ]; then
    cp -a -- "$target/debug/.fingerprint" "$target/debug/build" "$CARGO_TARGET_DIR/debug/"
    find "$target/debug/deps" -maxdepth 1 -type f \( -name 'lib*.rlib' -o -name 'lib*.rmeta' -o -name 'lib*.so' -o -name '*.d' \) -print0 \
        | while IFS= read -r -d '' file; do
            case ${file##*/} in
                *ebbtide*|*oslo*|*.d) cp -a -- "$file" "$CARGO_TARGET_DIR/debug/deps/" ;;
                *) ln -- "$file" "$CARGO_TARGET_DIR/debug/deps/" ;;
            esac
        done
fi

cd -- "$copy"
built() { cargo nextest run --locked -p ebbtide-nova-service -p ebbtide-swap --no-run >"$work/build.log" 2>&1; }
# Exit code 100 of nextest: tests have failed, and nothing else.
run_tests() {
    local code=0
    cargo nextest run --locked -p ebbtide-nova-service -p ebbtide-swap --no-fail-fast --status-level fail --final-status-level fail -E 'test(over_model) + package(ebbtide-swap)' \
        >"$work/$1.log" 2>&1 || code=$?
    return "$code"
}
# Names of the failed tests of a log, each once.
failed() { sed -n 's/^ *\(FAIL\|TIMEOUT\|SIG[A-Z]*\) \[[^]]*\] \(([^)]*) \)\{0,1\} *//p' "$work/$1.log" | awk '{print $NF}' | sed 's/^over_model:://' | sort -u; }

# A file's time must be later than what was built of it, or cargo does not see the change: also what
# the last run left behind is of a broken copy.
again() { local file; for file in $(sed -n 's|^+++ b/\([^\t ]*\).*|\1|p' "$1"); do touch -- "$file"; done; }
for name in $(names); do again "$faults/$name.patch"; done

echo "==> The tree as it is"
built || { tail -n 40 "$work/build.log" >&2; fail "the tests do not build"; }
run_tests none || { tail -n 60 "$work/none.log" >&2; fail "the tests fail without any fault"; }
grep -E '^ *Summary' "$work/none.log" || true

seen=0
table=$work/table.md
[ $# -gt 0 ] || printf '| fault | file | tests that see it |\n|---|---|---|\n' >"$table"
for name in "${chosen[@]}"; do
    patch=$faults/$name.patch
    echo "==> $name: $(sed -n '1p' "$patch")"
    patch --silent --strip=1 --fuzz=0 --input="$patch" || fail "$name.patch does not fit the tree any more: make it anew"
    again "$patch"
    built || { tail -n 40 "$work/build.log" >&2; fail "$name does not build, so it shows nothing"; }
    code=0
    run_tests "$name" || code=$?
    patch --silent --strip=1 --fuzz=0 --reverse --input="$patch"
    again "$patch"
    case $code in
        100) ;;
        0) fail "$name: no test has seen it" ;;
        *) tail -n 40 "$work/$name.log" >&2; fail "$name: the tests could not be run" ;;
    esac
    failed "$name" | sed 's/^/    /'
    files=$(sed -n 's|^+++ b/\([^\t ]*\).*|`\1`|p' "$patch" | paste -sd ' ')
    printf '| %s | %s | %s |\n' "$(sed -n '1p' "$patch")" "$files" "$(failed "$name" | sed 's/.*/`&`/' | paste -sd ' ')" >>"$table"
    seen=$((seen + 1))
done
echo "$seen faults, each seen"
