#!/usr/bin/env bash
# Roots of Debian for ./packaging/test: made by mmdebstrap, kept, and booted by systemd-nspawn on an
# overlay, so that each boot finds a fresh one. A root has no network but its own loopback.

roots_dir=$(realpath -m -- "${CARGO_TARGET_DIR:-target}")/packaging-roots

# What an operator has before Ebbtide: broker, database and the openstack command; and what the
# tests look with.
roots_packages=systemd,systemd-sysv,dbus,rabbitmq-server,mariadb-server,python3-openstackclient,curl,procps,iproute2,passwd,init-system-helpers,man-db,mandoc,bash-completion,zsh,fish

# root_make SUITE: the kept root, made anew when it is a week old or when its packages change.
root_make() {
    local suite=$1 root=$roots_dir/$1 stamp
    stamp="$roots_packages $(($(date +%s) / 604800))"
    [ "$(cat "$root.stamp" 2>/dev/null)" != "$stamp" ] || return 0
    echo "==> Making a root of Debian $suite in $root (2 minutes, once a week)" >&2
    rm -rf -- "$root" "$root.stamp"
    mkdir -p "$roots_dir"
    mmdebstrap --quiet --mode=root --variant=apt --include="$roots_packages" \
        --customize-hook='echo node1 >"$1/etc/hostname"' \
        --customize-hook='printf "127.0.0.1 localhost\n127.0.1.1 node1\n" >"$1/etc/hosts"' \
        --customize-hook='rm -f "$1"/etc/systemd/system/multi-user.target.wants/rabbitmq-server.service' \
        --customize-hook='rm -f "$1"/etc/systemd/system/multi-user.target.wants/mariadb.service' \
        --customize-hook='rm -f "$1/etc/resolv.conf"' \
        "$suite" "$root" http://deb.debian.org/debian >"$root.log" 2>&1 ||
        { tail -n 20 "$root.log" >&2; echo "packaging/test: mmdebstrap has failed for $suite" >&2; return 1; }
    echo "$stamp" >"$root.stamp"
}

# root_boot SUITE DIR: boots it with its writes below DIR; sets root_pid, the container's process 1.
root_boot() {
    local suite=$1 dir=$2 tries=0
    mkdir -p "$dir"/{upper,work,root}
    # The overlay is mounted in a namespace that ends with the container.
    # shellcheck disable=SC2016 # The inner shell's arguments.
    SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 unshare --mount --propagation private bash -c '
        mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
        exec systemd-nspawn --quiet --register=no --keep-unit --private-network --machine=node1 -D "$2/root" --boot' \
        -- "$roots_dir/$suite" "$dir" >"$dir/console.log" 2>&1 </dev/null &
    root_nspawn=$!
    until root_pid=$(pgrep -P "$root_nspawn" -x systemd); do
        kill -0 "$root_nspawn" 2>/dev/null && [ "$tries" -lt 300 ] || { cat "$dir/console.log" >&2; echo "packaging/test: $suite has not booted" >&2; return 1; }
        tries=$((tries + 1))
        sleep 0.1
    done
    inside 'until [ -S /run/dbus/system_bus_socket ]; do sleep 0.1; done; systemctl is-system-running --wait' || true
}

# inside COMMAND: in the container, as root.
inside() {
    nsenter -t "$root_pid" -a env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive bash -c "cd /root && $1"
}

root_end() {
    [ -n "${root_nspawn:-}" ] || return 0
    # Signals systemd to power off (systemd(1)).
    [ -z "${root_pid:-}" ] || kill -s SIGRTMIN+4 "$root_pid" 2>/dev/null || true
    local tries=0
    while kill -0 "$root_nspawn" 2>/dev/null && [ "$tries" -lt 100 ]; do tries=$((tries + 1)); sleep 0.1; done
    kill -KILL "$root_nspawn" 2>/dev/null || true
    wait "$root_nspawn" 2>/dev/null || true
    root_nspawn='' root_pid=''
}
