"""A race of two schedulers for the same victims, without a boot for each.

Victims and newcomers are rows, copied from living servers; everything else is real: three computes that have grown, Placement, RabbitMQ, the
agent, Nova's API. The newcomers are shelved servers that ask for a host, so that a scheduler sees that somebody waits for them.
"""
import os

import processes
from bench import Client
from cloud import until
from database import one, rows, run
from fake_hosts import COPIED, insert_like
from preempt import must

# What a victim has, and what a newcomer takes: Placement's classes VCPU, MEMORY_MB, DISK_GB (the flavor medium.preemptible). Of two requests
# at the same moment one gets the cheapest victim's place, and the other has to see that and take the next one's.
VICTIM = {0: 2, 1: 4000, 2: 40}
SIZE = VICTIM
# Rows of an instance in Nova's API database. Without its request spec Nova's API calls a server gone whose cell answers late.
API_COPIED = ['instance_mappings', 'request_specs']
HOSTS = ['compute1', 'compute2', 'compute3']


def grow(each):
    """The real computes become as large as `each` victims, or get their own size back (None)."""
    for host in HOSTS:
        path = '%s/var/nova/%s/size' % (processes.HOME, host.replace('compute', 'compute-'))
        if each is None:
            os.unlink(path)
        else:
            with open(path, 'w', encoding='utf-8') as file:
                file.write(' '.join(str(each * amount) for amount in VICTIM.values()))
    expected = [each * VICTIM[1]] * 3 if each else [int(size.split(':')[1]) for size in os.environ['STACK_COMPUTES'].split()[:3]]
    until('the computes to tell their new size', 90, lambda: [r['total'] for r in rows(
        "select i.total from placement.inventories i join placement.resource_providers p on p.id = i.resource_provider_id "
        "where i.resource_class_id = 1 and p.name in ('compute1', 'compute2', 'compute3') order by p.name")] == expected)


def copies(template, table, **changed):
    """A copy of a living server's rows for each row (cu, n, host) of `table`."""
    source = "nova_cell1.instances s join placement.%s t where s.uuid = '%s'" % (table, template)
    run(insert_like('nova_cell1.instances', source, uuid='t.cu', hostname="concat('r', t.n)", display_name="concat('%s', t.n)" % table,
                    updated_at='utc_timestamp()', **changed))
    for other in COPIED:
        run(insert_like('nova_cell1.' + other, "nova_cell1.%s s join placement.%s t where s.instance_uuid = '%s'" % (other, table, template),
                        instance_uuid='t.cu'))
    for other in API_COPIED:
        run(insert_like('nova_api.' + other, "nova_api.%s s join placement.%s t where s.instance_uuid = '%s'" % (other, table, template),
                        instance_uuid='t.cu'))


class Race:
    """The stage of a race: `each` victims on each of three hosts that they fill, and as many newcomers of their size, less two."""

    def __init__(self, stage, each):
        self.stage, self.each = stage, each
        old, new = stage.cloud.create('old', 'medium.preemptible'), stage.cloud.create('new', 'small')
        must(stage.cloud.settled(old)['status'] == stage.cloud.settled(new)['status'] == 'ACTIVE', 'the servers to copy are not there')
        grow(each)
        run('drop table if exists victim, newcomer',
            "create table victim as select p.id rp, p.name host, uuid() cu, row_number() over (order by p.id, n.seq) n "
            "from resource_providers p, seq_1_to_%d n where p.name like 'compute%%'" % each,
            'create table newcomer as select seq n, uuid() cu from seq_1_to_%d' % (3 * each - 2))
        copies(old, 'victim', host='t.host', node='t.host', launched_on='t.host',
               launched_at='utc_timestamp() - interval (600 + (t.n * 7919) mod 2400) second')
        copies(new, 'newcomer', host='null', node='null', vm_state="'shelved_offloaded'", task_state="'unshelving'", power_state='4')
        stage.cloud.delete(old, new)
        run("insert into placement.consumers (created_at, uuid, project_id, user_id, generation) select utc_timestamp(), cu, "
            "(select min(id) from placement.projects), (select min(id) from placement.users), 1 from victim",
            *["insert into placement.allocations (created_at, resource_provider_id, consumer_id, resource_class_id, used) "
              "select utc_timestamp(), rp, cu, %d, %d from victim" % pair for pair in VICTIM.items()])
        self.newcomers = [r['cu'] for r in rows('select cu from placement.newcomer order by n')]
        check_books(each)

    def run(self):
        """All requests, two at the same moment, to whichever schedulers are there."""
        client = Client()
        try:
            answer = client.ask(do='rounds', at_once=2, uuids=self.newcomers, flavor={'vcpus': SIZE[0], 'memory_mb': SIZE[1], 'root_gb': SIZE[2]})
        finally:
            client.close()
        must(not answer['failed'], 'race: %d requests failed: %s' % (answer['failed'], answer['errors']))
        return answer

    def audit(self, answer, seconds):
        """Each newcomer has exactly one victim's place, and each of those victims is really gone, once."""
        needed = len(self.newcomers)
        until('%d victims to be gone' % needed, seconds, lambda: one(
            'select count(*) from nova_cell1.instances where deleted != 0 and uuid in (select cu from placement.victim)') >= needed, pause=0.5)
        until('all preemptions to end', 60, lambda: not rows('select id from ebbtide.nova_preemptions where finished_at is null'), pause=0.5)
        gone = {r['uuid'] for r in rows('select uuid from nova_cell1.instances where deleted != 0 and uuid in (select cu from placement.victim)')}
        must(len(gone) == needed, 'race: %d victims are gone for %d newcomers' % (len(gone), len(self.newcomers)))
        ended = [r['server_id'] for r in rows('select server_id from ebbtide.nova_usage_records where server_id in (select cu from placement.victim)')]
        must(sorted(ended) == sorted(gone), 'race: %d usage records of %d servers, and %d are gone' % (len(ended), len(set(ended)), len(gone)))
        held = {}
        for row in rows('select a.consumer_id, p.name, a.resource_class_id as class, a.used from placement.allocations a '
                        'join placement.resource_providers p on p.id = a.resource_provider_id'):
            held.setdefault(row['consumer_id'], {})[(row['name'], row['class'])] = row['used']
        for uuid in self.newcomers:
            must(held.get(uuid) == {(answer['hosts'][uuid], k): v for k, v in SIZE.items()},
                 'race: newcomer %s was told %s and holds %s' % (uuid, answer['hosts'].get(uuid), held.get(uuid)))
        left = set(held) - set(self.newcomers)
        alive = {r['cu'] for r in rows('select cu from placement.victim')} - gone
        must(left == alive, 'race: beside the newcomers hold %s, and %s live' % (left, alive))
        for name, used, total in [(r['name'], r['used'], r['total']) for r in rows(
                'select p.name, sum(a.used) as used, max(i.total) as total from placement.inventories i join placement.resource_providers p '
                'on p.id = i.resource_provider_id join placement.allocations a on a.resource_provider_id = i.resource_provider_id '
                'and a.resource_class_id = i.resource_class_id group by i.id, p.name')]:
            must(used == total, 'race: %s is used to %s of %s' % (name, used, total))
        must(not rows('select 1 from placement.consumers where uuid not in (select consumer_id from placement.allocations)'), 'race: phantom consumers')

    def clear(self):
        """The newcomers and what they hold go, without Nova: nothing of them ever ran."""
        run('delete from allocations where consumer_id in (select cu from newcomer)',
            'delete from consumers where uuid in (select cu from newcomer)',
            *['delete from nova_cell1.%s where instance_uuid in (select cu from newcomer)' % table for table in COPIED],
            *['delete from nova_api.%s where instance_uuid in (select cu from newcomer)' % table for table in API_COPIED],
            'delete from nova_cell1.instances where uuid in (select cu from newcomer)')
        self.stage.clear()
        run('drop table victim, newcomer')
        grow(None)


def check_books(each):
    """Until the computes book every victim: the rows are as good as servers that were booted."""
    until('the computes to book their victims', 60, lambda: [r['n'] for r in rows(
        "select running_vms as n from nova_cell1.compute_nodes where deleted = 0 and host in ('compute1', 'compute2', 'compute3') "
        "and vcpus_used = %d" % (VICTIM[0] * each))] == [each] * 3)
