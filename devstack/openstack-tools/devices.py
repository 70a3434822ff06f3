"""Chapters of the story about PCI devices: each host has three GPUs, which are PFs of Nova's own
fake driver (fake_compute.py)."""
import contextlib

from database import rows
from interruptions import PREEMPTIBLE, makes_room
from invariants import allocations, audit, check
from preempt import must

GPU = {'pci_passthrough:alias': 'gpu:1'}
HOSTS, GPUS_A_HOST = 3, 3


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


def a_gpu_that_a_normal_server_needs(stage):
    """Preemptible servers hold every GPU, and hosts have CPUs, memory and disk left. A normal
    server that asks for a GPU takes the device of the cheapest one, and no other server leaves; one
    that asks for none takes nobody's."""
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


CHAPTERS = [a_gpu_that_a_normal_server_needs]
