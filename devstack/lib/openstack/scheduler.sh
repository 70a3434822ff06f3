#!/usr/bin/env bash
# The program under test: ours or the original. Our command line and configuration stand here and
# nowhere else.

# What ours needs in nova.conf beside Nova's own sections; the original ignores it.
stack_ebbtide_section() { cat <<X
[ebbtide]
connection = $(_stack_db ebbtide)
default_grace = $STACK_GRACE_S
X
    # Services of 27 and 28 report the same version, so the operator says which one this is. It is
    # told from the services where it can be.
    case $STACK_RELEASE in 27|28) echo "nova_release = $STACK_RELEASE" ;; esac
}

stack_ebbtide_bin() {
    if [ -n "${EBBTIDE_BIN_DIR:-}" ]; then echo "$EBBTIDE_BIN_DIR"
    elif [ "$STACK_PROFILE" = release ]; then echo "$stack_target/release"
    else echo "$stack_target/debug"; fi
}

# Builds ours, unless $EBBTIDE_BIN_DIR says where it is.
stack_build_ebbtide() {
    local flags=()
    [ -z "${EBBTIDE_BIN_DIR:-}" ] || return 0
    [ "$STACK_PROFILE" != release ] || flags=(--release)
    command -v cargo >/dev/null || { echo "devstack/openstack: cargo is missing: install Rust from https://rustup.rs" >&2; return 1; }
    cargo build --quiet --locked "${flags[@]}" -p ebbtide-scheduler -p ebbtide-agent
    [ "$STACK_PROFILE" != release ] || bash devstack/lib/no-fail-points.sh "$stack_target"/release/ebbtide-{scheduler,agent}
}

# stack_scheduler_command WITH N [CONFIG…]: the command of scheduler N, with further configuration
# files.
stack_scheduler_command() {
    local with=$1 n=$2 config command
    shift 2
    case $with in
        nova-scheduler) command=("$stack_bin/nova-scheduler") ;;
        ebbtide)
            # Under the name that health checks of deployments look for.
            mkdir -p "$stack_home/bin"
            ln -sfn "$(stack_ebbtide_bin)/ebbtide-scheduler" "$stack_home/bin/nova-scheduler"
            command=("$stack_home/bin/nova-scheduler") ;;
    esac
    for config in "$stack_etc/nova.conf" "$stack_etc/scheduler-$n.conf" "$@"; do command+=(--config-file "$config"); done
    printf '%s\n' "${command[@]}"
}

# stack_start_scheduler WITH N [CONFIG…]: processes nova-scheduler-N or ebbtide-scheduler-N.
stack_start_scheduler() {
    local name=nova-scheduler-$2 command
    [ "$1" != ebbtide ] || name=ebbtide-scheduler-$2
    mapfile -t command < <(stack_scheduler_command "$@")
    stack_start "$name" "${command[@]}"
}

# All schedulers of this stack, and our agent beside them.
stack_start_schedulers() {
    local n
    for ((n = 1; n <= STACK_SCHEDULERS; n++)); do stack_start_scheduler "$STACK_WITH" "$n" "$@"; done
    [ "$STACK_WITH" != ebbtide ] || stack_start_agent
}

# One agent with the driver `nova` for all hosts.
stack_start_agent() {
    mkdir -p "$stack_var/ebbtide-agent"
    (umask 077; cat > "$stack_etc/ebbtide-agent.toml" <<X
host = "agent"
state_dir = "$stack_var/ebbtide-agent"
[agent]
heartbeat_seconds = 5.0
[bus]
urls = ["amqp://nova:nova@127.0.0.1:$port_amqp/%2f"]
[driver]
kind = "nova"
[driver.nova]
hosts = ["*"]
nova_conf = "$stack_etc/nova.conf"
refresh_seconds = 2.0
watch_seconds = 0.5
poll_seconds = 0.2
hosts_seconds = 5.0
X
    )
    stack_start ebbtide-agent "$(stack_ebbtide_bin)/ebbtide-agent" run --config "$stack_etc/ebbtide-agent.toml"
}

stack_stop_schedulers() {
    # shellcheck disable=SC2046 # a list of names
    stack_stop_each '' $(stack_names | grep -E '^(nova|ebbtide)-scheduler-|^ebbtide-agent')
}

# A scheduler is up when its service record says so.
stack_schedulers_are_up() {
    [ "$(stack_sql -N -e "select count(*) from nova_cell1.services where \`binary\` = 'nova-scheduler' and deleted = 0
        and host like 'scheduler%' and updated_at > utc_timestamp() - interval 60 second")" -ge "$STACK_SCHEDULERS" ]
}

# For the benchmark on full hosts that are rows: no agent will answer, so only the decision and the
# swap are waited for.
stack_ebbtide_full_conf() { cat <<X
[ebbtide]
reply_when = at_once
X
}

# A ledger without rows, while no scheduler runs.
stack_fresh_ledger() {
    stack_sql -e 'drop database if exists ebbtide; create database ebbtide character set utf8mb4'
}
