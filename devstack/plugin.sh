#!/usr/bin/env bash
# DevStack plugin: dispatches the phases of stack.sh, unstack.sh and clean.sh. The functions that
# are not defined here are DevStack's.
#
# DevStack sources this file with the arguments `stack pre-install|install|post-config|extra`,
# `unstack` or `clean`.

_EBBTIDE_XTRACE=$(set +o | grep xtrace)
set +o xtrace

function is_ebbtide_scheduler_enabled {
    is_service_enabled ebbtide-sch && is_service_enabled n-api n-cond n-super-cond
}

# A Rust compiler: rust-toolchain.toml in the repository names the version, rustup fetches it.
function preinstall_ebbtide {
    install_package gcc libc6-dev curl
    if ! command -v cargo >/dev/null && [[ ! -x $HOME/.cargo/bin/cargo ]]; then
        curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --no-modify-path --profile minimal --default-toolchain none
    fi
}

function install_ebbtide {
    local profile=debug flags=""
    if [[ "$EBBTIDE_RELEASE" == "True" ]]; then
        profile=release
        flags=--release
    fi
    (cd "$EBBTIDE_DIR" && PATH="$PATH:$HOME/.cargo/bin" CARGO_TARGET_DIR="$EBBTIDE_DIR/target" \
        cargo build --locked $flags -p ebbtide-scheduler -p ebbtide-agent -p ebbtide-cli -p ebbtide-manage)
    sudo install -D -m 755 -t "$EBBTIDE_BIN_DIR" "$EBBTIDE_DIR/target/$profile/"{ebbtide-scheduler,ebbtide-agent,ebbtide,ebbtide-manage}
}

# Everything of ours stands in section [ebbtide] of nova.conf, which Nova's own programs ignore.
function configure_ebbtide_scheduler {
    recreate_database ebbtide
    iniset "$NOVA_CONF" ebbtide connection "$(database_connection_url ebbtide)"
    iniset "$NOVA_CONF" ebbtide preemption "$EBBTIDE_PREEMPTION"
    iniset "$NOVA_CONF" ebbtide default_grace "$EBBTIDE_DEFAULT_GRACE"
    iniset "$NOVA_CONF" ebbtide reply_when "$EBBTIDE_REPLY_WHEN"
    # The API asks Keystone about tokens as section [keystone_authtoken] says, which is Nova's.
    iniset "$NOVA_CONF" ebbtide api_listen "$SERVICE_LISTEN_ADDRESS:$EBBTIDE_API_PORT"
}

# Clients find the API in Keystone's catalog.
function register_ebbtide_api {
    if is_ebbtide_scheduler_enabled; then
        get_or_create_service ebbtide preemption "Preemptible servers: decisions and advice"
        get_or_create_endpoint preemption "$REGION_NAME" "http://$SERVICE_HOST:$EBBTIDE_API_PORT"
    fi
}

function configure_ebbtide_agent {
    sudo install -d -o "$STACK_USER" -m 750 "$EBBTIDE_CONF_DIR" "$EBBTIDE_STATE_DIR"
    # The agent needs the schedulers' broker, and from nova.conf the credentials of a user who may
    # end servers of all projects.
    (umask 077; ebbtide_agent_conf > "$EBBTIDE_CONF_DIR/agent.toml")
}

function ebbtide_agent_conf {
    cat <<X
host = "$(hostname)"
state_dir = "$EBBTIDE_STATE_DIR"
[bus]
urls = ["$(get_transport_url | sed 's/^rabbit:/amqp:/')"]
[driver]
kind = "nova"
[driver.nova]
nova_conf = "$NOVA_CONF"
X
}

function start_ebbtide {
    if is_ebbtide_scheduler_enabled; then
        run_process ebbtide-sch "$EBBTIDE_BIN_DIR/ebbtide-scheduler --config-file $NOVA_CONF"
    fi
    if is_service_enabled ebbtide-agent && is_service_enabled n-cpu; then
        run_process ebbtide-agent "$EBBTIDE_BIN_DIR/ebbtide-agent run --config $EBBTIDE_CONF_DIR/agent.toml"
    fi
}

function create_ebbtide_flavor {
    if is_ebbtide_scheduler_enabled && [[ "$EBBTIDE_CREATE_FLAVOR" == "True" ]]; then
        openstack --os-cloud devstack-admin flavor show m1.preemptible >/dev/null 2>&1 ||
            openstack --os-cloud devstack-admin flavor create --ram 512 --disk 1 --vcpus 1 --property ebbtide:preemptible=true m1.preemptible
    fi
}

function stop_ebbtide {
    stop_process ebbtide-sch
    stop_process ebbtide-agent
}

function cleanup_ebbtide {
    sudo rm -rf "$EBBTIDE_CONF_DIR" "$EBBTIDE_STATE_DIR"
    sudo rm -f "$EBBTIDE_BIN_DIR/"{ebbtide-scheduler,ebbtide-agent,ebbtide,ebbtide-manage}
}

case "$1 ${2:-}" in
    "stack pre-install")
        echo_summary "Ebbtide: what the build needs"
        preinstall_ebbtide
        ;;
    "stack install")
        echo_summary "Ebbtide: building"
        install_ebbtide
        ;;
    "stack post-config")
        echo_summary "Ebbtide: configuring"
        if is_ebbtide_scheduler_enabled; then
            configure_ebbtide_scheduler
        fi
        if is_service_enabled ebbtide-agent && is_service_enabled n-cpu; then
            configure_ebbtide_agent
        fi
        ;;
    "stack extra")
        echo_summary "Ebbtide: starting in place of nova-scheduler"
        start_ebbtide
        register_ebbtide_api
        create_ebbtide_flavor
        ;;
    "unstack ")
        stop_ebbtide
        ;;
    "clean ")
        cleanup_ebbtide
        ;;
esac

$_EBBTIDE_XTRACE
