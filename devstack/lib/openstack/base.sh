#!/usr/bin/env bash
# What OpenStack stands on: MariaDB, RabbitMQ, memcached, and the databases with their first rows.

stack_start_base() {
    local sync=eatmydata epmd
    # Creating the 350 tables of six schemas costs 10 to 20 s of fsync otherwise, and nothing here
    # outlives a power cut anyway.
    [ -z "$STACK_DURABLE" ] || sync=
    if [ ! -d "$stack_var/mysql/mysql" ]; then
        $sync mariadb-install-db --no-defaults --user="$(id -un)" --datadir="$stack_var/mysql" \
            --auth-root-authentication-method=normal --skip-test-db > "$stack_log/mysql-install.out" 2>&1
    fi
    stack_start mysql $sync mariadbd --no-defaults --user="$(id -un)" --datadir="$stack_var/mysql" --socket="$stack_run/mysql.sock" \
        --port="$port_mysql" --bind-address=127.0.0.1 --pid-file="$stack_var/mysqld.pid" --max-connections=500 \
        --innodb-buffer-pool-size=256M --innodb-flush-log-at-trx-commit=2 --character-set-server=utf8mb3 --skip-name-resolve
    stack_start memcached memcached -u "$(id -un)" -l 127.0.0.1 -p "$port_memcached" -U 0 -m 64
    for epmd in /usr/bin/epmd /usr/lib/erlang/erts-*/bin/epmd; do [ ! -x "$epmd" ] || break; done
    stack_start epmd "$epmd" -address 127.0.0.1 -port "$port_epmd"
    stack_start rabbit env HOME="$stack_var/rabbit" RABBITMQ_MNESIA_BASE="$stack_var/rabbit/mnesia" \
        RABBITMQ_LOG_BASE="$stack_var/rabbit/log" RABBITMQ_CONFIG_FILE="$stack_var/rabbit/rabbitmq" \
        RABBITMQ_ADVANCED_CONFIG_FILE="$stack_var/rabbit/advanced.config" RABBITMQ_CONF_ENV_FILE=/dev/null \
        RABBITMQ_ENABLED_PLUGINS_FILE="$stack_var/rabbit/enabled_plugins" RABBITMQ_DIST_PORT="$port_amqp_dist" \
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS='+sbwt none +sbwtdcpu none +sbwtdio none' /usr/lib/rabbitmq/bin/rabbitmq-server
    stack_wait_for 60 'MariaDB' mysql stack_sql -e 'select 1'
}

# What Keystone's fernet_setup and credential_setup do, without two starts of Python.
_stack_keystone_keys() {
    local folder key
    for folder in fernet-keys credential-keys; do
        mkdir -p "$stack_var/keystone/$folder"
        chmod 700 "$stack_var/keystone/$folder"
        for key in 0 1; do
            [ -f "$stack_var/keystone/$folder/$key" ] ||
                head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '\n' > "$stack_var/keystone/$folder/$key"
            chmod 600 "$stack_var/keystone/$folder/$key"
        done
    done
}

_stack_databases='keystone placement glance nova_api nova_cell0 nova_cell1'

_stack_create_databases() {
    local first manage
    for name in $_stack_databases; do echo "create database if not exists $name character set utf8;"; done | stack_sql
    # Two at a time: this is mostly Python reading itself in.
    (
        "$stack_bin/keystone-manage" --config-file "$stack_etc/keystone.conf" db_sync
        "$stack_bin/keystone-manage" --config-file "$stack_etc/keystone.conf" bootstrap --bootstrap-password admin \
            --bootstrap-region-id RegionOne --bootstrap-admin-url "$OS_AUTH_URL/" --bootstrap-internal-url "$OS_AUTH_URL/" \
            --bootstrap-public-url "$OS_AUTH_URL/"
        "$stack_bin/placement-manage" --config-file "$stack_etc/placement.conf" db sync
        "$stack_bin/glance-manage" --config-file "$stack_etc/glance-api.conf" db_sync
    ) > "$stack_log/db-sync-1.out" 2>&1 &
    first=$!
    manage="$stack_bin/nova-manage --config-file $stack_etc/nova.conf"
    (
        set -e
        $manage api_db sync
        $manage cell_v2 map_cell0 --database_connection "$(_stack_db nova_cell0)"
        $manage cell_v2 create_cell --name cell1 --database_connection "$(_stack_db nova_cell1)" \
            --transport-url "rabbit://nova:nova@127.0.0.1:$port_amqp/"
        $manage db sync
    ) > "$stack_log/db-sync-2.out" 2>&1 || { tail -n 20 "$stack_log/db-sync-2.out" >&2; return 1; }
    wait "$first" || { tail -n 20 "$stack_log/db-sync-1.out" >&2; return 1; }
}

# The versions and ports that stand inside a dump.
_stack_seed_key() {
    { stack_versions; echo "$_stack_databases $port_mysql $port_amqp $port_keystone"; } | sha256sum | cut -c1-16
}

# stack_further_database NAME VERSION COMMAND…: a database whose tables COMMAND makes, or a dump
# of them that an earlier run of the same version has left.
stack_further_database() {
    local name=$1 seed=$stack_cache/seed-$1-$2.sql.gz said=$stack_log/db-sync-$1.out
    shift 2
    ! stack_sql -N -e 'show databases' | grep -qx "$name" || return 0
    if [ -f "$seed" ]; then
        zcat "$seed" | stack_sql
        return
    fi
    stack_sql -e "create database $name character set utf8"
    "$@" > "$said" 2>&1 || { tail -n 20 "$said" >&2; return 1; }
    mariadb-dump --no-defaults -uroot -S "$stack_run/mysql.sock" --databases "$name" |
        gzip > "$seed.$$"
    mv "$seed.$$" "$seed"
}

# Creates the databases, or loads them from the dump that an earlier run of the same versions and
# ports has left.
stack_databases() {
    local seed
    ! stack_sql -N -e 'show databases' | grep -qx nova_cell1 || { stack_say "the databases are there already"; return 0; }
    seed=$stack_cache/seed-$(_stack_seed_key).sql.gz
    echo "create user if not exists stack@'127.0.0.1' identified by 'stack'; grant all on *.* to stack@'127.0.0.1';
        create database if not exists ebbtide character set utf8mb4;" | stack_sql
    _stack_keystone_keys
    if [ -f "$seed" ]; then
        zcat "$seed" | stack_sql
        stack_say "databases loaded from a dump of an earlier run"
    else
        _stack_create_databases
        mkdir -p "$stack_cache"
        # shellcheck disable=SC2086 # a list of names
        mariadb-dump --no-defaults -uroot -S "$stack_run/mysql.sock" --databases $_stack_databases | gzip > "$seed.$$"
        mv "$seed.$$" "$seed"
        stack_say "databases created"
    fi
}
