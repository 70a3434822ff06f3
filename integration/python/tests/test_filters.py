"""Filters as a service: of one's own, and Nova's unmodified."""
import json
import unittest

import grpc

from ebbtide_plugin import Filter, nova, start, wire

EXTRA_SPECS = 'nova.scheduler.filters.aggregate_instance_extra_specs.AggregateInstanceExtraSpecsFilter'
TENANTS = 'nova.scheduler.filters.aggregate_multitenancy_isolation.AggregateMultiTenancyIsolation'


class Quiet(Filter):
    needs = ('number:noise',)

    def filter(self, request, hosts):
        if request.properties.get('flavor') == 'broken':
            return [None]
        return [None if noise <= 10 else 'noise %g' % noise for noise in hosts['number:noise']]


def numbers(*values):
    column = wire.message('Column')()
    column.numbers.numbers.extend(float(value) for value in values)
    return column


def texts(*values):
    column = wire.message('Column')()
    column.texts.texts.extend(values)
    column.texts.codes.extend(range(len(values)))
    return column


def hosts_of_nova(*metadata):
    """What NovaFilter reads of hosts, each in one aggregate with this metadata."""
    said = [json.dumps([{'name': 'agg%d' % at, 'metadata': one}]) for at, one in enumerate(metadata)]
    known = {'host_name': texts(*('host%d' % at for at in range(len(metadata)))), 'aggregates': texts(*said)}
    return [known.get(need) or numbers(*[4] * len(metadata)) for need in nova.NovaFilter.needs]


class TheFilters(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        nova.prepare()
        served = {'quiet': Quiet, **nova.filters([EXTRA_SPECS, TENANTS])}
        cls.running = start(served, '127.0.0.1:0')
        cls.channel = grpc.insecure_channel(cls.running.address[len('http://'):])

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        cls.running.stop()

    def ask(self, method, question, answer):
        call = self.channel.unary_unary(
            '/%s/%s' % (wire.SERVICE, method), request_serializer=type(question).SerializeToString, response_deserializer=answer.FromString)
        return call(question, timeout=20)

    def reasons(self, question):
        """The reason of each host, None for those that pass."""
        said = self.ask('Filter', question, wire.Verdicts)
        return [said.reasons[code - 1] if code else None for code in said.codes]

    def test_a_filter_says_what_it_is_and_which_hosts_pass(self):
        said = self.ask('Describe', wire.DescribeRequest(plugin='quiet'), wire.Description)
        self.assertEqual(said.WhichOneof('kind'), 'filter')
        self.assertEqual(list(said.filter.needs), ['number:noise'])
        question = wire.FilterRequest(plugin='quiet', len=4, columns=[numbers(3, 40, 10, 40)])
        self.assertEqual(self.reasons(question), [None, 'noise 40', None, 'noise 40'])
        self.assertEqual(len(self.ask('Filter', question, wire.Verdicts).reasons), 1)

    def test_an_answer_for_half_of_the_hosts_reaches_the_scheduler_as_it_is(self):
        question = wire.FilterRequest(plugin='quiet', len=2, columns=[numbers(3, 40)])
        question.request.properties['flavor'] = 'broken'
        self.assertEqual(len(self.ask('Filter', question, wire.Verdicts).codes), 1)

    def test_a_filter_cannot_weigh(self):
        with self.assertRaises(grpc.RpcError) as refused:
            self.ask('Weigh', wire.WeighRequest(plugin='quiet'), wire.Numbers)
        self.assertEqual(refused.exception.details(), 'it is no weigher')

    def test_novas_filters_answer_with_their_name(self):
        question = wire.FilterRequest(plugin=EXTRA_SPECS, len=3, columns=hosts_of_nova({'ssd': 'true'}, {'ssd': 'false'}, {}))
        question.request.properties['extra_spec:aggregate_instance_extra_specs:ssd'] = 'true'
        refused = 'AggregateInstanceExtraSpecsFilter does not let it pass'
        self.assertEqual(self.reasons(question), [None, refused, refused])
        question = wire.FilterRequest(plugin=TENANTS, len=2, columns=hosts_of_nova({'filter_tenant_id': 'p1'}, {'filter_tenant_id': 'p2'}))
        question.request.project_id = 'p2'
        self.assertEqual(self.reasons(question), ['AggregateMultiTenancyIsolation does not let it pass', None])


if __name__ == '__main__':
    unittest.main()
