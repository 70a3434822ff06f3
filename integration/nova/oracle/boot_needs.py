#!/usr/bin/env python3
"""What nova-api makes of random flavors and images: NUMA topology, PCI requests, their groups.

    /usr/bin/python3 boot_needs.py SEED COUNT RELEASE >> cases.jsonl

RELEASE is the major version of the Nova that this Python imports. Each line has the flavor, the
image, the aliases and Nova's own answer, or the class of the exception that nova-api raises. What
is called is what API._validate_and_build_base_options calls, in its order; nothing is replaced but
the options of the configuration.
"""
import json
import random
import sys

import nova.conf
from nova import objects
from nova.pci import request as pci_request
from nova.virt import hardware

objects.register_all()
CONF = nova.conf.CONF
CONF([], project='nova', default_config_files=[])

ALIASES = [
    {'name': 'gpu', 'vendor_id': '10de', 'product_id': '20b0', 'device_type': 'type-PCI'},
    {'name': 'nic', 'vendor_id': '8086', 'product_id': '1520', 'device_type': 'type-VF',
     'numa_policy': 'required'},
    {'name': ' qat ', 'vendor_id': '8086', 'product_id': '0443', 'numa_policy': 'preferred',
     'capability_type': 'pci'},
]
ODD_ALIASES = [
    {'name': 'gpu', 'vendor_id': '10de', 'product_id': '20b2', 'device_type': 'type-PCI'},
    {'name': 'gpu', 'vendor_id': '10de', 'product_id': '20b2', 'device_type': 'type-PF'},
    {'name': 'gpu', 'vendor_id': '10de', 'product_id': '20b2'},
    {'name': 'gpu', 'vendor_id': '10de', 'product_id': '20b2', 'device_type': 'type-PCI',
     'numa_policy': 'socket'},
    {'name': 'qat', 'vendor_id': '8086', 'product_id': '0444'},
    {'name': 'bare'}, {'name': ''}, {'vendor_id': '10de'}, {'name': 'x' * 257}, {'name': 7},
    {'name': 'v', 'vendor_id': '10dg', 'product_id': '20b0'}, 'no object', None, 3,
    {'name': 'v', 'vendor_id': '10de1', 'product_id': '20b0'},
    {'name': 'v', 'vendor_id': '10de', 'product_id': '20b0', 'device_type': 'vdpa'},
    {'name': 'v', 'vendor_id': '10de', 'product_id': '20b0', 'numa_policy': 'near'},
    {'name': 'v', 'vendor_id': '10de', 'product_id': '20b0', 'more': 'x'},
    {'name': 'rc', 'resource_class': 'gpu', 'traits': 'CUSTOM_A,custom_b'},
    {'name': 'rc', 'vendor_id': '10de', 'product_id': '20b0', 'resource_class': 'PGPU'},
    {'name': 'lm', 'vendor_id': '10de', 'product_id': '20b0', 'live_migratable': 'yes'},
    {'name': 'lm', 'vendor_id': '10de', 'product_id': '20b0', 'live_migratable': 'perhaps'},
]


def some(rng, words, chance):
    return rng.choice(words) if rng.random() < chance else None


def make(rng):
    vcpus = rng.choice([1, 2, 3, 4, 4, 6, 6, 8, 8])
    memory = rng.choice([512, 1024, 1025, 2048, 4096, 6144])
    wild = rng.random()         # how odd the case is
    odd = 0.05 if wild < 0.6 else 0.35

    def pick(good, bad):
        return rng.choice(bad) if rng.random() < odd else rng.choice(good)

    specs, image = {}, {}

    def both(name, good, bad, chance, image_good=None, image_chance=None):
        if rng.random() < chance:
            specs['hw:' + name] = str(pick(good, bad))
        if rng.random() < (chance / 4 if image_chance is None else image_chance):
            image['hw_' + name] = pick(image_good or good, image_good or good)

    policies = ['shared', 'dedicated', 'dedicated', 'mixed']
    both('cpu_policy', policies, ['', 'pinned'], 0.45, policies)
    pinned = specs.get('hw:cpu_policy') in ('dedicated', 'mixed')
    both('cpu_thread_policy', ['prefer', 'isolate', 'require'], ['', 'never'], 0.3 if pinned else 0.05,
         ['prefer', 'isolate', 'require'])
    both('numa_nodes', [1, 1, 2, 2, 2, 3, 4], ['', '0', '-1', 'two', '+2', ' 2', '02', '1.0', '9'], 0.4,
         [1, 2, 3, 0], 0.1)
    both('mem_page_size', ['any', 'large', 'small', '4', '2048', '2MB', '1GB', '1048576'],
         ['', '0', '2X', 'huge', '1.5MB', '16Kib', '16Kbit', '-2KB', '0.5KB', '.5GiB', '4kB', '5.MB'], 0.25,
         ['any', 'large', 'small', '2048', '1GB', 'huge'], 0.1)
    both('locked_memory', ['true', 'false'], ['perhaps', ''], 0.06, [True, False], 0.04)
    both('pci_numa_affinity_policy', ['required', 'legacy', 'preferred', 'socket'], ['', 'near'],
         0.15, ['required', 'legacy', 'preferred', 'socket'])
    masks = ['^0', '^0-1', '0', '0-1', ' ^1', '1-2', '^0-0,2']
    if rng.random() < (0.25 if pinned else 0.05):
        specs['hw:cpu_realtime'] = pick(['yes', 'true', '1'], ['no', '', 'perhaps'])
        both('cpu_realtime_mask', masks, ['', 'x', '0-99', '^0-99', '3-1', ' '], 0.8, masks, 0.2)
    if rng.random() < (0.7 if specs.get('hw:cpu_policy') == 'mixed' else 0.06):
        specs['hw:cpu_dedicated_mask'] = pick(masks, ['', 'x', '0-99', '^0-99', '0-%d' % (vcpus - 1)])
    if rng.random() < (0.25 if pinned else 0.08):
        specs['hw:emulator_threads_policy'] = pick(['share', 'isolate'], ['', 'float'])
    if rng.random() < 0.12:
        kind = rng.choice(['resources:PCPU', 'resources:VCPU', 'resources1:PCPU', 'resources:PCPUS'])
        specs[kind] = pick([str(vcpus), str(vcpus), str(vcpus + 1)], ['x', '0', '-1', ''])
    if rng.random() < 0.08:
        kind = rng.choice(['trait:HW_CPU_HYPERTHREADING', 'trait2:HW_CPU_HYPERTHREADING'])
        specs[kind] = pick(['required', 'forbidden'], ['', 'perhaps'])
    if rng.random() < 0.04:
        image['trait:HW_CPU_HYPERTHREADING'] = 'required'
    if rng.random() < 0.05:
        specs['hw:pmem'] = pick(['6GB', '6GB, SMALL'], ['', ' ,'])
    if rng.random() < 0.3:      # a topology by hand
        nodes = rng.choice([1, 2, 2, 3])
        if rng.random() < 0.8:
            specs.setdefault('hw:numa_nodes', str(nodes))
            if not specs['hw:numa_nodes'].isdigit():
                specs['hw:numa_nodes'] = str(nodes)
            nodes = min(int(specs['hw:numa_nodes']), 4)
        cpus = list(range(vcpus))
        cuts = sorted(rng.choice(range(vcpus + 1)) for _ in range(max(nodes - 1, 0)))
        cuts = [0] + cuts + [vcpus]
        into = specs if rng.random() < 0.8 else image
        key = 'hw:numa_%s.%d' if into is specs else 'hw_numa_%s.%d'
        left = memory
        for n in range(nodes):
            part = cpus[cuts[n]:cuts[n + 1]]
            text = '%d-%d' % (part[0], part[-1]) if part else ''
            if rng.random() < odd / 2:
                text = rng.choice(['0', '0-%d' % vcpus, '0,,1', 'x', '2-1', '^0', '0-3,^1', '7'])
            give = left if n == nodes - 1 else left // 2
            left -= give
            if rng.random() < odd / 3:
                give = rng.choice([0, 1, 'x', -1])
            if rng.random() > odd / 4:
                into[key % ('cpus', n)] = text
            if rng.random() > odd / 4:
                into[key % ('mem', n)] = str(give)
        if rng.random() < 0.05:
            image['hw_numa_mem.0'] = str(memory)
        if rng.random() < 0.05:
            image['hw_numa_cpus.0'] = '0'
    if rng.random() < 0.4:
        names = ['gpu', 'nic', 'qat', ' gpu ', 'gpu', 'rc', 'lm', 'bare']
        count = rng.choice([1, 1, 2])
        text = ','.join('%s:%s' % (pick(names[:5], names + ['none', '']), pick([1, 2, ' 3'], ['x', 0, -1, '1:2', '']))
                        for _ in range(count))
        specs['pci_passthrough:alias'] = pick([text], ['', 'gpu', 'gpu:1,', 'gpu:1:2'])
    alias = [json.dumps(a) for a in ALIASES]
    if rng.random() < 0.35:
        more = rng.choice(ODD_ALIASES)
        alias.insert(rng.randrange(4), json.dumps(more) if more != 'no object' else 'no json')
    if rng.random() < 0.15:
        alias = [json.dumps(a) for a in ALIASES[:2]] + [json.dumps(rng.choice(ODD_ALIASES[-4:]))]
    keys = list(specs)
    rng.shuffle(keys)
    return {'flavor': {'vcpus': vcpus, 'memory_mb': memory, 'extra_specs': {k: specs[k] for k in keys}},
            'image': image, 'alias': alias, 'pci_in_placement': rng.random() < 0.2}


def cell(c):
    return {'id': c.id, 'cpuset': sorted(c.cpuset), 'pcpuset': sorted(c.pcpuset), 'memory': c.memory,
            'pagesize': c.pagesize, 'cpu_policy': c.cpu_policy, 'cpu_thread_policy': c.cpu_thread_policy}


def groups(requests):
    spec = objects.RequestSpec()
    spec.requested_resources = []
    spec.pci_requests = requests
    spec.generate_request_groups_from_pci_requests()
    return [{'resources': g.resources, 'required_traits': sorted(g.required_traits)}
            for g in spec.requested_resources]


def answer(case, release):
    CONF.set_override('alias', case['alias'], 'pci')
    if release >= 27:
        CONF.set_override('pci_in_placement', case['pci_in_placement'], 'filter_scheduler')
    cached = getattr(pci_request, 'get_alias_from_config', None)
    if hasattr(cached, 'cache_clear'):
        cached.cache_clear()
    f = case['flavor']
    flavor = objects.Flavor(name='f', flavorid='f', vcpus=f['vcpus'], memory_mb=f['memory_mb'], root_gb=1,
                            ephemeral_gb=0, swap=0, extra_specs=dict(f['extra_specs']))
    try:
        image = objects.ImageMeta.from_dict({'name': 'i', 'properties': dict(case['image'])})
    except Exception as e:
        return {'error': type(e).__name__, 'where': 'image'}
    try:
        hardware.get_realtime_cpu_constraint(flavor, image)
        topology = hardware.numa_get_constraints(flavor, image)
        policy = hardware.get_pci_numa_policy_constraint(flavor, image)
        requests = pci_request.get_pci_requests_from_flavor(flavor, affinity_policy=policy)
        made = groups(requests) if release >= 27 else []
    except Exception as e:
        return {'error': type(e).__name__}
    return {
        'numa': None if topology is None else {
            'cells': [cell(c) for c in topology.cells],
            'emulator_threads_policy': topology.emulator_threads_policy},
        'pci': [{'count': r.count, 'spec': r.spec, 'alias_name': r.alias_name, 'numa_policy': r.numa_policy}
                for r in requests.requests],
        'groups': made}


def main():
    seed, count, release = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    for n in range(count):
        case = make(random.Random('%s-%d' % (seed, n)))
        case['release'] = release
        case['answer'] = answer(case, release)
        print(json.dumps(case, sort_keys=False))


main()
