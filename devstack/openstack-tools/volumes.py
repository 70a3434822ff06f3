#!/usr/bin/python3
"""Chapters about volumes, for a cloud with Debian's Cinder (`up --cinder`): servers that boot from
a volume, which take no disk of their host, and volumes that are attached to victims.

Usage: volumes.py [CHAPTER…]
"""
import contextlib
import os

import processes
from cloud import Refused, until
from devices import foreseen
from interruptions import PREEMPTIBLE, afterwards, done_by, finds_no_host, makes_room
from invariants import allocations, audit, check, our_audit
from preempt import AGES, must
from story import arrives, scheduler_with, tell

HOSTS = ('compute1', 'compute2', 'compute3')
# All CPUs of a host are those of two servers of this size, and so is its disk, nearly.
LARGE = (4, 7500, 80)
# Nearly all disk of each host, and one CPU.
DISK = (1, 500, 160)
# A zone that only one backend of Cinder has (cinder.sh).
ZONE = 'east'
CHAPTERS = []


def chapter(function):
    CHAPTERS.append(function)
    return function


class Scene:
    """Volumes of one chapter, and flavors: `vol` with the CPUs of half a host and `disk` with the
    disk of a whole one are normal; `vol.BEHAVIOUR` and `disk.pre` are preemptible."""

    def __init__(self, stage):
        self.stage = stage
        self.cloud = stage.cloud

    def cinder(self, method, path, body=None):
        return self.cloud.request('block-storage', method, path, body)

    def volume(self, name, **options):
        """Makes a volume of 1 GiB."""
        body = {'volume': dict({'name': name, 'size': 1}, **options)}
        made = self.cinder('POST', '/volumes', body).json()['volume']['id']
        until('volume %s to be available' % name, 60,
              lambda: self.shown(made)['status'] == 'available')
        return made

    def bootable(self, name, **options):
        return self.volume(name, imageRef=self.cloud.image(), **options)

    def shown(self, volume):
        """A volume, or None when it is gone."""
        try:
            return self.cinder('GET', '/volumes/' + volume).json()['volume']
        except Refused as refused:
            if refused.status == 404:
                return None
            raise

    def volumes(self):
        return self.cinder('GET', '/volumes/detail?all_tenants=1').json()['volumes']

    def attachments(self, volume=None):
        """Cinder's own attachments: (volume, server, status) of each, of all volumes or of one."""
        found = self.cinder('GET', '/attachments/detail?all_tenants=1').json()['attachments']
        return sorted((one['volume_id'], one['instance'], one['status']) for one in found
                      if volume in (None, one['volume_id']))

    def attach(self, server, volume):
        self.cloud.nova('POST', '/servers/%s/os-volume_attachments' % server,
                        {'volumeAttachment': {'volumeId': volume}})
        until('volume %s to be attached' % volume, 30,
              lambda: (volume, server, 'attached') in self.attachments(volume))

    def roots(self, servers):
        """The volume that each server boots from: Nova names it, and Cinder has it attached."""
        found = {}
        for server in servers:
            listed = self.cloud.nova('GET', '/servers/%s/os-volume_attachments' % server).json()
            (found[server],) = [one['volumeId'] for one in listed['volumeAttachments']]
        self.in_use({server: [volume] for server, volume in found.items()})
        return found

    def in_use(self, held):
        """Volumes are attached to these servers, {server: volumes}, and each to no other; Cinder
        names the host of the server."""
        pairs = sorted((volume, server) for server, volumes in held.items() for volume in volumes)
        names = {volume for volume, _server in pairs}

        def attached():
            found = [one for one in self.attachments() if one[0] in names]
            return found == [(*pair, 'attached') for pair in pairs]
        until('attachments %s' % pairs, 30, attached)
        hosts = {server: self.cloud.server(server)['OS-EXT-SRV-ATTR:host'] for server in held}
        for volume in names:
            shown = self.shown(volume)
            must(shown['status'] == 'in-use', 'volume %s is %s' % (volume, shown['status']))
            told = {one['server_id']: one['host_name'] for one in shown['attachments']}
            must(told == {server: hosts[server] for one, server in pairs if one == volume},
                 'volume %s is attached to %s, and the hosts are %s' % (volume, told, hosts))

    def released(self, volume):
        """A volume is free again, without an attachment."""
        until('volume %s to be available' % volume, 60,
              lambda: self.shown(volume)['status'] == 'available')
        must(not self.attachments(volume), 'attached is %s' % self.attachments(volume))
        must(not self.shown(volume)['attachments'], 'the volume is %s' % self.shown(volume))

    def removed(self, volume):
        """A volume went with its server."""
        until('volume %s to be gone' % volume, 60, lambda: self.shown(volume) is None)
        must(not self.attachments(volume), 'attached is %s' % self.attachments(volume))

    def clear(self):
        """Removes all volumes; none may have an attachment without a server."""
        self.stage.clear()
        until('all attachments to be gone', 60, lambda: not self.attachments())
        for volume in self.volumes():
            if volume['status'] != 'deleting':
                self.cinder('DELETE', '/volumes/' + volume['id'])
        until('all volumes to be gone', 60, lambda: not self.volumes())


def from_image(cloud, stays=False):
    """Options of a server that boots from a new volume; `stays`: the volume outlives the server."""
    return on(uuid=cloud.image(), source_type='image', volume_size=1,
              delete_on_termination=not stays)


def on(**device):
    """Options of a server whose root disk is a volume."""
    return {'imageRef': '', 'block_device_mapping_v2': [
        dict({'boot_index': 0, 'source_type': 'volume', 'destination_type': 'volume'}, **device)]}


def without_disk(server):
    """A server that boots from a volume holds CPUs and memory in Placement, and no disk."""
    held = {name for _host, name in allocations()[server]}
    must(held == {'VCPU', 'MEMORY_MB'}, '%s holds %s' % (server, held))


@contextlib.contextmanager
def scene(stage):
    cloud = stage.cloud
    flavors = [cloud.flavor('vol', *LARGE), cloud.flavor('disk', *DISK),
               cloud.flavor('disk.pre', *DISK, specs=PREEMPTIBLE)]
    for behaviour in ('terminate', 'stop', 'hibernate', 'live-migrate'):
        specs = dict(PREEMPTIBLE, **{'ebbtide:interruption': behaviour})
        flavors.append(cloud.flavor('vol.' + behaviour, *LARGE, specs=specs))
    flavors.append(cloud.flavor('moving', 2, 3500, 80, specs=specs))
    flavors.append(cloud.flavor('whole', 4, 7500, 160))
    flavors.append(cloud.flavor('grown', 2, 1000, 100))
    cast = Scene(stage)
    try:
        must(not cast.volumes() and not cast.attachments(), 'Cinder has %s' % cast.volumes())
        yield cast
    finally:
        cast.clear()
        for flavor in flavors:
            cloud.nova('DELETE', '/flavors/' + flavor)


@chapter
def a_normal_server_on_a_volume(stage):
    """Preemptible servers hold all disk and most CPUs are left: a normal server that boots from a
    volume needs no disk, and no server leaves, neither for it nor when it grows. One with the same
    flavor that boots from its image takes the disk of the cheapest."""
    with scene(stage) as cast:
        cloud = stage.cloud
        ages = stage.fill_with([('disk.pre', {'host': host}) for host in HOSTS])
        server = cloud.boot('on-volume', 'vol', **from_image(cloud))
        must(server['status'] == 'ACTIVE', 'on a volume the server is %s: %s' % (
            server['status'], server.get('fault')))
        must(set(stage.left(ages)) == set(ages), 'left are %s' % stage.left(ages))
        without_disk(server['id'])
        cast.roots([server['id']])
        small = cloud.boot('growing', 'small', **from_image(cloud))
        cloud.action(small['id'], {'resize': {'flavorRef': 'grown'}})
        grown = cloud.settled(small['id'], ('VERIFY_RESIZE', 'ERROR', 'ACTIVE'), seconds=150)
        must(grown['status'] == 'VERIFY_RESIZE', 'the resize ended in %s: %s' % (
            grown['status'], grown.get('fault')))
        cloud.action(small['id'], {'confirmResize': None})
        cloud.settled(small['id'], ('ACTIVE', 'ERROR'))
        must(set(stage.left(ages)) == set(ages), 'left are %s' % stage.left(ages))
        check('servers on volumes beside a full disk')
        without_disk(small['id'])
        cast.roots([server['id'], small['id']])
        (victim,) = stage.cheapest(ages)
        makes_room(stage, ages, victim, 'disk', 'terminate', lambda server: server is None)
        must(set(stage.left(ages)) == set(ages) - {victim}, 'left are %s' % stage.left(ages))
        check('disk that changed hands')
        audit()
        print('      on a volume: no victim for disk; from its image the cheapest', flush=True)


@chapter
def a_server_on_a_volume_that_needs_cpus(stage):
    """Preemptible servers hold all CPUs. A normal server that boots from a volume, of several
    requests or of one, takes the CPUs of the cheapest; a what-if names it before."""
    with scene(stage) as cast:
        cloud = stage.cloud
        ages = stage.fill()
        (victim,) = stage.cheapest(ages)
        home = cloud.server(victim)['OS-EXT-SRV-ATTR:host']
        planned = foreseen(cloud, 'vol', boot_from_volume=True)
        must(planned == (home, {victim}), 'a what-if names %s, and the cheapest is %s on %s' % (
            planned, victim, home))
        newcomer = makes_room(stage, ages, victim, 'vol', 'terminate',
                              lambda server: server is None, **from_image(cloud))
        without_disk(newcomer['id'])
        cast.roots([newcomer['id']])
        ages = stage.left(ages)

        def begin():
            cloud.create('pair', 'vol', min_count=2, max_count=2, **from_image(cloud))
            return [server['id'] for server in cloud.servers(name='pair')]
        arrives(stage, ages, stage.cheapest(ages, 2), begin, 'two servers on volumes')
        roots = cast.roots([server['id'] for server in cloud.servers(name='pair')])
        must(len(set(roots.values())) == 2, 'the pair is on %s' % roots)
        audit()
        print('      CPUs for servers on volumes: three victims, no disk held', flush=True)


@chapter
def an_unshelving_on_a_volume(stage):
    """A normal server on a volume was shelved, and preemptible servers have taken all CPUs and
    disk. Its owner unshelves it: the cheapest leaves, and its volume is attached on its host."""
    with scene(stage) as cast:
        cloud = stage.cloud
        sleeper = cloud.boot('sleeper', 'vol', **from_image(cloud))['id']
        roots = cast.roots([sleeper])
        cloud.action(sleeper, {'shelve': None})
        shelved = cloud.settled(sleeper, ('SHELVED_OFFLOADED', 'ERROR'))
        must(shelved['status'] == 'SHELVED_OFFLOADED', 'sleeper is %s: %s' % (
            shelved['status'], shelved.get('fault')))
        ages = stage.fill()

        def begin():
            cloud.action(sleeper, {'unshelve': None})
            return [sleeper]
        arrives(stage, ages, stage.cheapest(ages), begin, 'an unshelving on a volume')
        without_disk(sleeper)
        must(cast.roots([sleeper]) == roots, 'the volume was %s' % roots)
        audit()


@chapter
def a_victim_on_a_volume(stage):
    """Preemptible servers that boot from volumes hold all CPUs and no disk. The cheapest leaves:
    its volume outlives it, free and without an attachment, where it was asked to, and goes with it
    otherwise. All other servers keep theirs."""
    with scene(stage) as cast:
        cloud = stage.cloud
        # The cheapest is the first, and the next one the fifth (AGES).
        ages = stage.fill_with([('vol.terminate', from_image(cloud, stays=n < 3))
                                for n in range(len(AGES))])
        roots = cast.roots(ages)
        for server in ages:
            without_disk(server)
        for ends in (cast.released, cast.removed):
            left = stage.left(ages)
            (victim,) = stage.cheapest(left)
            makes_room(stage, left, victim, 'vol', 'terminate', lambda server: server is None)
            must(set(stage.left(left)) == set(left) - {victim}, 'left are %s' % stage.left(left))
            ends(roots.pop(victim))
            cast.in_use({server: [volume] for server, volume in roots.items()})
        check('CPUs of servers on volumes')
        must(len(cast.attachments()) == len(roots), 'attachments are %s' % cast.attachments())
        audit()
        print('      volumes of victims: one free again, one removed, %d attached' % len(roots),
              flush=True)


@chapter
def no_disk_of_a_victim_on_a_volume(stage):
    """Each host has a preemptible server on a volume and one on its host's disk. A normal server
    that needs disk takes it of the cheapest of the latter, although one on a volume is the cheapest
    of all. Where only those on volumes are left, it gets NoValidHost, and none leaves."""
    with scene(stage) as cast:
        cloud = stage.cloud
        ages = stage.fill_with(
            [('vol.terminate', dict(from_image(cloud), host=host)) for host in HOSTS]
            + [('disk.pre', {'host': host}) for host in HOSTS])
        on_disk = dict(list(ages.items())[len(HOSTS):])
        on_volumes = {server: age for server, age in ages.items() if server not in on_disk}
        must(stage.cheapest(ages) <= set(on_volumes), 'the cheapest is on disk: %s' % ages)
        while on_disk:
            (victim,) = stage.cheapest(on_disk)
            left = {**on_volumes, **on_disk}
            makes_room(stage, left, victim, 'disk', 'terminate', lambda server: server is None)
            del on_disk[victim]
            must(set(stage.left(left)) == {*on_volumes, *on_disk}, 'left are %s' % stage.left(left))
        finds_no_host(stage, on_volumes, 'no-disk', 'disk')
        cast.roots(on_volumes)
        check('victims on volumes have no disk to give')
        our_audit()
        print('      disk: from servers on disk only, then NoValidHost, no notice', flush=True)


@chapter
def a_data_volume_of_a_victim(stage):
    """Preemptible servers have data volumes attached. The cheapest leaves; its volumes are free
    again, without attachments, and those of the others stay attached."""
    with scene(stage) as cast:
        ages = stage.fill()
        held = {server: [cast.volume('data-%d' % n)] for n, server in enumerate(ages)}
        (victim,) = stage.cheapest(ages)
        held[victim].append(cast.volume('data-more'))
        for server, volumes in held.items():
            for volume in volumes:
                cast.attach(server, volume)
        cast.in_use(held)
        makes_room(stage, ages, victim, 'large', 'terminate', lambda server: server is None)
        free = held.pop(victim)
        for volume in free:
            cast.released(volume)
        cast.in_use(held)
        check('a victim with data volumes')
        audit()
        print('      data volumes: %d free again, %d attached' % (len(free), len(held)), flush=True)


@chapter
def a_victim_on_a_volume_that_hibernates(stage):
    """A victim that boots from a volume is shelved: Nova offloads it at once and makes no image,
    and its volumes, root and data, stay reserved for it without a host. Once the newcomer is gone,
    its owner unshelves it, and they are attached again."""
    with scene(stage) as cast:
        cloud = stage.cloud
        images = cloud.request('image', 'GET', '/v2/images').json()['images']
        ages = stage.fill_with([('vol.hibernate', from_image(cloud))] * len(AGES))
        roots = cast.roots(ages)
        (victim,) = stage.cheapest(ages)
        data = cast.volume('data')
        cast.attach(victim, data)
        own = [roots[victim], data]
        newcomer = makes_room(stage, ages, victim, 'vol', 'shelve',
                              lambda server: server['status'] == 'SHELVED_OFFLOADED')
        server = cloud.settled(victim, ('SHELVED_OFFLOADED', 'ERROR'))
        afterwards(server, 'shelved')
        done_by(stage, victim, 'shelve', 'attach_volume', 'create')
        check('a victim on a volume that hibernates')
        must(victim not in allocations(), 'it holds %s' % allocations().get(victim))
        must(cloud.request('image', 'GET', '/v2/images').json()['images'] == images,
             'shelving a server on a volume has made an image')
        for volume in own:
            until('volume %s to be reserved' % volume, 30,
                  lambda volume=volume: cast.shown(volume)['status'] == 'reserved')
            must(cast.attachments(volume) == [(volume, victim, 'reserved')],
                 'of a shelved server attached is %s' % cast.attachments(volume))
        audit()
        cloud.delete(newcomer['id'])
        cloud.action(victim, {'unshelve': None})
        server = cloud.settled(victim, seconds=150)
        must(server['status'] == 'ACTIVE', 'after unshelving the victim is %s: %s' % (
            server['status'], server.get('fault')))
        cast.in_use({victim: own})
        without_disk(victim)
        check('a victim on a volume that was unshelved')
        audit()
        print('      hibernate: volumes reserved, and attached again after unshelving', flush=True)


@chapter
def a_victim_on_a_volume_that_stops(stage):
    """A victim that boots from a volume is stopped: it holds nothing in Placement any more, and its
    volume stays attached to it on its host."""
    with scene(stage) as cast:
        cloud = stage.cloud
        ages = stage.fill_with([('vol.stop', from_image(cloud))] * len(AGES))
        roots = cast.roots(ages)
        (victim,) = stage.cheapest(ages)
        makes_room(stage, ages, victim, 'vol', 'stop',
                   lambda server: server['status'] == 'SHUTOFF')
        afterwards(cloud.settled(victim, ('SHUTOFF', 'ERROR')), 'stopped')
        check('a victim on a volume that stops', stopped={victim})
        must(victim not in allocations(), 'it holds %s' % allocations().get(victim))
        cast.in_use({server: [volume] for server, volume in roots.items()})
        # Nova's heal_allocations would give back what is another server's now.
        our_audit()
        print('      stop: nothing held in Placement, the volume attached', flush=True)


@chapter
def victims_on_volumes_that_come_back(stage):
    """[ebbtide] comeback: of victims that boot from volumes, one that was stopped and one that was
    shelved run again when there is room, with their CPUs, memory and volumes."""
    options = 'comeback_first = 2', 'comeback_reserve_percent = 0'
    with scene(stage) as cast, scheduler_with('comeback', *options):
        cloud = stage.cloud
        for flavor, said, status in (('vol.stop', 'stop', 'SHUTOFF'),
                                     ('vol.hibernate', 'shelve', 'SHELVED_OFFLOADED')):
            ages = stage.fill_with([(flavor, from_image(cloud))] * len(AGES))
            (victim,) = stage.cheapest(ages)
            root = cast.roots([victim])
            whole = sorted(allocations()[victim].values())
            newcomer = makes_room(stage, ages, victim, 'vol', said,
                                  lambda server, status=status: server['status'] == status)
            cloud.delete(newcomer['id'])
            until('the victim to run again', 120,
                  lambda: cloud.server(victim)['status'] == 'ACTIVE')
            until('its whole claim', 30,
                  lambda: sorted(allocations().get(victim, {}).values()) == whole)
            without_disk(victim)
            must(cast.roots([victim]) == root, 'the volume was %s' % root)
            check('a victim on a volume that came back')
            audit()
            print('      %s: it came back with its volume' % said, flush=True)
            stage.clear()


@chapter
def a_victim_on_a_volume_that_moves(stage):
    """A victim that boots from a volume is live-migrated to another host, whose disk is full.
    Cinder has its volumes attached there and nowhere else."""
    with scene(stage) as cast:
        cloud = stage.cloud
        # Of each host's 8 CPUs 2 are free, and of its disk nothing that counts.
        moving = stage.fill_with([('moving', dict(from_image(cloud), host=host)) for host in HOSTS])
        for host in HOSTS:
            server = cloud.boot('beside-' + host, 'whole', host=host)
            must(server['status'] == 'ACTIVE', '%s is %s: %s' % (
                server['name'], server['status'], server.get('fault')))
        (victim,) = stage.cheapest(moving)
        home = cloud.server(victim)['OS-EXT-SRV-ATTR:host']
        data = cast.volume('data')
        (root,) = cast.roots([victim]).values()
        cast.attach(victim, data)
        newcomer = makes_room(
            stage, moving, victim, 'vol', 'live-migrate',
            lambda server: server['OS-EXT-SRV-ATTR:host'] != home
            and server['OS-EXT-STS:task_state'] is None, **from_image(cloud))
        server = cloud.settled(victim)
        must(server['status'] == 'ACTIVE', 'the victim is %s: %s' % (
            server['status'], server.get('fault')))
        afterwards(server, 'migrated')
        cast.in_use({victim: [root, data]})
        cast.roots([newcomer['id']])
        without_disk(victim)
        check('a victim on a volume that moves')
        audit()
        print('      live-migrate: volumes from %s to %s' % (
            home, server['OS-EXT-SRV-ATTR:host']), flush=True)


@chapter
def a_volume_of_several_servers(stage):
    """A volume is attached to two preemptible servers on two hosts. One of them leaves for a normal
    server, which has the same volume from its boot on; the other one keeps it."""
    with scene(stage) as cast:
        cloud = stage.cloud
        ages = stage.fill()
        hosts = {server: cloud.server(server)['OS-EXT-SRV-ATTR:host'] for server in ages}
        (victim,) = stage.cheapest(ages)
        other = next(server for server in ages if hosts[server] != hosts[victim])
        shared = cast.volume('shared', volume_type='multiattach')
        for server in (victim, other):
            cast.attach(server, shared)
        cast.in_use({victim: [shared], other: [shared]})
        local = {'boot_index': 0, 'source_type': 'image', 'destination_type': 'local',
                 'uuid': cloud.image(), 'delete_on_termination': True}
        data = {'source_type': 'volume', 'destination_type': 'volume', 'uuid': shared}
        newcomer = makes_room(stage, ages, victim, 'large', 'terminate',
                              lambda server: server is None,
                              block_device_mapping_v2=[local, data])
        cast.in_use({newcomer['id']: [shared], other: [shared]})
        check('a volume of several servers')
        audit()
        print('      multiattach: from a victim on %s to the newcomer; %s keeps it' % (
            hosts[victim], hosts[other]), flush=True)


@chapter
def a_zone_of_a_volume(stage):
    """Where Nova attaches no volumes of other zones (`cross_az_attach`), a request without a zone
    for a server on a volume of `east` is one for that zone: the cheapest preemptible server there
    leaves, although a cheaper one runs in the other zone."""
    cloud = stage.cloud
    made = cloud.nova('POST', '/os-aggregates', {'aggregate': {
        'name': ZONE, 'availability_zone': ZONE}}).json()['aggregate']['id']
    aggregate = '/os-aggregates/%s' % made
    cloud.nova('POST', aggregate + '/action', {'add_host': {'host': HOSTS[1]}})
    processes.restart('nova-api', environment={'OS_CINDER__CROSS_AZ_ATTACH': 'false'})
    try:
        processes.wait_for_port('nova-api', os.environ['STACK_PORT_NOVA'])
        with scene(stage) as cast:
            ages = stage.fill_with([('large.preemptible', {'host': host})
                                    for host in HOSTS for _ in range(2)])
            here = {server: age for server, age in ages.items()
                    if cloud.server(server)['OS-EXT-SRV-ATTR:host'] == HOSTS[1]}
            (victim,) = stage.cheapest(here)
            must(stage.cheapest(ages) != {victim}, 'the cheapest of all is in %s' % ZONE)
            root = cast.bootable('root', availability_zone=ZONE)
            newcomer = makes_room(stage, ages, victim, 'vol', 'terminate',
                                  lambda server: server is None, **on(uuid=root))
            zone = newcomer['OS-EXT-AZ:availability_zone']
            must(zone == ZONE, 'the newcomer is in zone %s' % zone)
            cast.in_use({newcomer['id']: [root]})
            check('a server in the zone of its volume')
            audit()
            print('      zone of a volume: the cheapest of %s' % zone, flush=True)
    finally:
        processes.restart('nova-api')
        processes.wait_for_port('nova-api', os.environ['STACK_PORT_NOVA'])
        cloud.nova('POST', aggregate + '/action', {'remove_host': {'host': HOSTS[1]}})
        cloud.nova('DELETE', aggregate)


if __name__ == '__main__':
    tell(CHAPTERS)
