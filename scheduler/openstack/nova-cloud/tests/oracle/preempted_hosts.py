#!/usr/bin/env python3
"""Hosts with cells and devices, and which of them Nova's filters pass without which servers.

    /usr/bin/python3 preempted_hosts.py SEED COUNT RELEASE >> hosts.jsonl

RELEASE is the major version of the Nova that this Python imports. Nova itself places the servers:
hardware.numa_fit_instance_to_host chooses their cells and CPUs, PciDeviceStats.consume_requests
their devices. For every set of preemptible servers, the host is made without them as a compute
does when they are gone: the topology from the servers that are left (ResourceTracker), the devices
given back one by one (PciDeviceStats.add_device). Then NUMATopologyFilter and PciPassthroughFilter
say whether they pass the host. `passes` lists the sets that they do pass, as bits by the places of
the preemptible servers.
"""
import copy
import json
import random
import sys

import nova.conf
from nova import objects
from nova.pci import stats as pci_stats
from nova.scheduler import host_manager
from nova.scheduler.filters import numa_topology_filter
from nova.scheduler.filters import pci_passthrough_filter
from nova.virt import hardware

objects.register_all()
CONF = nova.conf.CONF
CONF([], project='nova', default_config_files=[])
CONF.set_override('device_spec', ['{"vendor_id": "10de"}', '{"vendor_id": "8086"}'], 'pci')
FILTERS = [numa_topology_filter.NUMATopologyFilter(), pci_passthrough_filter.PciPassthroughFilter()]
KINDS = [('10de', '1eb8', 'type-PCI'), ('10de', '1eb8', 'type-PCI'), ('10de', '20b0', 'type-PCI'),
         ('8086', '1520', 'type-VF')]
# Placement chooses no devices here. Nova 26 does not ask.
NO_PROVIDERS = {'provider_mapping': None} if int(sys.argv[3]) >= 27 else {}
LIMITS = dict(cpu_allocation_ratio=1.0, ram_allocation_ratio=1.0)


def host_cells(rng):
    cells = []
    threads = rng.choice([1, 2, 2])
    for n in range(rng.choice([1, 2, 2, 2, 3])):
        first = n * 16
        shared = rng.choice([0, 2, 4])
        dedicated = list(range(first + shared, first + shared + rng.choice([2, 4, 4, 6])))
        siblings = [set(dedicated[i:i + threads]) for i in range(0, len(dedicated), threads)]
        memory = rng.choice([4096, 8192])
        pages = [objects.NUMAPagesTopology(size_kb=4, total=memory * 128, used=0, reserved=0),
                 objects.NUMAPagesTopology(size_kb=2048, total=memory // 4, used=0, reserved=0)]
        cells.append(objects.NUMACell(
            id=n, cpuset=set(range(first, first + shared)), pcpuset=set(dedicated), memory=memory,
            cpu_usage=0, memory_usage=0, pinned_cpus=set(), siblings=siblings, mempages=pages,
            socket=rng.choice([0, 0, n])))
    return objects.NUMATopology(cells=cells)


def host_devices(rng, cells):
    devices = []
    for n in range(rng.choice([0, 2, 3, 4, 6])):
        vendor, product, dev_type = rng.choice(KINDS)
        node = rng.choice([None] + [cell.id for cell in cells.cells] * 2)
        devices.append(objects.PciDevice(
            compute_node_id=1, address='0000:%02x:00.0' % n, vendor_id=vendor, product_id=product,
            dev_type=dev_type, numa_node=node, parent_addr='0000:80:00.0' if dev_type == 'type-VF' else None,
            status='available', extra_info={}, label='l', dev_id='d'))
    return devices


def guest_cells(rng):
    policy = rng.choice([None, 'shared', 'dedicated', 'dedicated'])
    threads = rng.choice([None, None, 'isolate', 'require', 'prefer']) if policy == 'dedicated' else None
    pages = rng.choice([None, None, None, 2048, -1, -2, -3])
    cpus = rng.choice([1, 1, 2, 2, 3])
    cells = []
    for n in range(rng.choice([1, 1, 1, 2])):
        own = set(range(n * cpus, (n + 1) * cpus))
        pinned = policy == 'dedicated'
        cells.append(objects.InstanceNUMACell(
            id=n, cpuset=set() if pinned else own, pcpuset=own if pinned else set(),
            memory=rng.choice([512, 1024, 2048]), pagesize=pages, cpu_policy=policy, cpu_thread_policy=threads,
            cpuset_reserved=None, cpu_pinning_raw=None))
    emulator = rng.choice([None, None, 'isolate', 'share']) if policy == 'dedicated' else None
    return objects.InstanceNUMATopology(cells=cells, emulator_threads_policy=emulator)


def guest_devices(rng, most):
    requests = []
    for n in range(rng.choice([0, 1, 1, 2]) if most > 1 else 1):
        vendor, product, dev_type = rng.choice(KINDS)
        spec = [{'vendor_id': vendor, 'product_id': product, 'dev_type': dev_type}]
        requests.append(objects.InstancePCIRequest(
            count=rng.choice([1, 1, 1, 2]), spec=spec, alias_name='a', request_id='00000000-0000-4000-8000-%012d' % n,
            numa_policy=rng.choice(['legacy', 'preferred', 'required', 'required', 'socket'])))
    return requests


def cell_json(cell):
    return {'id': cell.id, 'cpuset': sorted(cell.cpuset), 'pcpuset': sorted(cell.pcpuset), 'memory': cell.memory,
            'pagesize': cell.pagesize, 'cpu_policy': cell.cpu_policy, 'cpu_thread_policy': cell.cpu_thread_policy,
            'cpuset_reserved': sorted(cell.cpuset_reserved) if cell.cpuset_reserved else None,
            'cpu_pinning': sorted(cell.cpu_pinning_raw.items()) if cell.cpu_pinning_raw else None}


def topology_json(topology):
    return topology and {'cells': [cell_json(c) for c in topology.cells],
                         'emulator_threads_policy': topology.emulator_threads_policy}


def request_json(request):
    return {'count': request.count, 'spec': request.spec, 'alias_name': request.alias_name,
            'request_id': request.request_id, 'numa_policy': request.numa_policy}


def host_json(topology, stats):
    cells = [{'id': c.id, 'cpuset': sorted(c.cpuset), 'pcpuset': sorted(c.pcpuset), 'memory': c.memory,
              'cpu_usage': c.cpu_usage, 'memory_usage': c.memory_usage, 'pinned_cpus': sorted(c.pinned_cpus),
              'siblings': [sorted(s) for s in c.siblings], 'socket': c.socket,
              'mempages': [{'size_kb': p.size_kb, 'total': p.total, 'used': p.used, 'reserved': p.reserved}
                           for p in c.mempages]} for c in topology.cells]
    pools = [pool.to_dict() for pool in stats.to_device_pools_obj()]
    return {'numa_topology': {'cells': cells}, 'pci_pools': pools}


def place(rng, topology, stats, server):
    """What Nova's compute claims for a server; None: it does not fit."""
    fitted = None
    if server['cells'] is not None:
        fitted = hardware.numa_fit_instance_to_host(
            topology, server['cells'].obj_clone(), limits=objects.NUMATopologyLimits(**LIMITS),
            pci_requests=server['requests'], pci_stats=stats, **NO_PROVIDERS)
        if not fitted:
            return None
    held = []
    if server['requests']:
        numa_cells = fitted.cells if fitted else None
        if not stats.support_requests(server['requests'], numa_cells=numa_cells, **NO_PROVIDERS):
            return None
        held = stats.consume_requests(server['requests'], numa_cells)
        if not held:
            return None
    if fitted:
        topology = hardware.numa_usage_from_instance_numa(topology, fitted)
    return topology, fitted, held


def passes(topology, stats, spec):
    state = host_manager.HostState('host0', 'host0', 'cell')
    state.numa_topology = topology
    # The scheduler reads the pools of the report.
    state.pci_stats = pci_stats.PciDeviceStats(topology, stats.to_device_pools_obj())
    state.cpu_allocation_ratio = state.ram_allocation_ratio = 1.0
    state.limits = {}
    state.allocation_candidates = [{'mappings': {'': ['rp']}}]
    return all(one.host_passes(state, spec) for one in FILTERS)


def make(rng):
    empty = host_cells(rng)
    devices = host_devices(rng, empty)
    stats = pci_stats.PciDeviceStats(empty)
    for device in devices:
        stats.add_device(device)
    topology, servers = empty, []
    for _ in range(rng.choice([2, 3, 4, 6, 8])):
        server = {'cells': guest_cells(rng) if rng.random() < 0.75 else None,
                  'requests': guest_devices(rng, 2) if rng.random() < 0.7 else []}
        placed = place(rng, topology, stats, server)
        if placed and len(servers) < 7:
            topology, fitted, held = placed
            servers.append({'preemptible': rng.random() < 0.8, 'minutes': rng.randrange(1, 200),
                            'topology': fitted, 'devices': held})
    wanted = rng.random()
    cells = guest_cells(rng) if wanted < 0.75 else None
    requests = guest_devices(rng, 1 if cells is None else 2) if wanted > 0.25 else []
    specs = {}
    if cells is not None and cells.cells[0].cpu_thread_policy == 'require':
        specs = {'hw:cpu_policy': 'dedicated', 'hw:cpu_thread_policy': 'require'}
    return empty, topology, stats, servers, cells, requests, specs


def spec_of(cells, requests, specs):
    spec = objects.RequestSpec()
    spec.flavor = objects.Flavor(extra_specs=specs, vcpus=1, memory_mb=1)
    spec.image = objects.ImageMeta.from_dict({'properties': {}})
    spec.numa_topology = cells
    spec.pci_requests = objects.InstancePCIRequests(requests=requests)
    spec.instance_uuid = '00000000-0000-4000-8000-000000000000'
    return spec


def case(rng):
    empty, full, stats, servers, cells, requests, specs = make(rng)
    movable = [n for n, server in enumerate(servers) if server['preemptible']]
    good = []
    for mask in range(1 << len(movable)):
        gone = {movable[bit] for bit in range(len(movable)) if mask >> bit & 1}
        topology, left = empty, copy.deepcopy(stats)
        for n, server in enumerate(servers):
            if n in gone:
                for device in server['devices']:
                    left.add_device(device)
            elif server['topology']:
                topology = hardware.numa_usage_from_instance_numa(topology, server['topology'])
        left.numa_topology = topology
        if passes(topology, left, spec_of(cells, requests, dict(specs))):
            good.append(mask)
    device = lambda d: {'address': d.address, 'parent_addr': d.parent_addr, 'vendor_id': d.vendor_id,
                        'product_id': d.product_id, 'dev_type': d.dev_type, 'numa_node': d.numa_node}
    return {'host': host_json(full, stats),
            'servers': [{'preemptible': s['preemptible'], 'minutes': s['minutes'],
                         'topology': topology_json(s['topology']), 'devices': [device(d) for d in s['devices']]}
                        for s in servers],
            'numa_topology': topology_json(cells), 'pci_requests': [request_json(r) for r in requests],
            'extra_specs': specs, 'passes': good}


def main():
    seed, count, release = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    made = n = 0
    while made < count:
        one = case(random.Random('%s-%d' % (seed, n)))
        n += 1
        # In three of four cases servers have to leave, and it helps.
        if made % 4 and (not one['passes'] or 0 in one['passes']):
            continue
        one['release'] = release
        print(json.dumps(one))
        made += 1


main()
