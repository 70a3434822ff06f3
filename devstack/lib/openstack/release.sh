#!/usr/bin/env bash
# Which OpenStack: Debian's packages (Nova 26), or a release from PyPI in a virtual environment.
# Each file in releases/ names the versions of one of these.

_stack_releases=$PWD/devstack/lib/openstack/releases

# Major versions of Nova that the stack installs from PyPI, the oldest first.
stack_known_releases() { (cd -- "$_stack_releases" && printf '%s\n' *.txt) | sed 's/\.txt$//' | sort -n; }

stack_release() {
    [ "$STACK_RELEASE" != newest ] || STACK_RELEASE=$(stack_known_releases | tail -n 1)
    if [ "$STACK_RELEASE" = debian ]; then
        stack_bin=/usr/bin stack_share=/etc stack_nova_python=/usr/bin/python3
    elif [ -f "$_stack_releases/$STACK_RELEASE.txt" ]; then
        stack_bin=$stack_cache/$STACK_RELEASE/bin stack_share=$stack_cache/$STACK_RELEASE/etc stack_nova_python=$stack_cache/$STACK_RELEASE/bin/python
    else
        echo "devstack/openstack: unknown release '$STACK_RELEASE'; known are debian, newest, and of Nova's major versions" $(stack_known_releases) >&2
        return 1
    fi
    export STACK_BIN=$stack_bin STACK_NOVA_PYTHON=$stack_nova_python
}

# stack_pip_environment FOLDER PINS WHAT: a virtual environment with the versions of a file, once.
# No network is needed after that.
stack_pip_environment() {
    ! cmp -s "$2" "$1/made-of" || return 0
    ensure_packages plugins-python
    rm -rf -- "$1"
    mkdir -p "$(dirname -- "$1")"
    # Debian's own Python: uwsgi's plugin is made for it.
    /usr/bin/python3 -m venv "$1"
    "$1/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$2"
    cp -- "$2" "$1/made-of"
    stack_say "$3 is installed from PyPI"
}

# Installs what Debian does not have, once.
stack_install_release() {
    [ "$STACK_RELEASE" != debian ] || return 0
    stack_pip_environment "$stack_cache/$STACK_RELEASE" "$_stack_releases/$STACK_RELEASE.txt" \
        "release $STACK_RELEASE"
}

# What uwsgi is told about an API. Releases since 31 have a module for each, older ones a script.
stack_wsgi_app() {
    local module script
    case $1 in
        keystone) module=keystone.wsgi.api script=keystone-wsgi-public ;;
        placement) module=placement.wsgi.api script=placement-api ;;
        glance) module=glance.wsgi.api script=glance-wsgi-api ;;
        nova-api) module=nova.wsgi.osapi_compute script=nova-api-wsgi ;;
    esac
    [ "$STACK_RELEASE" = debian ] || echo "virtualenv = $stack_cache/$STACK_RELEASE"
    if [ -x "$stack_bin/$script" ]; then echo "wsgi-file = $stack_bin/$script"
    else echo "module = $module:application"
    fi
}

# One line for each program whose version matters to a dump of its databases.
stack_versions() {
    if [ "$STACK_RELEASE" = debian ]; then
        dpkg-query -W -f '${Package} ${Version}\n' keystone placement-api glance-api python3-nova
    else
        cat -- "$_stack_releases/$STACK_RELEASE.txt"
    fi
}
