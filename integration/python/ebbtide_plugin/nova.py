"""Nova's own weighers and filters, and those that operators have written for Nova, unmodified.

    ebbtide-nova-weighers --listen unix:/run/ebbtide/nova.sock --config-file /etc/nova/nova.conf \\
        --weigher nova.scheduler.weights.ram.RAMWeigher --filter my.module.MyFilter

A weigher or filter gets what it would get in Nova: HostState and RequestSpec objects of the
installed Nova, filled with what Ebbtide knows of its hosts. What it does not know stays as Nova has
it for a host that has told nothing: pci_stats, numa_topology, metrics, cpu_info, host_ip.
"""
import argparse
import importlib
import json
import logging
import uuid

from .kit import Filter, Weigher
from .service import serve

# Made-up instances, so that weighers can count the members of a server group on each host.
_SPACE = uuid.UUID('b7e151628aed2a6abf7158809cf4f3c7')


def _member(host, number):
    return str(uuid.uuid5(_SPACE, '%d-%d' % (host, number)))


class NovaWeigher(Weigher):
    """One of Nova's weighers as Ebbtide sees it."""

    needs = (
        'host_name', 'aggregates', 'free_ram_mb', 'free_disk_mb', 'num_instances', 'num_io_ops', 'group_members', 'failed_builds',
        'hypervisor_version', 'total:VCPU', 'used:VCPU', 'allocation_ratio:VCPU', 'total:MEMORY_MB', 'allocation_ratio:MEMORY_MB',
        'total:DISK_GB', 'used:DISK_GB', 'allocation_ratio:DISK_GB')

    def __init__(self, weigher):
        self.weigher = weigher
        self.minimum = weigher.minval
        self.maximum = weigher.maxval
        self.default_multiplier = float(weigher.weight_multiplier(_blank('none')))

    def weigh(self, request, hosts):
        from nova.scheduler import host_manager
        aggregates = _aggregates(hosts)
        states = [_state(hosts, at, aggregates) for at in range(len(hosts))]
        spec = _spec(request, hosts)
        weighed = [host_manager.weights.WeighedHost(state, 0.0) for state in states]
        return [float(weight) for weight in self.weigher.weigh_objects(weighed, spec)]


class NovaFilter(Filter):
    """One of Nova's filters as Ebbtide sees it. Nova's filters say yes or no; the reason is the
    class that said no."""

    needs = NovaWeigher.needs

    def __init__(self, filter):
        self.nova_filter = filter

    def filter(self, request, hosts):
        aggregates = _aggregates(hosts)
        states = [_state(hosts, at, aggregates) for at in range(len(hosts))]
        spec = _spec(request, hosts)
        passed = {id(state) for state in self.nova_filter.filter_all(states, spec)}
        reason = '%s does not let it pass' % type(self.nova_filter).__name__
        return [None if id(state) in passed else reason for state in states]


def _blank(name):
    from nova.scheduler import host_manager
    return host_manager.HostState(name, name, None)


def _aggregates(hosts):
    """For each text about aggregates the aggregates, each with those of its hosts that are
    weighed."""
    from nova import objects
    known, by_text = {}, {}
    for host, text in zip(hosts['host_name'], hosts['aggregates']):
        if text not in by_text:
            by_text[text] = []
            for said in json.loads(text or '[]'):
                if said['name'] not in known:
                    known[said['name']] = objects.Aggregate(name=said['name'], metadata=said['metadata'], hosts=[])
                by_text[text].append(known[said['name']])
        for aggregate in by_text[text]:
            aggregate.hosts.append(host)
    return by_text


def _state(hosts, at, aggregates):
    """A host as Nova's scheduler has it."""
    from nova import objects
    state = _blank(hosts['host_name'][at])
    state.free_ram_mb = int(hosts['free_ram_mb'][at])
    state.total_usable_ram_mb = int(hosts['total:MEMORY_MB'][at])
    state.free_disk_mb = int(hosts['free_disk_mb'][at])
    state.total_usable_disk_gb = int(hosts['total:DISK_GB'][at])
    state.disk_mb_used = int(hosts['used:DISK_GB'][at]) * 1024
    state.vcpus_total = int(hosts['total:VCPU'][at])
    state.vcpus_used = int(hosts['used:VCPU'][at])
    state.cpu_allocation_ratio = hosts['allocation_ratio:VCPU'][at]
    state.ram_allocation_ratio = hosts['allocation_ratio:MEMORY_MB'][at]
    state.disk_allocation_ratio = hosts['allocation_ratio:DISK_GB'][at]
    state.num_instances = int(hosts['num_instances'][at])
    state.num_io_ops = int(hosts['num_io_ops'][at])
    state.failed_builds = int(hosts['failed_builds'][at])
    state.hypervisor_version = int(hosts['hypervisor_version'][at]) or None
    state.hypervisor_hostname = state.nodename
    state.aggregates = aggregates[hosts['aggregates'][at]]
    for number in range(int(hosts['group_members'][at])):
        member = _member(at, number)
        state.instances[member] = objects.Instance(uuid=member)
    return state


def _spec(request, hosts):
    """The request as Nova's scheduler has it."""
    from nova import objects
    specs = {key[len('extra_spec:'):]: value for key, value in request.properties.items() if key.startswith('extra_spec:')}
    start = 'scheduler_hint:'
    hints = {key[len(start):]: json.loads(values) for key, values in request.properties.items() if key.startswith(start)}
    spec = objects.RequestSpec(
        project_id=request.project_id, num_instances=1, availability_zone=None, scheduler_hints=hints, ignore_hosts=None, force_hosts=None,
        force_nodes=None, numa_topology=None, pci_requests=None, instance_group=None, requested_destination=None,
        flavor=objects.Flavor(
            name=request.properties.get('flavor', ''), vcpus=request.resources.get('VCPU', 0), memory_mb=request.resources.get('MEMORY_MB', 0),
            root_gb=request.resources.get('DISK_GB', 0), ephemeral_gb=0, swap=0, extra_specs=specs),
        image=objects.ImageMeta(id=request.properties['image_id'], properties=objects.ImageMetaProps())
        if 'image_id' in request.properties else None)
    policy = request.properties.get('group_policy')
    if policy:
        members = [_member(at, number) for at in range(len(hosts)) for number in range(int(hosts['group_members'][at]))]
        spec.instance_group = objects.InstanceGroup(
            policy=policy, members=members, hosts=[hosts['host_name'][at] for at in range(len(hosts)) if hosts['group_members'][at] > 0])
    return spec


def _load(path, kind):
    module, _, name = path.rpartition('.')
    found = getattr(importlib.import_module(module), name)
    return lambda: kind(found())


def prepare(config_files=()):
    """Reads Nova's configuration and its objects, as nova-scheduler does when it starts."""
    from nova import objects
    import nova.conf
    nova.conf.CONF(['--config-file=' + path for path in config_files], project='nova', default_config_files=[])
    objects.register_all()


def weighers(paths):
    """What `serve` takes, by the full names of the classes."""
    return {path: _load(path, NovaWeigher) for path in paths}


def filters(paths):
    """The same for filters: subclasses of nova.scheduler.filters.BaseHostFilter."""
    return {path: _load(path, NovaFilter) for path in paths}


def main():
    """The command ebbtide-nova-weighers."""
    parser = argparse.ArgumentParser(
        prog='ebbtide-nova-weighers', description="Serves Nova's Python weighers and filters to Ebbtide.",
        epilog='In the scheduler: ebbtide plugin add my_weigher --address unix:/run/ebbtide/nova.sock --plugin my.module.MyWeigher')
    parser.add_argument('--listen', default='127.0.0.1:7480', help='HOST:PORT or unix:/PATH (default: %(default)s)')
    parser.add_argument('--weigher', action='append', default=[], metavar='CLASS', help='full name of a class; may be repeated')
    parser.add_argument('--filter', action='append', default=[], metavar='CLASS', help='full name of a class; may be repeated')
    parser.add_argument('--config-file', action='append', default=[], help='nova.conf, for options that classes read; may be repeated')
    asked = parser.parse_args()
    if not asked.weigher and not asked.filter:
        parser.error('name a --weigher or a --filter')
    logging.basicConfig(level=logging.INFO, format='%(asctime)s %(levelname)s %(name)s: %(message)s')
    prepare(asked.config_file)
    plugins = {**weighers(asked.weigher), **filters(asked.filter)}
    for path, make in plugins.items():
        try:
            make()
        except Exception as error:
            parser.exit(1, '%s: %s: %s\n' % (path, type(error).__name__, error))
    serve(plugins, asked.listen)


if __name__ == '__main__':
    main()
