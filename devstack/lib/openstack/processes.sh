#!/usr/bin/env bash
# Processes of the stack: each has a command file ($stack_run/NAME.command) with which it can be
# started again, an id with time of birth ($stack_run/NAME.pid), and a log ($stack_log/NAME.out).
# `down` ends what is written there and nothing else.

# The second is the whole line: what was done, after how many seconds since the beginning.
stack_say() {
    local now=${EPOCHREALTIME//[!0-9]/} ms
    ms=$(( (now - ${stack_t0:=$now}) / 1000 ))
    printf '%5d.%01ds  %s\n' $((ms / 1000)) $((ms % 1000 / 100)) "$*"
}

# stack_entry_point FOLDER FILE GROUP OBJECT: a module of ours in FOLDER, for PYTHONPATH, as an
# installed package whose entry point of its own name in GROUP is OBJECT.
stack_entry_point() {
    local name info
    name=$(basename "$2" .py)
    info=$1/$name-1.dist-info
    mkdir -p "$info"
    cp -- "$2" "$1/"
    printf 'Metadata-Version: 2.1\nName: %s\nVersion: 1\n' "$name" > "$info/METADATA"
    printf '[%s]\n%s = %s\n' "$3" "$name" "$4" > "$info/entry_points.txt"
}

# stack_start NAME COMMAND…: in its own session; nothing happens when it runs already.
stack_start() {
    local name=$1
    shift
    ! process_alive "$stack_run/$name.pid" || return 0
    {
        echo '#!/bin/bash'
        # The variables that a restart by a tool must not depend on.
        for variable in PATH PYTHONDONTWRITEBYTECODE PYTHONWARNINGS ERL_EPMD_PORT ERL_EPMD_ADDRESS RABBITMQ_NODENAME RABBITMQ_HOME_DIR; do
            printf 'export %s=%q\n' "$variable" "${!variable}"
        done
        printf 'cd %q && ulimit -n 65536 2>/dev/null\n' "$stack_var"
        printf 'exec %s\n' "${*@Q}"
    } > "$stack_run/$name.command"
    stack_start_again "$name"
}

# stack_start_again NAME: the same command as last time.
stack_start_again() {
    setsid bash "$stack_run/$1.command" >> "$stack_log/$1.out" 2>&1 < /dev/null &
    local pid=$!
    printf '%s %s\n' "$pid" "$(process_birth "$pid")" > "$stack_run/$1.pid"
    disown "$pid"
}

# stack_stop NAME [SECONDS]: TERM, and KILL to its process group when it has not ended after SECONDS
# (default 15).
stack_stop() {
    local file=$stack_run/$1.pid pid birth tries
    [ -f "$file" ] || return 0
    read -r pid birth < "$file"
    if process_alive "$file"; then
        kill -TERM "$pid" 2>/dev/null || true
        tries=$((${2:-15} * 10))
        while process_alive "$file" && [ "$tries" -gt 0 ]; do sleep 0.1; tries=$((tries - 1)); done
        ! process_alive "$file" || kill -KILL -- "-$pid" 2>/dev/null || true
    fi
    rm -f "$file"
}

# stack_kill NAME: KILL to the process group, as a crash is; `stack_start_again` starts the same.
stack_kill() {
    local file=$stack_run/$1.pid pid birth
    process_alive "$file" || { echo "devstack/openstack: no process $1 runs" >&2; return 1; }
    read -r pid birth < "$file"
    kill -KILL -- "-$pid"
    while process_alive "$file"; do sleep 0.1; done
}

# The names of all processes that were started and not stopped, one a line.
stack_names() { (cd "$stack_run" 2>/dev/null && for f in *.pid; do [ -e "$f" ] && echo "${f%.pid}"; done); return 0; }

# stack_stop_each SECONDS NAME…: ends several at the same time. Waits for them and for nothing else
# that this shell has begun.
stack_stop_each() {
    local seconds=$1 name ends=()
    shift
    for name; do stack_stop "$name" $seconds & ends+=("$!"); done
    [ ${#ends[@]} -eq 0 ] || wait "${ends[@]}"
}

# stack_stop_all: first Nova and ours, then the API services, then what they all stand on.
stack_stop_all() {
    local base='^(rabbit|epmd|memcached|mysql)$' nova='^(nova-|ebbtide-)'
    # shellcheck disable=SC2046 # lists of names
    stack_stop_each '' $(stack_names | grep -E "$nova")
    # shellcheck disable=SC2046
    stack_stop_each '' $(stack_names | grep -vE "$base|^libvirt-node\$")
    # Guests and all: what started them ignores TERM while it has a child.
    stack_stop libvirt-node 0
    stack_stop_each 30 rabbit memcached mysql
    stack_stop epmd
}

# stack_wait_for SECONDS "WHAT" PROCESS COMMAND…: until COMMAND succeeds. PROCESS ("" for none) must
# live all the while.
stack_wait_for() {
    local seconds=$1 what=$2 process=$3 end=$((SECONDS + $1))
    shift 3
    until "$@" >/dev/null 2>&1; do
        if [ -n "$process" ] && ! process_alive "$stack_run/$process.pid"; then
            echo "devstack/openstack: $process has ended while waiting for $what; the end of its log:" >&2
            stack_show_log "$process"
            return 1
        fi
        if [ "$SECONDS" -ge "$end" ]; then
            echo "devstack/openstack: after $seconds s still waiting for $what" >&2
            [ -z "$process" ] || stack_show_log "$process"
            return 1
        fi
        sleep 0.2
    done
}

stack_show_log() {
    local log
    for log in "$stack_log/$1.out" "$stack_log/$1.log"; do
        [ ! -s "$log" ] || { echo "--- $log"; tail -n 15 "$log"; } >&2
    done
}

stack_sql() { mariadb --no-defaults -uroot -S "$stack_run/mysql.sock" "$@"; }

stack_rabbitctl() {
    HOME=$stack_var/rabbit RABBITMQ_MNESIA_BASE=$stack_var/rabbit/mnesia /usr/lib/rabbitmq/bin/rabbitmqctl \
        --erlang-cookie "$(cat "$stack_var/rabbit/.erlang.cookie")" -q "$@"
}
