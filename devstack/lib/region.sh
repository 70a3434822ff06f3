#!/usr/bin/env bash
# What up, down and test share: where a local region lives, and how its processes are started and
# ended.
#
# Every process has a file $region_dir/pid/NAME with its process id and the time at which it was
# started (from /proc), so that down never ends a stranger that got the same id later.

. devstack/lib/process.sh

region_dir=${EBBTIDE_DEVSTACK_DIR:-$PWD/.devstack}
region_target=${CARGO_TARGET_DIR:-$PWD/target}
region_bin=$region_target/debug

say() { printf '%s\n' "==> $*"; }

# One text value of a flat JSON file that we wrote ourselves. No JSON program is needed for that.
region_json() {
    sed -n 's/.*"'"$2"'": *"\([^"]*\)".*/\1/p' "$1" | head -n 1
}

region_is_running() {
    local file
    for file in "$region_dir"/pid/*; do
        [ -e "$file" ] && process_alive "$file" && return 0
    done
    return 1
}

region_build() {
    # WebAssembly's compiler takes minutes to build: only who wants plugins waits for it.
    local flags=(--no-default-features)
    [ -z "${plugins:-}" ] || flags=()
    if [ "$1" = release ]; then
        flags+=(--release)
        region_bin=$region_target/release
    fi
    command -v cargo >/dev/null || { echo "devstack: cargo is missing: install Rust from https://rustup.rs" >&2; return 1; }
    command -v cc >/dev/null || { echo "devstack: a C compiler is missing: apt-get install gcc libc6-dev" >&2; return 1; }
    say "Building (the first time takes a few minutes)."
    cargo build --quiet --locked "${flags[@]}" -p ebbtide-scheduler -p ebbtide-agent -p ebbtide-cli -p ebbtide-manage -p ebbtide-lab -p ebbtide-harness -p ebbtide-demo -p ebbtide-batch-service
}

# region_start NAME COMMAND…: in the background, with a log of its own, not tied to this terminal.
region_start() {
    local name=$1
    shift
    mkdir -p "$region_dir/pid" "$region_dir/log"
    setsid "$@" > "$region_dir/log/$name.log" 2>&1 < /dev/null &
    local pid=$!
    printf '%s %s\n' "$pid" "$(process_birth "$pid")" > "$region_dir/pid/$name"
    disown "$pid"
}

# region_wait_for FILE NAME: until the process NAME has written FILE; fails if the process ends or
# after a minute.
region_wait_for() {
    local tries=0
    until [ -s "$1" ]; do
        process_alive "$region_dir/pid/$2" || { echo "devstack: $2 has ended; its log says why:" >&2; return 1; }
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || { echo "devstack: $2 is not ready after a minute" >&2; return 1; }
        sleep 0.1
    done
}

# region_hosts N PATTERN: their names, one a line: host-A, host-B… or names by the pattern, where
# {n} counts from 0, {server} is n/2 and {numa} is n%2.
region_hosts() {
    local n name letters=ABCDEFGHIJKLMNOPQRSTUVWXYZ
    for ((n = 0; n < $1; n++)); do
        if [ -n "$2" ]; then
            name=${2//\{n\}/$n}
            name=${name//\{server\}/$((n / 2))}
            name=${name//\{numa\}/$((n % 2))}
        elif [ "$1" -le 26 ]; then
            name=host-${letters:n:1}
        else
            name=$(printf 'host-%03d' "$n")
        fi
        printf '%s\n' "$name"
    done
}

# region_init AMQP HOST…: the configuration, and logins to the broker that let each agent speak for
# its own host only.
region_init() {
    local amqp=$1 hosts=()
    shift
    hosts=("${@/#/--host=}")
    "$region_bin/ebbtide-manage" --quiet init "$region_dir" --open --listen 127.0.0.1:0 --driver simulated --broker "$amqp" "${hosts[@]}" >/dev/null
    "$region_dir/services/rabbitmq/rabbitmqctl" import_definitions "$region_dir/broker/definitions.json" >/dev/null
}

# region_start_scheduler POLICY MARKET: with a market if MARKET is not empty, whose prices can be
# watched.
region_start_scheduler() {
    cat >> "$region_dir/scheduler/scheduler.toml" <<EOF
[engine]
policy = "$1"
EOF
    [ -z "$2" ] || cat >> "$region_dir/scheduler/scheduler.toml" <<EOF
[region.market]
enabled = true
interval_seconds = 10
steepness = 2
step_percent = 50
EOF
    region_start scheduler "$region_bin/ebbtide-scheduler" --config "$region_dir/scheduler/scheduler.toml" --ready-file "$region_dir/ready.json"
    region_wait_for "$region_dir/ready.json" scheduler
}

# region_start_agents VCPUS RAM_MB DISK_GB ORDERED INSTANT HOST…: one after another if ORDERED is
# not empty.
region_start_agents() {
    local vcpus=$1 ram_mb=$2 disk_gb=$3 ordered=$4 instant=$5 name times=
    shift 5
    [ -z "$instant" ] || times=$(printf '%s_seconds = 0.0\n' start notice terminate stop hibernate delete)
    for name in "$@"; do
        sed -i "s/^inventory = .*/inventory = { VCPU = $vcpus, MEMORY_MB = $ram_mb, DISK_GB = $disk_gb }/" "$region_dir/agents/$name/agent.toml"
        cat >> "$region_dir/agents/$name/agent.toml" <<EOF
$times
[agent]
heartbeat_seconds = 5.0
EOF
        region_start "agent-$name" "$region_bin/ebbtide-agent" run --config "$region_dir/agents/$name/agent.toml"
        # Hosts come in the order of their registration where everything else is equal (and always
        # with first-fit).
        [ -z "$ordered" ] || region_wait_for_host "$name"
    done
}

region_wait_for_host() {
    local tries=0 endpoint
    endpoint=http://$(region_json "$region_dir/ready.json" grpc)
    until "$region_bin/ebbtide" --endpoint "$endpoint" host show "$1" >/dev/null 2>&1; do
        process_alive "$region_dir/pid/agent-$1" || { echo "devstack: the agent of $1 has ended; its log says why:" >&2; return 1; }
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || { echo "devstack: host $1 has not registered after a minute" >&2; return 1; }
        sleep 0.1
    done
}

# region_wait_for_hosts N: until so many hosts are up.
region_wait_for_hosts() {
    local tries=0 endpoint
    endpoint=http://$(region_json "$region_dir/ready.json" grpc)
    until [ "$("$region_bin/ebbtide" --endpoint "$endpoint" host list -o value -c name -c health 2>/dev/null | grep -c ' up$')" -ge "$1" ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 600 ] || { echo "devstack: not all of $1 hosts are up after a minute" >&2; return 1; }
        sleep 0.1
    done
}

region_show_logs() {
    local log
    for log in "$region_dir"/log/*.log; do
        [ -s "$log" ] && { printf -- '--- %s\n' "$log"; tail -n 15 "$log"; } >&2
    done
    return 0
}

region_write_env() {
    cat > "$region_dir/env" <<EOF
export PATH="$region_bin:\$PATH"
export EBBTIDE_ENDPOINT="$1"
EOF
}

# Ends agents first, then the scheduler, then the broker; prints what was ended.
region_stop() {
    local file ended=() pid birth tries
    for file in "$region_dir"/pid/agent-* "$region_dir"/pid/embedded "$region_dir"/pid/scheduler "$region_dir"/pid/services; do
        [ -e "$file" ] || continue
        if process_alive "$file"; then
            read -r pid birth < "$file"
            kill -TERM "$pid" 2>/dev/null || true
            ended+=("$(basename "$file")")
        fi
    done
    for file in "$region_dir"/pid/*; do
        [ -e "$file" ] || continue
        tries=0
        while process_alive "$file" && [ "$tries" -lt 200 ]; do
            sleep 0.1
            tries=$((tries + 1))
        done
        if process_alive "$file"; then
            read -r pid birth < "$file"
            kill -KILL "$pid" 2>/dev/null || true
        fi
        rm -f "$file"
    done
    printf '%s' "${ended[*]:-}"
}
