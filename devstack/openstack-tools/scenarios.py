"""The scenarios whose conversations are compared, one function each, in the order in which they
run.

A scenario takes the stage (`record.Stage`) and gives what a user of the API saw; that is compared,
too. The numbers are those of the captures of a real Nova 26 that this list repeats; from 32 on are
cases that they do not hold. Every step waits for the event that it has asked for. What one scenario
leaves behind, later ones use, so they cannot be run alone.
"""
import os
import time

import processes
from cloud import until
from database import rows

SCENARIOS = []
BUILDING = """select host from nova_cell1.compute_nodes where deleted = 0 and stats regexp '"io_workload": "[1-9]'"""


def scenario(number, name):
    def add(function):
        SCENARIOS.append(('%02d-%s' % (number, name), function))
        return function
    return add


def seen(server):
    """What the user sees of a server."""
    if server is None:
        return None
    return {'status': server['status'], 'host': server['OS-EXT-SRV-ATTR:host'], 'zone': server['OS-EXT-AZ:availability_zone'],
            'fault': (server.get('fault') or {}).get('message')}


def without_host(stage, server):
    """A server is called SHELVED_OFFLOADED a moment before Nova writes that it has no host any
    more."""
    until('the shelved server to have left its host', 60, lambda: not stage.cloud.server(server)['OS-EXT-SRV-ATTR:host'])
    return seen(stage.cloud.server(server))


@scenario(1, 'boot-one')
def boot_one(stage):
    return seen(stage.boot('one', 'small'))


@scenario(2, 'boot-three-min3-max3')
def boot_three(stage):
    stage.cloud.create('three', 'small', min_count=3, max_count=3)
    ids = [s['id'] for s in stage.cloud.nova('GET', '/servers?name=three').json()['servers']]
    servers = sorted((stage.cloud.settled(i) for i in ids), key=lambda s: s['name'])
    stage.ids.update({s['name']: s['id'] for s in servers})
    return {s['name']: seen(s) for s in servers}


@scenario(3, 'boot-anti-affinity')
def anti_affinity(stage):
    group = stage.group('aa', 'anti-affinity')
    return [seen(stage.boot('aa%d' % n, 'small', hints={'group': group})) for n in range(2)]


@scenario(4, 'boot-az-nova')
def az_nova(stage):
    return seen(stage.boot('az', 'small', availability_zone='nova'))


@scenario(5, 'boot-az-nova-compute2')
def az_and_host(stage):
    return seen(stage.boot('azhost', 'small', availability_zone='nova:compute2'))


@scenario(6, 'boot-host-microversion-2.74')
def requested_host(stage):
    return seen(stage.boot('reqhost', 'small', host='compute3'))


@scenario(7, 'boot-hint-different-host')
def different_host(stage):
    return seen(stage.boot('diff', 'small', hints={'different_host': [stage.ids['one']]}))


@scenario(8, 'boot-preemptible-extra-spec')
def preemptible(stage):
    return seen(stage.boot('pre', 'small.preemptible'))


@scenario(9, 'boot-novalidhost-placement')
def no_candidates(stage):
    return seen(stage.boot('huge', 'huge'))


@scenario(10, 'boot-novalidhost-filters')
def no_filter_passes(stage):
    return seen(stage.boot('nofilter', 'small.norealfilter'))


@scenario(11, 'resize-confirm')
def resize(stage):
    server = stage.ids['one']
    stage.cloud.action(server, {'resize': {'flavorRef': 'medium'}})
    first = seen(stage.cloud.settled(server, ('VERIFY_RESIZE', 'ERROR')))
    stage.cloud.action(server, {'confirmResize': None})
    return [first, seen(stage.cloud.settled(server))]


@scenario(12, 'cold-migrate-revert')
def cold_migrate(stage):
    server = stage.ids['three-1']
    stage.cloud.action(server, {'migrate': {'host': None}})
    first = seen(stage.cloud.settled(server, ('VERIFY_RESIZE', 'ERROR')))
    stage.cloud.action(server, {'revertResize': None})
    return [first, seen(stage.cloud.settled(server))]


@scenario(13, 'live-migrate')
def live_migrate(stage):
    server = stage.ids['three-2']
    before = seen(stage.cloud.server(server))
    stage.cloud.action(server, {'os-migrateLive': {'host': None, 'block_migration': 'auto'}})
    return [before, seen(stage.cloud.settled(server))]


@scenario(14, 'shelve-unshelve')
def shelve(stage):
    server = stage.ids['three-3']
    stage.cloud.action(server, {'shelve': None})
    first = seen(stage.cloud.settled(server, ('SHELVED', 'SHELVED_OFFLOADED', 'ERROR')))
    if first['status'] == 'SHELVED':
        stage.cloud.action(server, {'shelveOffload': None})
        first = seen(stage.cloud.settled(server, ('SHELVED_OFFLOADED', 'ERROR')))
    if first['status'] == 'SHELVED_OFFLOADED':
        first = without_host(stage, server)
    stage.cloud.action(server, {'unshelve': None})
    return [first, seen(stage.cloud.settled(server))]


@scenario(15, 'aggregate-create-addhost-az-delete')
def aggregates(stage):
    nova = stage.cloud.nova
    first = stage.aggregate('agg1', 'az1')
    nova('POST', '/os-aggregates/%s/action' % first, {'set_metadata': {'metadata': {'ssd': 'true'}}})
    # Refused by Nova when the host has servers in another zone.
    refused = nova('POST', '/os-aggregates/%s/action' % first, {'add_host': {'host': 'compute3'}}, check=False).status_code
    second = stage.aggregate('agg2')
    nova('POST', '/os-aggregates/%s/action' % second, {'add_host': {'host': 'compute3'}})
    nova('POST', '/os-aggregates/%s/action' % second, {'set_metadata': {'metadata': {'ssd': 'true'}}})
    nova('POST', '/os-aggregates/%s/action' % second, {'remove_host': {'host': 'compute3'}})
    if refused == 200:
        nova('POST', '/os-aggregates/%s/action' % first, {'remove_host': {'host': 'compute3'}})
    for aggregate in (second, first):
        nova('DELETE', '/os-aggregates/%s' % aggregate)
    return refused


@scenario(16, 'delete-one')
def delete_one(stage):
    stage.cloud.delete(stage.ids['one'])


@scenario(17, 'delete-all')
def delete_all(stage):
    stage.cloud.delete(*[s['id'] for s in stage.cloud.servers()])


@scenario(18, 'boot-az-az1')
def az_of_an_aggregate(stage):
    nova = stage.cloud.nova
    aggregate = stage.aggregate('agg-az1', 'az1')
    nova('POST', '/os-aggregates/%s/action' % aggregate, {'add_host': {'host': 'compute1'}})
    server = stage.boot('inaz1', 'small', availability_zone='az1')
    stage.cloud.delete(server['id'])
    nova('POST', '/os-aggregates/%s/action' % aggregate, {'remove_host': {'host': 'compute1'}})
    nova('DELETE', '/os-aggregates/%s' % aggregate)
    return seen(server)


@scenario(19, 'rebuild-new-image')
def rebuild(stage):
    server = stage.boot('rebuild-me', 'small')['id']
    stage.cloud.action(server, {'rebuild': {'imageRef': stage.cloud.image('tiny2')}})
    return seen(stage.cloud.settled(server))


@scenario(20, 'boot-affinity-group')
def affinity(stage):
    group = stage.group('aff', 'affinity')
    return [seen(stage.boot('af%d' % n, 'small', hints={'group': group})) for n in range(2)]


def evacuated(stage, server, request):
    """A server is evacuated from its host, which is called down meanwhile: the host, and the server
    elsewhere."""
    host = stage.cloud.server(server)['OS-EXT-SRV-ATTR:host']
    service = stage.service(host)
    stage.cloud.nova('PUT', '/os-services/%s' % service, {'forced_down': True})
    stage.cloud.action(server, {'evacuate': request(host)})
    stage.cloud.settled(server)
    until('the evacuated server to be elsewhere', 60, lambda: stage.cloud.server(server)['OS-EXT-SRV-ATTR:host'] != host)
    after = seen(stage.cloud.settled(server))
    # A host whose servers have been evacuated must have been started again before Nova calls it up.
    compute = 'nova-' + host.replace('compute', 'compute-')
    processes.restart(compute)

    def finished():
        return not rows("select 1 from nova_cell1.migrations where migration_type = 'evacuation' and status != 'completed'")
    until('%s to clean up after the evacuation' % host, 90, finished)
    stage.cloud.nova('PUT', '/os-services/%s' % service, {'forced_down': False})
    until('%s to be up' % host, 60, lambda: stage.is_up(host))
    return [host, after]


@scenario(21, 'evacuate-forced-down')
def evacuate(stage):
    return evacuated(stage, stage.ids['rebuild-me'], lambda _host: {})


@scenario(22, 'wait-for-periodic-sync')
def periodic_sync(stage):
    """Every compute tells about all its instances once in a while; the scheduler takes it and stays
    quiet."""
    hosts = {row['host'] for row in rows("select host from nova_cell1.compute_nodes where deleted = 0 and host like 'compute%%'")}

    def told():
        with stage.firehose.lock:
            return hosts <= {m['message']['args']['host_name'] for m in stage.firehose.messages
                             if m['message'].get('method') == 'sync_instance_info'}
    until('sync_instance_info from every compute', 150, told)
    return sorted(hosts)


@scenario(23, 'cleanup')
def cleanup(stage):
    stage.cloud.delete(*[s['id'] for s in stage.cloud.servers()])


@scenario(24, 'rpc-ping-baseapi')
def ping(stage):
    return stage.rpc('ping', '1.0', 'baseapi', arg='hello')


@scenario(25, 'rpc-get_backdoor_port')
def backdoor(stage):
    return stage.rpc('get_backdoor_port', '1.1', 'baseapi')


@scenario(26, 'rpc-oslo_rpc_server_ping')
def oslo_ping(stage):
    return stage.rpc('oslo_rpc_server_ping', '1.0')


@scenario(27, 'rpc-unsupported-version')
def bad_major(stage):
    return stage.rpc('select_destinations', '5.0')


@scenario(28, 'rpc-unsupported-minor')
def bad_minor(stage):
    return stage.rpc('select_destinations', '4.99')


@scenario(29, 'rpc-unknown-method')
def unknown_method(stage):
    return stage.rpc('no_such_method', '4.5', x=1)


@scenario(30, 'rpc-bad-arguments')
def bad_arguments(stage):
    return stage.rpc('select_destinations', '4.5', x=1)


@scenario(31, 'slow-placement-heartbeat')
def slow_placement(stage):
    """Placement stands still for 2.5 heartbeats: the caller must be kept waiting by exactly two of
    them."""
    pause = float(os.environ['STACK_RPC_TIMEOUT']) / 2 * 2.5
    with processes.pause('placement'):
        server = stage.cloud.create('slow', 'small')
        until('the conductor to ask the scheduler', 30, stage.firehose.open_calls)
        time.sleep(pause)
    after = seen(stage.cloud.settled(server))
    stage.cloud.delete(server)
    return after


@scenario(32, 'boot-too-many-at-once')
def too_many(stage):
    """Six fit and seven are asked for: the six claims are given back. The three-server form in full
    is 02."""
    return sorted((str(seen(s)) for s in stage.boot_many('eight', 'large', 7)))


@scenario(33, 'boot-as-many-as-fit')
def as_many_as_fit(stage):
    """All six places of the cloud in one request: the chosen hosts alternate as they fill."""
    servers = stage.boot_many('six', 'large', 6)
    return {s['name']: seen(s) for s in servers}


@scenario(34, 'boot-on-a-full-cloud')
def full(stage):
    return seen(stage.boot('late', 'large'))


@scenario(35, 'boot-on-a-full-host')
def full_host(stage):
    return [seen(stage.boot('late-forced', 'large', availability_zone='nova:compute1')),
            seen(stage.boot('late-requested', 'large', host='compute2'))]


@scenario(36, 'resize-without-room')
def resize_without_room(stage):
    stage.cloud.delete(stage.ids['six-1'])
    stage.settle()
    server = stage.ids['six-2']
    stage.cloud.flavor('whole', 8, 16000, 160)
    return [stage.refused(server, {'resize': {'flavorRef': 'whole'}}), seen(stage.cloud.settled(server))]


@scenario(37, 'live-migrate-without-room')
def live_migrate_without_room(stage):
    """The only free place is taken first; a live migration then finds no host and leaves the server
    as it was."""
    stage.boot('filler', 'large')
    stage.settle()
    server = stage.ids['six-3']
    return [stage.refused(server, {'os-migrateLive': {'host': None, 'block_migration': 'auto'}}), seen(stage.cloud.settled(server))]


@scenario(38, 'unshelve-without-room')
def unshelve_without_room(stage):
    server = stage.ids['six-4']
    stage.cloud.action(server, {'shelve': None})
    first = seen(stage.cloud.settled(server, ('SHELVED', 'SHELVED_OFFLOADED', 'ERROR')))
    if first['status'] == 'SHELVED':
        stage.cloud.action(server, {'shelveOffload': None})
        first = seen(stage.cloud.settled(server, ('SHELVED_OFFLOADED', 'ERROR')))
    if first['status'] == 'SHELVED_OFFLOADED':
        without_host(stage, server)
    stage.settle()
    stage.boot('filler2', 'large')
    stage.settle()
    stage.cloud.action(server, {'unshelve': None})
    return seen(stage.cloud.settled(server, ('SHELVED_OFFLOADED', 'ACTIVE', 'ERROR')))


@scenario(39, 'delete-the-full-cloud')
def delete_full_cloud(stage):
    stage.cloud.delete(*[s['id'] for s in stage.cloud.servers()])


@scenario(40, 'boot-anti-affinity-more-than-hosts')
def anti_affinity_exhausted(stage):
    """More members than hosts."""
    group = stage.group('aa-full', 'anti-affinity')
    return [seen(stage.boot('aaf%d' % n, 'small', hints={'group': group})) for n in range(4)]


@scenario(41, 'boot-soft-anti-affinity')
def soft_anti_affinity(stage):
    group = stage.group('soft-aa', 'soft-anti-affinity')
    return [seen(stage.boot('saa%d' % n, 'small', hints={'group': group})) for n in range(4)]


@scenario(42, 'boot-hint-same-host')
def same_host(stage):
    return seen(stage.boot('same', 'small', hints={'same_host': [stage.ids['aaf2']]}))


@scenario(43, 'boot-on-a-disabled-host')
def disabled_host(stage):
    service = stage.service('compute3')
    node = [p for name, p in stage.cloud.providers().items() if name == 'compute3'][0]['uuid']

    def traits():
        return stage.cloud.placement('GET', '/resource_providers/%s/traits' % node).json()['traits']
    stage.cloud.nova('PUT', '/os-services/%s' % service, {'status': 'disabled', 'disabled_reason': 'test'})
    until('the trait of a disabled host', 60, lambda: 'COMPUTE_STATUS_DISABLED' in traits())
    found = [seen(stage.boot('avoids', 'small')), seen(stage.boot('insists', 'small', availability_zone='nova:compute3'))]
    stage.cloud.nova('PUT', '/os-services/%s' % service, {'status': 'enabled'})
    until('the trait of a disabled host to go', 60, lambda: 'COMPUTE_STATUS_DISABLED' not in traits())
    return found


@scenario(44, 'boot-image-of-another-hypervisor')
def image_property(stage):
    return seen(stage.boot('xen', 'small', image=stage.image('xen-only', img_hv_type='xen')))


@scenario(45, 'rebuild-with-image-of-another-hypervisor')
def rebuild_refused(stage):
    server = stage.ids['same']
    stage.cloud.action(server, {'rebuild': {'imageRef': stage.cloud.image('xen-only')}})
    return seen(stage.cloud.settled(server))


@scenario(46, 'boot-required-trait-that-nobody-has')
def required_trait(stage):
    stage.cloud.flavor('small.trait', 1, 2000, 20, {'trait:HW_CPU_X86_SGX': 'required'})
    return seen(stage.boot('trait', 'small.trait'))


@scenario(47, 'boot-granular-group')
def granular(stage):
    stage.cloud.flavor('small.granular', 1, 2000, 20, {'resources1:VCPU': '1', 'group_policy': 'none'})
    return seen(stage.boot('granular', 'small.granular'))


@scenario(48, 'migrate-to-a-named-host')
def migrate_to_host(stage):
    server = stage.ids['aaf0']
    target = 'compute1' if stage.cloud.server(server)['OS-EXT-SRV-ATTR:host'] != 'compute1' else 'compute2'
    # Its group forbids the target: another member is there.
    first = stage.refused(server, {'migrate': {'host': target}})
    refused = seen(stage.cloud.settled(server, ('VERIFY_RESIZE', 'ACTIVE', 'ERROR')))
    other = stage.ids['same']
    target = 'compute1' if stage.cloud.server(other)['OS-EXT-SRV-ATTR:host'] != 'compute1' else 'compute2'
    second = stage.refused(other, {'migrate': {'host': target}})
    moved = seen(stage.cloud.settled(other, ('VERIFY_RESIZE', 'ACTIVE', 'ERROR')))
    if moved['status'] == 'VERIFY_RESIZE':
        stage.cloud.action(other, {'confirmResize': None})
        moved = seen(stage.cloud.settled(other))
    return [first, refused, second, moved]


@scenario(49, 'live-migrate-to-a-named-host')
def live_migrate_to_host(stage):
    """A live migration with a named target is checked by the scheduler as well."""
    server = stage.ids['saa0']
    host = stage.cloud.server(server)['OS-EXT-SRV-ATTR:host']
    target = [h for h in ('compute1', 'compute2', 'compute3') if h != host][0]
    answer = stage.refused(server, {'os-migrateLive': {'host': target, 'block_migration': 'auto'}})
    return [host, target, answer, seen(stage.cloud.settled(server))]



@scenario(50, 'evacuate-to-a-named-host')
def evacuate_to_host(stage):
    """`--host` without `force`: the scheduler checks the target."""
    server = stage.boot('evacuate-me', 'small')['id']
    return evacuated(stage, server, lambda host: {'host': [h for h in ('compute1', 'compute2', 'compute3') if h != host][0]})


@scenario(51, 'boot-soft-affinity')
def soft_affinity(stage):
    """The fourth policy of server groups; the others are 03, 20, 40 and 41."""
    group, members = stage.group('soft-aff', 'soft-affinity'), []
    for n in range(3):
        members.append(seen(stage.boot('saf%d' % n, 'small', hints={'group': group})))
        # A member counts as much as a build under way, whose end the computes report a moment late.
        until('the computes to report that nothing is built', 60, lambda: not rows(BUILDING))
    return members


@scenario(52, 'boot-max-server-per-host')
def max_server_per_host(stage):
    """Two members a host and no more: the seventh gets none of three hosts."""
    body = {'name': 'two-a-host', 'policy': 'anti-affinity', 'rules': {'max_server_per_host': 2}}
    group = stage.cloud.nova('POST', '/os-server-groups', {'server_group': body}).json()['server_group']['id']
    return [seen(stage.boot('two%d' % n, 'small', hints={'group': group})) for n in range(7)]


@scenario(53, 'rescue-unrescue')
def rescue(stage):
    """A rescued server stays where it is, and its host is known to have it."""
    server = stage.ids['evacuate-me']
    stage.cloud.action(server, {'rescue': {}})
    first = seen(stage.cloud.settled(server, ('RESCUE', 'ERROR')))
    beside = seen(stage.boot('beside-a-rescued', 'small', hints={'same_host': [server]}))
    stage.cloud.action(server, {'unrescue': None})
    return [first, beside, seen(stage.cloud.settled(server))]


@scenario(54, 'boot-trait-of-multiattach')
def multiattach(stage):
    """What the scheduler sees of a volume that several servers attach: the trait of its hosts."""
    stage.cloud.flavor('small.multiattach', 1, 2000, 20, {'trait:COMPUTE_VOLUME_MULTI_ATTACH': 'required'})
    return seen(stage.boot('multiattach', 'small.multiattach'))
