#!/usr/bin/env bash
# A dry run of the DevStack plugin: settings and plugin.sh are sourced as stack.sh does it, with
# stand-ins for DevStack's functions that write down what they were asked, and what was asked is
# looked at. Touches nothing outside a temporary folder.
set -euo pipefail
cd -- "$(dirname -- "$(readlink -f -- "$0")")/../.."
work=$(mktemp -d)
trap 'rm -rf -- "$work"' EXIT
log=$work/log

fail() { echo "plugin-test: $*; it did:" >&2; cat "$log" >&2; exit 1; }
did() { grep -qxF -- "$*" "$log" || fail "the plugin did not: $*"; }
did_not() { ! grep -qF -- "$*" "$log" || fail "the plugin did: $*"; }

# What stack.sh has set when it sources a plugin.
DEST=$work/dest DATA_DIR=$work/data NOVA_CONF=$work/nova.conf STACK_USER=$(id -un) HOME=$work/home
SERVICE_LISTEN_ADDRESS=0.0.0.0 SERVICE_HOST=192.0.2.1 REGION_NAME=RegionOne
EBBTIDE_CONF_DIR=$work/etc EBBTIDE_BIN_DIR=$work/bin EBBTIDE_STATE_DIR=$work/state
mkdir -p "$DEST/ebbtide" "$HOME"
enabled=" n-api n-cond n-super-cond n-cpu n-sch "

# DevStack's functions, as far as a plugin of this kind uses them.
note() { printf '%s\n' "$*" >> "$log"; }
define_plugin() { note define_plugin "$@"; }
enable_service() { local s; for s in "$@"; do enabled+="$s "; done; note enable_service "$@"; }
disable_service() { local s; for s in "$@"; do enabled=${enabled// $s / }; done; note disable_service "$@"; }
is_service_enabled() { local s; for s in "$@"; do [[ $enabled != *" $s "* ]] || return 0; done; return 1; }
install_package() { note install_package "$@"; }
recreate_database() { note recreate_database "$@"; }
database_connection_url() { echo "mysql+pymysql://root:pw@127.0.0.1/$1?charset=utf8"; }
get_transport_url() { echo "rabbit://stackrabbit:pw@127.0.0.1:5672/"; }
iniset() { note iniset "$@"; }
get_or_create_service() { note get_or_create_service "$@"; }
get_or_create_endpoint() { note get_or_create_endpoint "$@"; }
run_process() { note run_process "$@"; }
stop_process() { note stop_process "$@"; }
echo_summary() { :; }
sudo() {
    local last=${*: -1}
    note sudo "$@"
    case $1-${2:-} in install--d) mkdir -p "$EBBTIDE_CONF_DIR" "$EBBTIDE_STATE_DIR" ;; rm-*) [[ $last == "$work"* ]] || fail "outside: $*" ;; esac
}
cargo() { note cargo "$@"; }
curl() { fail "the plugin fetched $*"; }
openstack() { note openstack "$@"; [[ "$*" != *' flavor show '* ]]; }
phase() { : > "$log"; . devstack/plugin.sh "$@"; }

bash -n devstack/settings
bash -n devstack/plugin.sh
: > "$log"
. devstack/settings
did define_plugin ebbtide
did disable_service n-sch
did enable_service ebbtide-sch ebbtide-agent
! is_service_enabled n-sch || fail "nova-scheduler stays enabled"

phase stack pre-install
did install_package gcc libc6-dev curl
phase stack install
did cargo build --locked --release -p ebbtide-scheduler -p ebbtide-agent -p ebbtide-cli -p ebbtide-manage
grep -q '^sudo install -D -m 755 -t ' "$log" || fail "nothing was installed"
phase stack post-config
did recreate_database ebbtide
did iniset "$NOVA_CONF" ebbtide connection "mysql+pymysql://root:pw@127.0.0.1/ebbtide?charset=utf8"
did iniset "$NOVA_CONF" ebbtide preemption True
did iniset "$NOVA_CONF" ebbtide api_listen 0.0.0.0:7472
[ "$(stat -c %a "$EBBTIDE_CONF_DIR/agent.toml")" = 600 ] || fail "the agent's configuration can be read by others"
grep -q '^urls = \["amqp://stackrabbit:pw@127.0.0.1:5672/"\]$' "$EBBTIDE_CONF_DIR/agent.toml" || fail "the agent has no broker"
phase stack extra
did run_process ebbtide-sch "$EBBTIDE_BIN_DIR/ebbtide-scheduler --config-file $NOVA_CONF"
did run_process ebbtide-agent "$EBBTIDE_BIN_DIR/ebbtide-agent run --config $EBBTIDE_CONF_DIR/agent.toml"
did get_or_create_service ebbtide preemption "Preemptible servers: decisions and advice"
did get_or_create_endpoint preemption RegionOne http://192.0.2.1:7472
grep -q 'flavor create .*ebbtide:preemptible=true m1.preemptible$' "$log" || fail "no flavor was made"
phase unstack
did stop_process ebbtide-sch
did stop_process ebbtide-agent
phase clean
grep -q "^sudo rm -rf $EBBTIDE_CONF_DIR " "$log" || fail "nothing was cleaned"

# A compute alone: an agent, no scheduler, no database.
enabled=" n-cpu ebbtide-sch ebbtide-agent "
phase stack post-config
did_not recreate_database
phase stack extra
did_not 'run_process ebbtide-sch'
did_not get_or_create_endpoint
did run_process ebbtide-agent "$EBBTIDE_BIN_DIR/ebbtide-agent run --config $EBBTIDE_CONF_DIR/agent.toml"
# An unknown phase is none of ours.
phase stack test-config
[ ! -s "$log" ] || fail "something was done in an unknown phase"
echo "The DevStack plugin does what it should in every phase."
