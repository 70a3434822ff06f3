#!/usr/bin/env bash
# One nova-compute on Nova's libvirt driver beside the fake ones (`up --libvirt`): QEMU's software
# emulation, a private libvirtd in namespaces of its own, the tests' guest in Glance, and a network
# on which guests reach Nova's metadata service.
#
# It is the host after the last of the fake ones, and its node is named as the host is. Nothing of
# it is in the network of this machine: the bridge, the guests' taps and 169.254.169.254 are in a
# network namespace, in which guest_network.py opens the ports that nova-compute needs.

stack_libvirt_bridge=ebbtide-meta
# The number of the compute on libvirt, and the guest's folder (devstack/lib/guest.sh).
stack_libvirt_n() { echo $(($(_stack_fakes) + 1)); }
stack_guest_folder() { echo "${EBBTIDE_GUEST_DIR:-$stack_target/guest}"; }

# In place of what _stack_compute_conf says of the driver. On every machine the host has two VCPUs,
# which share processor 0, and one PCPU, processor 1.
_stack_libvirt_conf() {
    local n=$1
    cat <<X
[DEFAULT]
host = compute$n
compute_driver = libvirt.LibvirtDriver
instances_path = $stack_var/nova/instances-$n
state_path = $stack_var/nova/compute-$n
cpu_allocation_ratio = 2.0
ram_allocation_ratio = 1.0
disk_allocation_ratio = 1.0
reserved_host_memory_mb = 0
shutdown_timeout = 30
[compute]
cpu_shared_set = 0
cpu_dedicated_set = 1
[libvirt]
virt_type = qemu
connection_uri = qemu+unix:///system?socket=$stack_var/libvirt/s/libvirt-sock
cpu_mode = none
inject_partition = -2
[vif_plug_linux_bridge_privileged]
helper_command = privsep-helper
[nova_sys_admin]
helper_command = privsep-helper
[oslo_concurrency]
lock_path = $stack_var/nova/compute-$n/lock
X
}

# Nova's metadata service, as it stands behind Neutron's agent. By default it remembers for 15 s
# what it has said of a server; a guest would hear of its notice by so much later.
_stack_metadata_conf() { cat <<X
[DEFAULT]
enabled_apis = metadata
metadata_listen = 127.0.0.1
metadata_listen_port = $port_metadata
metadata_workers = 1
[api]
metadata_cache_expiration = 1
[neutron]
service_metadata_proxy = true
metadata_proxy_shared_secret = stack
X
}

stack_libvirt_write_config() {
    local n
    [ -n "$STACK_LIBVIRT" ] || return 0
    n=$(stack_libvirt_n)
    _stack_libvirt_conf "$n" > "$stack_etc/nova-compute-$n.conf"
    _stack_metadata_conf > "$stack_etc/nova-metadata.conf"
    mkdir -p "$stack_var/nova/instances-$n" "$stack_var/nova/compute-$n" "$stack_var/libvirt"
}

# What stands before the first `up --libvirt`: only root makes namespaces.
stack_libvirt_prepare() {
    [ -n "$STACK_LIBVIRT" ] || return 0
    [ "$(id -u)" = 0 ] || { echo "devstack/openstack: --libvirt needs root, for network namespaces and libvirtd" >&2; return 1; }
    [ "$STACK_RELEASE" = debian ] || { echo "devstack/openstack: --libvirt needs --release debian, whose Python has libvirt's binding" >&2; return 1; }
    ensure_packages libvirt nova-libvirt
    bash devstack/lib/guest.sh "$(stack_guest_folder)"
    stack_say "the guest is built"
}

# A process in the node's network, and without cgroups: Nova then asks libvirt for none.
_stack_in_node() {
    local name=$1 node birth
    shift
    read -r node birth < "$stack_run/libvirt-node.pid"
    stack_start "$name" nsenter --net="/proc/$node/ns/net" unshare --mount --propagation private \
        bash -c 'umount -l /sys/fs/cgroup 2>/dev/null; exec "$@"' in-node "$@"
}

_stack_libvirt_answers() { virsh --quiet --connect "qemu+unix:///system?socket=$stack_var/libvirt/s/libvirt-sock" uri; }

# The node: a network and a host name of its own, in these libvirtd as the agent's tests have it.
stack_start_node() {
    local n
    n=$(stack_libvirt_n)
    stack_start libvirt-node unshare --net --uts --mount --propagation private bash -c '
        set -e
        hostname "$1"
        mount --bind "$2" /etc/hostname
        ip link set lo up
        ip link add "$3" type bridge
        ip addr add 169.254.169.254/16 dev "$3"
        ip link set "$3" up
        exec bash "$4" "$5" "$6" shared' node "compute$n" "$(_stack_libvirt_hostname "$n")" "$stack_libvirt_bridge" \
        "$stack_tools/../../tests/harness/src/hypervisor/node.sh" "$stack_var/libvirt" "$(stack_guest_folder)"
    stack_wait_for 90 'libvirtd' libvirt-node _stack_libvirt_answers
}

_stack_libvirt_hostname() {
    echo "compute$1" > "$stack_var/libvirt/hostname"
    echo "$stack_var/libvirt/hostname"
}

# The whole of it. A second call starts what does not run.
stack_start_libvirt() {
    local n node birth
    n=$(stack_libvirt_n)
    stack_start_node
    read -r node birth < "$stack_run/libvirt-node.pid"
    stack_start nova-metadata "$stack_bin/nova-api" --config-file "$stack_etc/nova.conf" --config-file "$stack_etc/nova-metadata.conf" \
        --log-file "$stack_log/nova-metadata.log"
    stack_start guest-network "$stack_python" "$stack_tools/guest_network.py" "$node" "$port_metadata" "$port_neutron" \
        "$port_amqp" "$port_keystone" "$port_placement" "$port_glance"
    _stack_in_node "nova-compute-$n" "$stack_nova_python" "$stack_tools/libvirt_compute.py" --config-file "$stack_etc/nova-compute.conf" \
        --config-file "$stack_etc/nova-compute-$n.conf" --log-file "$stack_log/nova-compute-$n.log"
}
