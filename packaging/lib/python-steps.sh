#!/usr/bin/env bash
# Installs python3-ebbtideclient and python3-ebbtide-dashboard in a fresh root of Debian, beside
# Debian's own openstack command and Horizon, tries both, and purges them.
#
#   bash packaging/lib/python-steps.sh bookworm     or trixie; ./packaging/test runs it for both
#
# The root is made by mmdebstrap and kept for a week in target/packaging-roots/python. It has no
# network, and nothing in it is started, so that it needs no boot. Needs root.
set -euo pipefail

# Inside of the root --------------------------------------------------------------------------

packages=(python3-ebbtideclient python3-ebbtide-dashboard)
modules=/usr/lib/python3/dist-packages
fail() { echo "packaging/lib/python-steps.sh: $*" >&2; exit 1; }

# Every path besides what dpkg, apt and the kernel write. Static files are there too: Horizon makes
# them again when a panel comes or goes.
paths() {
    find / -xdev \( -path /proc -o -path /sys -o -path /dev -o -path /run -o -path /tmp \
        -o -path /root -o -path /var/log -o -path /var/cache -o -path /var/lib/apt \
        -o -path /var/lib/dpkg \) -prune -o -print | sort
}

apt_get() { # ARGUMENTS
    printf '# apt-get %s\n' "$*"
    apt-get -qq -y "$@" >/root/apt.log 2>&1 || { cat /root/apt.log; fail "apt-get $*"; }
}

# The commands of `openstack preemptible`, and that each has its help.
try_command() {
    local help command
    openstack preemptible --help >/root/help 2>&1 ||
        { cat /root/help; fail "openstack preemptible --help"; }
    grep 'preemptible server list' /root/help || { cat /root/help; fail "there is no server list"; }
    for command in 'server list' 'server release' 'evacuation list' what-if 'bill list'
    do
        # shellcheck disable=SC2086 # Two words.
        help=$(openstack preemptible $command --help) ||
            fail "openstack preemptible $command --help"
        grep -q "^usage: openstack preemptible $command" <<<"$help" ||
            fail "no help of $command: $help"
    done
}

# Horizon finds the panels where the enabled files put them, and has collected their files.
try_horizon() {
    local file enabled=$modules/openstack_dashboard/local/enabled
    local static=/var/lib/openstack-dashboard/static/ebbtide
    for file in _1045_project_preemptible_servers.py _2145_admin_preemptible_capacity.py; do
        [ -f "$enabled/$file" ] || fail "there is no enabled file $file"
    done
    for file in launch.js servers.js; do
        [ -f "$static/$file" ] || fail "Horizon has not collected $file"
    done
    # Loads all enabled files and panels, as the web server does when it starts.
    DJANGO_SETTINGS_MODULE=openstack_dashboard.settings /usr/bin/python3 -W ignore - <<'X'
import django

django.setup()
import horizon
from django.conf import settings
from django.urls import reverse

import openstack_dashboard.urls  # noqa: F401

for dashboard, panel, view in (
    ("project", "preemptible_servers", "index"),
    ("admin", "preemptible_capacity", "index"),
):
    found = horizon.get_dashboard(dashboard).get_panel(panel)
    print(f"Horizon: {dashboard}: {found.name}: {reverse(f'horizon:{dashboard}:{panel}:{view}')}")
assert "ebbtide_dashboard" in settings.INSTALLED_APPS, settings.INSTALLED_APPS
X
}

inner() {
    local package left
    # What a Python of ours or a trigger compiles is no file of a package.
    export PYTHONDONTWRITEBYTECODE=1
    . /etc/os-release
    paths >/root/before
    apt_get install ./*.deb
    for package in "${packages[@]}"; do
        [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$package")" = 'ii ' ] ||
            fail "$package is not installed"
        [ -z "$(dpkg --verify "$package")" ] ||
            { dpkg --verify "$package"; fail "dpkg --verify $package"; }
    done
    dpkg-query -W "${packages[@]}" openstack-dashboard python3-openstackclient
    try_command
    try_horizon
    apt_get purge "${packages[@]}"
    [ -z "$(dpkg --audit)" ] || { dpkg --audit; fail "a purge has left a broken package"; }
    left=$(paths | diff /root/before - | grep '^>' || true)
    [ -z "$left" ] || { echo "$left"; fail "purge leaves files"; }
    ! openstack preemptible server list --help >/root/help 2>&1 || fail "it is still there"
    echo "$PRETTY_NAME: nothing is left of ${packages[*]}"
}

# Outside of it -------------------------------------------------------------------------------

outer() { # SUITE
    cd -- "$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")/../.."
    . devstack/lib/packages.sh
    . packaging/lib/roots.sh
    ensure_packages packaging
    # The roots of regions do not need the 300 packages of Horizon.
    roots_dir=$roots_dir/python roots_packages=openstack-dashboard,python3-openstackclient
    root_make "$1"
    scratch=$(mktemp -d "$roots_dir/test.XXXXXX")
    trap 'rm -rf --one-file-system -- "$scratch"' EXIT
    mkdir -p "$scratch"/{upper/root,work,root}
    ./packaging/python --to "$scratch/upper/root" >/dev/null
    cp packaging/lib/python-steps.sh "$scratch/upper/root/"
    # shellcheck disable=SC2016 # The inner shell's arguments.
    unshare --mount --net --pid --fork --kill-child --propagation private bash -c '
        mount -t overlay overlay -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
        mount -t proc proc "$2/root/proc"
        mount --bind /dev/null "$2/root/dev/null"
        exec chroot "$2/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
            DEBIAN_FRONTEND=noninteractive \
            bash -c "cd /root && exec bash python-steps.sh --inside"' \
        -- "$roots_dir/$1" "$scratch"
}

case ${1:-} in
    --inside) inner ;;
    bookworm|trixie) outer "$1" ;;
    *) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; [[ ${1:-} = -h || ${1:-} = --help ]] ;;
esac
