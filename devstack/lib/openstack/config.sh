#!/usr/bin/env bash
# The configuration files of every service, below $stack_etc. Nothing under /etc is written.

_stack_db() { echo "mysql+pymysql://stack:stack@127.0.0.1:$port_mysql/$1?charset=utf8"; }

# How a service of ours checks the tokens that it is given. memcached is there because every request
# would else ask Keystone.
_stack_authtoken() { cat <<X
[keystone_authtoken]
www_authenticate_uri = http://127.0.0.1:$port_keystone
auth_url = http://127.0.0.1:$port_keystone/v3
memcached_servers = 127.0.0.1:$port_memcached
auth_type = password
project_domain_name = Default
user_domain_name = Default
project_name = service
username = $1
password = $1
service_token_roles_required = false
X
}

# _stack_client USER: how a service gets tokens of its own.
_stack_client() { cat <<X
auth_type = password
auth_url = http://127.0.0.1:$port_keystone/v3
project_domain_name = Default
user_domain_name = Default
project_name = service
username = $1
password = $1
region_name = RegionOne
X
}

_stack_keystone_conf() { cat <<X
[DEFAULT]
log_file = $stack_log/keystone.log
[database]
connection = $(_stack_db keystone)
[identity]
# Hashing passwords is else most of what Keystone does in a test.
password_hash_rounds = 4
[token]
provider = fernet
[fernet_tokens]
key_repository = $stack_var/keystone/fernet-keys
[fernet_receipts]
key_repository = $stack_var/keystone/fernet-keys
[credential]
key_repository = $stack_var/keystone/credential-keys
[cache]
enabled = true
backend = dogpile.cache.memcached
memcache_servers = 127.0.0.1:$port_memcached
X
}

_stack_placement_conf() { cat <<X
[DEFAULT]
log_file = $stack_log/placement.log
debug = $STACK_DEBUG
[api]
auth_strategy = keystone
[placement_database]
connection = $(_stack_db placement)
$(_stack_authtoken placement)
X
}

_stack_glance_conf() { cat <<X
[DEFAULT]
log_file = $stack_log/glance.log
bind_host = 127.0.0.1
bind_port = $port_glance
workers = 0
enabled_backends = fs:file
[glance_store]
default_backend = fs
[fs]
filesystem_store_datadir = $stack_var/glance/images
[database]
connection = $(_stack_db glance)
[paste_deploy]
flavor = keystone
config_file = $stack_share/glance/glance-api-paste.ini
[oslo_concurrency]
lock_path = $stack_var/glance
$(_stack_authtoken glance)
X
}

# Whether Nova proves to other services that a request comes from a service.
_stack_service_user() {
    if [ -z "$STACK_CYBORG$STACK_CINDER" ]; then
        echo 'send_service_user_token = false'
    else
        # Cyborg lets no tenant bind an accelerator to a server, and Cinder lets none delete the
        # attachment of a server's volume.
        echo 'send_service_user_token = true'
        _stack_client nova
    fi
}

# _stack_nova_conf yes|no: with or without the databases. A compute must not know them. From 33 on a
# service that is told to end waits for what it has begun, for up to three minutes by default; tests
# restart computes.
_stack_nova_conf() {
    cat <<X
[DEFAULT]
debug = $STACK_DEBUG
my_ip = 127.0.0.1
state_path = $stack_var/nova
transport_url = rabbit://nova:nova@127.0.0.1:$port_amqp/
rpc_response_timeout = $STACK_RPC_TIMEOUT
report_interval = 3
graceful_shutdown_timeout = 10
manager_shutdown_timeout = 5
enabled_apis = osapi_compute
osapi_compute_listen = 127.0.0.1
osapi_compute_listen_port = $port_nova
osapi_compute_workers = 2
heal_instance_info_cache_interval = -1
scheduler_instance_sync_interval = $STACK_SYNC_INTERVAL
update_resources_interval = $STACK_RESOURCES_INTERVAL
[api]
auth_strategy = keystone
[wsgi]
api_paste_config = $stack_share/nova/api-paste.ini
X
    [ "$1" = no ] || cat <<X
[api_database]
connection = $(_stack_db nova_api)
[database]
connection = $(_stack_db nova_cell1)
X
    cat <<X
[conductor]
workers = 1
[scheduler]
workers = 1
[filter_scheduler]
enabled_filters = ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,ServerGroupAntiAffinityFilter,ServerGroupAffinityFilter,PciPassthroughFilter$STACK_FILTERS
[pci]
alias = {"name": "gpu", "vendor_id": "10de", "product_id": "1eb8", "device_type": "type-PF"}
[placement]
$(_stack_client nova)
[glance]
region_name = RegionOne
[neutron]
endpoint_override = http://127.0.0.1:$port_neutron
$(_stack_client nova)
[service_user]
$(_stack_service_user)
[vnc]
enabled = false
[oslo_concurrency]
lock_path = $stack_var/nova/lock
[oslo_messaging_notifications]
driver = $STACK_NOTIFY
[notifications]
notification_format = both
[quota]
instances = -1
cores = -1
ram = -1
server_group_members = -1
$(_stack_authtoken nova)
X
    [ -z "$STACK_CYBORG" ] || stack_cyborg_section
    [ -z "$STACK_CINDER" ] || stack_cinder_section
    [ "$1" = no ] || stack_ebbtide_section
}

_stack_compute_conf() { cat <<X
[DEFAULT]
host = compute$1
compute_driver = fake.FakeDriverWithPciResources
instances_path = $stack_var/nova/instances-$1
state_path = $stack_var/nova/compute-$1
cpu_allocation_ratio = 1.0
ram_allocation_ratio = 1.0
disk_allocation_ratio = 1.0
reserved_host_memory_mb = 0
[pci]
device_spec = {"vendor_id": "10de", "product_id": "1eb8"}
[oslo_concurrency]
lock_path = $stack_var/nova/compute-$1/lock
X
}

# What a scheduler gets while it is recorded: Placement through the tap, which writes down every
# exchange; and no weight on how busy a compute was when it last looked, because that hangs on
# haste.
_stack_tap_conf() { cat <<X
[filter_scheduler]
io_ops_weight_multiplier = 0
[placement]
endpoint_override = http://127.0.0.1:$port_tap
X
}

# _stack_uwsgi_ini NAME PORT PROCESSES [APPLICATION]: an API behind uwsgi; without an application
# that of stack_wsgi_app.
_stack_uwsgi_ini() { cat > "$stack_etc/$1-uwsgi.ini" <<X
[uwsgi]
plugins = python3
master = true
processes = $3
threads = 1
lazy-apps = true
die-on-term = true
no-orphans = true
buffer-size = 65535
socket-timeout = 10
http-socket = 127.0.0.1:$2
http-auto-chunked = true
http-chunked-input = true
http-raw-body = true
wsgi-manage-chunked-input = true
rem-header = Content-Length
add-header = Connection: close
${4:-$(stack_wsgi_app "$1")}
X
}

# Each scheduler is a host of its own: its service record and its directed queue carry that name.
stack_scheduler_conf() {
    cat > "$stack_etc/scheduler-$1.conf" <<X
[DEFAULT]
host = scheduler$1
[ebbtide]
metrics_listen = 127.0.0.1:$((port_sched_http + $1 - 1))
api_listen = 127.0.0.1:$((port_sched_api + $1 - 1))
[keystone_authtoken]
service_type = preemption
X
}

stack_write_config() {
    local n
    mkdir -p "$stack_etc" "$stack_log" "$stack_run" "$stack_var"/{glance/images,keystone,nova,rabbit/mnesia,rabbit/log}
    _stack_keystone_conf > "$stack_etc/keystone.conf"
    _stack_placement_conf > "$stack_etc/placement.conf"
    _stack_glance_conf > "$stack_etc/glance-api.conf"
    _stack_nova_conf yes > "$stack_etc/nova.conf"
    _stack_nova_conf no > "$stack_etc/nova-compute.conf"
    _stack_tap_conf > "$stack_etc/tap.conf"
    n=0
    for _ in $STACK_COMPUTES; do
        n=$((n + 1))
        _stack_compute_conf "$n" > "$stack_etc/nova-compute-$n.conf"
        mkdir -p "$stack_var/nova/instances-$n" "$stack_var/nova/compute-$n"
    done
    stack_libvirt_write_config
    n=1
    while [ "$n" -le "$STACK_SCHEDULERS" ]; do
        stack_scheduler_conf "$n"
        n=$((n + 1))
    done
    # Where Nova's API looks for it when it runs behind uwsgi.
    cp "$stack_share/nova/api-paste.ini" "$stack_etc/api-paste.ini"
    _stack_uwsgi_ini keystone "$port_keystone" 1
    _stack_uwsgi_ini placement "$port_placement" 2
    _stack_uwsgi_ini nova-api "$port_nova" 1
    _stack_uwsgi_ini glance "$port_glance" 1
    cat > "$stack_var/rabbit/rabbitmq.conf" <<X
listeners.tcp.1 = 127.0.0.1:$port_amqp
default_user = nova
default_pass = nova
vm_memory_high_watermark.absolute = 1GB
disk_free_limit.absolute = 200MB
log.file.level = info
X
    echo '[{kernel,[{inet_dist_use_interface,{127,0,0,1}}]}].' > "$stack_var/rabbit/advanced.config"
    echo '[].' > "$stack_var/rabbit/enabled_plugins"
    [ -f "$stack_var/rabbit/.erlang.cookie" ] || {
        head -c 24 /dev/urandom | base64 | tr -dc A-Za-z0-9 > "$stack_var/rabbit/.erlang.cookie"
        chmod 400 "$stack_var/rabbit/.erlang.cookie"
    }
}
