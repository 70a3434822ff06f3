#!/usr/bin/env bash
# Installs the system packages that tests and the devstack need, from Debian's own archive, and
# nothing else.
#
#   . devstack/lib/packages.sh; ensure_packages rabbitmq mariadb postgresql     (as a library)
#   bash devstack/lib/packages.sh rabbitmq mariadb postgresql                   (as a command)
#
# What holds:
# - When the programs are there, it does nothing, says nothing and starts no other program (but
#   python3, to ask for its own parts).
# - It says in one line what it will install and why before it does so.
# - No system service is started or left enabled by an installation of ours: Ebbtide starts its own
#   private servers on free ports, and a second broker on port 5672 would only be in the operator's
#   way.
# - Returns 0 when all programs are there, 1 with a message on stderr when they cannot be had.

_packages_self=$(readlink -f -- "${BASH_SOURCE[0]}")

# The file that Debian's maintainer scripts ask before they start a service (Debian Policy 9.3.3,
# policy-rc.d(8)).
_packages_policy=/usr/sbin/policy-rc.d
_packages_policy_saved=/usr/sbin/policy-rc.d.saved-by-ebbtide
_packages_policy_mark='# written by ebbtide for the time of one installation'

# Is the program there? First argument: a name (looked up in PATH and the sbin folders) or an
# absolute path.
_packages_have() {
    case $1 in
        /*) [ -x "$1" ] ;;
        *) type -P "$1" >/dev/null || [ -x "/usr/sbin/$1" ] || [ -x "/sbin/$1" ] ;;
    esac
}

# Are the programs of one service there? The same places as in tests/harness/src/programs.rs.
_packages_present() {
    local dir
    case $1 in
        # /usr/sbin/rabbitmq-server is Debian's wrapper, which refuses other users than root and
        # rabbitmq.
        rabbitmq) _packages_have /usr/lib/rabbitmq/bin/rabbitmq-server && _packages_have erl && _packages_have epmd ;;
        mariadb) _packages_have mariadbd && _packages_have mariadb-install-db && _packages_have mariadb ;;
        # A cluster of MariaDB: the library that replicates, and what a joining node gets data with.
        galera)
            [ -f /usr/lib/galera/libgalera_smm.so ] || return 1
            for dir in mariadbd wsrep_sst_rsync rsync lsof; do _packages_have "$dir" || return 1; done ;;
        postgresql)
            for dir in /usr/lib/postgresql/*/bin; do
                [ -x "$dir/postgres" ] && [ -x "$dir/initdb" ] && [ -x "$dir/psql" ] && return 0
            done
            return 1 ;;
        # Python's own implementation, to talk with in tests.
        oslo-messaging) [ -f /usr/lib/python3/dist-packages/oslo_messaging/__init__.py ] && [ -x /usr/bin/python3 ] ;;
        # Placement itself, as a library of Python: what the model of it is held against.
        placement) [ -f /usr/lib/python3/dist-packages/placement/deploy.py ] && [ -x /usr/bin/python3 ] ;;
        # Nova's own weighers, and gRPC to ask them.
        nova-weighers)
            for dir in nova grpc google/protobuf; do [ -f "/usr/lib/python3/dist-packages/$dir/__init__.py" ] || return 1; done
            [ -x /usr/bin/python3 ] ;;
        libvirt)
            compgen -G '/usr/lib/*/libvirt/connection-driver/libvirt_driver_qemu.so' >/dev/null || return 1
            for dir in libvirtd virsh busybox lz4 unshare ip; do _packages_have "$dir" || return 1; done
            ! ldd "$(type -P busybox || echo /bin/busybox)" >/dev/null 2>&1 ;;
        # What Nova's libvirt driver needs beside libvirtd.
        nova-libvirt)
            compgen -G '/usr/lib/python3/dist-packages/libvirt.py' >/dev/null || return 1
            for dir in qemu-img nsenter unshare; do _packages_have "$dir" || return 1; done ;;
        # Networks of their own, and a clock that can be set for one program.
        network)
            for dir in ip nft nsenter unshare; do _packages_have "$dir" || return 1; done ;;
        faketime) compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null ;;
        # What `ebbtide-lab plugin new` makes in C and Python is built with.
        plugins-c)
            for dir in make cc clang wasm-ld; do _packages_have "$dir" || return 1; done
            [ -d /usr/include/wasm32-wasi ] || return 1
            compgen -G '/usr/lib/llvm-*/lib/clang/*/lib/wasi/libclang_rt.builtins-wasm32.a' >/dev/null ;;
        plugins-python) python3 -c 'import ensurepip, venv' 2>/dev/null ;;
        # The openstack client, with what builds a plugin's entry points.
        openstack-client)
            for dir in openstackclient setuptools; do [ -f "/usr/lib/python3/dist-packages/$dir/__init__.py" ] || return 1; done
            [ -x /usr/bin/python3 ] ;;
        # Horizon with its unit tests' needs, a server for it, and what compiles translations.
        horizon)
            for dir in openstack_dashboard horizon; do [ -f "/usr/lib/python3/dist-packages/$dir/__init__.py" ] || return 1; done
            [ -x /usr/bin/uwsgi ] && _packages_have msgfmt ;;
        # Requests to the REST API.
        curl) _packages_have curl ;;
        # A batch cluster: its controller, its nodes, its commands, what proves to them who speaks,
        # and the plugins that slurm.conf names.
        slurm)
            for dir in slurmctld slurmd sbatch scontrol sinfo squeue munged unshare nsenter ip; do _packages_have "$dir" || return 1; done
            compgen -G '/usr/lib/*/slurm-wlm/select_cons_tres.so' >/dev/null ;;
        # What scrapes a region in tests, and what tests its rules.
        prometheus) _packages_have prometheus && _packages_have promtool ;;
        # A root file system of Debian, an index of packages, a config drive, and a network's DHCP.
        guest-image)
            for dir in mmdebstrap dpkg-scanpackages mke2fs genisoimage dnsmasq; do _packages_have "$dir" || return 1; done ;;
        # OCI images, and containers of them.
        images)
            for dir in mmdebstrap dpkg-deb strip podman crun gzip; do _packages_have "$dir" || return 1; done ;;
        # What builds the console, and the browser that its tests use.
        node) _packages_have node && _packages_have npm ;;
        chromium) _packages_have chromium ;;
        firefox) _packages_have firefox-esr ;;
        # What judges units without starting them.
        units) _packages_have systemd-analyze ;;
        # Packages of Debian and EL, and roots in which they are tried.
        packaging)
            for dir in dpkg-shlibdeps strip lintian rpm rpmlint mmdebstrap systemd-nspawn unshare nsenter; do _packages_have "$dir" || return 1; done ;;
        # Its API, scheduler and volume service are started without the packages of their units.
        cinder) _packages_have cinder-manage && _packages_have cinder-wsgi && [ -f /usr/lib/python3/dist-packages/cinder/cmd/volume.py ] ;;
        neutron) _packages_have neutron-db-manage && [ -f /usr/lib/python3/dist-packages/neutron/server/__init__.py ] ;;
        openstack)
            for dir in nova-api nova-conductor nova-scheduler nova-manage placement-api keystone-manage glance-api memcached uwsgi \
                eatmydata openstack curl mariadb-dump /usr/lib/python3/dist-packages/{nova,fixtures,pika,pymysql}/__init__.py; do
                case $dir in *.py) [ -f "$dir" ] ;; *) _packages_have "$dir" ;; esac || return 1
            done ;;
    esac
}

# The Debian packages of one service. MariaDB's "core" packages hold the programs without a system
# service or a system user.
_packages_names() {
    case $1 in
        rabbitmq) echo rabbitmq-server ;;
        mariadb) echo mariadb-server-core mariadb-client-core ;;
        galera) echo galera-4 mariadb-server rsync lsof ;;
        postgresql) echo postgresql ;;
        oslo-messaging) echo python3-oslo.messaging ;;
        placement) echo python3-placement ;;
        nova-weighers) echo python3-nova python3-grpcio python3-protobuf ;;
        # QEMU itself is guest.sh's business: systems with newer QEMU tools cannot have it beside
        # them.
        libvirt) echo libvirt-daemon libvirt-daemon-driver-qemu libvirt-clients busybox-static lz4 iproute2 util-linux ;;
        nova-libvirt) echo python3-libvirt qemu-utils util-linux ;;
        network) echo iproute2 nftables util-linux ;;
        faketime) echo libfaketime ;;
        plugins-c) echo make gcc libc6-dev clang lld wasi-libc libclang-rt-dev-wasm32 ;;
        plugins-python) echo python3-venv ;;
        openstack-client) echo python3-openstackclient python3-setuptools ;;
        # Without openstack-dashboard-apache, which would configure a web server.
        horizon) echo openstack-dashboard python3-django-horizon gettext uwsgi-core uwsgi-plugin-python3 ;;
        curl) echo curl ;;
        slurm) echo slurmctld slurmd slurm-client slurm-wlm-basic-plugins munge iproute2 util-linux ;;
        prometheus) echo prometheus ;;
        guest-image) echo mmdebstrap dpkg-dev e2fsprogs genisoimage dnsmasq-base ;;
        images) echo mmdebstrap dpkg binutils podman crun gzip ;;
        node) echo nodejs npm ;;
        chromium) echo chromium ;;
        firefox) echo firefox-esr ;;
        units) echo systemd ;;
        packaging) echo dpkg-dev binutils lintian rpm rpmlint mmdebstrap systemd-container util-linux ;;
        # nova-compute would bring libvirt and QEMU; its code is in python3-nova, and the fake
        # driver needs python3-fixtures.
        neutron) echo neutron-server ;;
        # cinder-volume would bring LVM and an iSCSI target; its code is in python3-cinder.
        cinder) echo cinder-common python3-cinder ;;
        openstack) echo nova-api nova-conductor nova-scheduler python3-nova python3-fixtures placement-api keystone glance-api \
            memcached mariadb-client python3-openstackclient python3-pika python3-pymysql uwsgi-core uwsgi-plugin-python3 eatmydata curl ;;
    esac
}

# The system services that come with the packages of one service and would be enabled for the next
# boot.
_packages_units() {
    case $1 in
        rabbitmq) echo rabbitmq-server.service epmd.service epmd.socket ;;
        mariadb) ;;
        galera) echo mariadb.service rsync.service ;;
        postgresql) echo postgresql.service ;;
        oslo-messaging|placement|nova-weighers|openstack-client|horizon) ;;
        network) echo nftables.service ;;
        faketime | nova-libvirt | plugins-* | guest-image | packaging | units | cinder | node | chromium | firefox) ;;
        prometheus) echo prometheus.service ;;
        slurm) echo slurmctld.service slurmd.service munge.service ;;
        images) echo podman.{service,socket} podman-auto-update.{service,timer} podman-restart.service ;;
        libvirt) echo libvirtd.service libvirt-guests.service virtlogd.{service,socket} virtlockd.{service,socket} libvirtd{,-ro,-admin}.socket ;;
        neutron) echo neutron-{api,rpc-server,server}.service ;;
        openstack) echo {nova-api,nova-api-metadata,nova-conductor,nova-scheduler,placement-api,keystone,glance-api,memcached}.service ;;
    esac
}

_packages_unit_exists() {
    [ -e "/lib/systemd/system/$1" ] || [ -e "/etc/systemd/system/$1" ]
}

# Puts back what _packages_forbid_services replaced. Safe to call at any time, also after a run that
# was killed half-way.
_packages_allow_services() {
    if [ -e "$_packages_policy" ] && grep -qF "$_packages_policy_mark" "$_packages_policy"; then
        rm -f -- "$_packages_policy"
    fi
    if [ -e "$_packages_policy_saved" ] && [ ! -e "$_packages_policy" ]; then
        mv -- "$_packages_policy_saved" "$_packages_policy"
    fi
}

# Makes every maintainer script believe that services may not be started: exit 101 is "action
# forbidden by policy".
_packages_forbid_services() {
    _packages_allow_services
    if [ -e "$_packages_policy" ]; then
        mv -- "$_packages_policy" "$_packages_policy_saved"
    fi
    printf '#!/bin/sh\n%s\nexit 101\n' "$_packages_policy_mark" >"$_packages_policy"
    chmod 755 "$_packages_policy"
}

# Installs as root. Runs in a subshell of its own, so that its traps and options are not the
# caller's.
_packages_install() (
    set -u
    services=("$@")
    packages=() units=()
    for service in "${services[@]}"; do
        read -ra names <<<"$(_packages_names "$service")"
        packages+=("${names[@]}")
        for unit in $(_packages_units "$service"); do
            # A unit that was there before belongs to the operator.
            _packages_unit_exists "$unit" || units+=("$unit")
        done
    done
    log=$(mktemp) || exit 1

    # One installation at a time: two copies of this script would otherwise swap policy-rc.d under
    # each other.
    exec 9>/run/lock/ebbtide-packages.lock || exit 1
    flock 9 || exit 1
    trap '_packages_allow_services; rm -f -- "$log"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP

    missing=0
    for service in "${services[@]}"; do
        _packages_present "$service" || missing=1
    done
    # Another copy may have installed everything while this one waited for the lock.
    [ "$missing" = 1 ] || exit 0

    export DEBIAN_FRONTEND=noninteractive
    apt=(apt-get -q -y -o DPkg::Lock::Timeout=600)
    for package in "${packages[@]}"; do
        if [ -z "$(apt-cache show --no-all-versions "$package" 2>/dev/null)" ]; then
            "${apt[@]}" update >"$log" 2>&1 9>&- || { tail -n 20 "$log" >&2; exit 1; }
            break
        fi
    done

    _packages_forbid_services
    install=("${apt[@]}" install --no-install-recommends "${packages[@]}")
    if ! "${install[@]}" >"$log" 2>&1 9>&-; then
        # A known package may have been replaced in the archive since the lists were read (404):
        # read them and try again.
        if ! { "${apt[@]}" update && "${install[@]}"; } >"$log" 2>&1 9>&-; then
            tail -n 20 "$log" >&2
            exit 1
        fi
    fi

    for unit in ${units[@]+"${units[@]}"}; do
        if _packages_unit_exists "$unit" && type -P systemctl >/dev/null; then
            systemctl --quiet disable "$unit" >/dev/null 2>&1 || true
        fi
    done
    exit 0
)

# ensure_packages SERVICE...   with SERVICE one of rabbitmq, mariadb, galera, postgresql,
#                              oslo-messaging, libvirt, nova-libvirt, network, faketime, placement,
#                              nova-weighers, plugins-c, plugins-python, slurm, prometheus,
#                              guest-image, node, chromium, firefox, cinder, neutron, openstack,
#                              openstack-client, horizon.
ensure_packages() {
    local service missing=() packages='' command
    for service in "$@"; do
        if [ -z "$(_packages_names "$service")" ]; then
            echo "ensure_packages: unknown service '$service'; known are rabbitmq, mariadb, galera, postgresql, oslo-messaging, libvirt, nova-libvirt, network, faketime, placement, nova-weighers, plugins-c, plugins-python, slurm, prometheus, guest-image, node, chromium, firefox, cinder, neutron, openstack, openstack-client, horizon" >&2
            return 1
        fi
    done
    for service in "$@"; do
        _packages_present "$service" || missing+=("$service")
    done
    [ ${#missing[@]} -gt 0 ] || return 0

    for service in "${missing[@]}"; do
        packages+=" $(_packages_names "$service")"
    done
    packages=${packages# }
    command="bash $_packages_self ${missing[*]}"
    if ! type -P apt-get >/dev/null; then
        echo "error: the programs of ${missing[*]} are missing and this system has no apt-get; install what Debian calls: $packages" >&2
        return 1
    fi

    if [ "$(id -u)" = 0 ]; then
        echo "Installing $packages from the system's archive, for ${missing[*]}: Ebbtide starts private copies of services; the system's own stay off."
        if ! _packages_install "${missing[@]}"; then
            echo "error: could not install $packages; see the lines above, or install them by hand and come back" >&2
            return 1
        fi
    elif type -P sudo >/dev/null && sudo -n true 2>/dev/null; then
        # The command run by sudo says what it installs.
        sudo -n bash "$_packages_self" "${missing[@]}" || return 1
    else
        echo "error: the programs of ${missing[*]} are missing ($packages) and only root can install them. Run as root:  $command" >&2
        return 1
    fi

    for service in "${missing[@]}"; do
        if ! _packages_present "$service"; then
            echo "error: $(_packages_names "$service") is installed, but the programs of $service are still not found" >&2
            return 1
        fi
    done
}

# Run as a command, not read in by another script.
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    set -euo pipefail
    if [ $# -eq 0 ]; then
        echo "usage: $0 rabbitmq|mariadb|galera|postgresql|oslo-messaging|libvirt|nova-libvirt|network|faketime|placement|nova-weighers|plugins-c|plugins-python|slurm|prometheus|node|chromium|firefox|cinder|neutron|openstack|openstack-client|horizon ..." >&2
        exit 2
    fi
    ensure_packages "$@"
fi
