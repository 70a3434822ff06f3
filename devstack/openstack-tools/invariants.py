"""What must be true of the cloud whenever it has come to rest, whatever happened before."""
import json
import os
import subprocess

from cloud import until
from database import local_disk, rows

CLASSES = {0: 'VCPU', 1: 'MEMORY_MB', 2: 'DISK_GB'}
# States in which a server rests, and whether it then holds room on a host.
RESTING = {'active': True, 'stopped': True, 'paused': True, 'suspended': True, 'shelved': True, 'resized': True, 'shelved_offloaded': False,
           'error': None, 'deleted': False, 'soft-delete': True}
INSTANCES = """
select i.uuid, i.display_name as name, i.vm_state, i.task_state, i.host, i.vcpus, i.memory_mb, {1} as disk, '{0}' as cell,
    (select message from {0}.instance_faults f where f.instance_uuid = i.uuid and f.deleted = 0 order by f.id desc limit 1) as fault
from {0}.instances i where i.deleted = 0
"""

BOOKED = """
select c.host, c.vcpus_used, c.memory_mb_used, c.local_gb_used, c.free_ram_mb, c.free_disk_gb, coalesce(sum(i.vcpus), 0) as vcpus,
    coalesce(sum(i.memory_mb), 0) as ram, coalesce(sum({1}), 0) as disk from {0}.compute_nodes c
left join {0}.instances i on i.host = c.host and i.deleted = 0 where c.deleted = 0 and c.host like 'compute%' group by c.id
"""


class Broken(AssertionError):
    """Something that must hold does not."""


def cells():
    """The databases of the cells that there are."""
    return [row['name'] for row in rows("select schema_name as name from information_schema.schemata where schema_name regexp '^nova_cell[1-9]$'")]


def instances():
    return [row for cell in cells() + ['nova_cell0'] for row in rows(INSTANCES.format(cell, local_disk(cell)))]


def allocations():
    """{consumer: {(provider, class): amount}}"""
    found = {}
    for row in rows("select a.consumer_id, p.name, a.resource_class_id as class, a.used from placement.allocations a "
                    "join placement.resource_providers p on p.id = a.resource_provider_id"):
        found.setdefault(row['consumer_id'], {})[(row['name'], CLASSES.get(row['class'], row['class']))] = row['used']
    return found


def problems(stopped=()):
    """Everything that is wrong, one line each; nothing when the cloud is in order and at rest.

    `stopped`: victims that were stopped. They hold only their disk in Placement, and Nova books
    them on their host beside those that run in their room."""
    wrong = []
    held = allocations()
    alive = {}
    for server in instances():
        alive[server['uuid']] = server
        label = 'server %s (%s)' % (server['name'], server['uuid'])
        if server['task_state'] is not None:
            wrong.append('%s is in the middle of %s' % (label, server['task_state']))
        if server['vm_state'] not in RESTING:
            wrong.append('%s is %s' % (label, server['vm_state']))
        holds = RESTING.get(server['vm_state'])
        if holds is None:
            holds = server['host'] is not None
            if server['vm_state'] == 'error' and not server['fault']:
                wrong.append('%s is in ERROR without a reason' % label)
        expected = {(server['host'], 'VCPU'): server['vcpus'], (server['host'], 'MEMORY_MB'): server['memory_mb'],
                    (server['host'], 'DISK_GB'): server['disk']} if holds and server['host'] else {}
        expected = {k: v for k, v in expected.items() if v and (k[1] == 'DISK_GB' or server['uuid'] not in stopped)}
        # A row of Nova says nothing of the other classes that a flavor asks for.
        holds_now = {key: amount for key, amount in held.get(server['uuid'], {}).items() if key[1] in CLASSES.values() or not holds}
        if holds_now != expected:
            wrong.append('%s (%s) should hold %s and holds %s' % (label, server['vm_state'], expected, held.get(server['uuid'], {})))
    for consumer in sorted(set(held) - set(alive)):
        wrong.append('consumer %s holds %s and belongs to no server' % (consumer, held[consumer]))
    for row in rows("select c.uuid from placement.consumers c left join placement.allocations a on a.consumer_id = c.uuid where a.id is null"):
        wrong.append('consumer %s is a phantom: a row without allocations' % row['uuid'])
    for row in rows("select p.name, i.resource_class_id as class, i.total - i.reserved as size, i.allocation_ratio as ratio, sum(a.used) as used "
                    "from placement.inventories i join placement.resource_providers p on p.id = i.resource_provider_id "
                    "join placement.allocations a on a.resource_provider_id = p.id and a.resource_class_id = i.resource_class_id "
                    "group by i.id, p.name having used > size * ratio"):
        wrong.append('%s is over its capacity: %s of %s %s' % (row['name'], row['used'], row['size'], CLASSES.get(row['class'])))
    shared = {alive[uuid]['host'] for uuid in stopped if uuid in alive}
    for node in [node for cell in cells() for node in rows(BOOKED.format(cell, local_disk(cell)))]:
        if (node['vcpus_used'], node['memory_mb_used'], node['local_gb_used']) != (node['vcpus'], node['ram'], node['disk']):
            wrong.append('%s books %s VCPUs, %s MB, %s GB for servers of %s, %s, %s' % tuple(node[k] for k in (
                'host', 'vcpus_used', 'memory_mb_used', 'local_gb_used', 'vcpus', 'ram', 'disk')))
        if node['host'] not in shared and min(node['vcpus_used'], node['memory_mb_used'], node['local_gb_used'], node['free_ram_mb'], node['free_disk_gb']) < 0:
            wrong.append('%s books something negative: %s' % (node['host'], json.dumps(node, default=str)))
    return wrong


def check(what, seconds=90, stopped=()):
    """Waits until the cloud is in order; says everything that is wrong when it does not come to
    that."""
    last = {}

    def in_order():
        last['wrong'] = problems(stopped)
        return not last['wrong']
    try:
        until(what, seconds, in_order, pause=0.3)
    except TimeoutError:
        raise Broken('%s: after %d s\n  %s' % (what, seconds, '\n  '.join(last['wrong']))) from None


def manage(*command):
    """nova-manage with the stack's configuration: exit status and what it said."""
    done = subprocess.run([os.environ['STACK_BIN'] + '/nova-manage', '--config-file', os.environ['STACK_HOME'] + '/etc/nova.conf',
                           *command], text=True, capture_output=True, check=False)
    return done.returncode, done.stdout + done.stderr


def audit(heals=True):
    """Nova's own look at Placement: no orphaned allocation, nothing to heal. `heals`: without
    servers that have a device profile of Cyborg, which Nova cannot heal."""
    status, said = manage('placement', 'audit', '--verbose')
    if status != 0:
        raise Broken('nova-manage placement audit ends with %d: %s' % (status, said[-2000:]))
    if heals:
        # 4: nothing needed healing (0 would mean that something was, or would be, healed).
        status, said = manage('placement', 'heal_allocations', '--dry-run', '--verbose')
        if status != 4 or 'Would' in said or '[dry-run]' in said:
            raise Broken('nova-manage placement heal_allocations --dry-run ends with %d: %s' % (status, said[-2000:]))
    if os.environ.get('STACK_EBBTIDE'):
        our_audit()


def upgrade_check():
    """What an operator runs before the switch: exit status, and each result by name."""
    done = subprocess.run([os.environ['STACK_EBBTIDE'], 'upgrade', 'check', '--config-file', os.environ['STACK_HOME'] + '/etc/nova.conf',
                           '--output', 'json'], text=True, capture_output=True, check=False)
    try:
        return done.returncode, {one['check']: one for one in json.loads(done.stdout)}
    except (ValueError, KeyError) as error:
        raise Broken('ebbtide-manage upgrade check ends with %d: %s %s' % (done.returncode, done.stdout[-2000:], done.stderr[-500:])) from error


def our_audit():
    """What operators have: the ledger, Nova and Placement held against each other."""
    done = subprocess.run([os.environ['STACK_EBBTIDE'], 'audit', '--config-file', os.environ['STACK_HOME'] + '/etc/nova.conf', '--output', 'json'],
                          text=True, capture_output=True, check=False)
    if done.returncode != 0:
        raise Broken('ebbtide-manage audit ends with %d: %s %s' % (done.returncode, done.stdout[-2000:], done.stderr[-500:]))
