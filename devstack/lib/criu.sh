#!/usr/bin/env bash
# Puts a CRIU into DIR that knows this kernel: the system's, or a private one from a newer Debian.
# Nothing is installed.
#
#   bash devstack/lib/criu.sh DIR
#
#   DIR/criu   to be given to `ebbtide run --criu-program`, or in EBBTIDE_CRIU
#
# CRIU follows the kernel: CRIU 3.17, which Debian 12 has, does not work from Linux 6.13 on. A
# private one brings its own C library, so that it runs beside an older one. Done once; a second
# call returns at once unless the script or the kernel has changed.
set -euo pipefail
export LC_ALL=C
[ $# -eq 1 ] || { sed -n '2,9p' "$0" | sed 's/^# \{0,1\}//' >&2; exit 2; }
self=$(readlink -f -- "${BASH_SOURCE[0]}")
mkdir -p "$1"
out=$(readlink -f -- "$1")
cd -- "$out"

# One at a time; the others find it done.
exec 9>lock
flock 9
stamp=$(echo "$out" | cat "$self" /proc/sys/kernel/osrelease - | sha256sum | cut -d' ' -f1)
[ "$(cat stamp 2>/dev/null)" != "$stamp" ] || exit 0
rm -rf stamp criu prefix debs lists cache sources.list

die() { echo "criu.sh: $*" >&2; exit 1; }
works() { "$1" check >check.log 2>&1; }
done_with() { printf '%s' "$stamp" >stamp; exit 0; }

if system=$(PATH=$PATH:/usr/sbin:/sbin type -P criu) && works "$system"; then
    ln -sfn "$system" criu
    done_with
fi
[ "$(id -u)" = 0 ] || die "CRIU needs root to save a process; run this as root"
type -P apt-get >/dev/null || die "this system has no apt-get; install a CRIU that knows Linux $(uname -r)"

# The archive that this system uses, and what signs it.
archive=$(apt-get indextargets --format '$(ORIGIN) $(LABEL) $(REPO_URI)' 'Created-By: Packages' | sed -n 's/^Debian Debian //p' | head -n 1)
[ -n "$archive" ] || die "this system knows no archive of Debian's"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
for suite in trixie sid; do
    echo "criu.sh: the system's CRIU does not know Linux $(uname -r); fetching the one of Debian $suite"
    rm -rf prefix debs lists cache
    mkdir -p prefix debs lists/partial cache/archives/partial
    echo "deb [signed-by=$keyring] $archive $suite main" >sources.list
    apt=(-o "Dir::Etc::SourceList=$out/sources.list" -o Dir::Etc::SourceParts=/dev/null -o "Dir::State::Lists=$out/lists"
        -o Dir::State::status=/dev/null -o "Dir::Cache=$out/cache" -o APT::Sandbox::User=root -o Acquire::Languages=none)
    apt-get "${apt[@]}" update -qq >update.log 2>&1 || { tail -n 5 update.log >&2; continue; }
    # Everything that it needs, and nothing of the system: names of libraries change between
    # releases.
    names=$(apt-cache "${apt[@]}" depends --recurse --no-{recommends,suggests,conflicts,breaks,replaces,enhances} criu |
        sed -n 's/^\([a-z0-9][a-z0-9.+-]*\)$/\1/p' | grep -Ev '^(python3|perl|debconf|dpkg|tar|media-types|libpython|mailcap)' | sort -u)
    # shellcheck disable=SC2086 # names of packages
    (cd debs && apt-get "${apt[@]}" download -qq $names >../download.log 2>&1) || { tail -n 5 download.log >&2; continue; }
    for deb in debs/*.deb; do dpkg-deb -x "$deb" prefix; done
    libraries=$(find "$out/prefix" -name '*.so.*' -printf '%h\n' | sort -u | paste -sd:)
    loader=$(find "$out/prefix" -name 'ld-linux*.so.*' | head -n 1)
    printf '#!/bin/sh\nexec %s --library-path %s %s "$@"\n' "$loader" "$libraries" "$out/prefix/usr/sbin/criu" >criu
    chmod 755 criu
    if works "$out/criu"; then
        rm -rf debs lists cache
        done_with
    fi
done
cat check.log >&2
die "no CRIU of Debian's knows Linux $(uname -r)"
