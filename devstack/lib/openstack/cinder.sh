#!/usr/bin/env bash
# Debian's Cinder: its API, its scheduler and a volume service. The volume service runs a driver of
# ours (devstack/openstack-tools/cinder/stack_volumes.py), which keeps each volume in a file and
# exports nothing: computes on the fake driver open no volume. One backend is in the zone `nova`,
# as all hosts are, and one in the zone `east`, which a test gives to a host.
#
# Debian's package cinder-volume would bring LVM and an iSCSI target; the program itself is in
# python3-cinder.

_stack_cinder_conf() { cat <<X
[DEFAULT]
debug = $STACK_DEBUG
host = cinder
my_ip = 127.0.0.1
state_path = $stack_var/cinder
transport_url = rabbit://nova:nova@127.0.0.1:$port_amqp/
rpc_response_timeout = $STACK_RPC_TIMEOUT
api_paste_config = /usr/share/cinder-common/api-paste.ini
glance_api_servers = http://127.0.0.1:$port_glance
enabled_backends = files,files-east
quota_volumes = -1
quota_snapshots = -1
quota_gigabytes = -1
[files]
volume_driver = stack_volumes.Files
volume_backend_name = files
[files-east]
volume_driver = stack_volumes.Files
volume_backend_name = files-east
backend_availability_zone = east
[database]
connection = $(_stack_db cinder)
[nova]
$(_stack_client cinder)
[oslo_concurrency]
lock_path = $stack_var/cinder/lock
$(_stack_authtoken cinder)
X
}

# What Nova needs in nova.conf.
stack_cinder_section() { cat <<X
[cinder]
$(_stack_client nova)
X
}

_stack_cinder_application() { cat <<X
wsgi-file = /usr/bin/cinder-wsgi
pyargv = --config-file $stack_etc/cinder.conf --log-file $stack_log/cinder-api.log
X
}

# _stack_start_cinder_part PART: the service cinder-PART.
_stack_start_cinder_part() {
    stack_start "cinder-$1" env PYTHONPATH="$stack_tools/cinder" "$stack_python" \
        -c "from cinder.cmd.$1 import main; main()" \
        --config-file "$stack_etc/cinder.conf" --log-file "$stack_log/cinder-$1.log"
}

stack_start_cinder() {
    mkdir -p "$stack_var/cinder"
    _stack_cinder_conf > "$stack_etc/cinder.conf"
    stack_further_database cinder "$(dpkg-query -W -f '${Version}' cinder-common)" \
        /usr/bin/cinder-manage --config-file "$stack_etc/cinder.conf" db sync
    _stack_start_cinder_part scheduler
    _stack_start_cinder_part volume
    _stack_uwsgi_ini cinder "$port_cinder" 2 "$(_stack_cinder_application)"
    stack_start cinder-api uwsgi --ini "$stack_etc/cinder-uwsgi.ini"
}
