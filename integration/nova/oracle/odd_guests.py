#!/usr/bin/env python3
"""What Nova does with guests that do not fit the cells of their hosts.

    /usr/bin/python3 odd_guests.py SEED COUNT RELEASE >> odd.jsonl

Each line has a host, a guest with CPUs, cells and pages drawn at random, and, for the guest that
comes and the guest that leaves, the host that hardware.numa_usage_from_instance_numa makes of it or
the class of its exception. RELEASE is the major version of the Nova that this Python imports.
"""
import json
import random
import sys

import nova.conf
from nova import objects
from nova.virt import hardware

objects.register_all()
nova.conf.CONF([], project='nova', default_config_files=[])


def chosen(rng, items, most):
    return set(rng.sample(items, rng.randrange(0, min(most, len(items)) + 1)))


def host(rng):
    cells = []
    for n in rng.choice([[0], [0, 1], [0, 1], [1, 3]]):
        first = n * 8
        pcpus = list(range(first + 2, first + 6))
        pages = [objects.NUMAPagesTopology(size_kb=size, total=1024, used=rng.choice([0, 7, 512]), reserved=0)
                 for size in rng.choice([[4, 2048], [4, 2048], [4], []])]
        siblings = rng.choice([[pcpus[:2], pcpus[2:]], [[cpu] for cpu in pcpus], []])
        cells.append(objects.NUMACell(
            id=n, cpuset={first, first + 1}, pcpuset=set(pcpus), memory=4096, cpu_usage=rng.choice([0, 1, 2]),
            memory_usage=rng.choice([0, 512, 4096]), pinned_cpus=chosen(rng, pcpus, 4),
            siblings=[set(core) for core in siblings], mempages=pages, socket=0))
    return objects.NUMATopology(cells=cells)


def guest(rng):
    cells = []
    for n in range(rng.choice([1, 1, 2])):
        policy = rng.choice([None, 'shared', 'dedicated', 'dedicated', 'mixed'])
        pins = chosen(rng, rng.choice([list(range(2, 6)), list(range(2, 14)), [2, 3, 99]]), 3)
        guests = list(range(n * 4, n * 4 + len(pins)))
        cells.append(objects.InstanceNUMACell(
            id=rng.choice([0, 0, 1, 3, 7]), cpuset=chosen(rng, [0, 1, 2], 3), pcpuset=set(guests),
            memory=rng.choice([1, 512, 1024, 8192]), pagesize=rng.choice([None, 4, 2048, 1048576, -1]),
            cpu_policy=policy, cpu_thread_policy=rng.choice([None, 'isolate', 'require']) if policy else None,
            cpuset_reserved=rng.choice([None, None, {3}, {50}]),
            cpu_pinning_raw=dict(zip(map(str, guests), sorted(pins))) if rng.random() < 0.9 or not pins else None))
    return objects.InstanceNUMATopology(cells=cells, emulator_threads_policy=rng.choice([None, 'isolate']))


def host_json(topology):
    return {'cells': [{'id': c.id, 'cpuset': sorted(c.cpuset), 'pcpuset': sorted(c.pcpuset), 'memory': c.memory,
                       'cpu_usage': c.cpu_usage, 'memory_usage': c.memory_usage, 'pinned_cpus': sorted(c.pinned_cpus),
                       'siblings': [sorted(s) for s in c.siblings], 'socket': c.socket,
                       'mempages': [{'size_kb': p.size_kb, 'total': p.total, 'used': p.used, 'reserved': p.reserved}
                                    for p in c.mempages]} for c in topology.cells]}


def guest_json(topology):
    return {'cells': [{'id': c.id, 'cpuset': sorted(c.cpuset), 'pcpuset': sorted(c.pcpuset), 'memory': c.memory,
                       'pagesize': c.pagesize, 'cpu_policy': c.cpu_policy, 'cpu_thread_policy': c.cpu_thread_policy,
                       'cpuset_reserved': sorted(c.cpuset_reserved) if c.cpuset_reserved else None,
                       'cpu_pinning': sorted(c.cpu_pinning_raw.items()) if c.cpu_pinning_raw else None}
                      for c in topology.cells],
            'emulator_threads_policy': topology.emulator_threads_policy}


def usage(rng_host, own, free):
    try:
        return host_json(hardware.numa_usage_from_instance_numa(rng_host, own, free=free))
    except Exception as e:
        return {'error': type(e).__name__}


def main():
    seed, count, release = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for n in range(count):
        rng = random.Random('%s-%d' % (seed, n))
        on, own = host(rng), guest(rng)
        print(json.dumps({'release': release, 'host': host_json(on), 'guest': guest_json(own),
                          'comes': usage(on, own, False), 'leaves': usage(on, own, True)}))


main()
