#!/usr/bin/env bash
# Tests ebbtide-dashboard with the Horizon of Debian and with the newest of PyPI.
#
#   bash devstack/lib/horizon.sh --unit      its unit tests, with both
#
# The newest Horizon's packages are pinned in horizon.txt and installed below target; once they are
# there, no network is needed.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.."
. devstack/lib/packages.sh
case ${1:-} in --unit) ;; *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 2 ;; esac
out=$(realpath -m -- "${CARGO_TARGET_DIR:-target}")/horizon

ensure_packages horizon openstack-client plugins-python
mkdir -p "$out"
pins=devstack/lib/horizon.txt
if ! cmp -s "$pins" "$out/newest/made-of"; then
    printf '==> The newest Horizon, from PyPI\n'
    rm -rf -- "$out/newest"
    /usr/bin/python3 -m venv "$out/newest"
    "$out/newest/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$pins"
    cp "$pins" "$out/newest/made-of"
fi
for python in /usr/bin/python3 "$out/newest/bin/python"; do
    printf '==> ebbtide-dashboard, unit tests: %s\n' \
        "$("$python" -c 'import django; from importlib.metadata import version as v; print("Horizon", v("horizon"), "Django", django.__version__)')"
    (cd ebbtide-dashboard && PYTHONDONTWRITEBYTECODE=1 \
        PYTHONPATH=$PWD:$PWD/../python-ebbtideclient "$python" -W ignore -m django test \
        --settings ebbtide_dashboard.tests.settings ebbtide_dashboard.tests)
done
