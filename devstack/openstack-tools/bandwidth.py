#!/usr/bin/python3
"""Chapters about ports with a minimum bandwidth, for a cloud with Debian's Neutron. Neutron has no
agents there: this test keeps the providers of bandwidth below the hosts in Placement, with the
names, traits and inventories that an agent for Open vSwitch has Neutron write.

Usage: bandwidth.py [CHAPTER…]
"""
import contextlib
import itertools
import os
import sys

from neutron_lib.placement import utils

from cloud import until
from devices import foreseen
from interruptions import PREEMPTIBLE, finds_no_host, makes_room
from invariants import allocations, audit, check, our_audit
from preempt import Watch, must
from story import arrives, tell

# The mechanism driver of this cloud, which lies in a folder of its own for Neutron.
sys.path.append(os.path.join(os.environ['STACK_TOOLS'], 'neutron'))
from stack_ports import INTERFACE, NAMESPACE  # noqa: E402

EGRESS, INGRESS = 'NET_BW_EGR_KILOBIT_PER_SEC', 'NET_BW_IGR_KILOBIT_PER_SEC'
HOSTS, PORTS_A_HOST = 3, 2
# Kilobits per second of a port, each way; that of PORTS_A_HOST is all that an interface has.
OF_A_PORT = {EGRESS: 1000000, INGRESS: 500000}
# Thousands of packets per second of a port; the agent's provider has that of PORTS_A_HOST.
PACKETS = {'NET_PACKET_RATE_KILOPACKET_PER_SEC': 100}
PHYSICAL_NETWORK, AGENT = 'physnet0', 'Open vSwitch agent'
TRAITS = sorted([utils.physnet_trait(PHYSICAL_NETWORK), utils.vnic_type_trait('normal')])
CHAPTERS = []


def chapter(function):
    CHAPTERS.append(function)
    return function


class Network:
    """A flat network on a physical network, its QoS policies and its ports."""

    def __init__(self, cloud):
        self.cloud = cloud
        self.policies = []
        self.ports = []
        self.id = self.make('network', name='bandwidth', **{
            'provider:network_type': 'flat', 'provider:physical_network': PHYSICAL_NETWORK})
        # Nova boots no server on a port without an address.
        self.make('subnet', network_id=self.id, ip_version=4, cidr='10.20.0.0/24', enable_dhcp=False)

    def make(self, kind, path=None, **body):
        made = self.cloud.request('network', 'POST', '/v2.0/' + (path or kind + 's'), {kind: body})
        return made.json()[kind]['id']

    def policy(self, name, times=1, packets=False):
        """A policy of `times` the minimum bandwidth of a port; `packets`: and its packet rate."""
        policy = self.make('policy', 'qos/policies', name=name)
        self.policies.append(policy)
        for direction, resource_class in (('egress', EGRESS), ('ingress', INGRESS)):
            self.make('minimum_bandwidth_rule', 'qos/policies/%s/minimum_bandwidth_rules' % policy,
                      direction=direction, min_kbps=OF_A_PORT[resource_class] * times)
        if packets:
            (rate,) = PACKETS.values()
            self.make('minimum_packet_rate_rule', 'qos/policies/%s/minimum_packet_rate_rules' % policy, direction='any', min_kpps=rate)
        return policy

    def port(self, policy):
        port = self.make('port', network_id=self.id, qos_policy_id=policy)
        self.ports.append(port)
        return port

    def shown(self, port):
        return self.cloud.request('network', 'GET', '/v2.0/ports/' + port).json()['port']

    def asked(self, port):
        """The groups that Nova asks Placement for because of a port: resources and traits."""
        groups = self.shown(port)['resource_request']['request_groups']
        return [(group['resources'], sorted(group['required'])) for group in groups]

    def binding(self, port):
        """The host of a port, None without one, and the providers that its binding names."""
        found = self.shown(port)
        return found['binding:host_id'] or None, set(found['binding:profile'].get('allocation', {}).values())

    def remove(self):
        for port in self.ports:
            self.cloud.request('network', 'DELETE', '/v2.0/ports/' + port)
        self.cloud.request('network', 'DELETE', '/v2.0/networks/' + self.id)
        for policy in self.policies:
            self.cloud.request('network', 'DELETE', '/v2.0/qos/policies/' + policy)


def agent_providers(cloud, host, root):
    """A provider for the agent of a host, which has the packet rate, and one for its interface
    below that, which has the bandwidth. Gives their ids, the lowest first."""
    for trait in TRAITS:
        cloud.placement('PUT', '/traits/' + trait)
    agent = str(utils.agent_resource_provider_uuid(NAMESPACE, host))
    interface = str(utils.device_resource_provider_uuid(NAMESPACE, host, INTERFACE))
    name = '%s:%s' % (host, AGENT)
    for provider, title, parent, amounts, traits in ((agent, name, root, PACKETS, TRAITS[-1:]),
                                                     (interface, '%s:%s' % (name, INTERFACE), agent, OF_A_PORT, TRAITS)):
        made = cloud.placement('POST', '/resource_providers', {'uuid': provider, 'name': title, 'parent_provider_uuid': parent})
        made = cloud.placement('PUT', '/resource_providers/%s/inventories' % provider, {
            'resource_provider_generation': made.json()['generation'],
            'inventories': {resource: {'total': amount * PORTS_A_HOST} for resource, amount in amounts.items()}})
        cloud.placement('PUT', '/resource_providers/%s/traits' % provider, {
            'resource_provider_generation': made.json()['resource_provider_generation'], 'traits': traits})
    return [interface, agent]


class Scene:
    """Hosts whose interfaces have bandwidth, a network on them, and small flavors: CPUs, memory and
    disk are never short."""

    def __init__(self, stage, network, interfaces, agents):
        self.stage = stage
        self.network = network
        # The host of each interface, and the agent above it.
        self.interfaces = interfaces
        self.agents = agents
        # Of all ports for which no other policy is named.
        self.policy = network.policy('bandwidth')
        self.packets = False
        self.port_of = {}

    def ports(self, count=1, policy=None):
        """The `networks` of a server with `count` new ports."""
        return [{'port': self.network.port(policy or self.policy)} for _ in range(count)]

    def fill(self, *flavors, beside=0):
        """Preemptible servers whose ports hold the bandwidth of every host; {server: age}. Each
        host has one of each of `flavors`; `beside` of them are missing on the first host, where
        other servers hold their bandwidth."""
        flavors = flavors or ('port.pre',) * PORTS_A_HOST
        places = list(itertools.product(sorted(self.interfaces.values()), flavors))[beside:]
        networks = [self.ports() for _ in places]
        ages = self.stage.fill_with([(flavor, {'host': host, 'networks': one})
                                     for (host, flavor), one in zip(places, networks)])
        self.port_of = {server: one[0]['port'] for server, one in zip(ages, networks)}
        held = {server: self.held(server) for server in ages}
        must([self.interfaces[one] for one in held.values()] == [host for host, _flavor in places], 'the servers hold %s' % held)
        return ages

    def held(self, server, times=1):
        """The interface whose bandwidth a server holds: `times` that of a port."""
        found = {provider: amounts for provider, amounts in self.stage.cloud.allocations(server).items() if provider in self.interfaces}
        expected = {name: amount * times for name, amount in OF_A_PORT.items()}
        must(list(found.values()) == [expected], '%s holds bandwidth of %s' % (server, found))
        return next(iter(found))

    def bound(self, port, server, times=1):
        """The interface that a server holds; its port must be bound there."""
        interface = self.held(server, times)
        providers, agent = {interface}, self.agents[interface]
        if self.packets:
            providers.add(agent)
            must(self.stage.cloud.allocations(server).get(agent) == PACKETS, '%s holds no packet rate of %s' % (server, agent))
        binding = self.network.binding(port)
        must(binding == (self.interfaces[interface], providers), 'port %s is bound to %s, and %s of %s is held' % (
            port, binding, providers, self.interfaces[interface]))
        return interface


@contextlib.contextmanager
def scene(stage):
    cloud = stage.cloud
    providers, interfaces, agents, flavors, network = [], {}, {}, [], None
    try:
        for host, root in cloud.providers().items():
            if host.startswith('compute'):
                made = agent_providers(cloud, host, root['uuid'])
                providers += made
                interfaces[made[0]], agents[made[0]] = host, made[1]
        must(len(interfaces) == HOSTS, 'the hosts are %s' % sorted(interfaces.values()))
        flavors.append(cloud.flavor('port.pre', 1, 500, 1, PREEMPTIBLE))
        for behaviour in ('stop', 'hibernate'):
            flavors.append(cloud.flavor('port.%s' % behaviour, 1, 500, 1, dict(PREEMPTIBLE, **{'ebbtide:interruption': behaviour})))
        flavors.append(cloud.flavor('port', 1, 500, 1))
        flavors.append(cloud.flavor('port.larger', 2, 1000, 1))
        # What-ifs know flavors and no ports: this asks for the bandwidth of a port by its flavor.
        flavors.append(cloud.flavor('port.what-if', 1, 500, 1, {'resources1:%s' % name: str(amount) for name, amount in OF_A_PORT.items()}))
        network = Network(cloud)
        made = Scene(stage, network, interfaces, agents)
        asked = network.asked(network.port(made.policy))
        must(asked == [(OF_A_PORT, TRAITS)], 'Neutron asks for %s' % asked)
        # The scheduler lists Placement's providers from time to time.
        until('the scheduler to know of the bandwidth', 120, lambda: foreseen(cloud, 'port.what-if'))
        yield made
    finally:
        stage.clear()
        if network:
            network.remove()
        for flavor in flavors:
            cloud.nova('DELETE', '/flavors/' + flavor)
        for provider in providers:
            cloud.placement('DELETE', '/resource_providers/' + provider)


@chapter
def bandwidth_of_a_port(stage):
    """Preemptible servers hold the bandwidth of every host, and CPUs, memory and disk are left. A
    normal server with such a port takes the bandwidth of the cheapest, from the very provider, and
    its port is bound there; no other server leaves. A server without a port takes none."""
    with scene(stage) as cast:
        ages = cast.fill()
        before = {server: cast.bound(port, server) for server, port in cast.port_of.items()}
        plain = stage.cloud.boot('no-port', 'port')
        must(plain['status'] == 'ACTIVE' and len(stage.left(ages)) == len(ages), 'a server without a port is %s' % plain)
        (victim,) = stage.cheapest(ages)
        planned = foreseen(stage.cloud, 'port.what-if')
        must(planned == (cast.interfaces[before[victim]], {victim}), 'a what-if names %s, and the cheapest is %s' % (planned, victim))
        networks = cast.ports()
        newcomer = makes_room(stage, ages, victim, 'port', 'terminate', lambda server: server is None, networks=networks)
        must(set(stage.left(ages)) == set(ages) - {victim}, 'left are %s' % stage.left(ages))
        after = cast.bound(networks[0]['port'], newcomer['id'])
        must(after == before[victim], 'the newcomer holds %s, and the victim held %s' % (after, before[victim]))
        must({server: cast.bound(port, server) for server, port in cast.port_of.items() if server != victim}
             == {server: provider for server, provider in before.items() if server != victim}, 'others hold other bandwidth')
        until('the port of the victim to be free', 30, lambda: cast.network.binding(cast.port_of[victim]) == (None, set()))
        check('bandwidth that changed hands')
        must(set(allocations()) == set(ages) - {victim} | {newcomer['id'], plain['id']}, 'Placement has %s' % sorted(allocations()))
        audit()
        print('      bandwidth: of %s, from the cheapest of %d servers' % (cast.interfaces[before[victim]], len(ages)), flush=True)


@chapter
def two_ports_of_one_server(stage):
    """A normal server with two such ports needs all bandwidth of a host: of the pairs on one host
    the cheapest leaves, and both ports are bound to the interface that the pair held."""
    with scene(stage) as cast:
        ages = cast.fill()
        before = {server: cast.held(server) for server in ages}
        pairs = {one: {server for server in ages if before[server] == one} for one in cast.interfaces}
        # For servers without a price the loss is what has run of their hour.
        chosen = min(pairs, key=lambda one: sum(ages[server] % 60 for server in pairs[one]))
        networks = cast.ports(2)
        watch = Watch(ages)
        try:
            newcomer = stage.cloud.settled(stage.cloud.create('two-ports', 'port', networks=networks), seconds=150)
            must(newcomer['status'] == 'ACTIVE', 'the newcomer is %s: %s' % (newcomer['status'], newcomer.get('fault')))
            stage.wait_gone(pairs[chosen])
        finally:
            watch.end()
        must(set(watch.told) & set(ages) == pairs[chosen], 'noticed were %s, and the cheapest pair was %s' % (sorted(watch.told), pairs[chosen]))
        must(set(stage.left(ages)) == set(ages) - pairs[chosen], 'left are %s' % stage.left(ages))
        for network in networks:
            must(cast.bound(network['port'], newcomer['id'], 2) == chosen, 'port %s is bound elsewhere' % network['port'])
        must({server: cast.held(server) for server in ages if server not in pairs[chosen]}
             == {server: one for server, one in before.items() if one != chosen}, 'others hold other bandwidth')
        check('bandwidth for two ports')
        audit()
        print('      two ports: all bandwidth of %s, from two servers' % cast.interfaces[chosen], flush=True)


@chapter
def more_bandwidth_than_a_host_has(stage):
    """A normal server whose port wants more than any interface has gets NoValidHost: no server gets
    a notice, and none leaves."""
    with scene(stage) as cast:
        ages = cast.fill()
        before = {server: cast.bound(port, server) for server, port in cast.port_of.items()}
        networks = cast.ports(policy=cast.network.policy('too much', PORTS_A_HOST + 1))
        finds_no_host(stage, ages, 'too-much', 'port', networks=networks)
        must({server: cast.bound(port, server) for server, port in cast.port_of.items()} == before, 'servers hold other bandwidth')
        check('a port that wants too much')
        our_audit()
        print('      more than a host has: NoValidHost, no notice', flush=True)


@chapter
def bandwidth_by_behaviour(stage):
    """Each host has a server that would stop and one that would hibernate. A stopped server keeps
    its bandwidth in Placement, so the cheapest of the others is the victim, although it is not the
    cheapest of all. Once the newcomer is deleted, the owner unshelves the victim, and the victim's
    port is bound with bandwidth again."""
    with scene(stage) as cast:
        cloud = stage.cloud
        ages = cast.fill('port.stop', 'port.hibernate')
        before = {server: cast.bound(port, server) for server, port in cast.port_of.items()}
        hibernating = {server: age for n, (server, age) in enumerate(ages.items()) if n % PORTS_A_HOST}
        (victim,) = stage.cheapest(hibernating)
        must(not stage.cheapest(ages) <= set(hibernating), 'the cheapest of all does not stop: %s' % ages)
        networks = cast.ports()
        newcomer = makes_room(stage, ages, victim, 'port', 'shelve', lambda server: server['status'] == 'SHELVED_OFFLOADED', networks=networks)
        cloud.settled(victim, ('SHELVED_OFFLOADED', 'ERROR'))
        must(cast.bound(networks[0]['port'], newcomer['id']) == before[victim], 'the newcomer holds other bandwidth than the victim held')
        check('bandwidth of a server that hibernates')
        must(victim not in allocations(), 'a shelved server holds %s' % allocations().get(victim))
        our_audit()
        cloud.delete(newcomer['id'])
        cloud.action(victim, {'unshelve': None})
        server = cloud.settled(victim, seconds=150)
        must(server['status'] == 'ACTIVE', 'after unshelving the victim is %s: %s' % (server['status'], server.get('fault')))
        must({server: cast.bound(port, server) for server, port in cast.port_of.items()} == before, 'servers hold other bandwidth')
        check('bandwidth of a server that came back')
        audit()
        print('      hibernate: of %s, and back when the newcomer was gone' % cast.interfaces[before[victim]], flush=True)


@chapter
def a_resize_that_needs_bandwidth(stage):
    """A normal server with such a port grows, for which Nova takes another host. The cheapest
    preemptible server there leaves, and the port is bound to the provider that the victim held."""
    with scene(stage) as cast:
        cloud = stage.cloud
        networks = cast.ports()
        grower = cloud.boot('grower', 'port', host=min(cast.interfaces.values()), networks=networks)
        must(grower['status'] == 'ACTIVE', 'grower is %s: %s' % (grower['status'], grower.get('fault')))
        home = cast.bound(networks[0]['port'], grower['id'])
        ages = cast.fill(beside=1)
        before = {server: cast.bound(port, server) for server, port in cast.port_of.items()}
        (victim,) = stage.cheapest({server: age for server, age in ages.items() if before[server] != home})

        def begin():
            cloud.action(grower['id'], {'resize': {'flavorRef': 'port.larger'}})
            server = cloud.settled(grower['id'], ('VERIFY_RESIZE', 'ERROR', 'ACTIVE'), seconds=150)
            must(server['status'] == 'VERIFY_RESIZE', 'the resize ended in %s: %s' % (server['status'], server.get('fault')))
            cloud.action(grower['id'], {'confirmResize': None})
            return [grower['id']]
        arrives(stage, ages, {victim}, begin, 'a resize that needs bandwidth')
        must(cast.bound(networks[0]['port'], grower['id']) == before[victim], 'the grower holds other bandwidth than the victim held')
        del cast.port_of[victim]
        must({server: cast.bound(port, server) for server, port in cast.port_of.items()}
             == {server: one for server, one in before.items() if server != victim}, 'others hold other bandwidth')
        audit()


@chapter
def a_live_migration_that_needs_bandwidth(stage):
    """A normal server with such a port is live-migrated, and the bandwidth of all other hosts is
    held. The cheapest preemptible server there leaves, and the port is bound to the provider that
    the victim held; the server holds nothing of its old host."""
    with scene(stage) as cast:
        cloud = stage.cloud
        networks = cast.ports()
        first = min(cast.interfaces.values())
        mover = cloud.boot('mover', 'port', host=first, networks=networks)
        must(mover['status'] == 'ACTIVE', 'mover is %s: %s' % (mover['status'], mover.get('fault')))
        home = cast.bound(networks[0]['port'], mover['id'])
        ages = cast.fill(beside=1)
        before = {server: cast.bound(port, server) for server, port in cast.port_of.items()}
        (victim,) = stage.cheapest({server: age for server, age in ages.items()
                                    if before[server] != home})

        def begin():
            cloud.action(mover['id'], {'os-migrateLive': {'host': None, 'block_migration': 'auto'}})
            server = cloud.settled(mover['id'], seconds=150)
            must(server['OS-EXT-SRV-ATTR:host'] != first, 'the migration ended: %s on %s: %s' % (
                server['status'], first, server.get('fault')))
            return [mover['id']]
        arrives(stage, ages, {victim}, begin, 'a live migration that needs bandwidth')
        after = cast.bound(networks[0]['port'], mover['id'])
        must(after == before[victim], 'mover holds %s, and the victim held %s' % (
            after, before[victim]))
        del cast.port_of[victim], before[victim]
        must({server: cast.bound(port, server) for server, port in cast.port_of.items()} == before,
             'others hold other bandwidth')
        audit()


@chapter
def bandwidth_and_packet_rate_of_a_port(stage):
    """Such a port asks for two groups of one subtree: bandwidth of an interface, and packet rate of
    the agent above it. A normal server takes both from the cheapest preemptible server."""
    with scene(stage) as cast:
        cast.policy, cast.packets = cast.network.policy('bandwidth and packets', packets=True), True
        asked = cast.network.shown(cast.network.port(cast.policy))['resource_request']
        must(len(asked['request_groups']) == 2 and len(asked['same_subtree']) == 2, 'Neutron asks for %s' % asked)
        ages = cast.fill()
        before = {server: cast.bound(port, server) for server, port in cast.port_of.items()}
        (victim,) = stage.cheapest(ages)
        networks = cast.ports()
        newcomer = makes_room(stage, ages, victim, 'port', 'terminate', lambda server: server is None, networks=networks)
        must(set(stage.left(ages)) == set(ages) - {victim}, 'left are %s' % stage.left(ages))
        must(cast.bound(networks[0]['port'], newcomer['id']) == before.pop(victim), 'the newcomer holds what the victim did not hold')
        must({server: cast.bound(cast.port_of[server], server) for server in before} == before, 'others hold other bandwidth')
        check('bandwidth and packet rate that changed hands')
        audit()
        print('      bandwidth and packet rate: from the cheapest of %d servers' % len(ages), flush=True)


if __name__ == '__main__':
    tell(CHAPTERS)
