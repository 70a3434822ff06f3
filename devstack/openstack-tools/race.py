"""A race of two schedulers for the same victims, without a boot for each.

Victims and newcomers are rows, copied from living servers; everything else is real: three computes
that have grown, Placement, RabbitMQ, the agent, Nova's API. The newcomers are shelved servers that
ask for a host, so that a scheduler sees that a caller waits for them.
"""
import os

import processes
from bench import Client
from cloud import until
from database import one, rows, run
from fake_hosts import COPIED, insert_like
from preempt import must

# What a victim has, and what a newcomer takes: Placement's classes VCPU, MEMORY_MB, DISK_GB (the
# flavor medium.preemptible). Of two requests at the same moment one gets the cheapest victim's
# place, and the other has to see that and take the next one's.
VICTIM = {0: 2, 1: 4000, 2: 40}
SIZE = VICTIM
# Rows of an instance in Nova's API database. Without its request spec Nova's API calls a server
# gone whose cell answers late.
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
    """The stage of a race: three hosts full of victims, and in each heat two newcomers of their
    size for each round. All rows are there from the beginning: victims that are not dealt yet are
    on no host, and newcomers wait for one."""

    def __init__(self, stage, heats, rounds):
        self.stage, self.heats, self.rounds, self.ended = stage, heats, rounds, 0
        # In the last round of a heat there are still victims to choose from.
        self.each = (2 * rounds + 4) // len(HOSTS)
        old, new = stage.cloud.create('old', 'medium.preemptible'), stage.cloud.create('new', 'small')
        must(stage.cloud.settled(old)['status'] == stage.cloud.settled(new)['status'] == 'ACTIVE', 'the servers to copy are not there')
        grow(self.each)
        newcomers = 2 * rounds * heats
        run('drop table if exists victim, newcomer',
            'create table victim as select seq n, uuid() cu, cast(null as char(255)) host from seq_1_to_%d' % (newcomers + 4),
            'create table newcomer as select seq n, uuid() cu from seq_1_to_%d' % newcomers)
        copies(old, 'victim', host='null', node='null', launched_on='null',
               launched_at='utc_timestamp() - interval (600 + (t.n * 7919) mod 2400) second')
        copies(new, 'newcomer', host='null', node='null', vm_state="'shelved_offloaded'", task_state="'unshelving'", power_state='4')
        stage.cloud.delete(old, new)

    def newcomers(self, heat):
        first = 2 * self.rounds * heat + 1
        return [r['cu'] for r in rows('select cu from placement.newcomer where n between %s and %s order by n', first, first + 2 * self.rounds - 1)]

    def deal(self, heat):
        """Fills the hosts: as after boots of preemptible servers, and after those who came in the
        last heat have gone."""
        if heat:
            self.forget(self.newcomers(heat - 1))
        for host in HOSTS:
            alive = one("select count(*) from placement.victim v join nova_cell1.instances i on i.uuid = v.cu where v.host = %s and i.deleted = 0", host)
            run("create or replace temporary table dealt as select cu from victim where host is null order by n limit %d" % (self.each - alive),
                "update victim set host = '%s' where cu in (select cu from dealt)" % host,
                "update nova_cell1.instances set host = '%s', node = '%s', launched_on = '%s', updated_at = utc_timestamp() "
                "where uuid in (select cu from dealt)" % (host, host, host),
                "insert into placement.consumers (created_at, uuid, project_id, user_id, generation) select utc_timestamp(), cu, "
                "(select min(id) from placement.projects), (select min(id) from placement.users), 1 from dealt",
                *["insert into placement.allocations (created_at, resource_provider_id, consumer_id, resource_class_id, used) "
                  "select utc_timestamp(), (select id from resource_providers where name = '%s'), cu, %d, %d from dealt" % ((host,) + pair)
                  for pair in VICTIM.items()])
        if not heat:
            check_books(self.each)

    def forget(self, newcomers):
        """The newcomers and what they hold go, without Nova: nothing of them ever ran."""
        these = "('%s')" % "','".join(newcomers)
        run('delete from allocations where consumer_id in ' + these,
            'delete from consumers where uuid in ' + these,
            *['delete from nova_cell1.%s where instance_uuid in %s' % (table, these) for table in COPIED],
            *['delete from nova_api.%s where instance_uuid in %s' % (table, these) for table in API_COPIED],
            'delete from nova_cell1.instances where uuid in ' + these)

    def run(self, heat):
        """All requests of a heat, two at the same moment, to whichever schedulers are there."""
        client = Client()
        try:
            answer = client.ask(do='rounds', at_once=2, uuids=self.newcomers(heat),
                                flavor={'vcpus': SIZE[0], 'memory_mb': SIZE[1], 'root_gb': SIZE[2]})
        finally:
            client.close()
        must(not answer['failed'], 'race: %d requests failed: %s' % (answer['failed'], answer['errors']))
        return answer

    def audit(self, heat, answer, seconds):
        """Each newcomer has exactly one victim's place, and each of those victims is really gone,
        once."""
        newcomers = self.newcomers(heat)
        needed = self.ended + len(newcomers)
        until('%d victims to be gone' % needed, seconds, lambda: one(
            'select count(*) from nova_cell1.instances where deleted != 0 and uuid in (select cu from placement.victim)') >= needed, pause=0.5)
        until('all preemptions to end', 60, lambda: not rows('select id from ebbtide.nova_preemptions where finished_at is null'), pause=0.5)
        gone = {r['uuid'] for r in rows('select uuid from nova_cell1.instances where deleted != 0 and uuid in (select cu from placement.victim)')}
        must(len(gone) == needed, 'race: %d victims are gone for %d newcomers' % (len(gone), needed))
        self.ended = needed
        ended = [r['server_id'] for r in rows('select server_id from ebbtide.nova_usage_records where server_id in (select cu from placement.victim)')]
        must(sorted(ended) == sorted(gone), 'race: %d usage records of %d servers, and %d are gone' % (len(ended), len(set(ended)), len(gone)))
        held = {}
        for row in rows('select a.consumer_id, p.name, a.resource_class_id as class, a.used from placement.allocations a '
                        'join placement.resource_providers p on p.id = a.resource_provider_id'):
            held.setdefault(row['consumer_id'], {})[(row['name'], row['class'])] = row['used']
        for uuid in newcomers:
            must(held.get(uuid) == {(answer['hosts'][uuid], k): v for k, v in SIZE.items()},
                 'race: newcomer %s was told %s and holds %s' % (uuid, answer['hosts'].get(uuid), held.get(uuid)))
        left = set(held) - set(newcomers)
        alive = {r['cu'] for r in rows('select cu from placement.victim where host is not null')} - gone
        must(left == alive, 'race: beside the newcomers hold %s, and %s live' % (left, alive))
        for name, used, total in [(r['name'], r['used'], r['total']) for r in rows(
                'select p.name, sum(a.used) as used, max(i.total) as total from placement.inventories i join placement.resource_providers p '
                'on p.id = i.resource_provider_id join placement.allocations a on a.resource_provider_id = i.resource_provider_id '
                'and a.resource_class_id = i.resource_class_id group by i.id, p.name')]:
            must(used == total, 'race: %s is used to %s of %s' % (name, used, total))
        must(not rows('select 1 from placement.consumers where uuid not in (select consumer_id from placement.allocations)'), 'race: phantom consumers')

    def clear(self):
        """As it was before the race."""
        self.forget([r['cu'] for r in rows('select cu from placement.newcomer')])
        never = "(select cu from placement.victim where host is null)"
        run(*['delete from nova_cell1.%s where instance_uuid in %s' % (table, never) for table in COPIED],
            *['delete from nova_api.%s where instance_uuid in %s' % (table, never) for table in API_COPIED],
            'delete from nova_cell1.instances where uuid in ' + never)
        self.stage.clear()
        run('drop table victim, newcomer')
        grow(None)


def check_books(each):
    """Until the computes book every victim: the rows are as good as servers that were booted."""
    until('the computes to book their victims', 60, lambda: [r['n'] for r in rows(
        "select running_vms as n from nova_cell1.compute_nodes where deleted = 0 and host in ('compute1', 'compute2', 'compute3') "
        "and vcpus_used = %d" % (VICTIM[0] * each))] == [each] * 3)
