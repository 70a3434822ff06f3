#!/usr/bin/env bash
# Cyborg from PyPI, which Debian does not have: its API, its conductor, and an agent for each fake
# compute. Version 17: 9, of the same release as Debian's Nova, lost connections to the database
# with the libraries of its time, and hung. The agents' driver is Cyborg's own fake one with two
# cards, of one accelerator each, on a host (devstack/openstack-tools/cyborg/stack_cards.py).

_stack_cyborg_pins=$PWD/devstack/lib/openstack/cyborg.txt

_stack_cyborg_conf() { cat <<X
[DEFAULT]
debug = $STACK_DEBUG
state_path = $stack_var/cyborg
transport_url = rabbit://nova:nova@127.0.0.1:$port_amqp/
[api]
api_paste_config = $stack_cyborg/etc/cyborg/api-paste.ini
[agent]
enabled_drivers = stack_cards
[database]
connection = $(_stack_db cyborg)
[placement]
$(_stack_client cyborg)
[nova]
$(_stack_client cyborg)
[oslo_concurrency]
lock_path = $stack_var/cyborg/lock
$(_stack_authtoken cyborg)
X
}

# What Nova needs in nova.conf.
stack_cyborg_section() { cat <<X
[cyborg]
endpoint_override = http://127.0.0.1:$port_cyborg/v2
X
}

_stack_cyborg_application() { cat <<X
virtualenv = $stack_cyborg
module = cyborg.wsgi.api:application
pyargv = --config-file $stack_etc/cyborg.conf --log-file $stack_log/cyborg-api.log
X
}

# Cyborg in a virtual environment, once.
stack_install_cyborg() {
    stack_cyborg=$stack_cache/cyborg
    stack_pip_environment "$stack_cyborg" "$_stack_cyborg_pins" Cyborg
}

# Cyborg finds drivers by the entry points of installed packages.
_stack_cyborg_driver() {
    stack_entry_point "$stack_var/cyborg/path" "$stack_tools/cyborg/stack_cards.py" \
        cyborg.accelerator.driver stack_cards:Cards
}

# _stack_start_cyborg_part NAME PROGRAM ARGUMENT…
_stack_start_cyborg_part() {
    local name=$1 program=$2
    shift 2
    stack_start "$name" env PYTHONPATH="$stack_var/cyborg/path" "$stack_cyborg/bin/$program" \
        --config-file "$stack_etc/cyborg.conf" "$@" --log-file "$stack_log/$name.log"
}

stack_start_cyborg() {
    mkdir -p "$stack_var/cyborg"
    _stack_cyborg_conf > "$stack_etc/cyborg.conf"
    _stack_cyborg_driver
    stack_further_database cyborg "$(sed -n 's/^openstack-cyborg==//p' "$_stack_cyborg_pins")" \
        "$stack_cyborg/bin/cyborg-dbsync" --config-file "$stack_etc/cyborg.conf" upgrade
    _stack_start_cyborg_part cyborg-conductor cyborg-conductor
    _stack_uwsgi_ini cyborg "$port_cyborg" 2 "$(_stack_cyborg_application)"
    stack_start cyborg-api uwsgi --ini "$stack_etc/cyborg-uwsgi.ini"
}

# When the computes are in Placement: the conductor writes accelerators below them.
stack_start_cyborg_agents() {
    local n
    stack_wait_for 90 'Cyborg' cyborg-api stack_port_is_open "$port_cyborg"
    for ((n = 1; n <= $(_stack_fakes); n++)); do
        printf '[DEFAULT]\nhost = compute%s\n[agent]\nresource_provider_name = compute%s\n' \
            "$n" "$n" > "$stack_etc/cyborg-agent-$n.conf"
        _stack_start_cyborg_part "cyborg-agent-$n" cyborg-agent \
            --config-file "$stack_etc/cyborg-agent-$n.conf"
    done
    stack_wait_for 120 'the accelerators of all computes' cyborg-conductor _stack_all_accelerators
    stack_say "Cyborg has written the accelerators of $(_stack_fakes) computes to Placement"
}

# Each compute has its two cards there.
_stack_all_accelerators() {
    [ "$(stack_sql -N -e "select count(*) from placement.inventories i
        join placement.resource_providers p on i.resource_provider_id = p.id
        where p.name regexp '^compute[0-9]+_FakeDevice[0-9]+$'")" -ge $((2 * $(_stack_fakes))) ]
}
