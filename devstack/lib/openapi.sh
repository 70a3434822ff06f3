#!/usr/bin/env bash
# Validates docs/reference/openapi.json with openapi-spec-validator.
#
#   bash devstack/lib/openapi.sh
#
# The validator and what it needs are wheels on PyPI, pinned by version and checksum in openapi.txt
# and installed into a directory below target. Once they are there, no network is needed.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.."
die() { echo "openapi.sh: $*" >&2; exit 1; }
pins=devstack/lib/openapi.txt
python=/usr/bin/python3
[ -x "$python" ] || python=$(type -P python3) || die "python3 is missing: it runs the validator"

# Other pins or another Python get a directory of their own.
key=$(sha256sum <"$pins" | cut -c1-12)-$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
out=$(realpath -m -- "${CARGO_TARGET_DIR:-target}")/openapi
if [ ! -d "$out/$key" ]; then
    mkdir -p "$out"
    new=$(mktemp -d "$out/new.XXXXXX")
    trap 'rm -rf -- "$new"' EXIT
    # A virtual environment has pip where the system's Python has none.
    "$python" -m venv "$new/venv" || die "Python cannot make virtual environments (Debian: python3-venv)"
    "$new/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes --requirement "$pins" --target "$new/site" >"$new/log" 2>&1 || {
        tail -n 3 "$new/log" >&2
        die "the validator is not in $out, and pip cannot fetch it: is the network there?"
    }
    # A second process that was faster has left the same files.
    mv -T -- "$new/site" "$out/$key" 2>/dev/null || [ -d "$out/$key" ] || die "cannot write $out/$key"
fi
PYTHONPATH=$out/$key PYTHONDONTWRITEBYTECODE=1 "$python" -m openapi_spec_validator docs/reference/openapi.json
