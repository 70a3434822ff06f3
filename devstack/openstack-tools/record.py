#!/usr/bin/python3
"""Runs the scenarios against the running stack and writes one JSON file each, with every
conversation of the scheduler in it.

Usage: record.py OUT_FOLDER TAP.jsonl [NAME…]
With names: only the scenarios whose name holds one of them, and what comes before is missing.
"""
import json
import os
import sys
import time
import traceback

import oslo_messaging
from oslo_config import cfg

from cloud import Cloud, Refused, until
from database import rows
from firehose import Firehose, conversations
from normalise import Names, normal
from scenarios import SCENARIOS
from databases import dump

# What a compute says is used on it, and what the servers there need.
UNSETTLED = """
select c.host, c.vcpus_used, c.memory_mb_used, c.local_gb_used, s.vcpus, s.ram, s.disk from nova_cell1.compute_nodes c left join (
    select host, sum(vcpus) vcpus, sum(memory_mb) ram, sum(root_gb + ephemeral_gb) disk from nova_cell1.instances
    where deleted = 0 and host is not null group by host) s on s.host = c.host
where c.deleted = 0 and c.host like 'compute%%' and (c.vcpus_used != coalesce(s.vcpus, 0) or c.memory_mb_used != coalesce(s.ram, 0)
    or c.local_gb_used != coalesce(s.disk, 0))
"""
BUSY = "select display_name, task_state from nova_cell1.instances where deleted = 0 and task_state is not null"


class Stage:
    """What a scenario works with."""

    def __init__(self):
        self.cloud = Cloud()
        self.ids = {}
        self.firehose = Firehose()
        self.names = Names()
        self.transport = oslo_messaging.get_rpc_transport(
            cfg.CONF, 'rabbit://nova:nova@127.0.0.1:%s/' % os.environ['STACK_PORT_AMQP'])

    def boot(self, name, flavor, **options):
        server = self.cloud.boot(name, flavor, **options)
        self.ids[name] = server['id']
        self.settle()
        return server

    def boot_many(self, name, flavor, count):
        """`count` servers in one request, by name."""
        self.cloud.create(name, flavor, min_count=count, max_count=count)
        found = [s['id'] for s in self.cloud.nova('GET', '/servers?name=^%s-' % name).json()['servers']]
        servers = sorted((self.cloud.settled(i) for i in found), key=lambda s: s['name'])
        self.ids.update({s['name']: s['id'] for s in servers})
        return servers

    def group(self, name, policy):
        return self.cloud.nova('POST', '/os-server-groups', {'server_group': {'name': name, 'policy': policy}}).json()['server_group']['id']

    def aggregate(self, name, zone=None):
        body = {'name': name, 'availability_zone': zone} if zone else {'name': name}
        return self.cloud.nova('POST', '/os-aggregates', {'aggregate': body}).json()['aggregate']['id']

    def service(self, host):
        return [s for s in self.cloud.nova('GET', '/os-services?binary=nova-compute').json()['services'] if s['host'] == host][0]['id']

    def image(self, name, **properties):
        image = self.cloud.image(name)
        patch = [{'op': 'add', 'path': '/' + k, 'value': v} for k, v in properties.items()]
        self.cloud.session.patch(self.cloud.endpoints['image'] + '/v2/images/' + image, data=json.dumps(patch), headers={
            'Content-Type': 'application/openstack-images-v2.1-json-patch'}).raise_for_status()
        return name

    def refused(self, server, body):
        """The status of an action that may be refused at once."""
        try:
            return self.cloud.action(server, body).status_code
        except Refused as refused:
            return refused.status

    def rpc(self, method, version, namespace=None, **arguments):
        """A call to the scheduler straight over RabbitMQ; the name of what it raises."""
        target = oslo_messaging.Target(exchange='nova', topic='scheduler', version=version, namespace=namespace)
        # Debian's 14.0 has only the class.
        make = getattr(oslo_messaging, 'get_rpc_client', oslo_messaging.RPCClient)
        client = make(self.transport, target, timeout=20)
        try:
            return client.call({}, method, **arguments)
        except Exception as error:  # the class that comes back is what is looked at
            return getattr(error, 'exc_type', type(error).__name__)
        finally:
            # The firehose may come after the answer; what it tells belongs to this scenario.
            until('the firehose to tell of %s' % method, 30, lambda: self.firehose.asked(method), pause=0.05)

    def is_up(self, host):
        services = self.cloud.nova('GET', '/os-services?binary=nova-compute&host=' + host).json()['services']
        return services[0]['state'] == 'up'

    def settle(self):
        """Until nothing is under way: every question answered, no task in Nova, the computes' books
        right, a moment without messages.

        The next decision then starts from the same facts in every run.
        """
        until('the scheduler to answer every call', 90, lambda: not self.firehose.open_calls())
        until('every task in Nova to end', 60, lambda: not rows(BUSY))
        try:
            until('the computes to book what runs on them', 90, lambda: not rows(UNSETTLED))
        except TimeoutError as error:
            raise TimeoutError('%s: %s' % (error, rows(UNSETTLED))) from None
        until('a moment without messages', 60, lambda: self.firehose.quiet_for() > 0.3, pause=0.05)


def claims(path, begin):
    """What the writes to Placement have left: for each consumer the last one that was taken, in
    order of the first; nothing for a consumer that was claimed for and given up again. How often
    that was tried on the way is no part of the answer, nor are refused writes."""
    last = {}
    if os.path.exists(path):
        with open(path, encoding='utf-8') as file:
            exchanges = [json.loads(line) for line in file]
        for exchange in sorted(exchanges, key=lambda e: e['at']):
            if exchange['at'] >= begin and exchange['method'] != 'GET' and (exchange['status'] or 500) < 300:
                last[exchange['path']] = {k: exchange[k] for k in ('method', 'path', 'body', 'status')}
    return [write for write in last.values() if write['method'] != 'DELETE']


def write(folder, name, value):
    with open(os.path.join(folder, name + '.json'), 'w', encoding='utf-8') as file:
        json.dump(value, file, indent=1, sort_keys=True)


def main():
    folder, tap, only = sys.argv[1], sys.argv[2], sys.argv[3:]
    os.makedirs(folder, exist_ok=True)
    stage = Stage()
    stage.settle()
    began, failed = time.monotonic(), 0
    for name, function in SCENARIOS:
        if only and not any(part in name for part in only):
            continue
        stage.firehose.take()
        wall, start = time.time(), time.monotonic()
        record = {'error': None, 'outcome': None}
        try:
            record['outcome'] = function(stage)
            stage.settle()
        # The others go on; a scenario that fails on one side only is a difference.
        except Exception as error:
            failed += 1
            traceback.print_exc()
            record['error'] = '%s: %s' % (type(error).__name__, error)
        stage.names.refresh()
        calls, notifications, _told = conversations(stage.firehose.take())
        record.update(calls=calls, notifications=notifications, claims=claims(tap, wall))
        record = normal(record, stage.names)
        # What the computes told the scheduler follows from its decisions; when it comes is chance,
        # so it is not compared.
        print('%-44s %5.1f s  %d calls, %d notifications, %d claims%s' % (
            name, time.monotonic() - start, len(calls), len(notifications), len(record['claims']), '  FAILED' if record['error'] else ''), flush=True)
        write(folder, name, record)
        if name.startswith(('15-', '38-')) and not only:
            # Before everything is deleted: the databases as they are with servers in them.
            write(folder, 'databases-after-' + name, dump(stage.names))
    if not only:
        stage.cloud.delete(*[s['id'] for s in stage.cloud.servers()] or ['none'])
        stage.settle()
        stage.names.refresh()
        write(folder, 'databases-at-the-end', dump(stage.names))
    print('%d scenarios recorded in %.0f s, %d failed' % (len(SCENARIOS), time.monotonic() - began, failed))
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
