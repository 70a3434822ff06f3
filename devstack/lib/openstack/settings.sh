#!/usr/bin/env bash
# Where an OpenStack on loopback lives, its ports, its credentials. Everything below one folder, so
# that two of them can run side by side; `up` writes its options there, so that status, test and
# down speak of the same one.

stack_home=$(realpath -m "${EBBTIDE_OPENSTACK_HOME:-${CARGO_TARGET_DIR:-$PWD/target}/openstack}")
# Dumps of freshly created databases and virtual environments: they cost minutes to make and outlive
# `down --wipe`.
stack_cache=$(realpath -m "${EBBTIDE_OPENSTACK_CACHE:-${CARGO_TARGET_DIR:-$PWD/target}/openstack-cache}")
stack_tools=$PWD/devstack/openstack-tools
stack_etc=$stack_home/etc stack_var=$stack_home/var stack_log=$stack_home/log stack_run=$stack_home/run
stack_target=${CARGO_TARGET_DIR:-$PWD/target}

# What `up` may change (see devstack/openstack --help); $stack_home/options remembers it.
STACK_WITH=ebbtide STACK_SCHEDULERS=1 STACK_OFFSET='' STACK_RELEASE=debian STACK_PROFILE=dev STACK_NEUTRON=stand-in
# One VCPUS:MEMORY_MB:DISK_GB for each compute. The hosts differ a little in memory and disk: every
# comparison of weights then has one winner, and Nova's decision does not hang on the order of a
# Python set.
STACK_COMPUTES='8:16000:160 8:16700:165 8:17600:172'
# Seconds between a victim's notice and its end, for flavors that name none.
STACK_GRACE_S=5
# Not empty: one more compute, on libvirt.
STACK_LIBVIRT=''
# Not empty: Cyborg, and accelerators on the fake computes.
STACK_CYBORG=''
# Not empty: Debian's Cinder.
STACK_CINDER=''
STACK_SPAWN_S=0 STACK_DESTROY_S=0 STACK_DEBUG=false STACK_NOTIFY=noop STACK_DURABLE=''
# Seconds after which a Nova service gives up on an answer; heartbeats of a long call come at half
# of it. Nova's default is 60.
STACK_RPC_TIMEOUT=60
# Seconds between two reports of a compute about all its instances. Nova's default is 120.
STACK_SYNC_INTERVAL=120
# Seconds between two looks of a compute at what is used on it. Nova's default is 60.
STACK_RESOURCES_INTERVAL=60
# Nova's filters beside the default ones, each after a comma.
STACK_FILTERS=''
STACK_OPTIONS='STACK_WITH STACK_SCHEDULERS STACK_OFFSET STACK_RELEASE STACK_PROFILE STACK_NEUTRON STACK_COMPUTES STACK_LIBVIRT STACK_CYBORG STACK_CINDER STACK_GRACE_S STACK_SPAWN_S STACK_DESTROY_S
    STACK_DEBUG STACK_NOTIFY STACK_DURABLE STACK_RPC_TIMEOUT STACK_SYNC_INTERVAL STACK_RESOURCES_INTERVAL STACK_FILTERS'

stack_load_options() {
    [ ! -f "$stack_home/options" ] || . "$stack_home/options"
}

stack_save_options() {
    local name
    for name in $STACK_OPTIONS; do printf '%s=%q\n' "$name" "${!name}"; done > "$stack_home/options"
}

stack_port_is_open() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

_stack_ports='mysql:13306 amqp:25671 amqp_dist:25673 epmd:24369 keystone:15000 placement:18778 glance:19292 nova:18774 metadata:18775 neutron:19696
    memcached:21211 cyborg:16666 cinder:18776 tap:18790 sched_http:18791 sched_api:18821'

# The ports of this stack: fixed ones plus an offset. Without one asked for: the first multiple of
# 100 at which all are free.
stack_choose_ports() {
    local pair offset=0 taken
    while [ -z "$STACK_OFFSET" ]; do
        taken=
        for pair in $_stack_ports; do ! stack_port_is_open $((${pair#*:} + offset)) || { taken=1; break; }; done
        if [ -z "$taken" ]; then STACK_OFFSET=$offset; else offset=$((offset + 100)); fi
        [ "$offset" -lt 4000 ] || { echo "devstack/openstack: no free ports found below an offset of 4000; name one with --offset" >&2; return 1; }
    done
}

# Sets one variable port_NAME for each port, and everything that clients of the stack need.
stack_settings() {
    local pair
    for pair in $_stack_ports; do printf -v "port_${pair%%:*}" '%d' $((${pair#*:} + STACK_OFFSET)); done
    # A child of ours must find Debian's Python and programs, not the user's virtual environment.
    export PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONWARNINGS=ignore
    unset PYTHONPATH VIRTUAL_ENV
    export ERL_EPMD_PORT=$port_epmd ERL_EPMD_ADDRESS=127.0.0.1
    export RABBITMQ_NODENAME=ebbtide$STACK_OFFSET@localhost RABBITMQ_HOME_DIR=$stack_var/rabbit
    stack_python=/usr/bin/python3
    export OS_AUTH_URL=http://127.0.0.1:$port_keystone/v3 OS_USERNAME=admin OS_PASSWORD=admin OS_PROJECT_NAME=admin
    export OS_USER_DOMAIN_NAME=Default OS_PROJECT_DOMAIN_NAME=Default OS_REGION_NAME=RegionOne OS_IDENTITY_API_VERSION=3
    export OS_COMPUTE_API_VERSION=2.90 OS_PLACEMENT_API_VERSION=1.36
    # For the tools in Python.
    export STACK_HOME=$stack_home STACK_TOOLS=$stack_tools STACK_PORT_MYSQL=$port_mysql STACK_PORT_AMQP=$port_amqp
    export STACK_PORT_PLACEMENT=$port_placement STACK_PORT_TAP=$port_tap STACK_PORT_KEYSTONE=$port_keystone STACK_PORT_NOVA=$port_nova
    export STACK_PORT_SCHED_HTTP=$port_sched_http STACK_PORT_SCHED_API=$port_sched_api
    export STACK_CHECKOUT=$PWD STACK_COMPUTES STACK_LIBVIRT STACK_SCHEDULERS STACK_WITH STACK_RPC_TIMEOUT
}

# The file that puts a shell's `openstack` command into this cloud.
stack_write_openrc() {
    {
        echo "# source this file; then: openstack server list"
        env | grep -E '^OS_[A-Z_]+=' | sort | while IFS='=' read -r name value; do printf 'export %s=%q\n' "$name" "$value"; done
    } > "$stack_home/openrc"
}
