#!/usr/bin/env python3
"""Nova as the oracle for versioned objects.

    cd integration/nova-objects/tests
    /opt/nova/bin/python nova_objects.py write                      # vectors/requests.jsonl.gz
    /opt/nova/bin/python nova_objects.py read < selections.jsonl    # what Ebbtide wrote

`write` takes the requests of integration/nova/corpus, builds Nova's own objects from them as the
oracle does, and keeps of each what goes over the wire, and the two notifications that Nova makes of
it. One line each: case (with the request only), wire, legacy, versioned, and the query of Placement
without what Nova's filters of requests add. Requests that Nova itself refuses are left out. Some
get what the corpus has not: places of request groups, parameters of the whole request, networks,
retries, a cell, security groups.

`read` takes one reply of select_destinations a line, lets Nova's serializer read it, looks at every
field as the conductor does, and writes it again; it fails at the first that Nova does not take, or
that Nova writes differently.
"""
import gzip
import json
import os
import random
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NOVA = os.path.join(HERE, '..', '..', 'nova')
sys.path.insert(0, os.path.join(NOVA, 'oracle'))
import nova_oracle  # noqa: E402
from nova import context as nova_context  # noqa: E402
from nova import objects  # noqa: E402
from nova import rpc  # noqa: E402
from nova.notifications.objects import request_spec as payloads  # noqa: E402
from nova.objects import base  # noqa: E402
from nova.scheduler import utils  # noqa: E402
from oslo_serialization import jsonutils  # noqa: E402

COUNT = 700
UUID = '%08x-0000-4000-8000-%012x'


def embellish(spec, rng):
    """What the corpus has not. Returns what was added, as plain data."""
    added = {}
    if spec.requested_resources and rng.random() < 0.5:
        group = rng.choice(spec.requested_resources)
        group.aggregates = [[UUID % (1, 1)], [UUID % (2, 2), UUID % (3, 3)]]
        group.forbidden_aggregates = {UUID % (4, 4)}
        group.in_tree = UUID % (5, 5)
    if rng.random() < 0.2:
        level = objects.RequestLevelParams(root_required={'COMPUTE_A'}, root_forbidden={'COMPUTE_B', 'COMPUTE_C'},
                                           same_subtree=[['_a', '_b'], ['_c']])
        spec.request_level_params = level
        added['level'] = {'root_required': ['COMPUTE_A'], 'root_forbidden': ['COMPUTE_B', 'COMPUTE_C'],
                          'same_subtree': [['_a', '_b'], ['_c']]}
    if rng.random() < 0.2:
        spec.requested_networks = objects.NetworkRequestList(objects=[
            objects.NetworkRequest(network_id=UUID % (6, 6), port_id=UUID % (7, 7), tag='t'),
            objects.NetworkRequest(network_id='auto')])
        added['networks'] = [[UUID % (6, 6), UUID % (7, 7), 't'], ['auto', None, None]]
    if rng.random() < 0.2:
        spec.retry = objects.SchedulerRetries(num_attempts=2, hosts=objects.ComputeNodeList(objects=[
            objects.ComputeNode(host='h1', hypervisor_hostname='n1')]))
        added['retry'] = [2, [['h1', 'n1']]]
    if rng.random() < 0.3:
        spec.security_groups = objects.SecurityGroupList(objects=[
            objects.SecurityGroup(name='default'), objects.SecurityGroup(uuid=UUID % (8, 8))])
    if rng.random() < 0.3:
        spec.id = rng.randrange(1 << 31)
        added['id'] = spec.id
    return added


def without_context(value):
    if isinstance(value, dict):
        return {k: 'CONTEXT' if k == '_context' else sorted(v) if k == '_changed_fields' else without_context(v)
                for k, v in value.items()}
    return [without_context(v) for v in value] if isinstance(value, list) else value


class Notifier:
    def is_enabled(self):
        return True


def write():
    nova_oracle.silence_logging()
    # Payloads are only filled in when a notifier would send them.
    rpc.NOTIFIER = Notifier()
    nova_oracle.CONF.set_override('notification_format', 'both', group='notifications')
    rng = random.Random('ebbtide')
    context = nova_context.RequestContext('u', 'p')
    seen, cases = set(), []
    for name in sorted(os.listdir(os.path.join(NOVA, 'corpus'))):
        with gzip.open(os.path.join(NOVA, 'corpus', name), 'rt') as lines:
            for line in lines:
                line = json.loads(line)
                case = line.get('case', line)
                key = json.dumps(case.get('request'), sort_keys=True)
                if key not in seen:
                    seen.add(key)
                    cases.append(case)
    rng.shuffle(cases)
    kept = 0
    with gzip.GzipFile(os.path.join(HERE, 'vectors', 'requests.jsonl.gz'), 'wb', mtime=0) as out:
        for case in cases:
            if kept == COUNT:
                break
            cells = {}
            for n, cell in enumerate(case.get('cells') or [UUID % (9, 9)]):
                uuid = cell['uuid'] if isinstance(cell, dict) else cell
                cells[uuid] = objects.CellMapping(
                    id=n + 1, uuid=uuid, name=None if n else 'cell', transport_url='rabbit://secret@mq/',
                    database_connection='mysql+pymysql://nova:secret@db/nova', disabled=n > 0)
            try:
                spec = nova_oracle.make_spec(context, case['request'], cells)
                added = embellish(spec, rng)
                wire = spec.obj_to_primitive()
                spec = base.NovaObjectSerializer().deserialize_entity(context, json.loads(json.dumps(wire)))
                legacy = jsonutils.to_primitive(spec.to_legacy_request_spec_dict(), convert_instances=True)
                query = utils.ResourceRequest.from_request_spec(spec).to_querystring()
                versioned = payloads.RequestSpecPayload(spec)
                versioned.obj_reset_changes(recursive=True)
                versioned = versioned.obj_to_primitive()
            except Exception as error:
                print(case.get('id'), type(error).__name__, str(error)[:100], file=sys.stderr)
                continue
            small = {k: case[k] for k in ('id', 'shape', 'now', 'cells') if k in case}
            small.update(request=case['request'], hosts=[])
            line = {'case': small, 'added': added, 'wire': wire, 'legacy': without_context(legacy), 'versioned': versioned,
                    'query': query}
            out.write((json.dumps(line, sort_keys=False, allow_nan=False) + '\n').encode())
            kept += 1
    print(kept, 'of', len(cases), 'different requests', file=sys.stderr)


def normal(value):
    """Without the order of what are sets in Nova."""
    if isinstance(value, dict):
        return {k: sorted(v) if k in ('nova_object.changes', 'physnets') else normal(v) for k, v in value.items()}
    return [normal(v) for v in value] if isinstance(value, list) else value


def read():
    context = nova_context.RequestContext('u', 'p')
    serializer = base.NovaObjectSerializer()
    count = 0
    for line in sys.stdin:
        reply = json.loads(line)
        result = serializer.deserialize_entity(context, reply)
        for alternates in result:
            if isinstance(alternates, dict):
                assert set(alternates) == {'host', 'nodename', 'limits'}, alternates
                continue
            for selection in alternates:
                for field in selection.fields:
                    getattr(selection, field)
                limits = selection.limits.to_dict()
                selection.to_dict()
                json.loads(selection.allocation_request)
                for field in selection.limits.fields:
                    getattr(selection.limits, field)
                if 'numa_topology' in limits:
                    assert limits['numa_topology'].cpu_allocation_ratio >= 0
                count += 1
        again = json.loads(json.dumps(serializer.serialize_entity(context, result)))
        assert normal(again) == normal(reply), 'Nova writes it differently:\n%s\n%s' % (again, reply)
    print(count, 'selections read and written by Nova')


if __name__ == '__main__':
    {'write': write, 'read': read}[sys.argv[1]]()
