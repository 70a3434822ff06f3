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
$(_stack_client nova)
[nova]
$(_stack_client nova)
$(_stack_authtoken neutron)
X
}

# Neutron finds drivers by the entry points of installed packages.
_stack_neutron_driver() {
    stack_entry_point "$stack_var/neutron/path" "$stack_tools/neutron/stack_ports.py" \
        neutron.ml2.mechanism_drivers stack_ports:BindEverywhere
}

stack_start_neutron() {
    mkdir -p "$stack_var/neutron"
    _stack_neutron_conf > "$stack_etc/neutron.conf"
    _stack_neutron_driver
    stack_further_database neutron "$(dpkg-query -W -f '${Version}' neutron-common)" \
        "$stack_bin/neutron-db-manage" --config-file "$stack_etc/neutron.conf" upgrade head
    stack_start neutron env PYTHONPATH="$stack_var/neutron/path" \
        "$stack_bin/neutron-server" --config-file "$stack_etc/neutron.conf"
}
