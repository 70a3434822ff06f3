#!/usr/bin/env bash
# devstack/lib/previous.sh builds a commit once, keeps nothing of a build that failed as programs,
# and refuses a revision that there is not. The compiler is a stand-in that writes down its calls.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "$0")")/../.."
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
fail() { echo "previous-test: $*" >&2; cat "$work/said" >&2; exit 1; }
mkdir "$work/path"
cat > "$work/path/cargo" <<'CARGO'
#!/usr/bin/env bash
set -euo pipefail
echo "$*" >> "$CALLS"
[ -f Cargo.lock ] || { echo "no lock file in $PWD" >&2; exit 3; }
[ ! -e "$CALLS.fail" ] || exit 101
mkdir -p "$CARGO_TARGET_DIR/debug"
for program in ebbtide-scheduler ebbtide-agent; do echo "of $PWD" > "$CARGO_TARGET_DIR/debug/$program"; done
CARGO
chmod +x "$work/path/cargo"
export PATH=$work/path:$PATH CALLS=$work/calls EBBTIDE_PREVIOUS_CACHE=$work/cache
previous() { bash devstack/lib/previous.sh "$@" 2>"$work/said"; }

commit=$(git rev-parse HEAD)
! previous no-such-tag >/dev/null || fail 'a tag that there is not was taken'
grep -q 'no tag or commit no-such-tag' "$work/said" || fail 'it does not name the tag'
touch "$CALLS.fail"
! previous HEAD >/dev/null || fail 'a build that failed was taken'
[ ! -e "$work/cache/$commit/bin" ] || fail 'a build that failed has left programs'
rm "$CALLS.fail"
bins=$(previous HEAD) || fail 'a second try was refused'
[ "$bins" = "$work/cache/$commit/bin" ] || fail "the programs are in $bins"
[ -s "$bins/ebbtide-scheduler" ] && [ -s "$bins/ebbtide-agent" ] || fail 'a program is missing'
again=$(previous "$commit") || fail 'the cache was refused'
[ "$again" = "$bins" ] || fail "the second answer is $again"
[ "$(wc -l < "$CALLS")" -eq 2 ] || fail "it has built $(wc -l < "$CALLS") times, not once without and once with success"
[ "$(ls "$work/cache/$commit")" = bin ] || fail 'sources or objects are left in the cache'
