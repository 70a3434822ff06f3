#!/usr/bin/env python3
"""Random cases for NUMATopologyFilter and PciPassthroughFilter, in the format of the oracle.

    generate_numa_pci.py SEED COUNT > cases.jsonl
    nova_oracle.py --pair cases.jsonl > pairs.jsonl

Most cases have one host and several instances with only these two filters, so that
`schedule.touched` shows what each instance took of NUMA cells and PCI pools. The others have
several hosts, for the isolated verdicts. Numbers are drawn near to what just fits, and now and then
something is broken: hosts without thread siblings, mappings without providers, requests without
specs.
"""
import json
import random
import sys

NOW = '2026-03-01T12:00:00'
PAGE_SIZES = [4, 2048, 1048576]
VENDORS = [('8086', '1520'), ('8086', '1521'), ('15b3', '101E'), ('10de', '20b0')]
DEV_TYPES = ['type-PCI', 'type-PF', 'type-VF', 'vdpa']
RPS = ['70000000-0000-4000-8000-%012d' % i for i in range(6)]


def chance(r, p):
    return r.random() < p


def subset(r, items, p):
    return [x for x in items if chance(r, p)]


# ------------------------------------------------------------------ hosts

def cores_of(r, first, threads, style, total, roomy):
    """Thread sets of one cell: neighbours, or halves of the host, as two kinds of firmware
    count."""
    n = r.choice({'': [1, 2, 3, 4, 6, 8], 'roomy': [4, 6, 8, 8], 'large': [6, 12, 16, 20]}[roomy])
    if style == 'neighbours':
        return [list(range(first + i * threads, first + (i + 1) * threads)) for i in range(n)]
    return [[first + i + t * total for t in range(threads)] for i in range(n)]


def host_cell(r, number, first, threads, style, total, dense, roomy):
    cores = cores_of(r, first, threads, style, total, roomy)
    cpus = sorted(c for core in cores for c in core)
    kind = r.choice(['legacy', 'legacy', 'legacy', 'split'] if roomy else ['legacy', 'legacy', 'dedicated', 'shared', 'split', 'split'])
    if kind == 'legacy':
        cpuset, pcpuset = cpus, cpus
    elif kind == 'dedicated':
        cpuset, pcpuset = [], cpus
    elif kind == 'shared':
        cpuset, pcpuset = cpus, []
    else:
        pcpuset = subset(r, cpus, 0.6)
        cpuset = [c for c in cpus if c not in pcpuset]
    if chance(r, 0.1):      # offline CPUs
        gone = subset(r, cpus, 0.2)
        cores = [[c for c in core if c not in gone] for core in cores]
        cpuset = [c for c in cpuset if c not in gone]
        pcpuset = [c for c in pcpuset if c not in gone]
    siblings = cores
    if chance(r, 0.02):
        siblings = []
    elif chance(r, 0.03):
        siblings = [c for c in cores if chance(r, 0.8)]
    elif chance(r, 0.02) and cores:
        siblings = cores + [cores[0]]
    elif chance(r, 0.1):    # only the CPUs that guests may use
        siblings = [[c for c in core if c in pcpuset] for core in cores]
    pinned = subset(r, pcpuset, r.choice([0, 0, 0.1, 0.2] if roomy else [0, 0, 0.1, 0.3, 0.6]))
    memory = r.choice([1024, 2048, 4096, 8192, 16384]) if not roomy else 16384
    cell = {'id': number, 'cpuset': cpuset, 'pcpuset': pcpuset, 'memory': memory,
            'cpu_usage': r.choice([0, 0, 1, 2] if roomy else [0, 0, 1, 2, len(cpuset), 2 * len(cpuset)]),
            'memory_usage': r.choice([0, 0, 512, 1024] if roomy else [0, 0, 512, 1024, memory // 2, memory, memory + 512]),
            'pinned_cpus': pinned, 'siblings': siblings, 'mempages': [],
            'socket': None if chance(r, 0.1) else r.choice([0, 0, 1])}
    if dense:
        sizes = [4] + subset(r, PAGE_SIZES[1:], 0.6) if chance(r, 0.9) else subset(r, PAGE_SIZES, 0.5)
        if chance(r, 0.2):
            r.shuffle(sizes)
        if chance(r, 0.02) and sizes:
            sizes.append(sizes[0])
        for size in sizes:
            count = max(1, memory * 1024 // size // r.choice([1, 1, 2, 4] if not roomy else [1, 1, 2]))
            cell['mempages'].append({
                'size_kb': size, 'total': count, 'used': r.choice([0, 0, count // 4] if roomy else [0, 0, count // 2, count // 4, count]),
                'reserved': r.choice([0, 0, 0, 1, count // 4])})
    if chance(r, 0.25):
        cell['network_metadata'] = {'physnets': subset(r, ['net0', 'net1', 'net2'], 0.4), 'tunneled': chance(r, 0.4)}
    return cell


def host_topology(r):
    roomy = r.choice(['', '', '', 'roomy', 'roomy', 'roomy', 'roomy', 'roomy', 'large', 'large'])
    if chance(r, 0.02 if roomy else 0.06):
        return None
    n = r.choice([2, 2, 3, 4] + ([6] if roomy == 'large' else []) if roomy else [0] * 1 + [1] * 10 + [2] * 20 + [3] * 10 + [4] * 8)
    threads = r.choice([1, 2, 2, 2, 4])
    style = r.choice(['neighbours', 'halves'])
    dense = chance(r, 0.7)
    ids = list(range(n))
    if chance(r, 0.1):
        ids = sorted(r.sample(range(6), n))
    if chance(r, 0.1):
        r.shuffle(ids)
    step = (r.choice([20, 24, 32]) if roomy == 'large' else r.choice([8, 8, 10, 12])) * (threads if style == 'neighbours' else 1)
    total = step * max(n, 1) if chance(r, 0.6) else r.choice([32, 64, 8 * max(n, 1)])
    cells = [host_cell(r, ids[i], i * step, threads, style, max(total, step * n), dense if chance(r, 0.95) else not dense,
                       roomy)
             for i in range(n)]
    if n > 1 and chance(r, 0.4):    # alike but for the numbers of CPUs: ties
        for c in cells[1:]:
            for k in ('memory', 'memory_usage', 'cpu_usage'):
                c[k] = cells[0][k]
            if chance(r, 0.7):
                c['mempages'] = json.loads(json.dumps(cells[0]['mempages']))
    return {'cells': cells}


def pool(r):
    vendor, product = r.choice(VENDORS)
    p = {'vendor_id': vendor, 'product_id': product, 'numa_node': r.choice([None, 0, 0, 1, 1, 2, 3]),
         'count': r.choice([0, 1, 1, 2, 2, 3, 4, 8])}
    if chance(r, 0.9):
        p['dev_type'] = r.choice(DEV_TYPES)
    if chance(r, 0.3):
        p['physical_network'] = r.choice(['net0', 'NET0', 'net1', None])
    if chance(r, 0.25):
        p['remote_managed'] = r.choice(['true', 'false', 'True', 'yes', True, False])
    if chance(r, 0.25):
        p['live_migratable'] = r.choice(['true', 'false', 'TRUE'])
    if chance(r, 0.3):
        p['address'] = '0000:8%d:00.0' % r.randrange(4)
    if chance(r, 0.1):
        p['parent_ifname'] = 'ens%d' % r.randrange(2)
    if chance(r, 0.1):
        p['trusted'] = r.choice(['true', 'false', 1, 0])
    return p


def pools(r, placement):
    if chance(r, 0.07):
        return r.choice([None, []])
    found = [pool(r) for _ in range(r.choice([1, 2, 3, 4, 6]))]
    if chance(r, 0.3):
        found += [dict(p) for p in found[:2]]
    if placement:
        rps = RPS[:]
        for p in found:
            if chance(r, 0.9) and rps:
                p['rp_uuid'] = rps.pop(0) if chance(r, 0.96) else r.choice(RPS)
                if chance(r, 0.02):
                    p['rp_uuid'] = None
    return found


def host(r, n, requests, placement):
    h = {'host': 'cmp%d' % n, 'nodename': 'cmp%d' % n, 'uuid': '10000000-0000-4000-8000-%012d' % n,
         'vcpus': 64, 'vcpus_used': 0, 'memory_mb': 262144, 'memory_mb_used': 0, 'free_ram_mb': 262144,
         'local_gb': 1000, 'local_gb_used': 0, 'free_disk_gb': None if chance(r, 0.01) else 1000,
         'disk_available_least': None,
         'cpu_allocation_ratio': r.choice([1.0, 1.0, 1.5, 2.0, 4.0, 16.0, 0.5, None]),
         'ram_allocation_ratio': r.choice([1.0, 1.0, 1.2, 1.5, 2.0, 0.9, 0.0]),
         'disk_allocation_ratio': 1.0, 'hypervisor_type': 'QEMU', 'hypervisor_version': 8002000,
         'cpu_info': '{}', 'host_ip': '10.0.0.%d' % (n + 1), 'supported_instances': [['x86_64', 'kvm', 'hvm']],
         'stats': {'num_instances': '0', 'io_workload': '0'},
         'service': {'disabled': False, 'forced_down': False, 'last_seen_up': NOW, 'created_at': NOW},
         'instances': [], 'updated_at': NOW}
    nt = host_topology(r)
    if nt is not None:
        h['numa_topology'] = nt
    h['pci_pools'] = pools(r, placement)
    if placement:
        own = [p['rp_uuid'] for p in h['pci_pools'] or [] if p.get('rp_uuid')] or RPS[:2]
        h['allocation_candidates'] = [
            {'allocations': {h['uuid']: {'resources': {'VCPU': 1}}, **({r.choice(own): {'resources': {'CUSTOM_PCI': 1}}})},
             'mappings': mappings(r, requests, own, h['uuid'])}
            for _ in range(r.choice([0] + [1, 2, 2, 3, 4] * 3))]
    return h


def mappings(r, requests, own, root):
    m = {'': [root]}
    for q in requests:
        if q['request_id'] is None:
            continue
        near = r.choice(own) if not chance(r, 0.5) else own[-1]
        for k in range(q['count'] if chance(r, 0.9) else q['count'] + 1):
            m['%s-%d' % (q['request_id'], k)] = [near if chance(r, 0.7) else r.choice(own if chance(r, 0.97) else RPS)]
            if chance(r, 0.01):
                m['%s-%d' % (q['request_id'], k)] = r.choice([[], None])
    if chance(r, 0.02):
        m = {}
    return m


# ---------------------------------------------------------------- requests

def pci_request(r, n, placement):
    specs = []
    for _ in range(r.choice([1, 1, 1, 1, 2, 2, 3])):
        vendor, product = r.choice(VENDORS)
        s = {'vendor_id': vendor, 'product_id': product} if chance(r, 0.8) else {}
        if chance(r, 0.5):
            s['dev_type'] = r.choice(DEV_TYPES)
        if chance(r, 0.12):
            s['physical_network'] = r.choice(['net0', 'Net0', 'net1', None])
        if chance(r, 0.15):
            s['remote_managed'] = r.choice(['true', 'false', 'True', 'on'])
        if chance(r, 0.12):
            s['live_migratable'] = r.choice(['true', 'false', 'TRUE'])
        if chance(r, 0.05):
            s['numa_node'] = r.choice([None, '0', 0])
        if chance(r, 0.05):
            s[r.choice(['resource_class', 'traits', 'count', 'trusted', 'address'])] = r.choice(['CUSTOM_X', '1', 'true'])
        if chance(r, 0.08):
            s['rp_uuids'] = r.choice(['', ','.join(r.sample(RPS, 2)), r.choice(RPS), ','.join([RPS[0]] * 2)])
        if chance(r, 0.1):
            s = {k: (v.upper() if isinstance(v, str) and k != 'rp_uuids' else v) for k, v in s.items()}
        specs.append(s)
    if chance(r, 0.01):
        specs = []
    alias = 'gpu' if chance(r, 0.85) else None
    rid = '6%07d-0000-4000-8000-000000000000' % n
    if chance(r, 0.01):
        rid = None
    return {'count': r.choice([0] + [1] * 12 + [2] * 6 + [3, 4]), 'spec': specs, 'alias_name': alias, 'request_id': rid,
            'requester_id': None if alias else '9%07d-0000-4000-8000-000000000000' % n,
            'numa_policy': r.choice([None, 'required', 'legacy', 'preferred', 'socket'])}


def guest_topology(r, hosts):
    small = chance(r, 0.7)
    cells, first = [], 0
    host_cells = [c for h in hosts for c in (h.get('numa_topology') or {'cells': []})['cells']]
    # Nova tries up to all arrangements, each time with a copy of everything: keep them few.
    small = small or any(len(h['numa_topology']['cells']) > 4 for h in hosts if h.get('numa_topology'))
    n = r.choice([1, 1, 2, 2, 3] if small else [1, 1, 1, 2, 2, 2, 3, 4]) if chance(r, 0.98) else 0
    policy = r.choice([None, None, 'shared', 'dedicated', 'dedicated', 'dedicated', 'mixed', 'mixed'])
    thread = r.choice([None, 'prefer', 'require', 'isolate']) if policy in ('dedicated', 'mixed') or chance(r, 0.1) else None
    pagesize = r.choice([None, None, None, -1, -2, -3, 4, 2048, 1048576] + ([] if small else [999]))
    alike = chance(r, 0.5)
    ids = list(range(n)) if chance(r, 0.95) else [r.randrange(3) for _ in range(n)]
    size = None
    for i in range(n):
        if size is None or not alike:
            size = (r.choice([1, 1, 2, 2, 3, 4] if small else [1, 1, 2, 2, 3, 4, 6, 8]), r.choice([0, 1, 1, 2, 4]))
            base = r.choice(host_cells)['memory'] if host_cells else 2048
            memory = r.choice([512, 1024, 1024, 2048] + ([3072] if small else [base, base // 2, base + 1024, 1000]))
        pinned, floating = size
        if policy == 'dedicated':
            floating = 0 if chance(r, 0.97) else 1
        elif policy == 'mixed':
            floating = floating or 1
        else:
            floating, pinned = pinned, 0
        if chance(r, 0.02):
            pinned = 0
        cells.append({'id': ids[i], 'cpuset': list(range(first, first + floating)),
                      'pcpuset': list(range(first + floating, first + floating + pinned)), 'memory': memory,
                      'pagesize': pagesize if chance(r, 0.95) else r.choice([None, 4, -3]),
                      'cpu_policy': policy if chance(r, 0.98) else None, 'cpu_thread_policy': thread})
        first += floating + pinned
    return {'cells': cells, 'emulator_threads_policy': r.choice([None, None, 'isolate', 'share'])}


def one_core(r, number, threads, stride):
    """A cell of a core or two with threads far apart: their numbers want the same place in a Python
    set."""
    first = number * r.choice([1, 2, 3])
    cores = [sorted(first + core + t * stride for t in range(threads)) for core in range(r.choice([1, 1, 2]))]
    cpus = sorted({c for core in cores for c in core})
    return {'id': number, 'cpuset': cpus, 'pcpuset': cpus if chance(r, 0.7) else subset(r, cpus, 0.8), 'memory': 8192, 'cpu_usage': 0,
            'memory_usage': 0, 'pinned_cpus': [], 'siblings': cores, 'socket': 0,
            'mempages': [{'size_kb': 4, 'total': 8192 * 256, 'used': 0, 'reserved': 0}]}


def order_case(r, c):
    """Which thread of a core is taken first, and which is left for the next instance."""
    threads, stride = r.choice([2, 4, 4, 8]), r.choice([8, 8, 16, 24, 32, 12])
    cells = [one_core(r, i, threads, stride) for i in range(r.choice([1, 2]))]
    for cell in cells:
        cell['pinned_cpus'] = subset(r, cell['pcpuset'], r.choice([0, 0, 0.2]))
    c['hosts'] = c['hosts'][:1]
    c['hosts'][0].update(numa_topology={'cells': cells}, pci_pools=[], free_disk_gb=1000)
    c['hosts'][0].pop('allocation_candidates', None)
    wanted = r.choice([1, 1, 2, 3])
    c['request'].update(pci_requests=None, requested_resources=[], numa_topology={
        'cells': [{'id': 0, 'cpuset': [], 'pcpuset': list(range(wanted)), 'memory': 512, 'pagesize': None,
                   'cpu_policy': 'dedicated', 'cpu_thread_policy': r.choice([None, None, 'require', 'isolate'])}],
        'emulator_threads_policy': r.choice([None, 'isolate'])})
    c['request'].pop('network_metadata', None)


def preferred_case(r, c):
    """Devices near, far and of unknown place, of which near ones are to be used up first."""
    c['hosts'] = c['hosts'][:1]
    host = c['hosts'][0]
    host.pop('allocation_candidates', None)
    host.update(free_disk_gb=1000, numa_topology={'cells': [one_core(r, i, 2, 8) for i in range(r.choice([2, 2, 3]))]})
    host['pci_pools'] = [{'vendor_id': '8086', 'product_id': '1520', 'numa_node': r.choice([None, 0, 1, 1, 2]),
                          'count': r.choice([1, 2, 3]), 'dev_type': 'type-VF', **({'trusted': 'true'} if chance(r, 0.3) else {})}
                         for _ in range(r.choice([2, 3, 4, 5]))]
    c['request'].update(requested_resources=[], pci_requests=[
        {'count': r.choice([1, 2, 3, 4, 5]), 'spec': [{'vendor_id': '8086', 'product_id': '1520'}], 'alias_name': r.choice([None, 'nic']),
         'request_id': '60000000-0000-4000-8000-00000000000%d' % i, 'requester_id': None,
         'numa_policy': r.choice(['preferred', 'preferred', 'preferred', 'legacy', 'socket'])} for i in range(r.choice([1, 1, 2]))])
    c['request']['numa_topology'] = {'emulator_threads_policy': None, 'cells': [
        {'id': i, 'cpuset': [i], 'pcpuset': [], 'memory': 512, 'pagesize': None, 'cpu_policy': None, 'cpu_thread_policy': None}
        for i in range(r.choice([1, 1, 2]))]}
    c['request'].pop('network_metadata', None)


def case(seed, n):
    r = random.Random('%s/%d' % (seed, n))
    c = any_case(r, seed, n)
    special = r.choice([order_case, preferred_case] + [None] * 8)
    if special:
        special(r, c)
    return c


def any_case(r, seed, n):
    placement = chance(r, 0.4)
    focus = r.choice(['numa', 'numa', 'pci', 'both', 'both'])
    requests = []
    if focus != 'numa' or chance(r, 0.1):
        requests = [pci_request(r, i, placement) for i in range(r.choice([1, 1, 1, 2, 2, 3]))]
    several = chance(r, 0.3)
    hosts = [host(r, i, requests, placement) for i in range(r.choice([2, 4, 6]) if several else 1)]
    topology = guest_topology(r, hosts) if focus != 'pci' or chance(r, 0.1) else None
    if requests and chance(r, 0.75):     # ask for what some host has
        have = [p for h in hosts for p in h['pci_pools'] or []]
        for q in requests:
            if have and q['spec']:
                p = r.choice(have)
                q['spec'][0].update(vendor_id=p['vendor_id'], product_id=p['product_id'])
                if 'dev_type' in p:
                    q['spec'][0]['dev_type'] = p['dev_type']
                for tag in ('remote_managed', 'physical_network', 'live_migratable'):
                    q['spec'][0].pop(tag, None)
                    if p.get(tag) and chance(r, 0.7):
                        q['spec'][0][tag] = p[tag]
    extra, image = {}, {'id': '60000000-0000-4000-8000-000000000001', 'disk_format': 'qcow2', 'properties': {}}
    if chance(r, 0.5) and topology and topology['cells']:
        c = topology['cells'][0]
        if c['cpu_policy']:
            (extra if chance(r, 0.7) else image['properties'])[r.choice(['hw:cpu_policy', 'hw_cpu_policy'])] = c['cpu_policy']
        if c['cpu_thread_policy']:
            (extra if chance(r, 0.7) else image['properties'])[r.choice(['hw:cpu_thread_policy', 'hw_cpu_thread_policy'])] = (
                c['cpu_thread_policy'])
        if topology['emulator_threads_policy']:
            extra['hw:emulator_threads_policy'] = topology['emulator_threads_policy']
    instances = ['50000000-0000-4000-8000-%012d' % i for i in range(r.choice([1, 2, 2, 3, 4, 6]))]
    request = {
        'num_instances': len(instances), 'instance_uuid': instances[0], 'project_id': 'p', 'user_id': 'u', 'availability_zone': None,
        'flavor': {'name': 'f', 'flavorid': '1', 'vcpus': 2, 'memory_mb': 1024, 'root_gb': 1, 'ephemeral_gb': 0, 'swap': 0,
                   'extra_specs': extra},
        'image': image, 'scheduler_hints': {}, 'numa_topology': topology,
        'pci_requests': requests if requests or chance(r, 0.5) else None}
    if chance(r, 0.01):
        del request['flavor']['extra_specs']
    if chance(r, 0.01):
        request['image'] = None
    if chance(r, 0.3):
        request['network_metadata'] = {'physnets': subset(r, ['net0', 'net1', 'net2'], 0.4), 'tunneled': chance(r, 0.4)}
    if placement and chance(r, 0.85):
        request['requested_resources'] = [
            {'requester_id': '%s-%d' % (q['request_id'], k), 'resources': {'CUSTOM_PCI': 1}}
            for q in requests if q['request_id'] and q['alias_name'] for k in range(q['count'])]
    enabled = r.choice([['NUMATopologyFilter', 'PciPassthroughFilter']] * 6 + [
        ['PciPassthroughFilter', 'NUMATopologyFilter'], ['NUMATopologyFilter'], ['PciPassthroughFilter'], []])
    config = {'filter_scheduler.enabled_filters': enabled,
              'compute.packing_host_numa_cells_allocation_strategy': chance(r, 0.4)}
    if placement:
        config['filter_scheduler.pci_in_placement'] = True
    return {'id': 'numa-pci-%s-%d' % (seed, n), 'shape': 'numa-pci', 'now': NOW, 'config': config, 'aggregates': [],
            'hosts': hosts, 'request': request, 'schedule': {'instance_uuids': instances, 'return_alternates': False}}


def main():
    seed, count = sys.argv[1], int(sys.argv[2])
    for n in range(count):
        print(json.dumps(case(seed, n), separators=(',', ':')))


if __name__ == '__main__':
    main()
