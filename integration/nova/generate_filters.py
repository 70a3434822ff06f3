#!/usr/bin/env python3
"""Random cases for the filters and for the query of Placement, in the format of the oracle.

    generate_filters.py SEED COUNT [THEME…] > cases.jsonl
    PYTHONHASHSEED=0 nova_oracle.py --pair cases.jsonl > pairs.jsonl
    PYTHONHASHSEED=1 nova_oracle.py --check pairs.jsonl    # leave out what depends on the seed

Each case has a few hosts and one or two themes (see THEMES): extra specs with every operator and
with any attribute of a host state, JSON queries of any shape, networks, image properties with every
odd value, aggregates, pre-filters and what becomes of flavor and image in the query, options of the
wrong kind. Values are drawn near to what just works.
"""
import json
import random
import sys

NOW = '2026-03-01T12:00:00'
ODD = ['', ' ', '0', '1', '2', '16', '3.0', ' 4 ', '-1', '1e2', 'inf', '-inf', 'nan', '0x10', '1,2', 'true', 'True', 'false', 'a,b',
       'a', 'A', 'é', '٣٢', '1_0', '_1', '1__0', '.5', '5.', 'None', '>= 1', '99999999999999999999', '1e400', '\u00a03\u2003', '\x1c7',
       '⁷', '½', '3\n', '+5', '--5', '0b1', '1.5e-3', 'Infinity', 'infinit', "it's", '"q"', 'a b', '16.0', '16384', 'x86_64']
OPS = ['=', '==', '!=', '>=', '<=', 's==', 's!=', 's<', 's<=', 's>', 's>=', '<in>', '<all-in>', '<or>', '>', '<', '~', 's=', '<OR>', '']
ATTRIBUTES = ['host', 'nodename', 'uuid', '_lock_name', 'total_usable_ram_mb', 'total_usable_disk_gb', 'disk_mb_used', 'free_ram_mb',
              'free_disk_mb', 'vcpus_total', 'vcpus_used', 'num_instances', 'num_io_ops', 'failed_builds', 'host_ip',
              'hypervisor_type', 'hypervisor_version', 'hypervisor_hostname', 'cpu_info', 'supported_instances', 'limits', 'metrics',
              'aggregates', 'instances', 'ram_allocation_ratio', 'cpu_allocation_ratio', 'disk_allocation_ratio', 'cell_uuid',
              'updated', 'stats', 'service', 'numa_topology', 'pci_stats', 'allocation_candidates', 'update',
              'consume_from_request', '__class__', '__module__', '__weakref__', 'nosuch', 'x', '', 'num_vm_active', 'odd', 'nothing']
PATHS = ['cpu_info:arch', 'cpu_info:features', 'cpu_info:features:0', 'cpu_info:topology:cores', 'cpu_info:topology',
         'cpu_info:maxphysaddr:bits', 'cpu_info:nope', 'cpu_info:vendor:x', 'stats:num_instances', 'stats:nope', 'stats:odd:a',
         'service:disabled', 'service:data:host', 'service:data:disabled', 'service:get', 'host:x', 'num_instances:x',
         'num_instances:real', 'cpu_allocation_ratio:real', 'numa_topology:cells', 'pci_stats:pools', 'metrics:objects', 'limits:x',
         'instances:x', 'host_ip:version', 'updated:year', 'supported_instances:append', 'odd', 'odd:a', 'odd:a:b', 'cpu_info:flags:b:c',
         'cpu_info:n:real', 'cpu_info:s:t', 'num_vm_active:x', '::', 'a:']
IMAGE_PROPERTIES = [
    'hw_architecture', 'hw_emulation_architecture', 'hw_auto_disk_config', 'hw_boot_menu', 'hw_cdrom_bus', 'hw_cpu_cores',
    'hw_cpu_sockets', 'hw_cpu_max_cores', 'hw_cpu_max_sockets', 'hw_cpu_max_threads', 'hw_cpu_policy', 'hw_cpu_thread_policy',
    'hw_cpu_realtime_mask', 'hw_cpu_threads', 'hw_device_id', 'hw_disk_bus', 'hw_disk_type', 'hw_floppy_bus', 'hw_firmware_type',
    'hw_firmware_stateless', 'hw_input_bus', 'hw_ipxe_boot', 'hw_locked_memory', 'hw_machine_type', 'hw_mem_encryption',
    'hw_mem_encryption_model', 'hw_mem_page_size', 'hw_numa_nodes', 'hw_numa_cpus', 'hw_numa_mem', 'hw_numa_cpus.0', 'hw_numa_cpus.1',
    'hw_numa_mem.0', 'hw_numa_mem.1', 'hw_pci_numa_affinity_policy', 'hw_pointer_model', 'hw_pmu', 'hw_qemu_guest_agent',
    'hw_rescue_bus', 'hw_rescue_device', 'hw_rng_model', 'hw_time_hpet', 'hw_serial_port_count', 'hw_scsi_model', 'hw_video_model',
    'hw_video_ram', 'hw_vif_model', 'hw_viommu_model', 'hw_vm_mode', 'hw_watchdog_action', 'hw_vif_multiqueue_enabled',
    'hw_tpm_model', 'hw_tpm_version', 'hw_ephemeral_encryption', 'hw_ephemeral_encryption_format',
    'hw_ephemeral_encryption_secret_uuid', 'hw_virtio_packed_ring', 'hw_maxphysaddr_mode', 'hw_maxphysaddr_bits', 'hw_sound_model',
    'hw_usb_model', 'hw_redirected_usb_ports', 'img_bittorrent', 'img_bdm_v2', 'img_block_device_mapping', 'img_cache_in_nova',
    'img_compression_level', 'img_hv_requested_version', 'img_hv_type', 'img_config_drive', 'img_linked_clone', 'img_mappings',
    'img_owner_id', 'img_root_device_name', 'img_use_agent', 'img_version', 'img_signature', 'img_signature_hash_method',
    'img_signature_certificate_uuid', 'img_signature_key_type', 'img_hide_hypervisor_id', 'os_admin_user', 'os_command_line',
    'os_distro', 'os_require_quiesce', 'os_secure_boot', 'os_skip_agent_inject_files_at_boot', 'os_skip_agent_inject_ssh', 'os_type',
    'traits_required', 'trait:CUSTOM_A', 'trait:HW_CPU_X86_VMX', 'architecture', 'owner_id', 'vmware_disktype', 'vmware_ostype',
    'auto_disk_config', 'ipxe_boot', 'xenapi_device_id', 'vm_mode', 'bittorrent', 'mappings', 'block_device_mapping', 'bdm_v2',
    'root_device_name', 'hypervisor_version_requires', 'hypervisor_type', 'vmware_adaptertype', 'made_up', 'get', 'fields']
WORDS = ['x86_64', 'i686', 'AMD64', 'i386', 'aarch64', 'riscv64', 'kvm', 'QEMU', 'xapi', 'xen', 'vz', 'hvm', 'HV', 'pv', 'exe', 'virtio', 'scsi',
         'ide', 'sata', 'usb', 'none', 'vga', 'bochs', 'gop', 'e1000', 'VirtualE1000', 'spapr-vlan', 'igb', 'intel', 'auto', 'smmuv3', 'uefi', 'bios', 'dedicated',
         'shared', 'mixed', 'prefer', 'isolate', 'require', 'required', 'disabled', 'optional', 'legacy', 'preferred', 'socket',
         'tpm-tis', 'tpm-crb', '1.2', '2.0', 'plain', 'luks', 'passthrough', 'emulate', 'amd-sev', 'amd-sev-es', 'amd-sev-snp',
         'intel-tdx', 'q35', 'pc-q35-6.2', 'pc', 'ich6', 'linux', 'Windows', 'mandatory', 'SHA-256', 'RSA-PSS', 'lsiLogic',
         'paravirtual', 'lsiLogicsas', 'cdrom', 'lun', 'reset', 'yes', 'no', 'on', 't', 'Y', ' true ', '0-1', '^0', '0,2', '3-1', '0-',
         '>=6.0', '>= 7.2.0, <9', '!=8.2.0', '==7.2', '8.2', '<', '>=8.2.0.dev1', '>8.1rc1', '==8.2.0+a', '<=v8.2', '>= 1!1.0', '>=8.x']
FLAVOR_KEYS = {
    'hw:cpu_policy': ['dedicated', 'dedicated', 'shared', 'mixed', 'mixed', 'bad', ''],
    'hw:cpu_thread_policy': ['require', 'prefer', 'isolate', 'bad', ''], 'hw:emulator_threads_policy': ['isolate', 'share', 'bad', ''],
    'hw:cpu_dedicated_mask': ['^0', '^0-1', '0', '0-1', '1-9', '0-3', 'x', '', ' ^1', '0,,2'],
    'hw:cpu_realtime': ['true', 'yes', 'no', 'x'], 'hw:cpu_realtime_mask': ['^0', '0', '0-9', 'x', '', '^0-9'],
    'hw:mem_encryption': ['true', 'false', 'x'], 'hw:mem_encryption_model': ['amd-sev', 'amd-sev-es', 'amd-sev-snp', 'intel-tdx', 'x', ''],
    'hw:pmem': ['6GB', '6GB,6GB, 16-GB', ',', '', 'é', 'a,A'], 'hw:tpm_version': ['1.2', '2.0', '3', ''], 'hw:tpm_model': ['tpm-tis', 'tpm-crb', 'x'],
    'hw:tpm_secret_security': ['user', 'host', 'deployment', 'x', ''], 'hw:pci_numa_affinity_policy': ['socket', 'required', 'x', ''],
    'os:secure_boot': ['required', 'optional', 'disabled', 'x', ''], 'hw:maxphysaddr_mode': ['passthrough', 'emulate', 'x', ''],
    'hw:maxphysaddr_bits': ['40', '46', '48', 'x', ''], 'hw:virtio_packed_ring': ['true', 'false', 'x'],
    'hw:ephemeral_encryption': ['true', 'false', 'x'], 'hw:ephemeral_encryption_format': ['luks', 'plain', 'luksv2', 'x', ''],
    'hw:sound_model': ['virtio', 'ich6', 'x', ''], 'accel:device_profile': ['p', ''], 'group_policy': ['none', 'isolate', 'x', ''],
    'resources:VCPU': ['2', '0', '-1', 'x', ' 3 '], 'resources:PCPU': ['2', '0'], 'resources:MEMORY_MB': ['0', '512', '1_0'],
    'resources:DISK_GB': ['0', '7'], 'resources:VGPU': ['1', '٢'], 'resources:CUSTOM_A': ['1', '1.0'], 'resources:NOPE': ['1'],
    'resources:MEM_ENCRYPTION_CONTEXT': ['2'], 'resources:CUSTOM_PMEM_NAMESPACE_6GB': ['4'], 'resources:': ['1'],
    'resources1:VGPU': ['1', '0'], 'resources_a-b:CUSTOM_B': ['3'], 'resources2:VCPU': ['1'], 'resources.x:VGPU': ['1'],
    'resources2:DISK_GB': ['4', '0'], 'Resources:VCPU': ['9'], 'trait:CUSTOM_T': ['required', 'forbidden', 'Required', ''],
    'trait:CUSTOM_É': ['required'], 'trait1:CUSTOM_T': ['required', 'forbidden'], 'trait_c:HW A&B=C': ['required'], 'trait:': ['required'],
    'trait:HW_CPU_HYPERTHREADING': ['required', 'forbidden'], 'traits:X': ['required'], 'trait:a:b': ['required'],
    'trait' + 'x' * 64 + ':T': ['required'], 'trait' + 'x' * 65 + ':T': ['required'], 'resources9:NOPE': ['1'], 'traité:X': ['required'],
    'resourcesP-0:VGPU': ['1']}
PATCHES = [0, 1, -1, 2, 2.5, True, False, None, [], {}, ['a'], {'a': 1}, 10 ** 25, 1e300, 'x']
THEMES = ['capabilities', 'aggregates', 'image', 'isolation', 'json', 'cidr', 'placement', 'placement', 'pinning', 'encryption', 'options', 'hosts',
          'hints', 'destination']
FILTERS = ['AggregateImagePropertiesIsolation', 'AggregateInstanceExtraSpecsFilter', 'AggregateIoOpsFilter',
           'AggregateMultiTenancyIsolation', 'AggregateNumInstancesFilter', 'AggregateTypeAffinityFilter', 'AllHostsFilter',
           'ComputeCapabilitiesFilter', 'ComputeFilter', 'DifferentHostFilter', 'ImagePropertiesFilter', 'IoOpsFilter',
           'IsolatedHostsFilter', 'JsonFilter', 'MetricsFilter', 'NumInstancesFilter', 'SameHostFilter', 'ServerGroupAffinityFilter',
           'ServerGroupAntiAffinityFilter', 'SimpleCIDRAffinityFilter']


def uuid(kind, n):
    return '%d0000000-0000-4000-8000-%012d' % (kind, n)


class Cases:
    def __init__(self, r):
        self.r = r

    def pick(self, items):
        return self.r.choice(items)

    def chance(self, p):
        return self.r.random() < p

    def some(self, items, most):
        return self.r.sample(items, self.r.randint(0, min(most, len(items))))

    # ------------------------------------------------------------------ the plain case

    def host(self, n):
        r = self.r
        vcpus = self.pick([4, 16, 32])
        info = {'arch': 'x86_64', 'vendor': 'Intel', 'topology': {'cores': 16, 'threads': 2}, 'features': ['aes', 'avx', 'vmx'],
                'maxphysaddr': self.pick([{'mode': 'emulate', 'bits': self.pick([40, 46, '46', None])}, {}, None, 5]), 'n': 5,
                's': '{"t": [1, 2.0, true, null, "x"]}', 'flags': {'b': {'c': self.pick([1.0, False, [], 'y', 1e22])}}}
        return {
            'host': 'h%d' % n, 'nodename': self.pick(['h%d' % n, 'N%d' % n]), 'uuid': uuid(1, n), 'vcpus': vcpus,
            'vcpus_used': r.randint(0, 2 * vcpus), 'memory_mb': 65536, 'memory_mb_used': 512,
            'free_ram_mb': self.pick([0, 16384, -5, 65024]), 'local_gb': 100, 'local_gb_used': self.pick([0, 16]),
            'free_disk_gb': self.pick([100, 16, 0]), 'disk_available_least': self.pick([None, 50, -1]),
            'cpu_allocation_ratio': self.pick([16.0, 1.5, 4.0]), 'ram_allocation_ratio': 1.0, 'disk_allocation_ratio': 1.0,
            'hypervisor_type': self.pick(['QEMU', 'ironic']), 'hypervisor_version': self.pick([8002000, 7002000, 0, 12000005]),
            'cpu_info': self.pick([json.dumps(info), json.dumps(info), '', 'junk', '[1, 2]', '5', '{"a": NaN, "arch": Infinity}']),
            'host_ip': self.pick(['10.0.0.%d' % (n + 5), '10.0.1.7', 'fe80::%d' % (n + 1), '::ffff:10.0.0.5']),
            'supported_instances': self.pick([[['x86_64', 'kvm', 'hvm'], ['i686', 'qemu', 'hvm']], [['aarch64', 'kvm', 'hvm']],
                                              [['x86_64', 'xen', 'xen'], ['x86_64', 'xen', 'hvm']], []]),
            'stats': {'num_instances': str(r.randint(0, 9)), 'io_workload': str(r.randint(0, 9)), 'failed_builds': self.pick(['0', '3']),
                      'num_vm_active': self.pick(['2', '3.5', 'x']), 'odd': self.pick(ODD + ['{"a": {"b": 3}}', '[1]']), 'é': '1'},
            'metrics': self.pick([None, [], [{'name': 'cpu.frequency', 'value': 5, 'timestamp': NOW, 'source': 's'}],
                                  [{'name': 'cpu.percent', 'value': 0.29, 'timestamp': NOW, 'source': 's'},
                                   {'name': 'cpu.frequency', 'value': 7, 'timestamp': NOW, 'source': 's'}]]),
            'service': {'disabled': self.chance(0.1), 'disabled_reason': self.pick([None, 'why']), 'forced_down': self.chance(0.1),
                        'last_seen_up': self.pick(['2026-03-01T11:59:30', '2026-03-01T11:59:00', '2026-03-01T11:58:59.999999',
                                                   '2026-03-01T12:01:00', '2026-03-01T12:01:00.000001', None]),
                        'created_at': self.pick(['2025-11-01T00:00:00', '2026-03-01T11:59:10'])},
            'instances': [uuid(2, i) for i in self.some(range(8), 3)],
            'updated_at': self.pick(['2026-03-01T11:59:19', '2026-03-01T11:59:19.000500', None])}

    def case(self, name, themes):
        r = self.r
        hosts = [self.host(n) for n in range(r.randint(1, 4))]
        case = {
            'id': name, 'shape': 'filters', 'now': NOW, 'config': {}, 'aggregates': [], 'hosts': hosts,
            'request': {'num_instances': 1, 'instance_uuid': uuid(4, 1), 'project_id': 'p1', 'user_id': 'u', 'availability_zone': None,
                        'flavor': {'name': 'm1', 'flavorid': 'f1', 'vcpus': self.pick([1, 2, 4]), 'memory_mb': 2048,
                                   'root_gb': self.pick([0, 20]), 'ephemeral_gb': self.pick([0, 3]), 'swap': self.pick([0, 0, 1, 1024, 1025]),
                                   'extra_specs': {}},
                        'image': {'id': uuid(6, 1), 'disk_format': 'qcow2', 'properties': {}}, 'scheduler_hints': {}}}
        if self.chance(0.6):
            case['config']['filter_scheduler.enabled_filters'] = self.some(FILTERS, 4)
        for theme in themes:
            getattr(self, theme)(case)
        if self.chance(0.02):
            case['request']['image'] = None
        if self.chance(0.01):
            del case['request']['flavor']['extra_specs']
        if self.chance(0.01):
            case['request']['scheduler_hints'] = None
        return case

    # ------------------------------------------------------------------ themes

    def requirement(self):
        op = self.pick(OPS)
        words = [self.pick(ODD + ['16', '32', 'aes', 'h0', 'QEMU', 'True', "['aes',", 'avx']) for _ in range(self.pick([0, 1, 1, 1, 1, 2, 3, 5]))]
        if op == '<or>' and self.chance(0.7):
            words = ' <or> '.join(words).split(' ')
        return self.pick([' ', ' ', ' ', '  ', '\t']).join([op] + words) if self.chance(0.85) else self.pick(ODD)

    def capabilities(self, case):
        specs = case['request']['flavor']['extra_specs']
        for _ in range(self.r.randint(1, 3)):
            key = self.pick([self.pick(ATTRIBUTES), 'capabilities:' + self.pick(ATTRIBUTES), 'capabilities:' + self.pick(PATHS),
                             'hw:maxphysaddr_bits', 'Capabilities:host', 'capabilities', 'other:host'])
            specs[key] = self.requirement()
            if self.chance(0.5):
                attribute = key.split(':')[-1]
                value = case['hosts'][0].get({'vcpus_total': 'vcpus'}.get(attribute, attribute))
                if isinstance(value, (str, int, float)):
                    specs[key] = self.pick(['', '== ', '>= ', 's== ', '<in> ', '<or> 5 <or> ']) + str(value)

    def metadata(self):
        keys = ['ssd', 'tier', 'max_io_ops_per_host', 'max_instances_per_host', 'instance_type', 'filter_tenant_id', 'filter_tenant_id2',
                'availability_zone', 'hw_architecture', 'os_distro', 'hw_boot_menu', 'hw_cpu_cores', 'hw.hw_architecture', 'trait:CUSTOM_T',
                'trait:HW_CPU_HYPERTHREADING', 'trait:CUSTOM_A', 'a:b', '', 'hw_numa_mem', 'traits_required', 'img_mappings', 'made_up']
        values = ODD + ['p1', ' p1 , p2', 'p2', 'm1', 'm2, m1', 'M1', '', 'az1', 'required', 'x86_64', 'aarch64,x86_64', 'True', 'gold',
                        'silver', '3', '8', '100', '[512]', "['CUSTOM_A']"]
        return {key: self.pick(values) for key in self.some(keys, 6)}

    def aggregates(self, case):
        names = [host['host'] for host in case['hosts']]
        case['aggregates'] = [
            {'id': n + 1, 'uuid': uuid(3, n), 'name': 'a%d' % n, 'hosts': self.some(names, 4), 'metadata': self.metadata()}
            for n in range(self.r.randint(1, 3))]
        request = case['request']
        specs = request['flavor']['extra_specs']
        for _ in range(self.pick([0, 0, 1, 2])):
            key = self.pick(['ssd', 'tier', 'a:b', '', 'hw_architecture', 'max_io_ops_per_host'])
            specs[self.pick(['', 'aggregate_instance_extra_specs:', 'AGGREGATE_instance_extra_specs:']) + key] = self.requirement()
        if self.chance(0.5):
            request['image']['properties'].update(self.properties(self.pick([1, 2])))
        request['project_id'] = self.pick(['p1', 'p2', None, ''])
        request['availability_zone'] = self.pick([None, 'az1', '', 'x'])
        for key, values in {'scheduler.limit_tenants_to_placement_aggregate': [True], 'scheduler.placement_aggregate_required_for_tenants': [True],
                            'scheduler.enable_isolated_aggregate_filtering': [True],
                            'filter_scheduler.aggregate_image_properties_isolation_namespace': ['hw', 'os', ''],
                            'filter_scheduler.aggregate_image_properties_isolation_separator': ['.', '_', ''],
                            'filter_scheduler.max_io_ops_per_host': [0, 3], 'filter_scheduler.max_instances_per_host': [1, 5]}.items():
            if self.chance(0.3):
                case['config'][key] = self.pick(values)

    def properties(self, n):
        return {self.pick(IMAGE_PROPERTIES): self.pick([self.pick(WORDS), self.pick(WORDS), self.pick(ODD), self.pick(PATCHES), self.pick([1, '4', True])])
                for _ in range(n)}

    def image(self, case):
        image = case['request']['image']
        image['properties'].update(self.properties(self.pick([1, 1, 2, 3])))
        for key, values in {'hw_architecture': ['x86_64', 'amd64', 'i686'], 'img_hv_type': ['kvm', 'xen'], 'hw_vm_mode': ['hvm', 'xen'],
                            'img_hv_requested_version': ['>=8.2', '<8', '>=7.2,<9', '!=8.2.0', '>=12.0.5'], 'hw_maxphysaddr_bits': [0, 40]}.items():
            if self.chance(0.25):
                image['properties'][key] = self.pick(values)
        if self.chance(0.2):
            case['config']['filter_scheduler.image_properties_default_architecture'] = self.pick(['x86_64', 'aarch64', 'X86_64'])
        if self.chance(0.3):
            case['config']['scheduler.image_metadata_prefilter'] = True
        if self.chance(0.2):
            case['aggregates'].append({'id': 77, 'uuid': uuid(3, 77), 'name': 'images', 'hosts': [h['host'] for h in case['hosts']],
                                       'metadata': {key: str(value) for key, value in image['properties'].items()}})

    def isolation(self, case):
        """Image properties that are good, and aggregates with keys and values that nearly fit."""
        good = {'hw_architecture': ['x86_64', 'AMD64'], 'hw_boot_menu': ['yes', 'no', True], 'hw_cpu_cores': ['4', 0, 4.7], 'os_distro': ['ubuntu', 5, 2.0, '', True],
                'os_type': ['LINUX'], 'hw_vif_multiqueue_enabled': ['true'], 'hw_numa_mem.0': ['512', 1], 'hw_numa_cpus.0': ['0-2,^1', '3', ','], 'img_version': [1, '1'],
                'img_mappings': [[{'a': 'b', 'c': None, 'd': 1}], []], 'img_block_device_mapping': [[{}, {'x': "it's"}]], 'trait:B': ['required'], 'trait:A': ['required'],
                'hw_ephemeral_encryption_secret_uuid': ['x', 5, [1]], 'hw_scsi_model': ['LSILogicSAS', 'virtio-scsi'], 'vmware_adaptertype': ['ide', 'lsiLogic', '', 0],
                'hw_vif_model': ['VirtualE1000', 'igb'], 'img_hv_type': ['XAPI'], 'hw_vm_mode': ['pv'], 'owner_id': ['p'], 'root_device_name': ['/dev/vda'],
                'img_hv_requested_version': ['>=1.0'], 'hw_cpu_max_threads': [' 2 ', '٣'], 'os_require_quiesce': ['x', '1'], 'hw_video_ram': [-5]}
        chosen = {key: self.pick(good[key]) for key in self.r.sample(sorted(good), self.r.randint(1, 4))}
        case['request']['image']['properties'].update(chosen)
        names = {'hw_numa_mem.0': 'hw_numa_mem', 'hw_numa_cpus.0': 'hw_numa_cpus', 'trait:B': 'traits_required', 'trait:A': 'traits_required', 'owner_id': 'img_owner_id',
                 'root_device_name': 'img_root_device_name', 'vmware_adaptertype': 'hw_disk_bus'}
        texts = ['True', 'False', '4', '0', '2', '3', '1', 'x86_64', 'linux', 'xen', '[512]', '[1]', "['A']", "['B']", 'ide', 'scsi', 'x', '5', '[CoercedSet({0', '2.0', '',
                 "['B', 'A']", '[CoercedSet({3})]', '[CoercedSet()]', "[{'a': 'b'", 'lsisas1068', 'e1000', 'p', '-5', '>=1.0', '/dev/vda']
        for n in range(self.pick([1, 2])):
            metadata = {}
            for key, value in chosen.items():
                if self.chance(0.7):
                    metadata[self.pick(['', '', '', 'hw.', 'hw_']) + names.get(key, key)] = ','.join(
                        self.pick([str(value), ' ' + str(value).lower() + ' ', self.pick(texts), self.pick(texts)]) for _ in range(self.pick([1, 2])))
            case['aggregates'].append({'id': 60 + n, 'uuid': uuid(3, 60 + n), 'name': 'i%d' % n, 'hosts': self.some([host['host'] for host in case['hosts']], 4),
                                       'metadata': metadata})
        if self.chance(0.2):
            case['config']['filter_scheduler.aggregate_image_properties_isolation_namespace'] = self.pick(['hw', 'os', ''])
            case['config']['filter_scheduler.aggregate_image_properties_isolation_separator'] = self.pick(['.', '_', '', None])

    def chosen(self, case, flavor, image):
        """Some keys of flavor and image, most with good words."""
        for target, keys in ((case['request']['flavor'].get('extra_specs', {}), flavor), ((case['request']['image'] or {}).get('properties', {}), image)):
            for key in self.r.sample(sorted(keys), self.r.randint(0, len(keys))):
                target[key] = self.pick(keys[key])

    def pinning(self, case):
        policies, threads = ['dedicated', 'mixed', 'mixed', 'shared'], ['require', 'isolate', 'prefer']
        masks = ['^0', '0', '0-1', '^0-1', '1,^1', '^9', '0-9', '1-', '']
        self.chosen(case, {'hw:cpu_policy': policies + ['x'], 'hw:cpu_thread_policy': threads + ['', 'x'], 'hw:emulator_threads_policy': ['isolate', 'share', ''],
                           'hw:cpu_dedicated_mask': masks, 'hw:cpu_realtime': ['1', 'yes', 'no'], 'hw:cpu_realtime_mask': masks, 'resources:PCPU': ['1'], 'resources:VCPU': ['1', '0'],
                           'trait:HW_CPU_HYPERTHREADING': ['required', 'forbidden']},
                    {'hw_cpu_policy': policies, 'hw_cpu_thread_policy': threads, 'hw_cpu_realtime_mask': masks})
        case['request']['flavor']['vcpus'] = self.pick([0, 1, 2, 4, 10])

    def encryption(self, case):
        models = ['amd-sev', 'amd-sev-es', 'amd-sev-snp', 'intel-tdx']
        self.chosen(case, {'hw:mem_encryption': ['true', 'true', 'false'], 'hw:mem_encryption_model': models + ['', 'x'], 'hw:tpm_version': ['2.0', '1.2', ''],
                           'hw:tpm_model': ['tpm-crb', 'tpm-tis', ''], 'hw:tpm_secret_security': ['host', 'deployment', 'user', 'x'], 'hw:ephemeral_encryption': ['yes', 'no'],
                           'hw:ephemeral_encryption_format': ['luks', 'plain', ''], 'hw:virtio_packed_ring': ['true', 'false'], 'hw:sound_model': ['virtio', 'sb16']},
                    {'hw_mem_encryption': ['true', 'true', 'false'], 'hw_mem_encryption_model': models, 'hw_firmware_type': ['uefi', 'uefi', 'uefi', 'bios'],
                     'hw_firmware_stateless': ['true', 'true', 'false'], 'hw_machine_type': ['q35', 'pc-q35-9', 'pc', ''], 'hw_video_model': ['none', 'none', 'vga'],
                     'hw_tpm_version': ['2.0', '1.2'], 'hw_tpm_model': ['tpm-crb', 'tpm-tis'], 'hw_ephemeral_encryption': ['true', 'false'],
                     'hw_ephemeral_encryption_format': ['luks', 'luksv2'], 'hw_virtio_packed_ring': ['true', 'false'], 'hw_sound_model': ['virtio', 'sb16']})
        if self.chance(0.3):
            case['request']['image']['name'] = 'n'

    def argument(self, depth):
        kind = self.r.random()
        if depth and kind < 0.4:
            return self.query(depth - 1)
        if kind < 0.75:
            path = self.pick(ATTRIBUTES)
            if self.chance(0.3):
                path = self.pick(['stats.num_instances', 'stats.nope', 'service.disabled', 'service.host', 'service.nope', 'host.x', 'limits.x',
                                  'instances.' + uuid(2, 1), 'cpu_info.arch', 'metrics.x', 'stats.odd.a', 'nope.x', 'service.disabled_reason'])
            return '$' + path
        return self.pick([0, 1, 16, 16384, 2.5, True, False, None, '', 'h0', 'QEMU', '$', [], {}, {'a': 1}, '16384', 8002000, 10 ** 25, -5])

    def query(self, depth):
        op = self.pick(['=', '<', '>', 'in', '<=', '>=', 'not', 'or', 'and', 'and', 'or', 'not'] + (['==', 'xor', 1, None, [], 'NOT'] if self.chance(0.1) else []))
        return [op] + [self.argument(depth) for _ in range(self.pick([0, 1, 2, 2, 2, 3]))]

    def json(self, case):
        query = self.query(self.pick([0, 1, 2, 3]))
        if self.chance(0.08):
            query = self.pick([None, 0, 5, True, 'x', '=ab', 'not', {}, {'a': 1}, '', [[]], ['=']])
        text = json.dumps(query)
        if self.chance(0.05):
            text = self.pick([text[:-1], "['=', 1, 1]", '', ' ', 'NaN', '["=", NaN, 1]', '[">", Infinity, "$free_ram_mb"]', text + ' x', '["=", 01, 1]'])
        case['request']['scheduler_hints']['query'] = [text] if self.chance(0.97) else self.pick([[], [text, text]])

    def cidr(self, case):
        hints = case['request']['scheduler_hints']
        near = self.pick(['10.0.0.9', '10.0.0.9', '10.0.0.5', 'fe80::9', '10.0.0', '010.0.0.1', '10.0.0.256', 'x', '', ' 10.0.0.1', '::ffff:10.0.0.9', '10.0.0.1/8',
                          '1', '::', 'FE80::1', 'fe80::1%eth0', '0x0a.0.0.1', '10.0.0.٣', '1:2:3:4:5:6:1.2.3.4', '::1.2.3.4', '1::2::3', '12345::'])
        hints['build_near_host_ip'] = [near] if self.chance(0.95) else self.pick([[], ['10.0.0.1', '10.0.0.2']])
        if self.chance(0.8):
            cidr = self.pick(['/24', '/0', '/32', '/33', '/-1', '/ 16 ', '/1_6', '/255.255.255.0', '/0.0.0.255', '/255.0.255.0', '/128', '/64', '24', '', '/', '/x', '/24/8', '/ffff::',
                              '/0.0.0.0', '/255.255.255.255', '/٨', '/+8', '/ffff:ffff::', '/::ff', '/010.0.0.0', '/8.0'])
            hints['cidr'] = [cidr] if self.chance(0.95) else self.pick([[], ['/8', '/9']])
        if self.chance(0.1):
            case['hosts'][0]['host_ip'] = None

    def placement(self, case):
        request = case['request']
        flavor, image = request['flavor'], request['image']
        for key in self.r.sample(sorted(FLAVOR_KEYS), self.r.randint(0, 5)):
            flavor['extra_specs'][key] = self.pick(FLAVOR_KEYS[key])
        known = {'hw_cpu_policy': ['dedicated', 'shared', 'mixed'], 'hw_cpu_thread_policy': ['require', 'isolate', 'prefer'],
                 'hw_mem_encryption': ['true', 'false'], 'hw_mem_encryption_model': ['amd-sev', 'amd-sev-es', 'amd-sev-snp', 'intel-tdx'],
                 'hw_firmware_type': ['uefi', 'uefi', 'bios'], 'hw_firmware_stateless': ['true', 'false'], 'hw_machine_type': ['q35', 'pc', 'pc-q35-6'],
                 'hw_video_model': ['none', 'vga', 'virtio'], 'hw_tpm_version': ['1.2', '2.0'], 'hw_tpm_model': ['tpm-tis', 'tpm-crb'],
                 'hw_pci_numa_affinity_policy': ['socket', 'required'], 'os_secure_boot': ['required', 'optional'],
                 'hw_maxphysaddr_mode': ['passthrough', 'emulate'], 'hw_virtio_packed_ring': ['true', 'false'], 'hw_ephemeral_encryption': ['true', 'false'],
                 'hw_ephemeral_encryption_format': ['luks', 'plain'], 'hw_sound_model': ['virtio', 'ich6'], 'trait:CUSTOM_A': ['required', 'x'],
                 'hw_cpu_realtime_mask': ['^0', '0-1', 'x'], 'hw_disk_bus': ['virtio', 'usb'], 'hw_cdrom_bus': ['ide'], 'hw_vif_model': ['igb', 'spapr-vlan'],
                 'hw_viommu_model': ['intel', 'virtio'], 'hw_architecture': ['x86_64', 'armv7l'], 'hw_emulation_architecture': ['aarch64', 'mipsel', 'i686']}
        for key in self.r.sample(sorted(known), self.pick([0, 0, 1, 2, 4])):
            image['properties'][key] = self.pick(known[key])
        if self.chance(0.3):
            # Flavor and image that want the same thing, in the same words or not.
            key = self.pick(['cpu_policy', 'cpu_thread_policy', 'mem_encryption', 'mem_encryption_model', 'tpm_version', 'tpm_model', 'sound_model',
                             'ephemeral_encryption', 'ephemeral_encryption_format', 'virtio_packed_ring', 'maxphysaddr_mode', 'pci_numa_affinity_policy'])
            flavor['extra_specs']['hw:' + key] = self.pick(FLAVOR_KEYS['hw:' + key])
            image['properties']['hw_' + key] = self.pick(known['hw_' + key])
        if self.chance(0.3):
            image['name'] = self.pick(['n', None])
        if self.chance(0.3):
            image['disk_format'] = self.pick(['raw', 'RAW', 'vmdk', 'x', None])
        elif self.chance(0.05):
            del image['disk_format']
        request['is_bfv'] = self.chance(0.3)
        for key in ['enable_isolated_aggregate_filtering', 'image_metadata_prefilter', 'query_placement_for_image_type_support',
                    'limit_tenants_to_placement_aggregate', 'placement_aggregate_required_for_tenants']:
            if self.chance(0.25):
                case['config']['scheduler.' + key] = True
        if self.chance(0.2):
            case['config']['scheduler.max_placement_results'] = self.pick([1, 7, None, 0])
        if self.chance(0.2):
            case['config']['workarounds.disable_fallback_pcpu_query'] = True
        if self.chance(0.3):
            case['min_compute_version'] = self.pick([0, 72, 73, 74])
        if self.chance(0.4):
            request['requested_resources'] = [
                {'requester_id': self.pick([uuid(9, n) + '-0', 'P-0', '_c', '1', uuid(9, n), None if self.chance(0.1) else 'q', '' if self.chance(0.2) else 'r-s-t']),
                 'use_same_provider': self.chance(0.5), 'resources': self.pick([{'CUSTOM_PCI': 1}, {'NET_BW_EGR_KILOBIT_PER_SEC': 5, 'VGPU': 2}, {'X': 0}, {}, {'VCPU': 3}]),
                 'required_traits': self.some(['CUSTOM_P', 'HW_X'], 2), 'forbidden_traits': self.some(['CUSTOM_Q'], 1)}
                for n in range(self.pick([1, 1, 2, 3]))]
        if self.chance(0.3):
            request['pci_requests'] = [{'count': 1, 'spec': [{'vendor_id': '8086'}], 'alias_name': self.pick(['a', None]),
                                        'request_id': self.pick([uuid(9, n), 'P', 'r-s', 'q', None])} for n in range(2)]
        if self.chance(0.3):
            self.aggregates(case)

    def destination(self, case):
        request = case['request']
        names = [host['host'] for host in case['hosts']] + ['nope', 'H0', None, '']
        nodes = [host['nodename'] for host in case['hosts']] + ['nope', None, '']
        if self.chance(0.7):
            destination = {}
            if self.chance(0.6):
                destination['host'] = self.pick([name for name in names if name is not None])
            if self.chance(0.7):
                destination['node'] = self.pick(nodes)
            if self.chance(0.3):
                destination['aggregates'] = self.pick([None, [], [uuid(3, 1)], [uuid(3, 2) + ',' + uuid(3, 1), 'b'], ['']])
            if self.chance(0.3):
                destination['forbidden_aggregates'] = self.some([uuid(3, 8), uuid(3, 7), 'z'], 3)
            request['requested_destination'] = destination
        if self.chance(0.3):
            request['force_hosts'] = self.pick([[], ['h0'], ['H0'], ['nope', 'h0'], ['']])
        if self.chance(0.3):
            request['force_nodes'] = self.pick([[], ['h0'], ['N1'], ['nope'], ['']])
        if self.chance(0.2) and len(case['hosts']) > 1:
            case['hosts'][1]['host'] = 'h0'
        if self.chance(0.3):
            request['scheduler_hints'][self.pick(['group', 'same_host', 'different_host', 'Group'])] = [uuid(2, 1)]

    def options(self, case):
        keys = ['filter_scheduler.max_io_ops_per_host', 'filter_scheduler.max_instances_per_host', 'filter_scheduler.isolated_hosts',
                'filter_scheduler.isolated_images', 'filter_scheduler.restrict_isolated_hosts_to_isolated_images', 'DEFAULT.service_down_time',
                'filter_scheduler.host_subset_size', 'filter_scheduler.shuffle_best_same_weighed_hosts', 'filter_scheduler.track_instance_changes',
                'filter_scheduler.enabled_filters', 'filter_scheduler.available_filters', 'filter_scheduler.weight_classes',
                'filter_scheduler.image_properties_default_architecture', 'metrics.weight_setting', 'metrics.required', 'scheduler.max_attempts',
                'filter_scheduler.image_props_weight_setting', 'scheduler.max_placement_results', 'filter_scheduler.pci_in_placement',
                'filter_scheduler.ram_weight_multiplier', 'filter_scheduler.soft_affinity_weight_multiplier', 'filter_scheduler.nope', 'nope.nope', 'DEFAULT.debug',
                'compute.cpu_shared_set', 'DEFAULT.cpu_allocation_ratio', 'workarounds.disable_fallback_pcpu_query', 'DEFAULT.reserved_host_memory_mb',
                'DEFAULT.servicegroup_driver', 'libvirt.virt_type', 'api.max_limit', 'vnc.enabled', 'filter_scheduler.max_io_ops_per_hosts']
        values = ODD + [value for value in PATCHES if value is not None] + [
            ['JsonFilter'], ['MetricsFilter', 'ComputeFilter'], 'JsonFilter,ComputeFilter', ['RamFilter'], ['cpu.frequency=1', 'x'], 'cpu.frequency=2,cpu.percent=1',
            ['nova.scheduler.weights.ram.RAMWeigher'], ['nova.scheduler.weights.all_weighers', 'nova.scheduler.weights.cpu.CPUWeigher'], ['nova.scheduler.weights.nope.X'],
            ['nova.scheduler.filters.json_filter.JsonFilter'], ['nova.scheduler.filters.all_filters'], ['h0', 'h2'], [uuid(6, 1)], 'h1,h0', [1, 2], 'on', 'off', 3, 60, '60', 61.5, 'kvm', 'mc', 'db']
        for key in self.r.sample(keys, self.pick([1, 1, 2])):
            if key not in case['config']:
                case['config'][key] = self.pick(values)

    def hosts(self, case):
        for host in case['hosts']:
            if self.chance(0.5):
                key = self.pick(['free_ram_mb', 'free_disk_gb', 'disk_available_least', 'cpu_info', 'host_ip', 'metrics', 'updated_at'])
                host[key] = None
        if self.chance(0.3):
            case['request']['instance_group'] = {
                'uuid': uuid(5, 1), 'policy': self.pick(['anti-affinity', 'affinity', 'soft-affinity', 'Affinity']),
                'rules': self.pick([{}, {'max_server_per_host': self.pick([1, 2, '2', '0', '-1', 'x', ' 3 '])}]),
                'members': [uuid(2, i) for i in self.some(range(8), 6)], 'hosts': self.some(['h0', 'h1', 'H2'], 2)}
        if self.chance(0.2):
            case['request']['instance_uuid'] = uuid(2, 1)
        config = case['config']
        if self.chance(0.5):
            config['filter_scheduler.isolated_hosts'] = self.pick([[], ['h0'], ['H0', 'h1'], 'h0, h1'])
            config['filter_scheduler.isolated_images'] = self.pick([[], [uuid(6, 1)], ['x']])
            config['filter_scheduler.restrict_isolated_hosts_to_isolated_images'] = self.chance(0.5)
        if self.chance(0.3):
            config['metrics.weight_setting'] = self.pick([['cpu.frequency=1'], ['cpu.percent=1', 'nope=2'], ['=1'], ['cpu.frequency'], ['cpu.frequency=x']])
        if self.chance(0.2):
            config['DEFAULT.service_down_time'] = self.pick([0, 9, 10, 11, 30, 90, -1, None])

    def hints(self, case):
        for key in self.some(['same_host', 'different_host', '_nova_check_type', 'query', 'cidr'], 3):
            case['request']['scheduler_hints'][key] = self.pick([[], [''], [uuid(2, 1)], [uuid(2, 1), uuid(2, 2)], ['rebuild'], ['rebuild', 'x'], ['[]']])


def main():
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    themes = sys.argv[3:] or THEMES
    for n in range(count):
        r = random.Random('%d/%d' % (seed, n))
        chosen = [r.choice(themes)]
        if r.random() < 0.25:
            chosen = list(dict.fromkeys(chosen + [r.choice(themes)]))
        print(json.dumps(Cases(r).case('filters-%d-%05d' % (seed, n), chosen), ensure_ascii=False))


if __name__ == '__main__':
    main()
