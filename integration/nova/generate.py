#!/usr/bin/env python3
"""Random cases for the oracle, wider than the corpus.

    generate.py SEED COUNT [CORPUS…] > cases.jsonl
    PYTHONHASHSEED=0 nova_oracle.py --pair cases.jsonl > pairs.jsonl
    PYTHONHASHSEED=1 nova_oracle.py --check pairs.jsonl    # leave out what depends on the seed

Each case is one of the corpus with a few of its values replaced: by the smallest and largest, by
null, by values of another type, by text that is nearly a number, by keys that are nearly known.
Hosts are cut down to a few, so that each difference is easy to read.
"""
import copy
import gzip
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
FILTERS = [
    'AggregateImagePropertiesIsolation', 'AggregateInstanceExtraSpecsFilter', 'AggregateIoOpsFilter',
    'AggregateMultiTenancyIsolation', 'AggregateNumInstancesFilter', 'AggregateTypeAffinityFilter', 'AllHostsFilter',
    'ComputeCapabilitiesFilter', 'ComputeFilter', 'DifferentHostFilter', 'ImagePropertiesFilter', 'IoOpsFilter',
    'IsolatedHostsFilter', 'JsonFilter', 'MetricsFilter', 'NUMATopologyFilter', 'NumInstancesFilter',
    'PciPassthroughFilter', 'SameHostFilter', 'ServerGroupAffinityFilter', 'ServerGroupAntiAffinityFilter',
    'SimpleCIDRAffinityFilter']
WEIGHERS = [
    'affinity.ServerGroupSoftAffinityWeigher', 'affinity.ServerGroupSoftAntiAffinityWeigher', 'compute.BuildFailureWeigher',
    'cpu.CPUWeigher', 'cross_cell.CrossCellWeigher', 'disk.DiskWeigher', 'hypervisor_version.HypervisorVersionWeigher',
    'image_props.ImagePropertiesWeigher', 'io_ops.IoOpsWeigher', 'metrics.MetricsWeigher', 'num_instances.NumInstancesWeigher',
    'pci.PCIWeigher', 'ram.RAMWeigher']
MULTIPLIERS = ['ram', 'cpu', 'disk', 'io_ops', 'num_instances', 'hypervisor_version', 'build_failure', 'pci', 'soft_affinity',
               'soft_anti_affinity', 'cross_cell_move', 'image_props']
NUMBERS = [0, 1, -1, 0.0, -0.0, 0.1, 0.3, -2.5, 1e6, 1e-9, 1e308, 7, '3', ' 2.5 ', 'nan', 'inf', '-inf', '1_0', 'x', '', True]
TEXTS = ['', ' ', '0', '1', '2', '3.0', ' 4 ', '-1', '1e2', 'inf', 'nan', '0x10', '1,2', 'true', 'True', 'false', 'a,b', 'a', 'A',
         '٣', '1_000', '.5', '5.', 'None', 'x86_64', '>= 1', '99999999999999999999']
METRIC_NAMES = ['cpu.percent', 'cpu.user.percent', 'cpu.idle.percent', 'cpu.frequency', 'cpu.user.time', 'numa.membw.current']
PROPERTIES = {
    'hw_architecture': ['x86_64', 'i686', 'amd64', 'aarch64', 'AMD64', 'i386', 'bad'],
    'img_hv_type': ['kvm', 'qemu', 'QEMU', 'xapi', 'xen', 'vmware', 'bad'],
    'hw_vm_mode': ['hvm', 'xen', 'pv', 'hv', 'exe', 'HVM'],
    'hypervisor_type': ['kvm', 'qemu'], 'vm_mode': ['hvm', 'uml'], 'architecture': ['x86_64', 'ppc64le'],
    'img_hv_requested_version': ['>=6.0', '>=8.0,<9', '!=8.2.0', '==7.2.0', '6.0', '>=6.0,'],
    'hw_maxphysaddr_bits': [40, '46', 60], 'hw_maxphysaddr_mode': ['emulate', 'passthrough'],
    'os_distro': ['ubuntu', 'Ubuntu', 'debian', ''], 'os_type': ['linux', 'windows'], 'os_require_quiesce': ['true', 'yes', False],
    'hw_machine_type': ['pc', 'q35'], 'hw_firmware_type': ['uefi', 'bios'], 'os_secure_boot': ['required', 'disabled'],
    'hw_disk_bus': ['virtio', 'scsi', 'bad'], 'hw_vif_model': ['virtio', 'e1000', 'igb'], 'hw_video_model': ['vga', 'virtio', 'none'],
    'hw_cpu_policy': ['dedicated', 'shared', 'mixed'], 'hw_cpu_thread_policy': ['require', 'isolate', 'prefer'],
    'hw_tpm_version': ['2.0', '1.2'], 'hw_tpm_model': ['tpm-tis', 'tpm-crb'], 'hw_mem_encryption': ['true', 'false', True],
    'hw_virtio_packed_ring': ['true', 'false'], 'hw_sound_model': ['ich6', 'virtio'], 'hw_usb_model': ['virtio'],
    'hw_vif_multiqueue_enabled': ['true', True], 'hw_ephemeral_encryption': ['true'], 'hw_ephemeral_encryption_format': ['luks'],
    'hw_rng_model': ['virtio'], 'hw_locked_memory': ['true'], 'hw_viommu_model': ['intel', 'auto', 'virtio'],
    'hw_stateless_firmware': [True], 'hw_cdrom_bus': ['ide', 'sata'], 'hw_pointer_model': ['usbtablet', 'ps2mouse'],
    'trait:CUSTOM_A': ['required', 'preferred'], 'trait:HW_CPU_X86_VMX': ['required'], 'vmware_adaptertype': ['ide', 'lsiLogic'],
    'hw_numa_nodes': ['2', 1], 'hw_mem_page_size': ['large', '2048'], 'hw_pmu': ['true'], 'unknown_property': ['x'],
    'hw_video_ram': ['64', 'x'], 'img_config_drive': ['mandatory', 'optional'], 'hw_time_hpet': ['yes'], 'hw_boot_menu': [True]}
EXTRA = {
    'capabilities:cpu_info:features': ['<in> aes', '<all-in> avx vmx', 's== x'], 'capabilities:cpu_info:vendor': ['Intel', 's!= AMD'],
    'capabilities:cpu_info:topology:cores': ['>= 16', '= 8', '<or> 8 <or> 32', '== 16.0', '!= 8'],
    'capabilities:vcpus_total': ['>= 16', '<= 64', '> 3', '== nan', '>= x'], 'capabilities:free_ram_mb': ['>= 65536', '<= -1'],
    'capabilities:hypervisor_type': ['s== QEMU', 'QEMU', 's> A', '<or> QEMU <or> ironic'], 'capabilities:host': ['<in> 0', 's< cmp0002'],
    'capabilities:num_vm_active': ['= 2', '>= 0'], 'capabilities:stats:num_instances': ['>= 1'], 'capabilities:nothing': ['x'],
    'capabilities:hypervisor_version': ['>= 7002000', '8002000'], 'capabilities:metrics': ['x'], 'capabilities:limits': ['{}', '<in> a'],
    'capabilities:aggregates': ['<in> a'], 'capabilities:service:disabled': ['False', 's== False'], 'capabilities:numa_topology': ['<in> a'],
    'capabilities:supported_instances': ['<in> kvm', "<all-in> x86_64 hvm"], 'capabilities:cpu_allocation_ratio': ['= 4.0', '4.0', '<= 1'],
    'capabilities:updated': ['<in> 2026'], 'capabilities:uuid': ['<in> 1000'], 'capabilities:host_ip': ['<in> 10.', 's> 10.1'],
    'capabilities:allocation_candidates': ['<in> a', '[]'], 'capabilities:instances': ['<in> 2'], 'capabilities:cell_uuid': ['<in> 4'],
    'num_io_ops': ['<= 4', '0'], 'failed_builds': ['== 0'], 'free_disk_mb': ['>= 100000'], 'update': ['x'], 'num_task_None': ['>= 1'],
    'ssd': ['true', '<or> true <or> yes', '<in> tru'], 'aggregate_instance_extra_specs:ssd': ['true', '!= false', 's!= true'],
    'aggregate_instance_extra_specs:tier': ['gold', '>= 2', '<or> gold', '<in> a', 's== silver'], 'tier': ['gold'],
    'hw:cpu_policy': ['dedicated', 'shared', 'mixed', 'bad'], 'hw:cpu_thread_policy': ['require', 'prefer', 'isolate'],
    'hw:emulator_threads_policy': ['isolate', 'share'], 'hw:cpu_dedicated_mask': ['^0-1', '0'], 'hw:maxphysaddr_bits': ['40', '46', 'x'],
    'hw:maxphysaddr_mode': ['emulate', 'passthrough'], 'hw:mem_page_size': ['large', '2MB'], 'hw:numa_nodes': ['2'],
    'hw:mem_encryption': ['true'], 'hw:tpm_version': ['2.0'], 'hw:tpm_model': ['tpm-crb'], 'hw:tpm_secret_security': ['host', 'user'],
    'hw:pci_numa_affinity_policy': ['required', 'preferred'], 'hw:virtio_packed_ring': ['true'], 'hw:viommu_model': ['virtio'],
    'hw:ephemeral_encryption': ['true'], 'hw:sound_model': ['virtio'], 'hw:locked_memory': ['true'], 'hw:watchdog_action': ['reset'],
    'resources:VCPU': ['2', '0', 'x'], 'resources:CUSTOM_GPU': ['1', '2'], 'resources:DISK_GB': ['0'], 'resources1:VGPU': ['1'],
    'resources_sub:CUSTOM_A': ['1'], 'required1': ['CUSTOM_B'], 'trait:CUSTOM_C': ['required', 'forbidden', 'bad'],
    'trait1:CUSTOM_D': ['required'], 'group_policy': ['isolate', 'none', 'bad'], 'member_of1': ['in:a,b'], 'resources:PCPU': ['2'],
    'accel:device_profile': ['x'], 'pci_passthrough:alias': ['a1:1'], 'quota:cpu_shares': ['2048'], 'same_subtree': ['_a,_b'],
    'os:secure_boot': ['required'], 'in_tree1': ['10000000-0000-4000-8000-000000000001']}
QUERIES = ['["=","$host","cmp0001"]', '[">=","$free_ram_mb",1024]', '["and",[">","$vcpus_used",4],["<","$num_instances",9]]',
           '["not",["=","$hypervisor_type","QEMU"]]', '["in","$host","cmp0000","cmp0002"]', '["or",["=","$nosuch",1],true]', '{}', '[]',
           '["=","$stats.num_vm_active","2"]', '["<","$free_disk_mb","x"]', '["xx",1]', 'null', '"x"', '3', '[', '["="]',
           '["and",["not",["=",1,1]]]', '["=","$service.disabled",false]', '["=","$metrics",null]', '["=","$updated","x"]',
           '["<=","$cpu_allocation_ratio",4,16.0]', '[["=",1,1]]', '["=",true,1,1.0]', '["in","$supported_instances","x"]', '["and"]',
           '["=","$uuid","10000000-0000-4000-8000-000000000001"]', '[">","$nodename","$host"]', '["or",["=","$limits",0]]', 'true']


class Case:
    """One case and its source of chance."""

    def __init__(self, rng, case):
        self.r = rng
        self.case = case
        self.hosts = case['hosts']
        self.request = case['request']
        self.config = case.setdefault('config', {})

    def pick(self, *choices):
        return self.r.choice(choices)

    def some(self, items, most=None):
        items = list(items)
        if not items:
            return []
        return self.r.sample(items, self.r.randint(1, min(most or len(items), len(items))))

    def any_host(self):
        return self.r.choice(self.hosts) if self.hosts else {}

    # ---------------------------------------------------------------- config

    def config_multiplier(self):
        name = self.r.choice(MULTIPLIERS)
        self.config['filter_scheduler.%s_weight_multiplier' % name] = self.r.choice(NUMBERS)

    def config_filters(self):
        names = self.some(FILTERS)
        if self.r.random() < .15:
            names.append(self.r.choice(names + ['NoSuchFilter', 'nova.scheduler.filters.io_ops_filter.IoOpsFilter']))
        self.config['filter_scheduler.enabled_filters'] = names

    def config_weighers(self):
        names = ['nova.scheduler.weights.' + w for w in self.some(WEIGHERS)]
        if self.r.random() < .2:
            # Not all_weighers beside others: then they add up in the order of a directory on disk.
            names.insert(self.r.randrange(len(names) + 1), self.pick(
                names[0], names[-1], 'nova.scheduler.weights.ram.NoSuch', 'nosuch.module.X', 'x'))
        self.config['filter_scheduler.weight_classes'] = names

    def config_choice(self):
        self.config['filter_scheduler.host_subset_size'] = self.pick(1, 2, 3, 100, 0, '2')
        self.config['filter_scheduler.shuffle_best_same_weighed_hosts'] = self.pick(True, False)

    def config_metrics(self):
        self.config['metrics.weight_setting'] = [
            '%s=%s' % (n, self.r.choice(['1', '-0.5', '0', 'nan', 'inf', '1e400', 'x', '', ' 2 '])) for n in self.some(METRIC_NAMES, 3)]
        if self.r.random() < .6:
            self.config['metrics.required'] = self.pick(False, False, True)
        if self.r.random() < .4:
            self.config['metrics.weight_of_unavailable'] = self.r.choice(NUMBERS)
        if self.r.random() < .4:
            self.config['metrics.weight_multiplier'] = self.r.choice(NUMBERS)
        for h in self.some(self.hosts):
            h['metrics'] = self.metrics()

    def metrics(self):
        if self.r.random() < .1:
            return self.pick(None, [], [{'name': 'foo', 'value': 1, 'timestamp': 'x', 'source': 's'}])
        return [{'name': n, 'value': self.pick(0, 1, 0.29, 0.57, -0.5, 12, 1e3, 0.999999, '7', None) if self.r.random() < .2
                 else round(self.r.random(), 3), 'timestamp': '2026-03-01T11:59:00', 'source': 'libvirt.LibvirtDriver'}
                for n in self.some(METRIC_NAMES)]

    def config_other(self):
        r = self.r
        hosts = [h['host'] for h in self.hosts] or ['x']
        name, value = r.choice([
            ('filter_scheduler.max_io_ops_per_host', self.pick(0, 1, 3, 8, -1, '4')),
            ('filter_scheduler.max_instances_per_host', self.pick(0, 1, 5, '3', -2)),
            ('filter_scheduler.isolated_hosts', self.some(hosts)),
            ('filter_scheduler.isolated_images', [(self.request.get('image') or {}).get('id') or 'x']),
            ('filter_scheduler.restrict_isolated_hosts_to_isolated_images', self.pick(True, False)),
            ('filter_scheduler.image_properties_default_architecture', self.pick('x86_64', 'aarch64', 'bad')),
            ('filter_scheduler.aggregate_image_properties_isolation_namespace', self.pick('hw', 'os', '')),
            ('filter_scheduler.aggregate_image_properties_isolation_separator', self.pick('_', '.', '')),
            ('filter_scheduler.track_instance_changes', False),
            ('filter_scheduler.pci_in_placement', True),
            ('filter_scheduler.image_props_weight_setting', self.pick(['os_distro=2'], ['hw_machine_type=0'], ['a', 'b=x'])),
            ('scheduler.max_attempts', self.pick(1, 2, 3, 5, 0)),
            ('scheduler.max_placement_results', self.pick(1, 10, 0)),
            ('scheduler.limit_tenants_to_placement_aggregate', True),
            ('scheduler.placement_aggregate_required_for_tenants', True),
            ('scheduler.query_placement_for_image_type_support', True),
            ('scheduler.enable_isolated_aggregate_filtering', True),
            ('scheduler.image_metadata_prefilter', True),
            ('workarounds.disable_fallback_pcpu_query', True),
            ('compute.packing_host_numa_cells_allocation_strategy', True),
            ('DEFAULT.service_down_time', self.pick(0, 1, 30, 15.5, '90')),
            ('DEFAULT.default_availability_zone', self.pick('x', '')),
            ('DEFAULT.cpu_allocation_ratio', self.pick(2.5, 0.0, None, -1)),
            ('DEFAULT.initial_cpu_allocation_ratio', self.pick(8.0, 0.0)),
            ('DEFAULT.ram_allocation_ratio', self.pick(1.5, 0.0)),
            ('filter_scheduler.no_such_option', 1), ('nosuch.option', 1)])
        self.config[name] = value

    # ------------------------------------------------------------ aggregates

    def aggregate(self):
        hosts = [h['host'] for h in self.hosts]
        key = self.r.choice(
            ['%s_weight_multiplier' % m for m in MULTIPLIERS + ['metrics']] * 2 +
            ['max_io_ops_per_host', 'max_instances_per_host', 'instance_type', 'filter_tenant_id', 'filter_tenant_id2', 'ssd', 'tier',
             'os_distro', 'hw_machine_type', 'os_type', 'hw_vif_multiqueue_enabled', 'hw_architecture', 'trait:CUSTOM_A',
             'trait:HW_CPU_X86_VMX', 'availability_zone', 'cpu_allocation_ratio', 'flavor', 'unknown_property', 'os.distro'])
        value = self.r.choice(TEXTS)
        if key == 'instance_type':
            value = self.pick(value, self.request['flavor'].get('name', 'x'), ' %s , b' % self.request['flavor'].get('name', 'x'))
        elif key.startswith('filter_tenant'):
            value = self.pick(value, str(self.request.get('project_id')), 'a, %s' % self.request.get('project_id'))
        elif key.startswith('trait:'):
            value = 'required'
        elif key in PROPERTIES:
            value = self.pick(value, *[str(v) for v in PROPERTIES[key]])
        elif key.endswith('multiplier'):
            value = self.pick(value, '2', '-1.5', '0', '1e3', '0.1')
        aggs = self.case.setdefault('aggregates', [])
        n = len(aggs) + 200
        aggs.append({'id': n, 'uuid': '30000000-0000-4000-8000-%012d' % n, 'name': 'g%d' % n,
                     'hosts': self.some(hosts) + self.some(['nosuch'], 1)[:self.r.randrange(2)], 'metadata': {key: value}})

    # ----------------------------------------------------------------- hosts

    def host_number(self):
        field = self.pick('vcpus', 'vcpus_used', 'memory_mb', 'free_ram_mb', 'local_gb', 'local_gb_used', 'free_disk_gb',
                          'disk_available_least', 'hypervisor_version', 'cpu_allocation_ratio', 'ram_allocation_ratio',
                          'disk_allocation_ratio')
        for h in self.some(self.hosts, 3):
            values = [0, 1, -7, 999999, 12345678901, h.get(field)]
            if field in ('free_ram_mb', 'free_disk_gb', 'disk_available_least'):
                values += [None]
            if field.endswith('ratio'):
                values += [None, 0.0, 0.1, 1e-3, 16, 1.1, '2.5']
            elif self.r.random() < .1:
                values += ['12', 3.9, True, 'x', None]
            h[field] = self.r.choice(values)

    def host_text(self):
        h = self.any_host()
        field, values = self.r.choice([
            ('cpu_info', [None, '', '{}', 'junk', '[]', '{"features": "aes", "topology": {"cores": "16"}}', '{"vendor": null}']),
            ('host_ip', [None, '10.0.0.1', 'fe80::1', '::ffff:10.0.0.1', 'junk']),
            ('hypervisor_type', ['QEMU', 'ironic', 'VMware vCenter Server', '', None]),
            ('supported_instances', [[], [['x86_64', 'kvm', 'hvm']], [['AMD64', 'xapi', 'pv']], [['i386', 'qemu', 'baremetal']], None,
                                     [['x86_64', 'kvm']], [['bad', 'kvm', 'hvm']], [[None, 'kvm', 'hvm']]]),
            ('service', [None, {'disabled': True}, {'disabled': False, 'forced_down': True, 'last_seen_up': '2026-03-01T11:59:59'},
                         {'disabled': False, 'last_seen_up': '2026-03-01T11:59:00'},
                         {'disabled': False, 'last_seen_up': '2026-03-01T11:58:59.999999'},
                         {'disabled': False, 'last_seen_up': '2026-03-01T12:01:00.5', 'created_at': '2026-03-01T11:00:00'},
                         {'disabled': False, 'created_at': '2026-03-01T11:59:30'}, {'disabled': False}]),
            ('updated_at', [None, '2026-03-01T11:00:00']),
            ('pci_pools', [None, [], [{'vendor_id': '8086', 'product_id': '1', 'count': 3}],
                           [{'vendor_id': '8086', 'product_id': '1', 'count': 120, 'numa_node': 0, 'tag': 'x', 'b': None}]]),
            ('metrics', [self.metrics()])])
        h[field] = self.r.choice(values)

    def host_stats(self):
        for h in self.some(self.hosts, 3):
            stats = h.get('stats')
            if not isinstance(stats, dict) or self.r.random() < .03:
                h['stats'] = self.pick({}, None, {'num_instances': 3})
                continue
            key = self.pick('num_instances', 'io_workload', 'failed_builds', 'num_vm_active', 'tier')
            stats[key] = self.pick('0', '3', '7', ' 5 ', '1_0', '', 'x', '2.0', None, 4) if self.r.random() < .2 else str(self.r.randrange(9))

    def host_names(self):
        if len(self.hosts) < 2:
            return
        a, b = self.r.sample(self.hosts, 2)
        a['host'] = b['host']
        if self.r.random() < .5:
            a['service'] = None

    def host_instances(self):
        for h in self.some(self.hosts, 3):
            h['instances'] = [
                {'uuid': '20000000-0000-4000-8000-%012d' % self.r.randrange(40),
                 'image_props': {k: self.r.choice(PROPERTIES[k]) for k in self.some(['os_distro', 'os_type', 'hw_machine_type',
                                                                                     'hw_disk_bus', 'min_ram', 'hw_tpm_version'], 4)
                                 if k in PROPERTIES}} for _ in range(self.r.randrange(5))]
        if self.r.random() < .5:
            self.config['filter_scheduler.image_props_weight_multiplier'] = self.pick(1.0, -2.0, 0.5)

    def host_candidates(self):
        for h in self.some(self.hosts, 4):
            u = h['uuid']
            one = {'allocations': {u: {'resources': {'VCPU': 1}}}, 'mappings': {'': [u]}}
            two = {'allocations': {'70000000-0000-4000-8000-000000000001': {'resources': {'CUSTOM_GPU': 1}}, u: {'resources': {'VCPU': 1}}},
                   'mappings': {'': [u], 'p1': ['70000000-0000-4000-8000-000000000001'], '_sub': None}}
            other = {'allocations': {self.any_host()['uuid']: {'resources': {'VCPU': 2}}}, 'mappings': {'': [u], 'p1': None}}
            h['allocation_candidates'] = self.pick([], [one], [one, two], [two, one], [other, one], [two])

    def host_cells(self):
        cells = [c if isinstance(c, str) else c['uuid'] for c in self.case.get('cells') or []]
        if len(cells) < 2:
            cells = ['40000000-0000-4000-8000-%012d' % i for i in range(1, 4)]
        self.case['cells'] = [c if self.r.random() < .8 else {'uuid': c, 'disabled': True} for c in cells]
        for h in self.hosts:
            h['cell'] = self.r.choice(cells + cells + ['40000000-0000-4000-8000-000000000099', None])
        if self.r.random() < .7:
            self.request['requested_destination'] = {'cell': self.r.choice(cells)}
            if self.r.random() < .7:
                self.request['requested_destination']['allow_cross_cell_move'] = self.pick(True, True, False)

    # --------------------------------------------------------------- request

    def extra_specs(self):
        specs = self.request['flavor'].get('extra_specs')
        if not isinstance(specs, dict) or self.r.random() < .3:
            specs = {}
        for k in self.some(EXTRA, 3):
            specs[k] = self.r.choice(EXTRA[k]) if self.r.random() < .9 else self.r.choice(TEXTS)
        self.request['flavor']['extra_specs'] = specs

    def flavor(self):
        field = self.pick('vcpus', 'memory_mb', 'root_gb', 'ephemeral_gb', 'swap', 'name', 'extra_specs')
        self.request['flavor'][field] = {
            'name': self.pick('a', '', 'm1.large', 5), 'extra_specs': None}.get(field, self.pick(0, 1, 7, 4096, 100000, '3', 2.7))

    def image(self):
        image = self.request.get('image')
        if image is None or self.r.random() < .05:
            self.request['image'] = self.pick(None, {}, {'id': '60000000-0000-4000-8000-000000000009', 'properties': {}},
                                              {'id': '60000000-0000-4000-8000-000000000009', 'disk_format': None, 'size': None})
            return
        image['properties'] = dict(image.get('properties') or {})
        for k in self.some(PROPERTIES, 3):
            image['properties'][k] = self.r.choice(PROPERTIES[k])
        if self.r.random() < .2:
            image['disk_format'] = self.pick('raw', 'qcow2', 'vmdk', 'iso', 'ami', '', None)

    def hints(self):
        hints = self.request.get('scheduler_hints')
        if not isinstance(hints, dict):
            hints = {}
        uuids = [x if isinstance(x, str) else x['uuid'] for h in self.hosts for x in h.get('instances') or []] or ['nosuch']
        ips = [h.get('host_ip') or '10.0.0.1' for h in self.hosts] or ['10.0.0.1']
        for key, values in self.some([
                ('same_host', [self.some(uuids, 3), [], ['nosuch']]), ('different_host', [self.some(uuids, 3), []]),
                ('build_near_host_ip', [[self.r.choice(ips)], ['10.0.0.0'], ['junk'], []]),
                ('cidr', [['/24'], ['/16'], ['/32'], ['24'], ['/0'], ['/33'], ['']]),
                ('query', [[self.r.choice(QUERIES)], [self.r.choice(QUERIES)], [self.r.choice(QUERIES)], ['[]', '[]'], []]),
                ('_nova_check_type', [['rebuild'], ['rebuild', 'x'], ['build'], []]), ('group', [['g']]), ('reservation', [['x']])], 3):
            hints[key] = self.r.choice(values)
        self.request['scheduler_hints'] = hints if self.r.random() < .98 else None

    def group(self):
        uuids = [x if isinstance(x, str) else x['uuid'] for h in self.hosts for x in h.get('instances') or []] or ['nosuch']
        self.request['instance_group'] = {
            'uuid': '80000000-0000-4000-8000-000000000001',
            'policy': self.pick('affinity', 'anti-affinity', 'soft-affinity', 'soft-anti-affinity', 'soft-anti-affinity', 'none'),
            'rules': self.pick({}, {'max_server_per_host': 1}, {'max_server_per_host': '3'}, {'max_server_per_host': 2}, None,
                               {'max_server_per_host': 'x'}),
            'members': self.some(uuids) + ([self.request['instance_uuid']] if self.r.random() < .5 else []),
            'hosts': self.pick([], self.some([h['host'] for h in self.hosts], 3), ['nosuch'])}

    def where(self):
        names = [h['host'] for h in self.hosts] or ['x']
        nodes = [h['nodename'] for h in self.hosts] or ['x']
        kind = self.pick('ignore_hosts', 'force_hosts', 'force_nodes', 'dest', 'dest', 'az')
        if kind == 'dest':
            h = self.any_host()
            self.request['requested_destination'] = self.pick(
                {'host': h.get('host')}, {'host': h.get('host'), 'node': None}, {'host': h.get('host'), 'node': h.get('nodename')},
                {'host': self.r.choice(names), 'node': self.r.choice(nodes)}, {'node': h.get('nodename')},
                {'aggregates': ['30000000-0000-4000-8000-000000000001']}, {'forbidden_aggregates': ['a', 'b']}, {'host': 'NOSUCH', 'node': None})
        elif kind == 'az':
            self.request['availability_zone'] = self.pick('az1', 'az2', 'nosuch', '', 'az1,az2')
        else:
            pool = nodes if kind == 'force_nodes' else names
            chosen = self.some(pool, 3)
            if self.r.random() < .4:
                chosen = [c.upper() for c in chosen]
            self.request[kind] = self.pick(chosen, chosen, ['nosuch'], [], None)

    def devices(self):
        self.request['pci_requests'] = self.pick(None, [], [{
            'count': self.pick(1, 2, 0), 'spec': [self.pick({'vendor_id': '8086'}, {'vendor_id': '8086', 'product_id': '1'}, {'dev_type': 'type-PF'},
                                                            {'tag': 'x'}, {})],
            'alias_name': self.pick('a1', None), 'request_id': '90000000-0000-4000-8000-000000000001',
            'requester_id': self.pick(None, 'p1'), 'numa_policy': self.pick(None, 'preferred', 'required', 'legacy', 'socket', 'bad')}])
        if self.r.random() < .4:
            self.request['requested_resources'] = [{
                'requester_id': 'p1', 'resources': {'CUSTOM_GPU': 1}, 'required_traits': self.pick([], ['CUSTOM_T']),
                'forbidden_traits': self.pick([], ['CUSTOM_F'])}]
        if self.r.random() < .2:
            self.request['is_bfv'] = True

    # -------------------------------------------------------------- schedule

    def schedule(self):
        count = self.pick(1, 1, 2, 3, 4)
        uuids = ['50000000-0000-4000-8000-%012d' % (900 + i) for i in range(count)]
        self.request['num_instances'] = count if self.r.random() < .9 else self.pick(0, 1, 5)
        self.request['instance_uuid'] = uuids[0]
        hosts = [h['host'] for h in self.hosts]
        s = {'instance_uuids': self.pick(uuids, uuids, uuids, uuids, None, []), 'return_alternates': self.pick(True, True, False)}
        if self.r.random() < .25:
            s['claim_fail_hosts'] = self.some(hosts, 3)
        if self.r.random() < .15:
            s['claim_fail_first'] = self.pick(1, 2, 5)
        if self.r.random() < .08:
            s['claim_raise_hosts'] = self.some(hosts, 1)
        if self.r.random() < .08:
            s['no_placement'] = True
        self.case['schedule'] = s

    MUTATIONS = [
        ('config_multiplier', 4), ('config_filters', 4), ('config_weighers', 2), ('config_choice', 1), ('config_metrics', 2),
        ('config_other', 4), ('aggregate', 7), ('host_number', 4), ('host_text', 3), ('host_stats', 2), ('host_names', 1),
        ('host_instances', 2), ('host_candidates', 2), ('host_cells', 1), ('extra_specs', 5), ('flavor', 1), ('image', 4), ('hints', 4),
        ('group', 3), ('where', 3), ('devices', 1), ('schedule', 8)]


def generate(seed, n, corpus):
    rng = random.Random('%s/%s' % (seed, n))
    base = copy.deepcopy(rng.choice(corpus))
    rng.shuffle(base['hosts'])
    base['hosts'] = base['hosts'][:rng.choice([2, 3, 4, 5, 6, 8, 20])]
    case = Case(rng, base)
    names = [name for name, weight in Case.MUTATIONS for _ in range(weight)]
    done = sorted(set(rng.choices(names, k=rng.choice([1, 2, 2, 3, 3, 4, 6, 8]))))
    for name in done:
        if case.hosts or not name.startswith('host_'):
            getattr(case, name)()
    base['id'] = 'gen-%s-%d' % (seed, n)
    base['note'] = '+'.join(done)
    base['shape'] = 'gen:' + base['shape']
    return base


def read(path):
    with gzip.open(path, 'rt', encoding='utf-8') as lines:
        return [json.loads(line)['case'] for line in lines]


def main():
    seed, count = sys.argv[1], int(sys.argv[2])
    paths = sys.argv[3:] or [os.path.join(HERE, 'corpus', name) for name in ('dev.jsonl.gz', 'probes.jsonl.gz')]
    corpus = [case for path in paths for case in read(path)]
    for n in range(count):
        print(json.dumps(generate(seed, n, corpus), separators=(',', ':')))


if __name__ == '__main__':
    main()
