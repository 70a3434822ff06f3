#!/usr/bin/env bash
# The commands of devstack/openstack.

_stack_parse_up() {
    local sizes=() computes='' value
    while [ $# -gt 0 ]; do
        case $1 in
            --with|--schedulers|--computes|--size|--grace|--spawn-seconds|--destroy-seconds|--offset|--release|--neutron|--rpc-timeout|--sync-interval|--resources-interval|--filter)
                [ $# -ge 2 ] || { echo "devstack/openstack: $1 needs a value" >&2; return 2; }
                value=$2
                case $1 in
                    --with) STACK_WITH=$value ;;
                    --schedulers) STACK_SCHEDULERS=$value ;;
                    --computes) computes=$value ;;
                    --size) sizes+=("$value") ;;
                    --grace) STACK_GRACE_S=$value ;;
                    --spawn-seconds) STACK_SPAWN_S=$value ;;
                    --destroy-seconds) STACK_DESTROY_S=$value ;;
                    --offset) STACK_OFFSET=$value ;;
                    --release) STACK_RELEASE=$value ;;
                    --neutron) STACK_NEUTRON=$value ;;
                    --rpc-timeout) STACK_RPC_TIMEOUT=$value ;;
                    --filter) STACK_FILTERS+=,$value ;;
                    --sync-interval) STACK_SYNC_INTERVAL=$value ;;
                    --resources-interval) STACK_RESOURCES_INTERVAL=$value ;;
                esac
                shift ;;
            --notifications) STACK_NOTIFY=messagingv2 ;;
            --libvirt) STACK_LIBVIRT=1 ;;
            --cyborg) STACK_CYBORG=1 ;;
            --cinder) STACK_CINDER=1 ;;
            --debug) STACK_DEBUG=true ;;
            --durable) STACK_DURABLE=1 ;;
            --build-release) STACK_PROFILE=release ;;
            --fresh) up_fresh=1 ;;
            *) echo "devstack/openstack up: unknown option $1 (see --help)" >&2; return 2 ;;
        esac
        shift
    done
    case $STACK_WITH in ebbtide|nova-scheduler|none) ;; *) echo "devstack/openstack: --with takes ebbtide, nova-scheduler or none" >&2; return 2 ;; esac
    case $STACK_NEUTRON in stand-in|debian) ;; *) echo "devstack/openstack: --neutron takes stand-in or debian" >&2; return 2 ;; esac
    [ "$STACK_NEUTRON:$STACK_RELEASE" = debian:debian ] || [ "$STACK_NEUTRON" = stand-in ] ||
        { echo "devstack/openstack: --neutron debian needs --release debian" >&2; return 2; }
    [ -z "$STACK_CINDER" ] || [ "$STACK_RELEASE" = debian ] ||
        { echo "devstack/openstack: --cinder needs --release debian" >&2; return 2; }
    [ ${#sizes[@]} -eq 0 ] || STACK_COMPUTES=${sizes[*]}
    [ -z "$computes" ] || STACK_COMPUTES=$(_stack_sizes "$computes" $STACK_COMPUTES)
}

# _stack_sizes N SIZE…: N sizes; further ones than given grow a little over the last one, so that no
# two hosts weigh the same.
_stack_sizes() {
    local n=$1 vcpus memory disk i
    shift
    for ((i = 0; i < n; i++)); do
        if [ $# -gt 0 ]; then
            IFS=: read -r vcpus memory disk <<< "$1"
            shift
        else
            memory=$((memory + 900)) disk=$((disk + 7))
        fi
        printf '%s:%s:%s ' "$vcpus" "$memory" "$disk"
    done
}

stack_is_running() {
    local name
    for name in $(stack_names); do ! process_alive "$stack_run/$name.pid" || return 0; done
    return 1
}

stack_command_up() {
    local up_fresh=
    _stack_parse_up "$@" || return $?
    stack_t0=${EPOCHREALTIME//[!0-9]/}
    if stack_is_running; then
        stack_say "a stack runs in $stack_home already; it is ended first"
        (stack_load_options; stack_settings; stack_stop_all)
    fi
    [ -z "$up_fresh" ] || _stack_wipe
    # What `up` is told counts, and not what an earlier one was told; but its ports stand inside
    # databases that are kept.
    if [ -z "$STACK_OFFSET" ] && [ -d "$stack_var/mysql" ]; then STACK_OFFSET=$(stack_load_options; printf '%s' "$STACK_OFFSET"); fi
    ensure_packages rabbitmq mariadb openstack
    [ "$STACK_NEUTRON" != debian ] || ensure_packages neutron
    [ -z "$STACK_CINDER" ] || ensure_packages cinder
    stack_say "packages are in place"
    if [ "$STACK_WITH" = ebbtide ]; then
        stack_build_ebbtide
        stack_say "ebbtide-scheduler and ebbtide-agent are built"
    fi
    stack_libvirt_prepare
    mkdir -p "$stack_home" "$stack_cache"
    stack_choose_ports
    stack_settings
    stack_install_release
    [ -z "$STACK_CYBORG" ] || stack_install_cyborg
    stack_release
    stack_write_config
    stack_save_options
    stack_write_openrc
    trap 'status=$?; [ $status -eq 0 ] || { echo "devstack/openstack: bringing up has failed; ending what was started" >&2; stack_stop_all; }' EXIT
    stack_start_base
    stack_say "MariaDB answers"
    stack_databases
    stack_start_apis
    stack_start_nova
    [ "$STACK_WITH" = none ] || stack_start_schedulers
    stack_wait_for_nova
    [ "$STACK_WITH" = none ] || stack_wait_for 60 'the service record of every scheduler' '' stack_schedulers_are_up
    [ -z "$STACK_CYBORG" ] || stack_start_cyborg_agents
    "$stack_python" "$stack_tools/prepare.py"
    [ -z "$STACK_LIBVIRT" ] || "$stack_python" "$stack_tools/guest_image.py" "$(stack_guest_folder)"
    trap - EXIT
    stack_say "ready"
    stack_table
}

stack_table() {
    cat <<X

  Keystone     $OS_AUTH_URL      RabbitMQ   amqp://nova:nova@127.0.0.1:$port_amqp/
  Nova         http://127.0.0.1:$port_nova/v2.1    MariaDB    $stack_run/mysql.sock (root), 127.0.0.1:$port_mysql (stack/stack)
  Placement    http://127.0.0.1:$port_placement         Glance     http://127.0.0.1:$port_glance
  scheduler    $STACK_SCHEDULERS x $STACK_WITH, configuration $stack_etc/nova.conf
  logs         $stack_log

  source $stack_home/openrc
  openstack compute service list
  openstack server create --flavor small --image tiny --network none one
  # A preemptible server, which may be evacuated for a normal one:
  openstack server create --flavor large.preemptible --image tiny --network none cheap
  openstack server list --long
  ./devstack/openstack status
  ./devstack/openstack down
X
}

stack_command_status() {
    local name pid birth state
    [ -f "$stack_home/options" ] || { echo "No stack in $stack_home."; return 0; }
    stack_load_options
    stack_settings
    printf '%-24s %8s %-8s %10s %10s\n' process pid state memory CPU
    for name in $(stack_names); do
        read -r pid birth < "$stack_run/$name.pid"
        state=ended
        ! process_alive "$stack_run/$name.pid" || state=runs
        printf '%-24s %8s %-8s %10s %10s\n' "$name" "$pid" "$state" \
            "$(ps -o rss= -g "$pid" 2>/dev/null | awk '{s += $1} END {printf "%d MiB", s / 1024}')" \
            "$(ps -o cputimes= -g "$pid" 2>/dev/null | awk '{s += $1} END {printf "%d s", s}')"
    done
    ! process_alive "$stack_run/nova-api.pid" || "$stack_python" "$stack_tools/status.py"
}

_stack_wipe() {
    rm -rf -- "$stack_var" "$stack_run" "$stack_log" "$stack_etc"
}

stack_command_down() {
    local ended
    if [ -f "$stack_home/options" ]; then
        stack_load_options
        stack_settings
        ended=$(stack_names | tr '\n' ' ')
        stack_stop_all
        if [ -n "$ended" ]; then echo "Ended: $ended"; else echo "Nothing was running."; fi
    else
        echo "No stack in $stack_home."
    fi
    case ${1:-} in
        '') ;;
        --wipe) _stack_wipe; rm -f -- "$stack_home/options" ;;
        *) echo "devstack/openstack down: unknown option $1 (use --wipe)" >&2; return 2 ;;
    esac
}

# `run COMMAND…`: a command with the stack's variables, for tools.
stack_command_run() {
    stack_load_options
    stack_settings
    stack_release
    # As `test` has it, where it is built: chapters of the story run our commands.
    [ ! -x "$(stack_ebbtide_bin)/ebbtide-manage" ] || export STACK_EBBTIDE="${STACK_EBBTIDE:-$(stack_ebbtide_bin)/ebbtide-manage}"
    # A program takes the place of this shell, so that a signal reaches it.
    if [ "$(type -t "$1")" = function ]; then "$@"; else exec "$@"; fi
}

# stack_tool NAME.py ARGUMENT…
stack_tool() {
    local tool=$1
    shift
    "$stack_python" "$stack_tools/$tool" "$@"
}
