"""Nova's own weighers through the service, against what Nova has answered
(integration/nova/corpus). The compiled-in ones are held against the same."""
import gzip
import json
import os
import unittest

import grpc

from ebbtide_plugin import nova, start, wire

HERE = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(HERE, '..', '..', 'nova', 'corpus', 'dev.jsonl.gz')
PLACE = 'nova.scheduler.weights.'
WEIGHERS = {
    'ServerGroupSoftAffinityWeigher': 'affinity', 'ServerGroupSoftAntiAffinityWeigher': 'affinity', 'BuildFailureWeigher': 'compute',
    'CPUWeigher': 'cpu', 'DiskWeigher': 'disk', 'IoOpsWeigher': 'io_ops', 'RAMWeigher': 'ram',
}


def path(name):
    return '%s%s.%s' % (PLACE, WEIGHERS[name], name)


def numbers(values):
    column = wire.message('Column')()
    column.numbers.numbers.extend(float(value) for value in values)
    return column


def texts(values):
    column = wire.message('Column')()
    column.texts.texts.extend(values)
    column.texts.codes.extend(range(len(values)))
    return column


def free_disk(host):
    """HostState._update_from_compute_node."""
    free, least = host['free_disk_gb'], host['disk_available_least']
    return 1024 * (free if least is None else min(least, free))


def members(case, host):
    group = set((case['request'].get('instance_group') or {}).get('members') or ())
    return sum(1 for instance in host['instances'] if instance['uuid'] in group)


def columns(case, hosts):
    """What Ebbtide hands over about these hosts, by name."""
    aggregates = [json.dumps([{'name': a['name'], 'metadata': a['metadata']} for a in case['aggregates'] if h['host'] in a['hosts']]) for h in hosts]
    stat = lambda key: numbers(int(h['stats'].get(key, 0)) for h in hosts)
    pick = lambda key: numbers(h[key] or 0 for h in hosts)
    return {
        'host_name': texts([h['host'] for h in hosts]), 'aggregates': texts(aggregates), 'free_ram_mb': pick('free_ram_mb'),
        'free_disk_mb': numbers(free_disk(h) for h in hosts), 'num_instances': stat('num_instances'), 'num_io_ops': stat('io_workload'),
        'group_members': numbers(members(case, h) for h in hosts), 'failed_builds': stat('failed_builds'),
        'hypervisor_version': pick('hypervisor_version'), 'total:VCPU': pick('vcpus'), 'used:VCPU': pick('vcpus_used'),
        'allocation_ratio:VCPU': pick('cpu_allocation_ratio'), 'total:MEMORY_MB': pick('memory_mb'),
        'allocation_ratio:MEMORY_MB': pick('ram_allocation_ratio'), 'total:DISK_GB': pick('local_gb'), 'used:DISK_GB': pick('local_gb_used'),
        'allocation_ratio:DISK_GB': pick('disk_allocation_ratio'),
    }


def whole(case):
    """True if nothing of what is compared is NULL in Nova's tables: Ebbtide has no such hosts."""
    needed = ('vcpus', 'vcpus_used', 'free_ram_mb', 'free_disk_gb', 'cpu_allocation_ratio')
    return all(host[key] is not None for host in case['hosts'] for key in needed)


class NovasWeighers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        nova.prepare()
        cls.running = start(nova.weighers(map(path, WEIGHERS)), '127.0.0.1:0')
        cls.channel = grpc.insecure_channel(cls.running.address[len('http://'):])

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        cls.running.stop()

    def ask(self, method, question, answer):
        call = self.channel.unary_unary(
            '/%s/%s' % (wire.SERVICE, method), request_serializer=type(question).SerializeToString, response_deserializer=answer.FromString)
        return call(question, timeout=20)

    def test_every_weigher_says_what_nova_has_answered(self):
        compared = dict.fromkeys(WEIGHERS, 0)
        with gzip.open(CORPUS, 'rt', encoding='utf-8') as file:
            for line in file:
                record = json.loads(line)
                case, answer = record['case'], record['answer']
                if len(answer.get('filtered') or ()) < 2 or not answer.get('weighers') or not whole(case):
                    continue
                hosts = [case['hosts'][at] for at in answer['filtered']]
                known = columns(case, hosts)
                group = case['request'].get('instance_group') or {}
                for name in WEIGHERS:
                    if name not in answer['weighers']:
                        continue
                    question = wire.WeighRequest(plugin=path(name), len=len(hosts), columns=[known[need] for need in nova.NovaWeigher.needs])
                    question.request.project_id = case['request']['project_id'] or ''
                    if group.get('policy'):
                        question.request.properties['group_policy'] = group['policy']
                    raw = answer['weighers'][name]['raw']
                    expected = raw if isinstance(raw, list) else [raw] * len(hosts)
                    given = list(self.ask('Weigh', question, wire.Numbers).numbers)
                    self.assertEqual(given, [float(n) for n in expected], '%s: %s' % (case['id'], name))
                    compared[name] += 1
        self.assertTrue(all(count > 500 for count in compared.values()), compared)
        print('compared: %s' % compared)

    def test_multipliers_and_scales_are_those_of_the_class(self):
        said = {name: self.ask('Describe', wire.DescribeRequest(plugin=path(name)), wire.Description) for name in WEIGHERS}
        self.assertEqual(said['RAMWeigher'].weigher.default_multiplier, 1.0)
        self.assertEqual(said['IoOpsWeigher'].weigher.default_multiplier, -1.0)
        self.assertEqual(said['BuildFailureWeigher'].weigher.default_multiplier, -1000000.0)
        self.assertEqual(said['RAMWeigher'].weigher.min, 0.0)
        self.assertFalse(said['RAMWeigher'].weigher.HasField('max'))

    def test_who_is_not_served_is_said_with_who_is(self):
        with self.assertRaises(grpc.RpcError) as refused:
            self.ask('Describe', wire.DescribeRequest(plugin='absent'), wire.Description)
        self.assertEqual(refused.exception.code(), grpc.StatusCode.NOT_FOUND)
        self.assertIn(path('RAMWeigher'), refused.exception.details())


if __name__ == '__main__':
    unittest.main()
