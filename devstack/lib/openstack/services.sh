#!/usr/bin/env bash
# OpenStack's own services: Keystone, Placement, Glance, something in Neutron's place, Nova's API,
# conductor and computes.

stack_start_apis() {
    stack_start keystone env OS_KEYSTONE_CONFIG_FILES="$stack_etc/keystone.conf" uwsgi --ini "$stack_etc/keystone-uwsgi.ini"
    stack_start placement env OS_PLACEMENT_CONFIG_DIR="$stack_etc" uwsgi --ini "$stack_etc/placement-uwsgi.ini"
    if [ "$STACK_RELEASE" = debian ] || [ -x "$stack_bin/glance-wsgi-api" ]; then
        # Its program for uwsgi wants more configuration files than this cloud has.
        stack_start glance "$stack_bin/glance-api" --config-file "$stack_etc/glance-api.conf"
    else
        stack_start glance env OS_GLANCE_CONFIG_DIR="$stack_etc" uwsgi --ini "$stack_etc/glance-uwsgi.ini"
    fi
    # Nova's API answers 500 to everything without a network service in the catalog, even for
    # servers without networks.
    [ "$STACK_NEUTRON" = debian ] || stack_start neutron "$stack_python" "$stack_tools/fake_neutron.py" "$port_neutron" ${STACK_LIBVIRT:+"$stack_libvirt_bridge"}
    stack_wait_for 90 'Keystone' keystone curl -sf "$OS_AUTH_URL"
    "$stack_python" "$stack_tools/bootstrap.py" nova="$port_nova" placement="$port_placement" glance="$port_glance" neutron="$port_neutron" \
        ebbtide="$port_sched_api" ${STACK_CYBORG:+cyborg="$port_cyborg"} ${STACK_CINDER:+cinder="$port_cinder"}
    stack_wait_for 90 'RabbitMQ' rabbit stack_port_is_open "$port_amqp"
    [ "$STACK_NEUTRON" != debian ] || stack_start_neutron
    [ -z "$STACK_CYBORG" ] || stack_start_cyborg
    [ -z "$STACK_CINDER" ] || stack_start_cinder
    stack_say "Keystone and RabbitMQ answer"
}

# stack_start_compute N VCPUS:MEMORY_MB:DISK_GB
stack_start_compute() {
    local vcpus memory disk
    IFS=: read -r vcpus memory disk <<< "$2"
    stack_start "nova-compute-$1" env FAKE_HOST="compute$1" FAKE_STATE_PATH="$stack_var/nova/compute-$1" FAKE_VCPUS="$vcpus" FAKE_MEMORY_MB="$memory" FAKE_LOCAL_GB="$disk" \
        FAKE_SPAWN_S="$STACK_SPAWN_S" FAKE_DESTROY_S="$STACK_DESTROY_S" "$stack_nova_python" "$stack_tools/fake_compute.py" \
        --config-file "$stack_etc/nova-compute.conf" --config-file "$stack_etc/nova-compute-$1.conf" --log-file "$stack_log/nova-compute-$1.log"
}

stack_start_nova() {
    local patching=()
    # Records of an earlier life say nothing about this one.
    stack_nova_since=$(stack_sql -N -e 'select utc_timestamp()')
    stack_start nova-conductor "$stack_bin/nova-conductor" --config-file "$stack_etc/nova.conf" --log-file "$stack_log/nova-conductor.log"
    if [ "$STACK_RELEASE" = debian ]; then
        stack_start nova-api "$stack_bin/nova-api" --config-file "$stack_etc/nova.conf" --log-file "$stack_log/nova-api.log"
    else
        # Since 32 Nova has no program for its API. In the older ones, eventlet of their time
        # forgets a request now and then that looks whether a connection is still there (select
        # without a wait), so their API runs without it.
        [[ $STACK_RELEASE -ge 32 ]] || patching=(OS_NOVA_DISABLE_EVENTLET_PATCHING=1)
        stack_start nova-api env OS_NOVA_CONFIG_DIR="$stack_etc" "${patching[@]}" \
            uwsgi --ini "$stack_etc/nova-api-uwsgi.ini"
    fi
    stack_start_computes
}

stack_start_computes() {
    local size n=0
    for size in $STACK_COMPUTES; do
        n=$((n + 1))
        stack_start_compute "$n" "$size"
    done
    [ -z "$STACK_LIBVIRT" ] || stack_start_libvirt
}

_stack_all_registered() {
    [ "$(stack_sql -N -e "select count(*) from nova_cell1.compute_nodes where deleted = 0 and host regexp '^compute[0-9]+$'")" -ge "$1" ] &&
        [ "$(stack_sql -N -e "select count(*) from placement.inventories i join placement.resource_providers p
            on i.resource_provider_id = p.id where p.name regexp '^compute[0-9]+$'")" -ge "$((3 * $1))" ] &&
        [ "$(stack_sql -N -e "select count(*) from nova_cell1.services where deleted = 0 and host regexp '^compute[0-9]+$'
            and coalesce(last_seen_up, created_at) >= '$stack_nova_since'")" -ge "$1" ]
}

_stack_fakes() { set -- $STACK_COMPUTES; echo $#; }
_stack_computes() { echo $(($(_stack_fakes) + ${STACK_LIBVIRT:-0})); }

stack_wait_for_nova() {
    local unmapped
    stack_wait_for 90 'Nova API' nova-api stack_port_is_open "$port_nova"
    stack_wait_for 90 'Placement' placement stack_port_is_open "$port_placement"
    stack_wait_for 90 'Glance' glance stack_port_is_open "$port_glance"
    stack_wait_for 90 'Neutron' neutron stack_port_is_open "$port_neutron"
    [ -z "$STACK_CINDER" ] || stack_wait_for 90 'Cinder' cinder-api stack_port_is_open "$port_cinder"
    stack_wait_for 150 'all computes to report' nova-compute-1 _stack_all_registered "$(_stack_computes)"
    unmapped=$(stack_sql -N -e "select count(*) from nova_cell1.compute_nodes where deleted = 0 and host not in (select host from nova_api.host_mappings)")
    if [ "$unmapped" != 0 ]; then
        "$stack_bin/nova-manage" --config-file "$stack_etc/nova.conf" cell_v2 discover_hosts > "$stack_log/discover-hosts.out" 2>&1
    fi
    stack_say "$(_stack_computes) computes are registered and mapped to their cell"
}
