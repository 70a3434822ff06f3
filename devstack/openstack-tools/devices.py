"""Chapters of the story about devices. Each host has three GPUs, which are PFs of Nova's own fake
driver (fake_compute.py), and for one chapter two VGPUs in a provider below its own."""
import contextlib

from cloud import until
from database import rows
from interruptions import PREEMPTIBLE, makes_room
from invariants import allocations, audit, check, our_audit
from preempt import must

GPU = {'pci_passthrough:alias': 'gpu:1'}
HOSTS, GPUS_A_HOST, VGPUS_A_HOST = 3, 3, 2


@contextlib.contextmanager
def gpu_flavors(stage):
    """`gpu.pre`, preemptible, and `gpu`: one GPU and a CPU, of which hosts have more than GPUs."""
    made = [stage.cloud.flavor('gpu.pre', 1, 500, 1, dict(PREEMPTIBLE, **GPU)), stage.cloud.flavor('gpu', 1, 500, 1, GPU)]
    try:
        yield
    finally:
        stage.clear()
        for flavor in made:
            stage.cloud.nova('DELETE', '/flavors/' + flavor)


def gpus():
    """The PFs that servers hold, {server: (host, address)}, as Nova's computes have written it."""
    found = rows("select p.instance_uuid, n.host, p.address from nova_cell1.pci_devices p "
                 "join nova_cell1.compute_nodes n on n.id = p.compute_node_id "
                 "where p.deleted = 0 and p.dev_type = 'type-PF' and p.status = 'allocated'")
    return {row['instance_uuid']: (row['host'], row['address']) for row in found}


def foreseen(cloud, flavor, **options):
    """The host and the victims that a what-if for one server of a flavor names; None: no host.
    `options`: further fields of the question."""
    asked = dict({'request': {'flavor': flavor, 'project_id': cloud.project}}, **options)
    placements = cloud.request('preemption', 'POST', '/v1/what-if', asked).json()['decision'].get('placements', [])
    if not placements:
        return None
    must(len(placements) == 1, 'a what-if for one server of %s says %s' % (flavor, placements))
    return placements[0]['host'], {victim['server_id'] for victim in placements[0].get('victims', [])}


def a_gpu_that_a_normal_server_needs(stage):
    """Preemptible servers hold every GPU, and hosts have CPUs, memory and disk left. A normal
    server that asks for a GPU takes the device of the cheapest one, and no other server leaves; one
    that asks for none takes no GPU. A what-if names the same host and victim before."""
    with gpu_flavors(stage):
        ages = stage.fill('gpu.pre', HOSTS * GPUS_A_HOST)
        before = gpus()
        must(set(before) == set(ages) and len(set(before.values())) == len(ages), 'the servers hold %s' % before)
        plain = stage.cloud.boot('no-gpu', 'small')
        must(plain['status'] == 'ACTIVE' and len(stage.left(ages)) == len(ages), 'a server without a GPU is %s' % plain)
        # Of servers of one age the one that was launched last leaves, and nothing says which.
        ages = dict(zip(ages, range(10, 10 + 4 * len(ages), 4)))
        stage.grow_old(ages)
        (victim,) = stage.cheapest(ages)
        planned = foreseen(stage.cloud, 'gpu')
        must(planned == (before[victim][0], {victim}), 'a what-if names %s, and the cheapest is %s' % (planned, victim))
        plain_plan = foreseen(stage.cloud, 'small')
        must(plain_plan is not None and not plain_plan[1], 'a what-if without a GPU says %s' % (plain_plan,))
        newcomer = makes_room(stage, ages, victim, 'gpu', 'terminate', lambda server: server is None)
        must(set(stage.left(ages)) == set(ages) - {victim}, 'left are %s' % stage.left(ages))
        after = gpus()
        must(after.get(newcomer['id']) == before[victim], 'the newcomer holds %s, and the victim held %s' % (
            after.get(newcomer['id']), before[victim]))
        must({u: after[u] for u in ages if u != victim} == {u: before[u] for u in ages if u != victim}, 'now the servers hold %s' % after)
        check('a GPU that changed hands')
        must(set(allocations()) == set(ages) - {victim} | {newcomer['id'], plain['id']}, 'Placement has %s' % sorted(allocations()))
        audit()
        print('      a GPU: %s on %s, from the cheapest of %d servers' % (*reversed(before[victim]), len(ages)), flush=True)


def _inventories(cloud, provider, inventories):
    """Gives a provider these inventories and no other."""
    path = '/resource_providers/' + provider
    generation = cloud.placement('GET', path).json()['generation']
    cloud.placement('PUT', path + '/inventories', {
        'resource_provider_generation': generation, 'inventories': inventories})


@contextlib.contextmanager
def vgpu_flavors(stage):
    """A provider with two VGPUs below that of each host, and the flavors `vgpu.pre`, preemptible,
    and `vgpu`, whose VGPU is a granular group. Another service than nova-compute keeps these
    providers, as Neutron's agents keep those of bandwidth."""
    cloud = stage.cloud
    providers, flavors = {}, []
    try:
        known = cloud.providers()
        for name, root in known.items():
            if name.startswith('compute') and not name.endswith('_vgpus'):
                body = {'name': name + '_vgpus', 'parent_provider_uuid': root['uuid']}
                made = known.get(body['name']) or cloud.placement('POST', '/resource_providers', body).json()
                providers[made['uuid']] = name
                _inventories(cloud, made['uuid'], {'VGPU': {'total': VGPUS_A_HOST}})
        must(len(providers) == HOSTS, 'the hosts are %s' % sorted(providers.values()))
        flavors.append(cloud.flavor('vgpu.pre', 1, 500, 1, dict(PREEMPTIBLE, **{'resources:VGPU': '1'})))
        flavors.append(cloud.flavor('vgpu', 1, 500, 1, {'resources1:VGPU': '1'}))
        yield providers
    finally:
        stage.clear()
        for flavor in flavors:
            cloud.nova('DELETE', '/flavors/' + flavor)
        # They stay, with nothing in them: nova-compute keeps the providers below its own in a
        # cache, and from Nova 32 on refuses each server once one of them is gone.
        for provider in providers:
            _inventories(cloud, provider, {})


def vgpu_of(cloud, server, providers):
    """The provider below a host of which a server holds its VGPU."""
    held = {provider: amounts for provider, amounts in cloud.allocations(server).items() if 'VGPU' in amounts}
    must(len(held) == 1 and list(held.values()) == [{'VGPU': 1}] and set(held) <= set(providers), '%s holds VGPUs of %s' % (server, held))
    return next(iter(held))


def a_vgpu_of_a_nested_provider(stage):
    """Preemptible servers hold every VGPU of the providers below the hosts. A normal server that
    asks for one in a granular group takes that of the cheapest, from the very provider, and no
    other server leaves."""
    with vgpu_flavors(stage) as providers:
        cloud = stage.cloud
        # The scheduler lists Placement's providers from time to time.
        until('the scheduler to know of the VGPUs', 120, lambda: foreseen(cloud, 'vgpu'))
        ages = stage.fill('vgpu.pre', HOSTS * VGPUS_A_HOST)
        ages = dict(zip(ages, range(10, 10 + 7 * len(ages), 7)))
        stage.grow_old(ages)
        before = {server: vgpu_of(cloud, server, providers) for server in ages}
        must(all(list(before.values()).count(one) == VGPUS_A_HOST for one in providers), 'the servers hold %s' % before)
        (victim,) = stage.cheapest(ages)
        planned = foreseen(cloud, 'vgpu')
        must(planned == (providers[before[victim]], {victim}), 'a what-if names %s, and the cheapest is %s' % (planned, victim))
        newcomer = makes_room(stage, ages, victim, 'vgpu', 'terminate', lambda server: server is None)
        must(set(stage.left(ages)) == set(ages) - {victim}, 'left are %s' % stage.left(ages))
        must(vgpu_of(cloud, newcomer['id'], providers) == before[victim], 'the newcomer holds %s' % cloud.allocations(newcomer['id']))
        must({server: vgpu_of(cloud, server, providers) for server in ages if server != victim}
             == {server: before[server] for server in ages if server != victim}, 'others hold other VGPUs')
        check('a VGPU that changed hands')
        # Nova's own heal_allocations knows no VGPUs.
        our_audit()
        print('      a VGPU: of %s, from the cheapest of %d servers' % (providers[before[victim]], len(ages)), flush=True)


CHAPTERS = [a_gpu_that_a_normal_server_needs, a_vgpu_of_a_nested_provider]
