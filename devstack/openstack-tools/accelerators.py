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
# The groups of each profile, which a flavor of the same name after `accel.` asks for.
PROFILES = {'one': [ACCELERATOR], 'two': [ACCELERATOR] * 2, 'three': [ACCELERATOR] * 3,
            'pair': [dict(ACCELERATOR, **{'resources:FPGA': '2'})]}
BEHAVIOURS = ('terminate', 'stop', 'hibernate', 'live-migrate')
CHAPTERS = []


def chapter(function):
    CHAPTERS.append(function)
    return function


class Scene:
    """Hosts with cards, profiles for accelerators of them, and small flavors: CPUs, memory and disk
    are never short."""

    def __init__(self, stage, cards):
        self.stage = stage
        # The host of each card's provider.
        self.cards = cards

    def fill(self, *behaviours):
        """Preemptible servers that hold every accelerator; {server: age}. Each host has one that
        leaves by each of `behaviours`."""
        behaviours = behaviours or ('terminate',) * CARDS_A_HOST
        hosts = sorted(set(self.cards.values()))
        made = []
        # One after the other on a host: a request gets Placement's first candidate, as in Nova, and
        # of two that Placement offers the same card the second one fails.
        for behaviour in behaviours:
            made += self.stage.fill_with([('accel.' + behaviour, {'host': host}) for host in hosts])
        ages = dict(zip(made, AGES))
        self.stage.grow_old(ages)
        held = {server: self.bound(server) for server in ages}
        must([{self.cards[card] for card in found} for found in held.values()] == [{host} for host in hosts] * len(behaviours),
             'the servers hold %s' % held)
        must(set().union(*held.values()) == set(self.cards), 'the servers hold %s of %s' % (held, self.cards))
        self.in_order(ages)
        return ages

    def bound(self, server, count=1):
        """The `count` cards that a server holds in Placement, with the device of each by Cyborg's
        request for it, which must be bound there."""
        held = {provider: amounts for provider, amounts in self.stage.cloud.allocations(server).items() if provider in self.cards}
        must(list(held.values()) == [{'FPGA': 1}] * count, '%s holds accelerators of %s' % (server, held))
        arqs = requests_of(self.stage.cloud).get(server, [])
        must(len(arqs) == count and {arq['state'] for arq in arqs} == {'Bound'}, 'Cyborg has for %s: %s' % (server, arqs))
        bound = {arq['device_rp_uuid']: (arq['hostname'], address(arq)) for arq in arqs}
        must({card: host for card, (host, _device) in bound.items()} == {card: self.cards[card] for card in held},
             '%s holds %s in Placement and %s in Cyborg' % (server, held, bound))
        return bound

    def in_order(self, servers, accelerators=1):
        """Cyborg has requests of these servers only, and no other device in use."""
        expected = dict.fromkeys(servers, accelerators) if isinstance(accelerators, int) else accelerators

        def as_expected():
            found = {server: len(arqs) for server, arqs in requests_of(self.stage.cloud).items()}
            in_use = one('select count(*) from cyborg.attach_handles where in_use')
            return found == expected and in_use == sum(expected.values())
        until('Cyborg to have devices in use for %s' % expected, 30, as_expected)


def requests_of(cloud):
    """Cyborg's requests for accelerators (ARQs) by server; None for those without one."""
    found = {}
    for arq in cloud.request('accelerator', 'GET', '/accelerator_requests').json()['arqs']:
        found.setdefault(arq['instance_uuid'], []).append(arq)
    return found


def address(arq):
    """The PCI address of a bound request's device on its host."""
    return '{domain}:{bus}:{device}.{function}'.format(**arq['attach_handle_info'])


def profile(cloud, name, groups):
    """Makes a device profile when it is not there."""
    found = cloud.request('accelerator', 'GET', '/device_profiles?name=' + name).json()['device_profiles']
    if not found:
        cloud.request('accelerator', 'POST', '/device_profiles', [{'name': name, 'groups': groups}])


def cards_of(cloud):
    """The host of each card, as Cyborg has written their providers below the hosts' own."""
    providers = cloud.providers().values()
    names = {provider['uuid']: provider['name'] for provider in providers}
    cards = {provider['uuid']: names[provider['parent_provider_uuid']] for provider in providers if provider['parent_provider_uuid']}
    must(len(cards) == HOSTS * CARDS_A_HOST and len(set(cards.values())) == HOSTS, 'the cards are %s' % cards)
    return cards


@contextlib.contextmanager
def scene(stage):
    cloud = stage.cloud
    flavors = []
    try:
        made = Scene(stage, cards_of(cloud))
        for name, groups in PROFILES.items():
            profile(cloud, name, groups)
            flavors.append(cloud.flavor('accel.' + name, 1, 500, 1, {'accel:device_profile': name}))
        for behaviour in BEHAVIOURS:
            specs = dict(PREEMPTIBLE, **{'accel:device_profile': 'one', 'ebbtide:interruption': behaviour})
            flavors.append(cloud.flavor('accel.' + behaviour, 1, 500, 1, specs))
        flavors.append(cloud.flavor('accel.none', 1, 500, 1))
        # What-ifs know no profiles: this asks for an accelerator by its flavor.
        numbered = {key.replace(':', '1:', 1): value for key, value in ACCELERATOR.items()}
        flavors.append(cloud.flavor('accel.what-if', 1, 500, 1, numbered))
        # The scheduler lists Placement's providers from time to time.
        until('the scheduler to know of the accelerators', 120, lambda: foreseen(cloud, 'accel.what-if'))
        yield made
    finally:
        stage.clear()
        for flavor in flavors:
            cloud.nova('DELETE', '/flavors/' + flavor)


@chapter
def an_accelerator_that_a_normal_server_needs(stage):
    """Preemptible servers hold every accelerator, and CPUs, memory and disk are left. A normal
    server with such a profile gets the very device of the cheapest; no other server leaves. A
    server without a profile takes none. A what-if refuses the profile."""
    with scene(stage) as cast:
        ages = cast.fill()
        before = {server: cast.bound(server) for server in ages}
        plain = stage.cloud.boot('no-accelerator', 'accel.none')
        must(plain['status'] == 'ACTIVE' and len(stage.left(ages)) == len(ages), 'a server without an accelerator is %s' % plain)
        (victim,) = stage.cheapest(ages)
        (card,) = before[victim]
        planned = foreseen(stage.cloud, 'accel.what-if')
        must(planned == (cast.cards[card], {victim}), 'a what-if names %s, and the cheapest is %s' % (planned, victim))
        try:
            planned = foreseen(stage.cloud, 'accel.one')
        except Refused as refused:
            must(refused.status == 501 and 'EB-SERVICE-014' in str(refused), 'a what-if with a profile: %s' % refused)
        else:
            must(False, 'a what-if with a profile names %s' % (planned,))
        newcomer = makes_room(stage, ages, victim, 'accel.one', 'terminate', lambda server: server is None)
        must(set(stage.left(ages)) == set(ages) - {victim}, 'left are %s' % stage.left(ages))
        after = cast.bound(newcomer['id'])
        must(after == before[victim], 'the newcomer holds %s, and the victim held %s' % (after, before[victim]))
        del before[victim]
        must({server: cast.bound(server) for server in before} == before, 'others hold other accelerators')
        cast.in_order([*before, newcomer['id']])
        check('an accelerator that changed hands')
        must(set(allocations()) == {*before, newcomer['id'], plain['id']}, 'Placement has %s' % sorted(allocations()))
        audit(heals=False)
        print('      an accelerator: %s of %s, from the cheapest of %d servers' % (
            after[card][1], cast.cards[card], len(ages)), flush=True)


@chapter
def a_profile_of_two_groups(stage):
    """A normal server whose profile has two groups needs both cards of a host: of the pairs of
    servers on one host the cheapest leaves, and the server gets the devices of both."""
    with scene(stage) as cast:
        ages = cast.fill()
        before = {server: cast.bound(server) for server in ages}
        pairs = {host: {server for server in ages if {cast.cards[card] for card in before[server]} == {host}} for host in cast.cards.values()}
        chosen = min(pairs, key=lambda host: sum(started_minutes(ages[server]) for server in pairs[host]))
        asked = []

        def begin():
            asked.append(stage.cloud.create('two-accelerators', 'accel.two'))
            return asked
        arrives(stage, ages, pairs[chosen], begin, 'a profile of two groups')
        after = cast.bound(asked[0], 2)
        freed = {card: device for server in pairs[chosen] for card, device in before.pop(server).items()}
        must(after == freed, 'the newcomer holds %s, and the pair held %s' % (after, freed))
        must({server: cast.bound(server) for server in before} == before, 'others hold other accelerators')
        cast.in_order([], {**dict.fromkeys(before, 1), asked[0]: 2})
        audit(heals=False)
        print('      two groups: both cards of %s, from two servers' % chosen, flush=True)


@chapter
def three_servers_at_once(stage):
    """Three normal servers of one request get the devices of the three cheapest."""
    with scene(stage) as cast:
        cloud = stage.cloud
        ages = cast.fill()
        before = {server: cast.bound(server) for server in ages}
        victims = stage.cheapest(ages, 3)

        def begin():
            cloud.create('trio', 'accel.one', min_count=3, max_count=3)
            return [server['id'] for server in cloud.servers(name='trio')]
        arrives(stage, ages, victims, begin, 'three servers at once')
        newcomers = [server['id'] for server in cloud.servers(name='trio')]
        must(len(newcomers) == 3, 'of three servers there are %s' % newcomers)
        after = {card: device for server in newcomers for card, device in cast.bound(server).items()}
        freed = {card: device for server in victims for card, device in before.pop(server).items()}
        must(after == freed, 'the newcomers hold %s, and the victims held %s' % (after, freed))
        must({server: cast.bound(server) for server in before} == before, 'others hold other accelerators')
        cast.in_order([*before, *newcomers])
        audit(heals=False)


@chapter
def three_requests_at_once(stage):
    """The same with three requests at the same time."""
    with scene(stage) as cast:
        cloud = stage.cloud
        ages = cast.fill()
        before = {server: cast.bound(server) for server in ages}
        victims = stage.cheapest(ages, 3)
        newcomers = []

        def begin():
            newcomers.extend(cloud.create('solo%d' % n, 'accel.one') for n in range(3))
            return newcomers
        arrives(stage, ages, victims, begin, 'three requests at once')
        after = {card: device for server in newcomers for card, device in cast.bound(server).items()}
        freed = {card: device for server in victims for card, device in before.pop(server).items()}
        must(after == freed, 'the newcomers hold %s, and the victims held %s' % (after, freed))
        must({server: cast.bound(server) for server in before} == before, 'others hold other accelerators')
        cast.in_order([*before, *newcomers])
        audit(heals=False)


@chapter
def two_requests_and_one_free_accelerator(stage):
    """One accelerator is free, and two normal servers ask for one at the same time: one gets the
    free device, the other that of the cheapest preemptible server."""
    with scene(stage) as cast:
        cloud = stage.cloud
        ages = cast.fill()
        gone = list(ages)[-1]
        before = {server: cast.bound(server) for server in ages}
        free = before.pop(gone)
        cloud.delete(gone)
        del ages[gone]
        check('one free accelerator')
        (victim,) = stage.cheapest(ages)
        newcomers = []

        def begin():
            newcomers.extend(cloud.create('solo%d' % n, 'accel.one') for n in range(2))
            return newcomers
        arrives(stage, ages, {victim}, begin, 'two requests, one free accelerator')
        after = {card: device for server in newcomers for card, device in cast.bound(server).items()}
        freed = {**before.pop(victim), **free}
        must(after == freed, 'the newcomers hold %s, and free were %s' % (after, freed))
        must({server: cast.bound(server) for server in before} == before, 'others hold other accelerators')
        cast.in_order([*before, *newcomers])
        audit(heals=False)


@chapter
def more_accelerators_than_a_host_has(stage):
    """A profile of three groups, where a host has two cards, and one of two accelerators of one
    card, where each has one: NoValidHost, no server gets a notice, and none leaves."""
    with scene(stage) as cast:
        ages = cast.fill()
        before = {server: cast.bound(server) for server in ages}
        for profile in ('three', 'pair'):
            finds_no_host(stage, ages, 'too-many', 'accel.' + profile)
        must({server: cast.bound(server) for server in ages} == before, 'servers hold other accelerators')
        cast.in_order(ages)
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
        ages = cast.fill('stop', 'hibernate')
        before = {server: cast.bound(server) for server in ages}
        hibernating = dict(list(ages.items())[HOSTS:])
        (victim,) = stage.cheapest(hibernating)
        must(not stage.cheapest(ages) <= set(hibernating), 'the cheapest of all does not stop: %s' % ages)
        newcomer = makes_room(stage, ages, victim, 'accel.one', 'shelve', lambda server: server['status'] == 'SHELVED_OFFLOADED')
        cloud.settled(victim, ('SHELVED_OFFLOADED', 'ERROR'))
        after = cast.bound(newcomer['id'])
        must(after == before[victim], 'the newcomer holds %s, and the victim held %s' % (after, before[victim]))
        cast.in_order({*ages, newcomer['id']} - {victim})
        check('the accelerator of a server that hibernates')
        must(victim not in allocations(), 'a shelved server holds %s' % allocations().get(victim))
        our_audit()
        cloud.delete(newcomer['id'])
        cloud.action(victim, {'unshelve': None})
        server = cloud.settled(victim, seconds=150)
        must(server['status'] == 'ACTIVE', 'after unshelving the victim is %s: %s' % (server['status'], server.get('fault')))
        must({server: cast.bound(server) for server in ages} == before, 'servers hold other accelerators')
        cast.in_order(ages)
        check('the accelerator of a server that came back')
        audit(heals=False)
        print('      hibernate: a device of %s, and back when the newcomer was gone' % newcomer['OS-EXT-SRV-ATTR:host'], flush=True)


@chapter
def a_stopped_server_keeps_its_accelerator(stage):
    """Nova stops a server with an accelerator, which keeps its device in Cyborg and in Placement.
    Where every preemptible server would stop, a normal one that needs an accelerator gets
    NoValidHost, and no server is stopped for it."""
    with scene(stage) as cast:
        cloud = stage.cloud
        ages = cast.fill(*['stop'] * CARDS_A_HOST)
        before = {server: cast.bound(server) for server in ages}
        finds_no_host(stage, ages, 'too-late', 'accel.one')
        stopped = min(ages)
        cloud.action(stopped, {'os-stop': None})
        server = cloud.settled(stopped, ('SHUTOFF', 'ERROR'))
        must(server['status'] == 'SHUTOFF', 'the stopped server is %s' % server['status'])
        must({server: cast.bound(server) for server in ages} == before, 'servers hold other accelerators')
        cast.in_order(ages)
        check('a stopped server with an accelerator')
        our_audit()
        print('      stop: no victim, and a stopped server keeps its device', flush=True)


@chapter
def a_victim_that_nova_does_not_move(stage):
    """Nova refuses to live-migrate a server with an accelerator: a victim of this behaviour ends by
    the agent's fallback, terminate, and the newcomer gets its device."""
    with scene(stage) as cast:
        ages = cast.fill(*['live-migrate'] * CARDS_A_HOST)
        before = {server: cast.bound(server) for server in ages}
        (victim,) = stage.cheapest(ages)
        try:
            stage.cloud.action(victim, {'os-migrateLive': {'host': None, 'block_migration': 'auto'}})
        except Refused as refused:
            must(refused.status == 400 and 'accelerators' in str(refused), 'Nova refuses a live migration with %s' % refused)
        else:
            must(False, 'Nova live-migrates a server with an accelerator')
        newcomer = makes_room(stage, ages, victim, 'accel.one', 'live-migrate', lambda server: server is None)
        must(set(stage.left(ages)) == set(ages) - {victim}, 'left are %s' % stage.left(ages))
        after = cast.bound(newcomer['id'])
        must(after == before.pop(victim), 'the newcomer holds %s' % after)
        must({server: cast.bound(server) for server in before} == before, 'others hold other accelerators')
        cast.in_order([*before, newcomer['id']])
        check('a victim that Nova does not move')
        audit(heals=False)
        print('      live-migrate: refused by Nova, and terminated on %s' % newcomer['OS-EXT-SRV-ATTR:host'], flush=True)


@chapter
def an_unshelving_that_needs_an_accelerator(stage):
    """A normal server with an accelerator was shelved, and preemptible servers have taken all. Its
    owner unshelves it: it gets the device of the cheapest."""
    with scene(stage) as cast:
        cloud = stage.cloud
        sleeper = cloud.boot('sleeper', 'accel.one')
        must(sleeper['status'] == 'ACTIVE', 'sleeper is %s: %s' % (sleeper['status'], sleeper.get('fault')))
        cloud.action(sleeper['id'], {'shelve': None})
        sleeper = cloud.settled(sleeper['id'], ('SHELVED_OFFLOADED', 'ERROR'))
        must(sleeper['status'] == 'SHELVED_OFFLOADED', 'sleeper is %s: %s' % (sleeper['status'], sleeper.get('fault')))
        ages = cast.fill()
        before = {server: cast.bound(server) for server in ages}
        (victim,) = stage.cheapest(ages)

        def begin():
            cloud.action(sleeper['id'], {'unshelve': None})
            return [sleeper['id']]
        arrives(stage, ages, {victim}, begin, 'an unshelving that needs an accelerator')
        after = cast.bound(sleeper['id'])
        must(after == before[victim], 'sleeper holds %s, and the victim held %s' % (after, before[victim]))
        del before[victim]
        must({server: cast.bound(server) for server in before} == before, 'others hold other accelerators')
        cast.in_order([*before, sleeper['id']])
        audit(heals=False)


if __name__ == '__main__':
    tell(CHAPTERS)
