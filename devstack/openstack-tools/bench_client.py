#!/usr/bin/python3
"""The client of the benchmark: asks a scheduler as nova-conductor does, with Nova's own RPC API and
objects.

Reads one JSON command a line and answers with one JSON line each, so that Nova's modules are read
in once for the whole benchmark:
  {"do": "seq", "runs": N, "flavor": {…}}                    one after the other
  {"do": "conc", "in_flight": K, "total": N, "flavor": {…}}  K at a time
  {"do": "rounds", "uuids": […], "at_once": K, "flavor": {…}}
      hosts for these instances, always K at the same moment; the claims are kept, and the
      instances' rows say that they have arrived
  {"do": "sync", "hosts": […]}
      tells the scheduler twice that these hosts have no unknown instances
  {"do": "first", "flavor": {…}}
      one request that may wait for a scheduler to come up
  {"do": "ping", "runs": N}                                  the RPC's own cost
  {"do": "agents", "hosts": […]}
      the queues that the agents of these hosts declare when they start
  {"do": "claims", "flavor": {…}, "hosts": […]}
      Placement alone, without a scheduler: the claim on each of these providers and, with "beside",
      at the same time the look at the provider, as ours sends them for an ordinary request
  {"do": "swaps", "flavor": {…}, "victims": […]}
      the same for requests that need a victim: the swap, and beside it the question whether a host
      has room and the consumers of the victim's host
  {"do": "forget", "uuids": […]}
      deletes these claims
`flavor` is {"vcpus", "memory_mb", "root_gb", "preemptible", "wanted"}; wanted: the server is asked
for in Nova's API database, too. "keep": true keeps the claims that were made; else they are
deleted, outside of what is timed.
"""
import http.client
import json
import os
import sys
import time
from urllib.parse import urlsplit

import eventlet
eventlet.monkey_patch()
import amqp  # noqa: E402
import nova.conf  # noqa: E402
from nova import config, context, objects, rpc  # noqa: E402
from oslo_utils import uuidutils  # noqa: E402

config.parse_args(['bench', '--config-file', os.environ['STACK_HOME'] + '/etc/nova.conf', '--log-file', '/dev/null'])
objects.register_all()
rpc.init(nova.conf.CONF)
from nova.scheduler import rpcapi  # noqa: E402

from cloud import Cloud  # noqa: E402
from database import connect  # noqa: E402
from preempt import rpc_client  # noqa: E402

cloud = Cloud()
api = rpcapi.SchedulerAPI()
plain = rpc_client(rpc.TRANSPORT, 60)


def ctxt():
    return context.RequestContext(cloud.user, cloud.project, is_admin=True, auth_token=cloud.token, roles=['admin'],
                                  user_domain_id='default', project_domain_id='default')


def spec(uuid, flavor):
    extra = {'ebbtide:preemptible': 'true'} if flavor.get('preemptible') else {}
    return objects.RequestSpec(
        image=objects.ImageMeta(id=uuid, properties=objects.ImageMetaProps()),
        flavor=objects.Flavor(id=1, flavorid='1', name='bench', ephemeral_gb=0, swap=0, rxtx_factor=1.0, vcpu_weight=0, disabled=False,
                              is_public=True, extra_specs=extra, projects=[], vcpus=flavor['vcpus'], memory_mb=flavor['memory_mb'],
                              root_gb=flavor['root_gb']),
        numa_topology=None, pci_requests=objects.InstancePCIRequests(requests=[]), project_id=cloud.project, user_id=cloud.user,
        availability_zone=None, num_instances=1, ignore_hosts=None, force_hosts=None, force_nodes=None, requested_destination=None, retry=None,
        limits=objects.SchedulerLimits(), instance_group=None, scheduler_hints={}, instance_uuid=uuid,
        security_groups=objects.SecurityGroupList(objects=[]), is_bfv=False, requested_resources=[],
        request_level_params=objects.RequestLevelParams(), requested_networks=objects.NetworkRequestList(objects=[]))


def wanted(uuid):
    """The row by which a scheduler sees that a caller still waits for this server: no server is
    evicted for a request without one."""
    with connect('nova_api') as connection, connection.cursor() as cursor:
        cursor.execute("insert into build_requests (created_at, project_id, instance_uuid, instance) values (utc_timestamp(), %s, %s, '{}')",
                       (cloud.project, uuid))


def one(flavor, uuid=None):
    """Milliseconds, the instance, the host."""
    uuid = uuid or uuidutils.generate_uuid()
    if flavor.get('wanted'):
        wanted(uuid)
    question, who = spec(uuid, flavor), ctxt()
    began = time.perf_counter()
    reply = api.select_destinations(who, question, [uuid], return_objects=True, return_alternates=True)
    return (time.perf_counter() - began) * 1000, uuid, reply[0][0].service_host


def forget(uuids):
    for uuid in uuids:
        cloud.placement('DELETE', '/allocations/' + uuid, check=False)


def summary(times):
    times = sorted(times)
    return {'n': len(times), 'min': times[0], 'median': times[len(times) // 2], 'p90': times[int(len(times) * 0.9)], 'max': times[-1]} if times else {'n': 0}


def seq(command):
    times, errors, kept, hosts = [], [], [], set()
    for n in range(command['runs'] + command.get('warm_up', 2)):
        try:
            ms, uuid, host = one(command['flavor'])
        except Exception as error:
            errors.append('%s: %s' % (type(error).__name__, str(error)[:200]))
            continue
        hosts.add(host)
        kept.append(uuid)
        if not command.get('keep'):
            forget([uuid])
        if n >= command.get('warm_up', 2):
            times.append(ms)
        eventlet.sleep(0.05)
    return dict(summary(times), errors=errors[:3], failed=len(errors), hosts=len(hosts), kept=kept if command.get('keep') else [])


def conc(command):
    times, errors, kept = [], [], []

    def work(_n):
        try:
            ms, uuid, _host = one(command['flavor'])
            times.append(ms)
            kept.append(uuid)
        except Exception as error:
            errors.append('%s: %s' % (type(error).__name__, str(error)[:200]))
    pool = eventlet.GreenPool(command['in_flight'])
    began, cpu = time.perf_counter(), time.process_time()
    for n in range(command['total']):
        pool.spawn_n(work, n)
    pool.waitall()
    seconds, cpu = time.perf_counter() - began, time.process_time() - cpu
    if not command.get('keep'):
        forget(kept)
    return dict(summary(times), seconds=seconds, per_second=len(times) / seconds, failed=len(errors), errors=errors[:3], client_cpu_seconds=cpu)


def arrived(uuid, host):
    """As after a boot: a compute asks Placement again and again about consumers on it that are no
    instances of its."""
    with connect('nova_cell1') as connection, connection.cursor() as cursor:
        cursor.execute("update instances set host = %s, node = %s, vm_state = 'active', task_state = null, power_state = 1, "
                       "updated_at = utc_timestamp() where uuid = %s", (host, host, uuid))


def rounds(command):
    times, errors, hosts = [], [], {}

    def work(uuid):
        try:
            ms, _uuid, hosts[uuid] = one(command['flavor'], uuid)
            times.append(ms)
            arrived(uuid, hosts[uuid])
        except Exception as error:
            errors.append('%s: %s' % (type(error).__name__, str(error)[:200]))
    pool = eventlet.GreenPool(command['at_once'])
    for first_of in range(0, len(command['uuids']), command['at_once']):
        for uuid in command['uuids'][first_of:first_of + command['at_once']]:
            pool.spawn_n(work, uuid)
        pool.waitall()
    return dict(summary(times), failed=len(errors), errors=errors[:3], hosts=hosts)


def first(command):
    began = time.time()
    ms, uuid, host = one(command['flavor'])
    if not command.get('keep'):
        forget([uuid])
    return {'at': time.time(), 'asked': began, 'ms': ms, 'host': host}


def sync(command):
    for _ in range(2):
        for host in command['hosts']:
            api.sync_instance_info(ctxt(), host, [])
    # A call on the same topic is not behind the casts in every server, so the caller still waits
    # for the processor to come to rest.
    return {'sent': 2 * len(command['hosts'])}


def ping(command):
    times = []
    for _ in range(command['runs']):
        began = time.perf_counter()
        plain.call({}, 'ping', arg='x')
        times.append((time.perf_counter() - began) * 1000)
    return summary(times)


def agents(command):
    with amqp.Connection(host='127.0.0.1:' + os.environ['STACK_PORT_AMQP'], userid='nova', password='nova') as connection:
        channel = connection.channel()
        for host in command['hosts']:
            channel.queue_declare('ebbtide.agent.' + host, durable=True, auto_delete=False, arguments={'x-queue-type': 'classic'})
    return {'declared': len(command['hosts'])}


def exchange(method, path, version, body=None):
    """One request to Placement over a connection of its own, without the cost of a client
    library."""
    url = urlsplit(cloud.endpoints['placement'])
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    headers = {'X-Auth-Token': cloud.token, 'OpenStack-API-Version': 'placement ' + version, 'Accept': 'application/json',
               'Content-Type': 'application/json'}
    connection.request(method, url.path + path, json.dumps(body) if body else None, headers)
    response = connection.getresponse()
    text = response.read()
    connection.close()
    if response.status >= 300:
        raise RuntimeError('%s %s: %d %s' % (method, path, response.status, text[:200]))


def together(*asked):
    """Milliseconds until all are answered that are sent at once."""
    began = time.perf_counter()
    for answer in [eventlet.spawn(exchange, *question) for question in asked]:
        answer.wait()
    return (time.perf_counter() - began) * 1000


def holding(provider, flavor, generation=None):
    resources = {'VCPU': flavor['vcpus'], 'MEMORY_MB': flavor['memory_mb'], 'DISK_GB': flavor['root_gb']}
    return {'allocations': {provider: {'resources': resources}}, 'project_id': cloud.project, 'user_id': cloud.user, 'consumer_generation': generation}


def claims(command):
    times, kept = [], []
    for provider in command['hosts']:
        kept.append(uuidutils.generate_uuid())
        look = [('GET', '/resource_providers/' + provider, '1.14')] if command['beside'] else []
        times.append(together(*look, ('PUT', '/allocations/' + kept[-1], '1.36', holding(provider, command['flavor']))))
        eventlet.sleep(0.05)
    return dict(summary(times), kept=kept)


def swaps(command):
    times, flavor = [], command['flavor']
    question = '/allocation_candidates?limit=100000&resources=DISK_GB%%3A%d%%2CMEMORY_MB%%3A%d%%2CVCPU%%3A%d&root_required=%%21COMPUTE_STATUS_DISABLED' % (
        flavor['root_gb'], flavor['memory_mb'], flavor['vcpus'])
    for victim in command['victims']:
        emptied = {'allocations': {}, 'project_id': victim['project'], 'user_id': victim['owner'], 'consumer_generation': victim['generation']}
        swap = {victim['consumer']: emptied, uuidutils.generate_uuid(): holding(victim['provider'], flavor)}
        before = [('GET', question, '1.36')] if command['beside'] else []
        behind = [('GET', '/resource_providers/%s/allocations' % victim['provider'], '1.36')] if command['beside'] else []
        times.append(together(*before, ('POST', '/allocations', '1.36', swap), *behind))
        eventlet.sleep(0.05)
    return summary(times)


def main():
    done = {'seq': seq, 'conc': conc, 'rounds': rounds, 'first': first, 'sync': sync, 'ping': ping, 'agents': agents, 'claims': claims,
            'swaps': swaps, 'forget': lambda command: forget(command['uuids']) or {}}
    print(json.dumps({'ready': True}), flush=True)
    for line in iter(sys.stdin.readline, ''):
        command = json.loads(line)
        try:
            answer = done[command['do']](command)
        except Exception as error:
            answer = {'error': '%s: %s' % (type(error).__name__, str(error)[:500])}
        print(json.dumps(answer), flush=True)


if __name__ == '__main__':
    main()
