#!/usr/bin/env bash
# devstack/advisories against databases that are made here: one without and one with an advisory
# about a crate of ours, and none at all.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "$0")")/../.."
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

outcome() { # OUTCOME DATABASE: what is expected of it
    local got=0
    ./devstack/advisories --database "$2" >"$work/said" 2>&1 || got=$?
    if [ "$got" != "$1" ]; then
        cat "$work/said" >&2
        echo "advisories-test: ended with $got instead of $1" >&2
        exit 1
    fi
}

mkdir -p "$work/database" "$work/nothing"
database() { git -C "$work/database" -c user.name=test -c user.email=test@localhost "$@"; }
advisory() { # CRATE ID: every version of the crate is said to be bad
    mkdir -p "$work/database/crates/$1"
    cat >"$work/database/crates/$1/$2.md" <<TEXT
\`\`\`toml
[advisory]
id = "$2"
package = "$1"
date = "2026-01-01"
url = "https://example.org"

[versions]
patched = []
\`\`\`

# Made up for a test
TEXT
    database add --all
    database commit --quiet --message="$2"
}
database init --quiet --initial-branch=main
advisory a-crate-that-is-not-used RUSTSEC-2026-0001
outcome 0 "$work/database"
advisory anyhow RUSTSEC-2026-0002
outcome 1 "$work/database"
grep -q RUSTSEC-2026-0002 "$work/said" || { cat "$work/said" >&2; echo "advisories-test: the advisory is not named" >&2; exit 1; }
outcome 3 "$work/nothing"
grep -q 'ADVISORIES WERE NOT CHECKED' "$work/said" || { cat "$work/said" >&2; echo "advisories-test: that nothing was checked is not said" >&2; exit 1; }
