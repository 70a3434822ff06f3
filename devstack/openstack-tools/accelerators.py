#!/usr/bin/python3
"""Chapters about accelerators of Cyborg's device profiles, for a cloud with Cyborg (`up --cyborg`):
each host has two cards with one accelerator each, and a provider in Placement for each card.

Usage: accelerators.py [CHAPTER…]
"""
import contextlib

from cloud import Refused, until
from database import one
from devices import foreseen
from interruptions import PREEMPTIBLE, finds_no_host, makes_room
from invariants import allocations, audit, check, our_audit
from preempt import AGES, must, started_minutes
from story import arrives, tell

HOSTS, CARDS_A_HOST = 3, 2
# What a profile's group asks for, and what a card has: its driver names the trait.
ACCELERATOR = {'resources:FPGA': '1', 'trait:CUSTOM_FAKE_DEVICE': 'required'}
# The groups of each profile, which the flavor `accel.NAME` asks for.
PROFILES = {'one': [ACCELERATOR], 'two': [ACCELERATOR] * 2, 'three': [ACCELERATOR] * 3,
            'pair': [dict(ACCELERATOR, **{'resources:FPGA': '2'})]}
# The flavors `accel.BEHAVIOUR` are preemptible, with the profile `one`.
BEHAVIOURS = ('terminate', 'stop', 'hibernate', 'live-migrate')
CHAPTERS = []


def chapter(function):
    CHAPTERS.append(function)
    return function


class Scene:
    """Hosts with cards, profiles for accelerators of them, and small flavors: only `accel.cpus`
    finds too few CPUs, and memory and disk are never short."""

    def __init__(self, stage, cards):
        self.stage = stage
        # The host of each card's provider.
        self.cards = cards

    def fill(self, *behaviours):
        """Preemptible servers that hold every accelerator: their ages, and the devices of each.
        Each host has one that leaves by each of `behaviours`."""
        behaviours = behaviours or ('terminate',) * CARDS_A_HOST
        hosts = sorted(set(self.cards.values()))
        made = []
        # One after the other on a host: a request gets Placement's first candidate, as in Nova, and
        # of two requests with the same candidate the second one fails.
        for behaviour in behaviours:
            flavor = 'accel.' + behaviour
            made += self.stage.fill_with([(flavor, {'host': host}) for host in hosts])
        ages = dict(zip(made, AGES))
        self.stage.grow_old(ages)
        devices = {server: self.bound(server) for server in ages}
        must([self.host(held) for held in devices.values()] == hosts * len(behaviours),
             'the servers hold %s' % devices)
        must(set().union(*devices.values()) == set(self.cards), 'the servers hold %s' % devices)
        self.in_use(dict.fromkeys(ages, 1))
        return ages, devices

    def host(self, devices):
        """The host of one server's devices."""
        (host,) = {self.cards[card] for card in devices}
        return host

    def bound(self, server, count=1):
        """The `count` cards that a server holds in Placement, each with its host and the address of
        the device there: Cyborg's requests for the server must be bound to the same cards."""
        held = {provider: amounts for provider, amounts
                in self.stage.cloud.allocations(server).items() if provider in self.cards}
        must(list(held.values()) == [{'FPGA': 1}] * count, '%s holds cards %s' % (server, held))
        arqs = requests_of(self.stage.cloud).get(server, [])
        must(len(arqs) == count and {arq['state'] for arq in arqs} == {'Bound'},
             'Cyborg has for %s: %s' % (server, arqs))
        bound = {arq['device_rp_uuid']: (arq['hostname'], address(arq)) for arq in arqs}
        must({card: host for card, (host, _device) in bound.items()}
             == {card: self.cards[card] for card in held},
             '%s holds %s in Placement and %s in Cyborg' % (server, held, bound))
        return bound

    def in_use(self, counts):
        """Cyborg has requests of these servers, so many of each, and no other device in use."""
        def as_expected():
            arqs = requests_of(self.stage.cloud)
            found = {server: len(of_server) for server, of_server in arqs.items()}
            handles = one('select count(*) from cyborg.attach_handles where in_use')
            return found == counts and handles == sum(counts.values())
        until('Cyborg to have devices in use for %s' % counts, 30, as_expected)

    def changed_hands(self, newcomers, freed, others):
        """The newcomers, {server: count}, hold exactly the devices `freed`; `others`, {server:
        devices}, hold what they held; nothing else is in use. Then the cloud is audited."""
        after = {}
        for server, count in newcomers.items():
            after.update(self.bound(server, count))
        must(after == freed, 'the newcomers hold %s, and free were %s' % (after, freed))
        self.kept(others)
        self.in_use({**dict.fromkeys(others, 1), **newcomers})
        check('accelerators that changed hands')
        audit(heals=False)

    def kept(self, devices):
        """Servers hold these devices."""
        now = {server: self.bound(server) for server in devices}
        must(now == devices, 'servers hold %s, and held %s' % (now, devices))


def requests_of(cloud):
    """Cyborg's requests for accelerators (ARQs), by server; None for those without one."""
    found = {}
    for arq in cloud.request('accelerator', 'GET', '/accelerator_requests').json()['arqs']:
        found.setdefault(arq['instance_uuid'], []).append(arq)
    return found


def address(arq):
    """The PCI address of a bound request's device on its host."""
    return '{domain}:{bus}:{device}.{function}'.format(**arq['attach_handle_info'])


def device_profile(cloud, name, groups):
    """Makes a device profile when it is not there."""
    path = '/device_profiles'
    if not cloud.request('accelerator', 'GET', path + '?name=' + name).json()['device_profiles']:
        cloud.request('accelerator', 'POST', path, [{'name': name, 'groups': groups}])


def cards_of(cloud):
    """The host of each card: Cyborg has written their providers below those of the hosts."""
    providers = cloud.providers().values()
    names = {provider['uuid']: provider['name'] for provider in providers}
    cards = {provider['uuid']: names[provider['parent_provider_uuid']]
             for provider in providers if provider['parent_provider_uuid']}
    must(len(cards) == HOSTS * CARDS_A_HOST and len(set(cards.values())) == HOSTS,
         'the cards are %s' % cards)
    return cards


@contextlib.contextmanager
def scene(stage):
    cloud = stage.cloud
    made = Scene(stage, cards_of(cloud))
    flavors = []

    def flavor(name, specs=None, vcpus=1):
        flavors.append(cloud.flavor('accel.' + name, vcpus, 500, 1, specs))
    try:
        for name, groups in PROFILES.items():
            device_profile(cloud, name, groups)
            flavor(name, {'accel:device_profile': name})
        for behaviour in BEHAVIOURS:
            flavor(behaviour, dict(PREEMPTIBLE, **{
                'accel:device_profile': 'one', 'ebbtide:interruption': behaviour}))
        flavor('none')
        # All CPUs of a host (settings.sh) but one: with two servers there, one too many.
        flavor('cpus', vcpus=7)
        # What-ifs know no profiles: this asks for an accelerator by its flavor.
        flavor('what-if', {key.replace(':', '1:', 1): value for key, value in ACCELERATOR.items()})
        # The scheduler lists Placement's providers from time to time.
        until('the scheduler to know of the accelerators', 120,
              lambda: foreseen(cloud, 'accel.what-if'))
        yield made
    finally:
        stage.clear()
        for made_flavor in flavors:
            cloud.nova('DELETE', '/flavors/' + made_flavor)


@chapter
def an_accelerator_that_a_normal_server_needs(stage):
    """Preemptible servers hold every accelerator, and CPUs, memory and disk are left. A normal
    server with a profile gets the very device of the cheapest, and no other server leaves; one
    without a profile takes none. A what-if refuses the profile."""
    with scene(stage) as cast:
        cloud = stage.cloud
        ages, devices = cast.fill()
        plain = cloud.boot('no-accelerator', 'accel.none')
        must(plain['status'] == 'ACTIVE' and len(stage.left(ages)) == len(ages),
             'a server without an accelerator is %s' % plain)
        (victim,) = stage.cheapest(ages)
        freed = devices.pop(victim)
        planned = foreseen(cloud, 'accel.what-if')
        must(planned == (cast.host(freed), {victim}),
             'a what-if names %s, and the cheapest is %s' % (planned, victim))
        try:
            planned = foreseen(cloud, 'accel.one')
        except Refused as refused:
            must(refused.status == 501 and 'EB-SERVICE-014' in str(refused),
                 'a what-if with a profile: %s' % refused)
        else:
            must(False, 'a what-if with a profile names %s' % (planned,))
        newcomer = makes_room(stage, ages, victim, 'accel.one', 'terminate',
                              lambda server: server is None)
        must(set(stage.left(ages)) == set(devices), 'left are %s' % stage.left(ages))
        cast.changed_hands({newcomer['id']: 1}, freed, devices)
        must(set(allocations()) == {*devices, newcomer['id'], plain['id']},
             'Placement has %s' % sorted(allocations()))
        ((host, device),) = freed.values()
        print('      an accelerator: %s of %s, from the cheapest of %d servers' % (
            device, host, len(ages)), flush=True)


@chapter
def a_profile_of_two_groups(stage):
    """A normal server whose profile has two groups needs both cards of a host: of the pairs of
    servers on one host the cheapest leaves, and the server gets the devices of both."""
    with scene(stage) as cast:
        ages, devices = cast.fill()
        pairs = {}
        for server, held in devices.items():
            pairs.setdefault(cast.host(held), set()).add(server)
        chosen = min(pairs, key=lambda host: sum(map(started_minutes, map(ages.get, pairs[host]))))
        newcomers = []

        def begin():
            newcomers.append(stage.cloud.create('two-accelerators', 'accel.two'))
            return newcomers
        arrives(stage, ages, pairs[chosen], begin, 'a profile of two groups')
        freed = {card: device for victim in pairs[chosen]
                 for card, device in devices.pop(victim).items()}
        cast.changed_hands({newcomers[0]: 2}, freed, devices)
        print('      two groups: both cards of %s, from two servers' % chosen, flush=True)


def three_at_once(stage, begin, what):
    """`begin` asks for three normal servers, which get the devices of the three cheapest."""
    with scene(stage) as cast:
        ages, devices = cast.fill()
        victims = stage.cheapest(ages, 3)
        newcomers = []

        def remembered():
            newcomers.extend(begin(stage.cloud))
            return newcomers
        arrives(stage, ages, victims, remembered, what)
        must(len(newcomers) == 3, 'of three servers there are %s' % newcomers)
        freed = {card: device for victim in victims
                 for card, device in devices.pop(victim).items()}
        cast.changed_hands(dict.fromkeys(newcomers, 1), freed, devices)


@chapter
def three_servers_of_one_request(stage):
    """Three normal servers of one request get the devices of the three cheapest."""
    def begin(cloud):
        cloud.create('trio', 'accel.one', min_count=3, max_count=3)
        return [server['id'] for server in cloud.servers(name='trio')]
    three_at_once(stage, begin, 'three servers of one request')


@chapter
def three_requests_at_once(stage):
    """Three normal servers of three requests get the devices of the three cheapest."""
    def begin(cloud):
        return [cloud.create('solo%d' % n, 'accel.one') for n in range(3)]
    three_at_once(stage, begin, 'three requests at once')


@chapter
def two_requests_and_one_free_accelerator(stage):
    """One accelerator is free, and two normal servers ask for one at the same time: one gets the
    free device, the other that of the cheapest preemptible server."""
    with scene(stage) as cast:
        cloud = stage.cloud
        ages, devices = cast.fill()
        gone = list(ages)[-1]
        freed = devices.pop(gone)
        cloud.delete(gone)
        del ages[gone]
        check('one free accelerator')
        (victim,) = stage.cheapest(ages)
        newcomers = []

        def begin():
            newcomers.extend(cloud.create('solo%d' % n, 'accel.one') for n in range(2))
            return newcomers
        arrives(stage, ages, {victim}, begin, 'two requests, one free accelerator')
        freed.update(devices.pop(victim))
        cast.changed_hands(dict.fromkeys(newcomers, 1), freed, devices)


@chapter
def more_accelerators_than_a_host_has(stage):
    """A profile of three groups, where a host has two cards, and one of two accelerators of one
    card, where each has one: NoValidHost, no server gets a notice, and none leaves."""
    with scene(stage) as cast:
        ages, devices = cast.fill()
        for profile in ('three', 'pair'):
            finds_no_host(stage, ages, 'too-many', 'accel.' + profile)
        cast.kept(devices)
        cast.in_use(dict.fromkeys(devices, 1))
        check('profiles that want too much')
        our_audit()
        print('      more than a host has: NoValidHost, no notice', flush=True)


@chapter
def accelerators_by_behaviour(stage):
    """Each host has a server that would stop and one that would hibernate. A stopped server keeps
    its accelerator, so the cheapest of the others is the victim, although it is not the cheapest of
    all. Once the newcomer is deleted, the owner unshelves the victim, which gets a device again."""
    with scene(stage) as cast:
        cloud = stage.cloud
        ages, devices = cast.fill('stop', 'hibernate')
        hibernating = dict(list(ages.items())[HOSTS:])
        (victim,) = stage.cheapest(hibernating)
        must(not stage.cheapest(ages) <= set(hibernating),
             'the cheapest of all does not stop: %s' % ages)
        newcomer = makes_room(stage, ages, victim, 'accel.one', 'shelve',
                              lambda server: server['status'] == 'SHELVED_OFFLOADED')
        cloud.settled(victim, ('SHELVED_OFFLOADED', 'ERROR'))
        others = {server: held for server, held in devices.items() if server != victim}
        cast.changed_hands({newcomer['id']: 1}, devices[victim], others)
        held = allocations().get(victim)
        must(not held, 'a shelved server holds %s' % held)
        cloud.delete(newcomer['id'])
        cloud.action(victim, {'unshelve': None})
        server = cloud.settled(victim, seconds=150)
        must(server['status'] == 'ACTIVE', 'after unshelving the victim is %s: %s' % (
            server['status'], server.get('fault')))
        # The only free device is the one that it had.
        cast.changed_hands({victim: 1}, devices[victim], others)
        print('      hibernate: a device of %s, and back when the newcomer was gone' % (
            cast.host(devices[victim])), flush=True)


@chapter
def a_stopped_victim_keeps_its_accelerator(stage):
    """Every preemptible server would stop. A normal one that needs an accelerator gets NoValidHost,
    and none is stopped for it. One that needs CPUs stops the cheapest, which keeps its device in
    Cyborg, and in Placement its device and its disk."""
    with scene(stage) as cast:
        ages, devices = cast.fill(*['stop'] * CARDS_A_HOST)
        finds_no_host(stage, ages, 'too-late', 'accel.one')
        (victim,) = stage.cheapest(ages)
        makes_room(stage, ages, victim, 'accel.cpus', 'stop',
                   lambda server: server['status'] == 'SHUTOFF')
        check('a stopped victim with an accelerator', stopped={victim})
        held = sorted(map(sorted, stage.cloud.allocations(victim).values()))
        must(held == [['DISK_GB'], ['FPGA']], 'a stopped victim holds %s' % held)
        cast.kept(devices)
        cast.in_use(dict.fromkeys(devices, 1))
        audit(heals=False)
        print('      stop: no victim for an accelerator, and one for CPUs keeps its device',
              flush=True)


@chapter
def a_victim_that_nova_does_not_move(stage):
    """Nova refuses to live-migrate a server with an accelerator: a victim of this behaviour ends by
    the agent's fallback, terminate, and the newcomer gets its device."""
    with scene(stage) as cast:
        ages, devices = cast.fill(*['live-migrate'] * CARDS_A_HOST)
        (victim,) = stage.cheapest(ages)
        freed = devices.pop(victim)
        try:
            stage.cloud.action(victim, {
                'os-migrateLive': {'host': None, 'block_migration': 'auto'}})
        except Refused as refused:
            must(refused.status == 400 and 'accelerators' in str(refused),
                 'Nova refuses a live migration with %s' % refused)
        else:
            must(False, 'Nova live-migrates a server with an accelerator')
        newcomer = makes_room(stage, ages, victim, 'accel.one', 'live-migrate',
                              lambda server: server is None)
        must(set(stage.left(ages)) == set(devices), 'left are %s' % stage.left(ages))
        cast.changed_hands({newcomer['id']: 1}, freed, devices)
        print('      live-migrate: refused by Nova, and terminated on %s' % cast.host(freed),
              flush=True)


@chapter
def an_unshelving_that_needs_an_accelerator(stage):
    """A normal server with an accelerator was shelved, and preemptible servers have taken all. Its
    owner unshelves it: it gets the device of the cheapest."""
    with scene(stage) as cast:
        cloud = stage.cloud
        sleeper = cloud.boot('sleeper', 'accel.one')
        must(sleeper['status'] == 'ACTIVE', 'sleeper is %s: %s' % (
            sleeper['status'], sleeper.get('fault')))
        cloud.action(sleeper['id'], {'shelve': None})
        sleeper = cloud.settled(sleeper['id'], ('SHELVED_OFFLOADED', 'ERROR'))
        must(sleeper['status'] == 'SHELVED_OFFLOADED', 'sleeper is %s: %s' % (
            sleeper['status'], sleeper.get('fault')))
        ages, devices = cast.fill()
        (victim,) = stage.cheapest(ages)
        freed = devices.pop(victim)

        def begin():
            cloud.action(sleeper['id'], {'unshelve': None})
            return [sleeper['id']]
        arrives(stage, ages, {victim}, begin, 'an unshelving that needs an accelerator')
        cast.changed_hands({sleeper['id']: 1}, freed, devices)


if __name__ == '__main__':
    tell(CHAPTERS)
