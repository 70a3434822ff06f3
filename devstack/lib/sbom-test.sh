#!/usr/bin/env bash
# devstack/sbom writes the same files twice, and its look at them sees a version that is not the
# locked one and a crate that is left out.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "$0")")/../.."
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT

./devstack/sbom "$work/first" >/dev/null
./devstack/sbom "$work/second"
diff -r "$work/first" "$work/second"

bill=$work/first/ebbtide-agent.cdx.json
# WHAT PYTHON: the bill, changed by a statement about `bill` and `one` (a component), is refused
# for WHAT.
refused() {
    /usr/bin/python3 - "$bill" "$work/changed" "$2" <<'PYTHON'
import json, sys
bill = json.load(open(sys.argv[1]))
one = next(c for c in bill["components"] if c["name"] == "tokio")
exec(sys.argv[3])
json.dump(bill, open(sys.argv[2], "w"))
PYTHON
    if cargo tree --locked --package ebbtide-agent --edges normal,build --target x86_64-unknown-linux-gnu --prefix none --format '{p}' |
        /usr/bin/python3 devstack/lib/sbom_check.py "$work/changed" Cargo.lock 2>"$work/said"; then
        echo "sbom-test: a bill was taken that should be refused: $1" >&2
        exit 1
    fi
    grep -q -- "$1" "$work/said" || { cat "$work/said" >&2; exit 1; }
}
refused 'tokio 0.0.1 is not in' 'one["version"] = "0.0.1"'
refused 'is in the program and not in the file' 'bill["components"].remove(one)'
refused 'has another checksum' 'one["hashes"] = []'

# The console in the scheduler contains a package of npm.
cp "$work/first/ebbtide-scheduler.cdx.json" "$work/changed"
sed -i 's#pkg:npm/preact@#pkg:npm/other@#' "$work/changed"
if cargo tree --locked --package ebbtide-scheduler --edges normal,build --target x86_64-unknown-linux-gnu --prefix none --format '{p}' |
    /usr/bin/python3 devstack/lib/sbom_check.py "$work/changed" Cargo.lock console/package-lock.json 2>"$work/said"; then
    echo "sbom-test: a bill without a package of npm was taken" >&2
    exit 1
fi
grep -q 'preact .* of npm is not in the file' "$work/said" || { cat "$work/said" >&2; exit 1; }
