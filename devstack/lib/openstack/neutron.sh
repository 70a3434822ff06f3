#!/usr/bin/env bash
# Debian's Neutron: its API with the ML2 plugin, routers and QoS, without agents. Computes on the
# fake driver plug nothing; a mechanism driver of ours binds every port. Networks are of type local;
# an administrator makes a flat one on any physical network, for ports with minimum bandwidth.

_stack_neutron_conf() { cat <<X
[DEFAULT]
log_file = $stack_log/neutron.log
debug = $STACK_DEBUG
bind_host = 127.0.0.1
bind_port = $port_neutron
state_path = $stack_var/neutron
transport_url = rabbit://nova:nova@127.0.0.1:$port_amqp/
api_paste_config = /usr/share/neutron-common/api-paste.ini
core_plugin = ml2
service_plugins = router,qos
api_workers = 1
rpc_workers = 0
rpc_state_report_workers = 0
notify_nova_on_port_status_changes = true
notify_nova_on_port_data_changes = true
[ml2]
type_drivers = local,flat
tenant_network_types = local
mechanism_drivers = stack_ports
extension_drivers = port_security,qos
[ml2_type_flat]
flat_networks = *
[quotas]
quota_network = -1
quota_subnet = -1
quota_port = -1
quota_router = -1
quota_floatingip = -1
quota_security_group = -1
quota_security_group_rule = -1
[database]
connection = $(_stack_db neutron)
[oslo_concurrency]
lock_path = $stack_var/neutron/lock
[placement]
$(_stack_client)
[nova]
$(_stack_client)
$(_stack_authtoken neutron)
X
}

# Neutron finds drivers by the entry points of installed packages.
_stack_neutron_driver() {
    local info=$stack_var/neutron/path/stack_ports-1.dist-info
    mkdir -p "$info"
    cp -- "$stack_tools/neutron/stack_ports.py" "$stack_var/neutron/path/"
    printf 'Metadata-Version: 2.1\nName: stack_ports\nVersion: 1\n' > "$info/METADATA"
    printf '[neutron.ml2.mechanism_drivers]\nstack_ports = stack_ports:BindEverywhere\n' \
        > "$info/entry_points.txt"
}

# The tables, or a dump of them that an earlier run of the same version has left.
_stack_neutron_database() {
    local seed said=$stack_log/db-sync-neutron.out
    ! stack_sql -N -e 'show databases' | grep -qx neutron || return 0
    seed=$stack_cache/seed-neutron-$(dpkg-query -W -f '${Version}' neutron-common).sql.gz
    if [ -f "$seed" ]; then
        zcat "$seed" | stack_sql
        return
    fi
    stack_sql -e 'create database neutron character set utf8'
    "$stack_bin/neutron-db-manage" --config-file "$stack_etc/neutron.conf" upgrade head \
        > "$said" 2>&1 || { tail -n 20 "$said" >&2; return 1; }
    mariadb-dump --no-defaults -uroot -S "$stack_run/mysql.sock" --databases neutron |
        gzip > "$seed.$$"
    mv "$seed.$$" "$seed"
}

stack_start_neutron() {
    mkdir -p "$stack_var/neutron"
    _stack_neutron_conf > "$stack_etc/neutron.conf"
    _stack_neutron_driver
    _stack_neutron_database
    stack_start neutron env PYTHONPATH="$stack_var/neutron/path" \
        "$stack_bin/neutron-server" --config-file "$stack_etc/neutron.conf"
}
