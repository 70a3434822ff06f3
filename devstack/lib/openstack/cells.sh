#!/usr/bin/env bash
# A second cell beside the first: a database, a virtual host of RabbitMQ, a conductor and one
# compute of its own.

# The number of its compute: the one after those of the first cell.
_stack_cell2_n() { echo $(($(_stack_computes) + 1)); }

stack_second_cell() {
    local n
    n=$(_stack_cell2_n)
    local transport="rabbit://nova:nova@127.0.0.1:$port_amqp/cell2"
    {
        echo 'create database nova_cell2 character set utf8; use nova_cell2;'
        mariadb-dump --no-defaults -uroot -S "$stack_run/mysql.sock" --no-data nova_cell1
        mariadb-dump --no-defaults -uroot -S "$stack_run/mysql.sock" nova_cell1 alembic_version
        # A user of its own, so that this database alone can be away.
        echo "create user if not exists cell2@'127.0.0.1' identified by 'cell2'; grant all on nova_cell2.* to cell2@'127.0.0.1'"
    } | stack_sql
    stack_rabbitctl add_vhost cell2
    stack_rabbitctl set_permissions -p cell2 nova '.*' '.*' '.*'
    printf '[DEFAULT]\ntransport_url = %s\n' "$transport" > "$stack_etc/cell2-compute.conf"
    { cat "$stack_etc/cell2-compute.conf"; printf '[database]\nconnection = %s\n' "$(_stack_cell2_db)"; } > "$stack_etc/cell2.conf"
    stack_start nova-conductor-2 "$stack_bin/nova-conductor" --config-file "$stack_etc/nova.conf" --config-file "$stack_etc/cell2.conf" \
        --log-file "$stack_log/nova-conductor-2.log"
    _stack_compute_conf "$n" > "$stack_etc/nova-compute-$n.conf"
    cat "$stack_etc/cell2-compute.conf" >> "$stack_etc/nova-compute-$n.conf"
    mkdir -p "$stack_var/nova/instances-$n" "$stack_var/nova/compute-$n"
    stack_start_compute "$n" 8:18700:180
    "$stack_bin/nova-manage" --config-file "$stack_etc/nova.conf" cell_v2 create_cell --name cell2 --transport-url "$transport" \
        --database_connection "$(_stack_cell2_db)" > "$stack_log/cell2.out" 2>&1
    stack_wait_for 240 'the compute of the second cell' "nova-compute-$n" stack_second_cell_reports
    "$stack_bin/nova-manage" --config-file "$stack_etc/nova.conf" cell_v2 discover_hosts >> "$stack_log/cell2.out" 2>&1
}

_stack_cell2_db() { echo "mysql+pymysql://cell2:cell2@127.0.0.1:$port_mysql/nova_cell2?charset=utf8"; }

# stack_cell2_database away|back: away refuses new connections and ends those that there are.
stack_cell2_database() {
    case $1 in
        away) stack_sql -e "alter user cell2@'127.0.0.1' account lock; kill user cell2" ;;
        back) stack_sql -e "alter user cell2@'127.0.0.1' account unlock" ;;
    esac
}

stack_second_cell_reports() {
    [ "$(stack_sql -N -e "select count(*) from nova_cell2.compute_nodes c, placement.inventories i, placement.resource_providers p
        where c.host = 'compute$(_stack_cell2_n)' and p.name = c.host and i.resource_provider_id = p.id")" -ge 3 ]
}

# stack_cell2 --disable|--enable: whether boots may go there.
stack_cell2() {
    local uuid
    uuid=$(stack_sql -N -e "select uuid from nova_api.cell_mappings where name = 'cell2'")
    "$stack_bin/nova-manage" --config-file "$stack_etc/nova.conf" cell_v2 update_cell --cell_uuid "$uuid" "$1" \
        --transport-url "rabbit://nova:nova@127.0.0.1:$port_amqp/cell2" --database_connection "$(_stack_cell2_db)" >> "$stack_log/cell2.out" 2>&1
}

# Ends it and takes it out of Nova and Placement with all that it has left; it must be empty.
stack_second_cell_ends() {
    local n
    n=$(_stack_cell2_n)
    stack_stop "nova-compute-$n"
    stack_stop nova-conductor-2
    stack_sql -e "use nova_api; set foreign_key_checks = 0;
        set @cell = (select id from cell_mappings where name = 'cell2');
        delete from instance_mappings where cell_id = @cell; delete from host_mappings where cell_id = @cell; delete from cell_mappings where id = @cell;
        use placement;
        delete i from inventories i join resource_providers p on p.id = i.resource_provider_id where p.name = 'compute$n';
        delete t from resource_provider_traits t join resource_providers p on p.id = t.resource_provider_id where p.name = 'compute$n';
        delete from resource_providers where name = 'compute$n';
        drop database nova_cell2; drop user cell2@'127.0.0.1'"
    stack_rabbitctl delete_vhost cell2
}
