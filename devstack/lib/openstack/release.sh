#!/usr/bin/env bash
# Which OpenStack: Debian's packages (Nova 26), or the newest from PyPI in a virtual environment
# (Nova 34).

# The versions of the newest release that the stack knows; Nova's libraries are those of the oracle
# beside the corpus.
_stack_newest='nova==34.0.0 openstack-placement==16.0.0 keystone==30.0.0 glance==33.0.0 pymysql python-memcached'

stack_release() {
    case $STACK_RELEASE in
        debian) stack_bin=/usr/bin stack_share=/etc stack_nova_python=/usr/bin/python3 ;;
        newest) stack_bin=$stack_cache/newest/bin stack_share=$stack_cache/newest/etc stack_nova_python=$stack_cache/newest/bin/python ;;
        *) echo "devstack/openstack: unknown release '$STACK_RELEASE'; known are debian and newest" >&2; return 1 ;;
    esac
    export STACK_BIN=$stack_bin STACK_NOVA_PYTHON=$stack_nova_python
}

# Installs what Debian does not have, once.
stack_install_release() {
    local wanted
    [ "$STACK_RELEASE" = newest ] || return 0
    wanted=$(printf '%s\n' "$_stack_newest" | sha256sum | cut -c1-16)
    [ "$(cat "$stack_cache/newest/made-of" 2>/dev/null)" != "$wanted" ] || return 0
    rm -rf -- "$stack_cache/newest"
    mkdir -p "$stack_cache"
    # Debian's own Python: uwsgi's plugin is made for it.
    /usr/bin/python3 -m venv "$stack_cache/newest"
    # shellcheck disable=SC2086 # a list
    "$stack_cache/newest/bin/pip" install --quiet --disable-pip-version-check --constraint integration/nova/oracle/freeze.txt $_stack_newest
    echo "$wanted" > "$stack_cache/newest/made-of"
    stack_say "the newest release is installed from PyPI"
}

# What uwsgi is told about an API.
stack_wsgi_app() {
    case $STACK_RELEASE-$1 in
        debian-keystone) echo "wsgi-file = $stack_bin/keystone-wsgi-public" ;;
        debian-placement) echo "wsgi-file = $stack_bin/placement-api" ;;
        newest-*)
            echo "virtualenv = $stack_cache/newest"
            case $1 in
                keystone) echo 'module = keystone.wsgi.api:application' ;;
                placement) echo 'module = placement.wsgi.api:application' ;;
                glance) echo 'module = glance.wsgi.api:application' ;;
                nova-api) echo 'module = nova.wsgi.osapi_compute:application' ;;
            esac ;;
    esac
}

# One line for each program whose version matters to a dump of its databases.
stack_versions() {
    if [ "$STACK_RELEASE" = newest ]; then echo "$_stack_newest"
    else dpkg-query -W -f '${Package} ${Version}\n' keystone placement-api glance-api python3-nova; fi
}
