#!/usr/bin/env bash
# Looks for misspelt words in every file that Git tracks; _typos.toml says what is no typo.
#
#   bash devstack/lib/typos.sh          names each with file and line
#   bash devstack/lib/typos.sh --write  corrects those that have one correction only
#
# The program, typos, is a wheel on PyPI, pinned by version and checksum and unpacked into
# target/typos.
# pip fetches it, or curl where Python has no pip. Once it is there, no network is needed.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.."
die() { echo "typos.sh: $*" >&2; exit 1; }
write=()
case ${1:-} in
    '') ;;
    --write) write=(--write-changes) ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2 ;;
esac

version=1.52.0
case $(uname -m) in
    x86_64)
        sum=418fd85f7fc11dec14e5482e747f6e916af56da96207cde0cdd69540a4b389f6
        place=8d/9b/0fb72581db14541912eb282c59a8810f981ee203d6af4add685795b21af2 ;;
    aarch64)
        sum=5e870133c7e9cace94183e4d638697004a1473e79abcd01b8f75e362049a9b5c
        place=1a/8c/c769c8903962d97cd0a22bddad2eb96996df53935befe9dba6fbe3f74b71 ;;
    *) die "there is no wheel of typos for $(uname -m)" ;;
esac
wheel=typos-$version-py3-none-manylinux_2_17_$(uname -m).manylinux2014_$(uname -m).whl
python=/usr/bin/python3
[ -x "$python" ] || python=$(type -P python3) || die "python3 is missing: it unpacks typos"

out=$(realpath -m -- "${CARGO_TARGET_DIR:-target}")/typos
typos=$out/typos-$version
if [ ! -x "$typos" ]; then
    echo "Fetching typos $version"
    mkdir -p "$out"
    new=$(mktemp -d "$out/new.XXXXXX")
    trap 'rm -rf -- "$new"' EXIT
    if "$python" -m pip --version >/dev/null 2>&1; then
        printf 'typos==%s --hash=sha256:%s\n' "$version" "$sum" >"$new/requirements"
        "$python" -m pip download --quiet --no-deps --only-binary :all: --require-hashes --requirement "$new/requirements" --dest "$new" >"$new/log" 2>&1 || {
            tail -n 3 "$new/log" >&2
            die "typos $version is not in $out, and pip cannot fetch it: is the network there?"
        }
    else
        curl --fail --silent --show-error --location --max-time 300 --output "$new/$wheel" "https://files.pythonhosted.org/packages/$place/$wheel" ||
            die "typos $version is not in $out, and curl cannot fetch it: is the network there?"
    fi
    [ -f "$new/$wheel" ] || die "pip has not fetched $wheel"
    printf '%s  %s\n' "$sum" "$new/$wheel" | sha256sum --check --status || die "$wheel is not the file that is expected: its checksum differs"
    "$python" -m zipfile -e "$new/$wheel" "$new/wheel"
    chmod 755 "$new/wheel/typos-$version.data/scripts/typos"
    mv -- "$new/wheel/typos-$version.data/scripts/typos" "$typos"
fi

files=$(git ls-files | wc -l)
[ "$files" -gt 0 ] || die "Git tracks no file here"
# A file that is deleted and not committed yet is still listed.
git ls-files -z | while IFS= read -r -d '' file; do [ ! -f "$file" ] || printf '%s\0' "$file"; done |
    xargs -0 "$typos" --force-exclude "${write[@]}" -- ||
    die "misspelt words: correct them (devstack/lib/typos.sh --write), or say in _typos.toml why they are right"
echo "No misspelt words in $files files."
