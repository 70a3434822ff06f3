#!/usr/bin/env bash
# Which OpenStack: Debian's packages (Nova 26), or the newest from PyPI in a virtual environment.

stack_release() {
    case $STACK_RELEASE in
        debian)
            stack_bin=/usr/bin stack_share=/etc stack_nova_python=/usr/bin/python3 ;;
        *) echo "devstack/openstack: unknown release '$STACK_RELEASE'; known is debian" >&2; return 1 ;;
    esac
}

# One line for each program whose version matters to a dump of its databases.
stack_versions() {
    dpkg-query -W -f '${Package} ${Version}\n' keystone placement-api glance-api python3-nova
}
