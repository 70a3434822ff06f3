#!/usr/bin/env bash
# What the demonstrations on a real Slurm cluster share (burst-demo, batch-demo, lend-demo): the
# region that they need, the cluster, and the end.

. devstack/lib/region.sh
. devstack/lib/packages.sh

# demo_begin ARGUMENT…: needs root and an empty region; makes the directory $work, which goes at
# the end with all that was begun.
demo_begin() {
    demo=$(basename "$0")
    [ $# -eq 0 ] || { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 2; }
    demo_needs_root
    region_is_running || demo_fails "there is no region; bring one up with ./devstack/up --no-story"
    . "$region_dir/env"
    [ "$(ebbtide server list --all-projects -o json)" = "[]" ] || demo_fails "the region is not empty; ./devstack/up --no-story makes an empty one"
    ensure_packages slurm
    slurm_script=$PWD/devstack/lib/slurm.sh
    work=$(mktemp -d)
    # munge: a client that authenticates has to reach its socket.
    chmod 711 "$work"
    processes=()
    trap demo_end EXIT
}

# demo_on_openstack TOOL: the demonstration on the OpenStack of devstack/openstack.
demo_on_openstack() {
    demo=$(basename "$0")
    demo_needs_root
    ./devstack/openstack run stack_is_running || demo_fails "there is no OpenStack; bring one up with ./devstack/openstack up"
    ensure_packages slurm
    if [ -z "${EBBTIDE_BIN_DIR:-}" ]; then cargo build --quiet --locked -p ebbtide-batch-service -p ebbtide-cli -p ebbtide-manage; fi
    STACK_EBBTIDE=${EBBTIDE_BIN_DIR:-$region_bin}/ebbtide-manage ./devstack/openstack run stack_tool "$1"
}

demo_fails() { echo "$demo: $*" >&2; exit 1; }

demo_needs_root() { [ "$(id -u)" = 0 ] || demo_fails "Slurm's daemons need root"; }

demo_end() {
    local process server
    for process in "${processes[@]}"; do disown "$process" 2>/dev/null || true; kill -KILL "$process" 2>/dev/null || true; done
    for server in $(ebbtide server list --all-projects -o value -c id); do ebbtide -q server delete "$server" >/dev/null 2>&1 || true; done
    rm -rf "$work"
}

# demo_program NAME: its path.
demo_program() {
    local path
    path=$(type -P "$1" || echo "$region_target/debug/$1")
    [ -x "$path" ] || demo_fails "$1 is missing: cargo build -p ebbtide-batch-service"
    printf '%s' "$path"
}

# demo_flavors NAME: the preemptible flavor of nodes, and `half`, a normal one of the same size. A
# host has room for two.
demo_flavors() {
    ebbtide -q flavor show "$1" >/dev/null 2>&1 || ebbtide -q flavor create "$1" --vcpus 4 --ram 4000 --disk 20 --preemptible --grace 8 >/dev/null
    ebbtide -q flavor show half >/dev/null 2>&1 || ebbtide -q flavor create half --vcpus 4 --ram 4000 --disk 20 >/dev/null
}

# demo_hosts N: so many hosts of the region are for the demonstration; others are full.
demo_hosts() {
    local hosts
    hosts=$(ebbtide host list -o value -c name | wc -l)
    [ "$hosts" -le "$1" ] || ebbtide -q server create --flavor half --count "$(((hosts - $1) * 2))" --wait others >/dev/null
}

# demo_cluster STAYING CLOUD RESUME SUSPEND LINE…: a cluster in $work/cluster with these programs,
# the times of a demonstration and further lines of slurm.conf.
demo_cluster() {
    local staying=$1 cloud=$2 resume=$3 suspend=$4
    shift 4
    mkdir -p "$work/cluster"
    bash "$slurm_script" serve "$work/cluster" $((20000 + RANDOM % 10000)) "$staying" "$cloud" "ResumeProgram=$resume" "SuspendProgram=$suspend" \
        SuspendTimeout=2 ResumeRate=0 SuspendRate=0 ReturnToService=2 JobRequeue=1 TreeWidth=65533 \
        SlurmctldParameters=cloud_reg_addrs,idle_on_node_suspend,power_save_interval=1,power_save_min_interval=0 "$@" >"$work/cluster.log" 2>&1 &
    local cluster=$!
    processes+=("$cluster")
    until [ -s "$work/cluster/ready" ]; do kill -0 "$cluster" || { cat "$work/cluster.log" >&2; exit 1; }; sleep 0.2; done
    export SLURM_CONF=$work/cluster/slurm.conf
}

# The data centre in the background: which server of the project `batch` runs which node.
demo_follow() {
    while :; do
        if ebbtide --project batch server list -o value -c id -c name -c status >"$work/servers" 2>/dev/null; then
            awk '$3 == "active" || $3 == "evacuating" { print $1, $2 }' "$work/servers" >"$work/next" && mv "$work/next" "$work/cluster/instances"
        fi
        sleep 0.2
    done &
    processes+=($!)
}

# demo_run COMMAND…: shows the command, and what it prints.
demo_run() { echo "\$ $*"; "$@"; }
