#!/usr/bin/env bash
# The programs of a released version, or of any commit, from a cache that fills itself.
#
#   bash devstack/lib/previous.sh REVISION    prints the folder with ebbtide-scheduler and
#                                             ebbtide-agent of that tag or commit
#
# The cache is $EBBTIDE_PREVIOUS_CACHE, default target/previous: one folder for each commit. What is
# not there is built from the commit's own sources and lock file, which takes as long as a first
# build. A build that was interrupted goes on where it was.
set -euo pipefail
say() { printf 'previous.sh: %s\n' "$*" >&2; }
[ $# -eq 1 ] || { say 'needs one tag or commit'; exit 2; }
cd -- "$(dirname -- "$(readlink -f -- "$0")")/../.."
commit=$(git rev-parse --verify --quiet --end-of-options "$1^{commit}") || { say "there is no tag or commit $1"; exit 2; }
cache=$(realpath -m -- "${EBBTIDE_PREVIOUS_CACHE:-${CARGO_TARGET_DIR:-$PWD/target}/previous}")/$commit
bins=$cache/bin
if [ ! -d "$bins" ]; then
    say "building the programs of $1 ($commit) in $cache"
    mkdir -p "$cache/src"
    git archive "$commit" | tar -x -C "$cache/src"
    (cd "$cache/src" && CARGO_TARGET_DIR=$cache/target cargo build --locked -p ebbtide-scheduler -p ebbtide-agent >&2)
    mkdir -p "$bins.part"
    cp -- "$cache"/target/debug/ebbtide-{scheduler,agent} "$bins.part/"
    mv -T -- "$bins.part" "$bins"
    rm -rf -- "$cache/src" "$cache/target"
fi
echo "$bins"
