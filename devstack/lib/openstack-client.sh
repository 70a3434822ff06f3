#!/usr/bin/env bash
# Tests python-ebbtideclient with the openstack client of Debian and with the newest of PyPI: its
# unit tests, and its commands on a region with tokens, RabbitMQ and simulated hypervisors.
#
#   bash devstack/lib/openstack-client.sh            the programs of target/debug
#   bash devstack/lib/openstack-client.sh --unit     the unit tests only: needs no program
#
# The newest client's packages are pinned in openstack-client.txt and installed below target; once
# they are there, no network is needed. EBBTIDE_BIN_DIR names another folder with programs.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.."
. devstack/lib/packages.sh
out=$(realpath -m -- "${CARGO_TARGET_DIR:-target}")/openstack-client
EBBTIDE_DEVSTACK_DIR=$out/region
. devstack/lib/region.sh
region_bin=$(realpath -m -- "${EBBTIDE_BIN_DIR:-$region_bin}")
unit=
case ${1:-} in --unit) unit=1 ;; '') ;; *) echo "openstack-client.sh: unknown option $1" >&2; exit 2 ;; esac

ensure_packages openstack-client plugins-python
[ -n "$unit" ] || ensure_packages rabbitmq
mkdir -p "$out"
pins=devstack/lib/openstack-client.txt
if ! cmp -s "$pins" "$out/newest/made-of"; then
    say "The newest openstack client, from PyPI"
    rm -rf -- "$out/newest"
    /usr/bin/python3 -m venv "$out/newest"
    "$out/newest/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$pins"
    cp "$pins" "$out/newest/made-of"
fi

# The entry points, beside the source: the client of Debian's packages finds commands by them.
rm -rf -- "$out/debian"
mkdir -p "$out/debian"
cp -r python-ebbtideclient/. "$out/source.new"
rm -rf -- "$out/source"
mv -T "$out/source.new" "$out/source"
(cd "$out/source" && /usr/bin/python3 -W ignore -c 'from setuptools import setup; setup()' --quiet egg_info --egg-base "$out/debian")
# A real installation, as `pip install` makes it of a release.
"$out/newest/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-index --no-build-isolation --force-reinstall "$out/source"

# tests NAME SUITE: with one of the two clients. The source is this checkout's, whose OpenAPI
# document the tests read.
tests() {
    local python=/usr/bin/python3 path=$PWD/python-ebbtideclient
    if [ "$1" = newest ]; then python=$out/newest/bin/python; else path+=:$out/debian; fi
    say "python-ebbtideclient, $2 tests, $1: $("$python" -c 'from importlib.metadata import version as v; print("openstackclient", v("python-openstackclient"), "osc-lib", v("osc-lib"))')"
    (cd python-ebbtideclient && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$path "$python" -m unittest discover --quiet --start-directory "ebbtideclient/tests/$2" --top-level-directory .)
}

# What a wheel has: the command works outside of the checkout, too.
(cd / && "$out/newest/bin/openstack" preemptible server list --help >/dev/null)
for client in debian newest; do tests "$client" unit; done
[ -z "$unit" ] || exit 0

# A region with tokens, a market and two hosts.
region_stop >/dev/null
rm -rf -- "$region_dir"
mkdir -p "$region_dir"
trap 'status=$?; [ "$status" -eq 0 ] || region_show_logs; region_stop >/dev/null' EXIT
region_start services "$region_bin/ebbtide-harness" serve --rabbitmq --dir "$region_dir/services"
region_start embedded "$region_bin/ebbtide-demo" embedded --dir "$region_dir/embedded" --ready-file "$region_dir/embedded.json"
region_wait_for "$region_dir/services/services.json" services
region_init "$(grep -o 'amqp://[^"]*' "$region_dir/services/services.json" | head -n 1)" host-a host-b
token() {
    "$region_bin/ebbtide-manage" --quiet -o value -c token token create --file "$region_dir/tokens.toml" "$@"
}
for role in operator reader; do token --role "$role" > "$region_dir/$role.token"; done
token --role tenant --of-project lab > "$region_dir/tenant.token"
printf '[auth]\ntokens = "%s"\n' "$region_dir/tokens.toml" >> "$region_dir/scheduler/scheduler.toml"
region_start_scheduler tiered market
region_start_agents 4 8000 80 '' instant host-a host-b
EBBTIDE_TOKEN=$(cat "$region_dir/operator.token")
export EBBTIDE_TOKEN EBBTIDE_BIN_DIR=$region_bin EBBTIDE_TEST_REGION=$region_dir
region_wait_for_hosts 2
region_wait_for "$region_dir/embedded.json" embedded
for client in debian newest; do tests "$client" functional; done
