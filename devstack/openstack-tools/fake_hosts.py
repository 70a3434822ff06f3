#!/usr/bin/python3
"""Compute hosts as rows, without processes: in Nova's cell and API databases and in Placement.

Usage: fake_hosts.py N [--full]     (N hosts named fake00001…; 0 removes them)

Each has 64 VCPUs, 256000 MB and 4000 GB. Without --full: four consumers of 8 VCPUs, 16000 MB and
160 GB each. With --full: four preemptible servers of 16 VCPUs, 64000 MB and 1000 GB each, copied
from the one living server named `template` (its flavor made larger), and what is free on the real
computes is taken by normal consumers: nothing fits anywhere without a victim.
"""
import sys

from database import one, run

# Ids of resource classes in every Placement: VCPU, MEMORY_MB, DISK_GB.
TOTALS = {0: 64, 1: 256000, 2: 4000}
USED = {0: 8, 1: 16000, 2: 160}
FULL = {0: 16, 1: 64000, 2: 1000}
EACH = 4
# Rows that all change in one second would be read again for each request of the next seconds. No
# cloud in use has such rows.
LONG_AGO = 'utc_timestamp() - interval 12 hour'


def remove():
    run('set foreign_key_checks = 0',
        "delete a from placement.allocations a join placement.resource_providers p on a.resource_provider_id = p.id where p.name like 'fake%'",
        "delete from placement.allocations where consumer_id in (select uuid from placement.consumers where uuid like 'ebbf1111%')",
        "delete from placement.consumers where uuid not in (select consumer_id from placement.allocations)",
        "delete i from placement.inventories i join placement.resource_providers p on i.resource_provider_id = p.id where p.name like 'fake%'",
        "delete t from placement.resource_provider_traits t join placement.resource_providers p on t.resource_provider_id = p.id "
        "where p.name like 'fake%'",
        "delete from placement.resource_providers where name like 'fake%'",
        "delete from nova_cell1.compute_nodes where host like 'fake%'",
        "delete from nova_cell1.services where host like 'fake%'",
        "delete from nova_api.build_requests where instance = '{}'",
        "delete from nova_api.host_mappings where host like 'fake%'",
        "delete m from nova_api.instance_mappings m join nova_cell1.instances i on m.instance_uuid = i.uuid where i.host like 'fake%'",
        *["delete t from nova_cell1.%s t join nova_cell1.instances i on t.instance_uuid = i.uuid where i.host like 'fake%%'" % table
          for table in COPIED],
        "delete from nova_cell1.instances where host like 'fake%'")


# Tables with rows of an instance, by instance_uuid.
COPIED = ['instance_extra', 'instance_info_caches', 'instance_system_metadata']


def columns(table):
    schema, name = table.split('.')
    from database import rows
    return [r['name'] for r in rows('select column_name as name from information_schema.columns where table_schema = %s and table_name = %s',
                                    schema, name) if r['name'] != 'id']


def insert_like(table, source, **changed):
    """An `insert … select` of all columns of `table` from `source` (its alias must be s), some of
    them replaced by expressions."""
    names = columns(table)
    values = [changed.get(n, 's.`%s`' % n) for n in names]
    return 'insert into %s (%s) select %s from %s' % (table, ', '.join('`%s`' % n for n in names), ', '.join(values), source)


def hosts(count, used):
    share = {k: v * EACH for k, v in used.items()}
    name = "concat('fake', lpad(n.seq, 5, '0'))"
    free_ram = '40000 + floor(rand(7) * 80000)' if used is USED else '0'
    run("set @cell = (select id from nova_api.cell_mappings where name = 'cell1')",
        insert_like('nova_cell1.services', "nova_cell1.services s, seq_1_to_%d n where s.`binary` = 'nova-compute' and s.host = 'compute1'" % count,
                    host=name, uuid='uuid()', last_seen_up='utc_timestamp()', created_at='utc_timestamp()', updated_at='utc_timestamp()'),
        insert_like('nova_cell1.compute_nodes', "nova_cell1.compute_nodes s, seq_1_to_%d n where s.host = 'compute1' and s.deleted = 0" % count,
                    host=name, hypervisor_hostname=name, uuid='uuid()', vcpus='64', memory_mb='256000', local_gb='4000',
                    vcpus_used=str(share[0]), memory_mb_used=str(share[1]), local_gb_used=str(share[2]), running_vms=str(EACH),
                    cpu_allocation_ratio='1', ram_allocation_ratio='1', disk_allocation_ratio='1',
                    free_ram_mb=free_ram, free_disk_gb=str(4000 - share[2]), disk_available_least=str(4000 - share[2]),
                    created_at=LONG_AGO, updated_at=LONG_AGO, mapped='1'),
        "insert into nova_api.host_mappings (created_at, cell_id, host) select utc_timestamp(), @cell, %s from seq_1_to_%d n" % (name, count),
        "insert into placement.resource_providers (created_at, uuid, name, generation) select utc_timestamp(), uuid, hypervisor_hostname, 1 "
        "from nova_cell1.compute_nodes where host like 'fake%' order by rand(3)",
        "update placement.resource_providers set root_provider_id = id where name like 'fake%'",
        *["insert into placement.inventories (created_at, resource_provider_id, resource_class_id, total, reserved, min_unit, max_unit, "
          "step_size, allocation_ratio) select utc_timestamp(), id, %d, %d, 0, 1, %d, 1, 1 from placement.resource_providers "
          "where name like 'fake%%'" % (k, v, v) for k, v in TOTALS.items()],
        "insert into placement.resource_provider_traits (created_at, trait_id, resource_provider_id) select utc_timestamp(), t.trait_id, p.id "
        "from placement.resource_provider_traits t join placement.resource_providers s on s.id = t.resource_provider_id and s.name = 'compute1' "
        "join placement.resource_providers p on p.name like 'fake%'")


def consumers(used, table):
    """One consumer for each row (rp, cu) of a table."""
    # A cloud that has never had a server knows no project.
    run(*["insert into placement.%s (created_at, external_id) select utc_timestamp(), 'fake' from dual where not exists (select 1 from placement.%s)"
          % (kind, kind) for kind in ('projects', 'users')],
        "insert into placement.consumers (created_at, uuid, project_id, user_id, generation) "
        "select utc_timestamp(), cu, (select min(id) from placement.projects), (select min(id) from placement.users), 1 from %s" % table,
        *["insert into placement.allocations (created_at, resource_provider_id, consumer_id, resource_class_id, used) "
          "select utc_timestamp(), rp, cu, %d, %d from %s" % (k, v, table) for k, v in used.items()])


def servers(template):
    """Four preemptible servers on each host, of different ages, as rows like those of a living
    one."""
    flavor = ", ".join("'$.cur.\"nova_object.data\".%s', %d" % pair for pair in (('vcpus', FULL[0]), ('memory_mb', FULL[1]), ('root_gb', FULL[2])))
    source = "nova_cell1.instances s join placement.bench_t t where s.uuid = '%s'" % template
    run(insert_like('nova_cell1.instances', source, uuid='t.cu', host='t.name', node='t.name', launched_on='t.name', vcpus=str(FULL[0]),
                    memory_mb=str(FULL[1]), root_gb=str(FULL[2]), hostname="concat('p', t.n)", display_name="concat('p', t.n)",
                    launched_at='utc_timestamp() - interval (600 + (t.n * 7919) mod 40000) second', created_at=LONG_AGO, updated_at=LONG_AGO))
    for table in COPIED:
        changed = {'instance_uuid': 't.cu'}
        if table == 'instance_extra':
            changed['flavor'] = 'json_set(s.flavor, %s)' % flavor
        run(insert_like('nova_cell1.' + table, "nova_cell1.%s s join placement.bench_t t where s.instance_uuid = '%s'" % (table, template), **changed))
    run(insert_like('nova_api.instance_mappings', "nova_api.instance_mappings s join placement.bench_t t where s.instance_uuid = '%s'" % template,
                    instance_uuid='t.cu'))


def main():
    count, full = int(sys.argv[1]), '--full' in sys.argv
    remove()
    if count:
        used = FULL if full else USED
        hosts(count, used)
        run('drop table if exists placement.bench_t',
            "create table placement.bench_t as select p.id rp, p.name, uuid() cu, row_number() over (order by p.id, n.seq) n "
            "from placement.resource_providers p, seq_1_to_%d n where p.name like 'fake%%'" % EACH)
        consumers(used, 'placement.bench_t')
        if full:
            servers(one("select uuid from nova_cell1.instances where display_name = 'template' and deleted = 0"))
            # The rest of the real computes: whatever is free there is held by consumers that no one
            # may end.
            run("insert into placement.consumers (created_at, uuid, project_id, user_id, generation) select utc_timestamp(), "
                "concat('ebbf1111-0000-4000-8000-', lpad(id, 12, '0')), (select min(id) from placement.projects), "
                "(select min(id) from placement.users), 1 from placement.resource_providers where name like 'compute%'",
                "insert into placement.allocations (created_at, resource_provider_id, consumer_id, resource_class_id, used) select utc_timestamp(), "
                "i.resource_provider_id, concat('ebbf1111-0000-4000-8000-', lpad(i.resource_provider_id, 12, '0')), i.resource_class_id, "
                "i.total - coalesce((select sum(used) from placement.allocations a where a.resource_provider_id = i.resource_provider_id "
                "and a.resource_class_id = i.resource_class_id), 0) as free from placement.inventories i join placement.resource_providers p "
                "on p.id = i.resource_provider_id where p.name like 'compute%' having free > 0")
        run('drop table placement.bench_t',
            'analyze table placement.allocations, placement.inventories, placement.resource_providers, nova_cell1.compute_nodes, nova_cell1.instances')
    print('%d compute nodes, %d providers, %d allocation rows, %d servers' % (
        one('select count(*) from nova_cell1.compute_nodes where deleted = 0'), one('select count(*) from placement.resource_providers'),
        one('select count(*) from placement.allocations'), one('select count(*) from nova_cell1.instances where deleted = 0')))


if __name__ == '__main__':
    main()
