# One private "compute node": libvirtd in namespaces of its own. Arguments: DIR GUEST, both
# absolute, and own|shared for its network.
# - With a network of its own, guests of two nodes may have interfaces of the same name.
# - Its own configuration, state and sockets below DIR; only the QEMU driver is loaded: no networks,
# no storage pools, no udev.
# - Its own PID namespace, because libvirt waits until PID 1 has reaped a QEMU that it has
# daemonised, and PID 1 of a container may be
#   lazy; and because everything in it dies with it, as when a host loses its power.
# - SIGTERM to libvirtd alone is a restart of it: the guests run on, the loop below starts it again.
set -e
dir=$1 guest=$2
case $3 in own) network=--net ;; *) network= ;; esac
mkdir -p "$dir"/{etc,lib,log,run,s,drivers} "$guest/cache" /etc/libvirt /var/lib/libvirt /var/cache/libvirt /var/log/libvirt /run/libvirt
driver=$(find /usr/lib -name libvirt_driver_qemu.so -print -quit)
[ -n "$driver" ] || { echo "libvirt_driver_qemu.so is missing; run as root: bash devstack/lib/packages.sh libvirt"; exit 1; }
ln -sf "$driver" "$dir/drivers/"
[ -s "$dir/uuid" ] || cat /proc/sys/kernel/random/uuid >"$dir/uuid"
cat >"$dir/etc/libvirtd.conf" <<X
listen_tls = 0
listen_tcp = 0
unix_sock_dir = "$dir/s"
unix_sock_group = "root"
unix_sock_rw_perms = "0700"
auth_unix_rw = "none"
auth_unix_ro = "none"
host_uuid = "$(cat "$dir/uuid")"
log_outputs = "3:file:$dir/log/libvirtd.log"
X
cat >"$dir/etc/qemu.conf" <<X
user = "root"
group = "root"
dynamic_ownership = 0
remember_owner = 0
security_driver = "none"
namespaces = []
cgroup_controllers = []
stdio_handler = "file"
X
# libvirt looks for the users that it was built for before it reads its configuration.
(cat /etc/passwd; grep -q ^libvirt-qemu: /etc/passwd || echo libvirt-qemu:x:64055:64055::/var/lib/libvirt:/usr/sbin/nologin) >"$dir/passwd"
(cat /etc/group; grep -q ^libvirt-qemu: /etc/group || echo libvirt-qemu:x:64055:; grep -q ^kvm: /etc/group || echo kvm:x:64056:) >"$dir/group"
# libvirt's default emulator is the first one in PATH.
export LIBVIRT_DRIVER_DIR=$dir/drivers PATH=$guest:/usr/sbin:/usr/bin:/sbin:/bin
exec unshare $network --mount --pid --fork --kill-child=KILL --mount-proc --propagation private bash -c '
    dir=$1 guest=$2
    mount --bind "$dir/etc" /etc/libvirt
    mount --bind "$dir/lib" /var/lib/libvirt
    mount --bind "$guest/cache" /var/cache/libvirt
    mount --bind "$dir/log" /var/log/libvirt
    mount --bind "$dir/run" /run/libvirt
    mount --bind "$dir/passwd" /etc/passwd
    mount --bind "$dir/group" /etc/group
    umount -l /sys/fs/cgroup 2>/dev/null
    trap "exit 0" TERM
    while :; do
        libvirtd -f "$dir/etc/libvirtd.conf" -p "$dir/libvirtd.pid" & wait $!
        sleep 0.3
    done' node "$dir" "$guest"
