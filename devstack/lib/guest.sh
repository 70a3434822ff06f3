#!/usr/bin/env bash
# Builds the virtual machine that tests run: Debian's cloud kernel and a static busybox. No image is
# downloaded, and nothing is installed: packages that are not on this system are fetched and
# unpacked below DIR.
#
#   bash devstack/lib/guest.sh DIR
#
#   DIR/qemu-system-x86_64   QEMU: the system's, or a private one
#   DIR/vmlinux              the kernel, uncompressed: software emulation is slow at decompressing
#   DIR/initrd               busybox, a few modules, the guest agent, and tests/harness/guest
#   DIR/accelerator          kvm if a guest was seen to boot with it here, else qemu
#
# Built once; a second call returns at once unless the scripts or the place have changed.
set -euo pipefail
export LC_ALL=C
lib=$(dirname -- "$(readlink -f -- "${BASH_SOURCE[0]}")")
guest=$(readlink -f -- "$lib/../../tests/harness/guest")
[ $# -eq 1 ] || { sed -n '2,13p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2; }
mkdir -p "$1"
out=$(readlink -f -- "$1")
cd -- "$out"

# One at a time; the others find it done.
exec 9>lock
flock 9
stamp=$(echo "$out" | cat - "$lib/guest.sh" "$guest/init" "$guest"/bin/* "$guest"/etc/acpi/PWRF/* | sha256sum | cut -d' ' -f1)
[ "$(cat stamp 2>/dev/null)" != "$stamp" ] || exit 0
rm -rf stamp root kernel
mkdir -p debs prefix

die() { echo "guest.sh: $*" >&2; exit 1; }
type -P apt-get >/dev/null || die "this system has no apt-get; the guest is built from Debian's packages"
type -P lz4 >/dev/null || die "lz4 is missing; run as root: bash devstack/lib/packages.sh libvirt"
busybox=$(type -P busybox || true)
[ -n "$busybox" ] && ! ldd "$busybox" >/dev/null 2>&1 || die "a static busybox is missing; run as root: bash devstack/lib/packages.sh libvirt"

installed() { [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }
# What apt knows of the archive: the system's lists, or newer ones of our own (below).
lists=()
needs() { apt-cache "${lists[@]}" depends --recurse --no-{recommends,suggests,conflicts,breaks,replaces,enhances} "$1" | sed -n 's/^\([a-z0-9][a-z0-9.+-]*\)$/\1/p' | sort -u; }
fetch() {
    local name missing=()
    for name in "$@"; do
        compgen -G "debs/${name}_*.deb" >/dev/null || missing+=("$name")
    done
    [ ${#missing[@]} -eq 0 ] || (cd debs && apt-get "${lists[@]}" download -qq -o APT::Sandbox::User=root "${missing[@]}")
}
# A known package may have been replaced in the archive since the system's lists were read (404).
# Reading them anew needs root and is not our business; lists of our own are.
newer_lists() {
    echo "guest.sh: the archive has other packages than the system's lists say; reading lists of its own"
    mkdir -p lists/partial cache/archives/partial
    lists=(-o "Dir::State::Lists=$out/lists" -o "Dir::Cache=$out/cache" -o APT::Sandbox::User=root)
    apt-get "${lists[@]}" update -qq || die "the archive's lists cannot be read; see the lines above"
}
# fetch_or_newer FUNCTION: fetches what the function names, from newer lists if the known ones are
# too old.
fetch_or_newer() {
    local names
    names=$("$1")
    # shellcheck disable=SC2086 # names of packages
    fetch $names && return 0
    [ ${#lists[@]} -eq 0 ] || return 1
    newer_lists
    names=$("$1")
    # shellcheck disable=SC2086
    fetch $names
}
unpack() { local name=$1; shift; dpkg-deb -x debs/"${name}"_*.deb "$1"; }

kernel_package() { apt-cache "${lists[@]}" depends linux-image-cloud-amd64 2>/dev/null | sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1; }
guest_packages() { echo "$(kernel_package) qemu-guest-agent"; }
[ -n "$(kernel_package)" ] || newer_lists
[ -n "$(kernel_package)" ] || die "the archive has no package linux-image-cloud-amd64"
fetch_or_newer guest_packages
unpack "$(kernel_package)" kernel
unpack qemu-guest-agent prefix

# QEMU: the system's if it has one. Installing one is not tried: on a system with newer QEMU tools
# Debian's packages exclude each other.
if qemu=$(type -P qemu-system-x86_64); then
    ln -sfn "$qemu" qemu-system-x86_64
else
    qemu_packages() {
        local name
        for name in $(needs qemu-system-x86); do
            case $name in cdebconf*|install-info|libnewt*|libtextwrap*|libdebian-installer*|*elogind*) continue ;; esac
            # The data files fit to this very QEMU only.
            case $name in qemu-system-*|seabios|ipxe-qemu) ;; *) ! installed "$name" || continue ;; esac
            echo "$name"
        done
    }
    fetch_or_newer qemu_packages
    for name in $(qemu_packages); do unpack "$name" prefix; done
    printf '#!/bin/sh\nexport LD_LIBRARY_PATH=%q\nexec %q "$@"\n' "$out/prefix/usr/lib/x86_64-linux-gnu" "$out/prefix/usr/bin/qemu-system-x86_64" >qemu-system-x86_64
    chmod +x qemu-system-x86_64
fi
./qemu-system-x86_64 --version >/dev/null || die "QEMU does not run"

# The kernel is an lz4 stream inside its boot image, which the loader would unpack; what follows the
# stream makes lz4 complain.
image=$(compgen -G 'kernel/boot/vmlinuz-*')
at=$(grep -obUaP '\x02\x21\x4c\x18' "$image" | head -n 1 | cut -d: -f1)
[ -n "$at" ] || die "the kernel is not compressed with lz4"
tail -c +$((at + 1)) "$image" | lz4 -dcf >vmlinux 2>/dev/null || true
[ "$(head -c 4 vmlinux | tail -c 3)" = ELF ] || die "the kernel could not be unpacked"

# Modules with all that they need, in the order in which they have to be loaded.
release=$(basename kernel/lib/modules/*)
modules=kernel/lib/modules/$release
[ -s "$modules/modules.dep" ] || "$busybox" depmod -b kernel "$release"
mkdir -p root/{bin,sbin,etc,proc,sys,dev,run,tmp,lib/mods}
: >root/lib/mods.order
add() {
    local line file need
    line=$(grep -E "(^|/)$1\.ko[^:]*:" "$modules/modules.dep" | head -n 1) || return 0 # built in
    file=${line%%:*}
    for need in $(printf '%s\n' ${line#*:} | tac); do add "$(basename "${need%%.ko*}")"; done
    grep -qxF "$(basename "$file")" root/lib/mods.order && return 0
    cp "$modules/$file" root/lib/mods/
    basename "$file" >>root/lib/mods.order
}
for module in virtio_pci virtio_blk virtio_console virtio_net virtio_balloon evdev button; do add $module; done
cp "$busybox" root/bin/busybox
cp -r "$guest/." root/
cp prefix/usr/sbin/qemu-ga root/bin/
# The guest agent's libraries are where only it looks: the static busybox would load parts of them
# that do not fit to it.
mkdir -p root/ga
mv root/bin/qemu-ga root/ga/
LD_LIBRARY_PATH=$out/prefix/usr/lib/x86_64-linux-gnu ldd root/ga/qemu-ga | grep -o '/[^ ]*' | while read -r library; do cp -L "$library" root/ga/; done
(cd root && find . | "$busybox" cpio -o -H newc 2>/dev/null) | gzip -1 >initrd

# Whether hardware virtualisation works is seen, not asked: in a virtual machine it may be there and
# take for ever.
echo qemu >accelerator
if [ -r /dev/kvm ] && [ -w /dev/kvm ]; then
    rm -f probe.log
    # In a shell of its own, which says nothing about how it ended.
    (
        timeout --signal=KILL 8 ./qemu-system-x86_64 -accel kvm -m 96 -nodefaults -no-user-config -display none -kernel vmlinux \
            -initrd initrd -append 'console=ttyS0 quiet panic=-1 vm.name=probe' -serial file:probe.log 9>&- &
        probe=$!
        for _ in $(seq 70); do
            if grep -qas READY probe.log; then echo kvm >accelerator; break; fi
            kill -0 $probe || break
            sleep 0.1
        done
        # To `timeout`, which hands it on to QEMU.
        kill -TERM $probe
        wait $probe
    ) >/dev/null 2>&1 || true
fi
rm -rf root kernel lists cache
echo "$stamp" >stamp
