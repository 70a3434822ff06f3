"""Chapters of the story: how victims leave, one chapter for each interruption behaviour. Terminate
is what all other chapters do."""
import contextlib
import time

from cloud import until
from database import rows
from invariants import allocations, audit, check
from occupation import Occupation
from preempt import AGES, Watch, must

NOTICE_KEYS = {'ebbtide:notice', 'ebbtide:notice_deadline', 'ebbtide:notice_evacuation', 'ebbtide:notice_reason'}
PREEMPTIBLE = {'ebbtide:preemptible': 'true', 'ebbtide:grace_seconds': '2'}


@contextlib.contextmanager
def flavors(stage, behaviour, *sizes):
    """Flavors (name, VCPUs, memory, disk): those with `.pre` in their name are preemptible and end
    by `behaviour`. They go with the servers of the chapter."""
    specs = dict(PREEMPTIBLE, **{'ebbtide:interruption': behaviour})
    made = [stage.cloud.flavor(*size, specs if '.pre' in size[0] else {}) for size in sizes]
    try:
        yield
    finally:
        stage.clear()
        for flavor in made:
            stage.cloud.nova('DELETE', '/flavors/' + flavor)


def makes_room(stage, ages, victim, flavor, behaviour, left, **options):
    """A normal server comes to a cloud without room for it. `victim` alone gets a notice that names
    its behaviour, and the newcomer starts when the victim no longer runs there. `left`: whether the
    victim, as Nova shows it, has left by its behaviour. `options`: of the newcomer, as those of
    `create`. Gives the newcomer."""
    cloud = stage.cloud
    home = cloud.server(victim)['OS-EXT-SRV-ATTR:host']
    watch, occupation = Watch(ages), Occupation()
    try:
        newcomer = cloud.settled(cloud.create('newcomer', flavor, **options), seconds=150)
        must(newcomer['status'] == 'ACTIVE', '%s: the newcomer is %s: %s' % (behaviour, newcomer['status'], newcomer.get('fault')))
        until('the victim to have left by %s' % behaviour, 60, lambda: left(cloud.server(victim)))
    finally:
        watch.end()
        occupation.end()
    must(newcomer['OS-EXT-SRV-ATTR:host'] == home, '%s: the newcomer is on %s, and the victim was on %s' % (
        behaviour, newcomer['OS-EXT-SRV-ATTR:host'], home))
    must(set(watch.told) & set(ages) == {victim}, '%s: noticed were %s, and the cheapest was %s' % (behaviour, sorted(watch.told), victim))
    told = watch.told[victim]
    must(NOTICE_KEYS <= set(told), '%s: the notice in the metadata is %s' % (behaviour, told))
    must(told['ebbtide:notice'][0] == behaviour, 'the notice says %s, and the behaviour is %s' % (told['ebbtide:notice'][0], behaviour))
    must(told['ebbtide:notice'][1] < watch.active[newcomer['id']], '%s: the newcomer ran before the notice' % behaviour)
    must(occupation.samples > 10 and not occupation.over, '%s: more ran than fits: %s' % (behaviour, occupation.over[:5]))
    return newcomer


def finds_no_host(stage, ages, name, flavor, **options):
    """A normal server that no number of victims would help gets NoValidHost. No server gets a
    notice, and none leaves. `options` as those of `create`."""
    watch = Watch(ages)
    try:
        server = stage.cloud.boot(name, flavor, **options)
        must(server['status'] == 'ERROR' and 'No valid host' in server['fault']['message'],
             'the server is %s: %s' % (server['status'], server.get('fault')))
        # A wrong notice could come late.
        time.sleep(5)
    finally:
        watch.end()
    must(not set(watch.told) & set(ages), 'noticed were %s' % sorted(watch.told))
    must(set(stage.left(ages)) == set(ages), 'left are %s' % stage.left(ages))
    open_ones = rows('select id from ebbtide.nova_preemptions where finished_at is null')
    must(not open_ones, 'preemptions are open: %s' % open_ones)


def done_by(stage, victim, *actions):
    """What Nova has recorded of a victim, the last action first."""
    found = [a['action'] for a in stage.cloud.nova('GET', '/servers/%s/os-instance-actions' % victim).json()['instanceActions']]
    # With Nova's default, shelved_offload_time = 0, a server is offloaded by its shelving.
    found = [action for action in found if action != 'shelveOffload']
    must(found == list(actions), 'Nova has recorded %s of the victim' % found)


def afterwards(server, how):
    """The metadata of a victim that still exists: how it left, and no notice any more."""
    must(server['metadata'].get('ebbtide:evacuated_how') == how, 'the metadata afterwards is %s' % server['metadata'])
    must('ebbtide:evacuated_at' in server['metadata'], 'the metadata afterwards is %s' % server['metadata'])


def a_victim_that_stops(stage):
    """`stop`: Nova shows SHUTOFF on the same host. The victim keeps its disk in Placement, and the
    newcomer holds its CPUs and memory."""
    cloud = stage.cloud
    with flavors(stage, 'stop', ('slim.pre', 4, 8000, 1), ('slim', 4, 8000, 1)):
        ages = stage.fill('slim.pre')
        (victim,) = stage.cheapest(ages)
        home = cloud.server(victim)['OS-EXT-SRV-ATTR:host']
        newcomer = makes_room(stage, ages, victim, 'slim', 'stop', lambda server: server['status'] == 'SHUTOFF')
        until('the notice to be taken away', 30, lambda: not NOTICE_KEYS & set(cloud.server(victim)['metadata']))
        server = cloud.settled(victim, ('SHUTOFF', 'ERROR'))
        must((server['status'], server['OS-EXT-SRV-ATTR:host']) == ('SHUTOFF', home), 'the victim is %s' % server)
        afterwards(server, 'stopped')
        done_by(stage, victim, 'stop', 'create')
        check('a victim that stops', stopped={victim})
        held = allocations()
        must(held[victim] == {(home, 'DISK_GB'): 1}, 'a stopped victim holds %s' % held[victim])
        must(held[newcomer['id']] == {(home, 'VCPU'): 4, (home, 'MEMORY_MB'): 8000, (home, 'DISK_GB'): 1}, 'the newcomer holds %s' % held[newcomer['id']])
        audit()
        print('      stop: SHUTOFF on %s, the newcomer beside it' % home, flush=True)


def a_victim_that_hibernates(stage):
    """`hibernate`: Nova shows SHELVED_OFFLOADED on no host, and the victim holds nothing; its owner
    unshelves it when there is room."""
    cloud = stage.cloud
    with flavors(stage, 'hibernate', ('shelving.pre', 4, 8000, 80)):
        ages = stage.fill('shelving.pre')
        (victim,) = stage.cheapest(ages)
        whole = set(allocations()[victim].values())
        newcomer = makes_room(stage, ages, victim, 'large', 'shelve', lambda server: server['status'] == 'SHELVED_OFFLOADED')
        server = cloud.settled(victim, ('SHELVED_OFFLOADED', 'ERROR'))
        until('the victim to be on no host', 60, lambda: not cloud.server(victim)['OS-EXT-SRV-ATTR:host'])
        must(server['status'] == 'SHELVED_OFFLOADED', 'the victim is %s' % server)
        afterwards(server, 'shelved')
        done_by(stage, victim, 'shelve', 'create')
        check('a victim that hibernates')
        must(victim not in allocations(), 'a shelved victim holds %s' % allocations().get(victim))
        audit()
        cloud.delete(newcomer['id'])
        cloud.action(victim, {'unshelve': None})
        server = cloud.settled(victim)
        must(server['status'] == 'ACTIVE', 'after unshelving the victim is %s: %s' % (server['status'], server.get('fault')))
        must(set(allocations()[victim].values()) == whole, 'after unshelving the victim holds %s' % allocations()[victim])
        check('a victim that was unshelved')
        print('      hibernate: SHELVED_OFFLOADED, and ACTIVE again on %s' % server['OS-EXT-SRV-ATTR:host'], flush=True)


def a_victim_that_moves(stage):
    """`live-migrate`: each host has room for the victim of another, and none for the newcomer. Nova
    shows the victim ACTIVE on another host, where it holds all that it held."""
    cloud = stage.cloud
    with flavors(stage, 'live-migrate', ('moving.pre', 2, 4000, 40)):
        hosts = ('compute1', 'compute2', 'compute3')
        asked = [cloud.create('normal-' + host, 'large', host=host) for host in hosts]
        asked += [cloud.create('moving-' + host, 'moving.pre', host=host) for host in hosts]
        for uuid in asked:
            server = cloud.settled(uuid)
            must(server['status'] == 'ACTIVE', '%s is %s: %s' % (server['name'], server['status'], server.get('fault')))
        ages = dict(zip(asked[3:], AGES))
        stage.grow_old(ages)
        check('hosts with room for a small server each')
        (victim,) = stage.cheapest(ages)
        home = cloud.server(victim)['OS-EXT-SRV-ATTR:host']
        makes_room(stage, ages, victim, 'large', 'live-migrate',
                   lambda server: server['OS-EXT-SRV-ATTR:host'] != home and server['OS-EXT-STS:task_state'] is None)
        until('the notice to be taken away', 30, lambda: not NOTICE_KEYS & set(cloud.server(victim)['metadata']))
        server = cloud.settled(victim)
        now = server['OS-EXT-SRV-ATTR:host']
        must(server['status'] == 'ACTIVE' and now in set(hosts) - {home}, 'the victim is %s' % server)
        afterwards(server, 'migrated')
        done_by(stage, victim, 'live-migration', 'create')
        moved = rows('select source_compute, dest_compute, status from nova_cell1.migrations where instance_uuid = %s', victim)
        must(moved == [{'source_compute': home, 'dest_compute': now, 'status': 'completed'}], "Nova's migrations of the victim are %s" % moved)
        check('a victim that moves')
        must(set(allocations()[victim]) == {(now, name) for name in ('VCPU', 'MEMORY_MB', 'DISK_GB')}, 'the victim holds %s' % allocations()[victim])
        audit()
        print('      live-migrate: from %s to %s, ACTIVE' % (home, now), flush=True)


def a_victim_with_nowhere_to_move(stage):
    """`live-migrate` on a full cloud: Nova finds no host for the victim, and it ends by the agent's
    `evacuation.live_migrate_fallback`, terminate."""
    with flavors(stage, 'live-migrate', ('moving.pre', 4, 8000, 80)):
        ages = stage.fill('moving.pre')
        (victim,) = stage.cheapest(ages)
        makes_room(stage, ages, victim, 'large', 'live-migrate', lambda server: server is None)
        must(set(stage.left(ages)) == set(ages) - {victim}, 'others have left, too')
        check('a victim with nowhere to move')
        audit()


CHAPTERS = [a_victim_that_stops, a_victim_that_hibernates, a_victim_that_moves, a_victim_with_nowhere_to_move]
