"""The kit: plugins of one's own as a service."""
import math
import threading
import unittest

import grpc

from ebbtide_plugin import CostModule, Weigher, start, wire


class Racks(Weigher):
    needs = ('text:rack', 'preemptible_age_seconds')
    default_multiplier = -2.0
    maximum = 5.0

    def configure(self, settings):
        self.wanted = settings.pop('rack', 'a')
        super().configure(settings)

    def weigh(self, request, hosts):
        if request.properties.get('flavor') == 'broken':
            raise KeyError('rack')
        ages = map(sum, hosts['preemptible_age_seconds'])
        return [float(rack == self.wanted) + age for rack, age in zip(hosts['text:rack'], ages)]


class Age(CostModule):
    unit = 'seconds'
    needs = ('age_seconds',)
    surcharges = (0, 60)

    def cost(self, candidates):
        return [math.fmod(age, 3600) for age in candidates['age_seconds']]


class TheService(unittest.TestCase):
    def setUp(self):
        self.running = start({'racks': Racks, 'age': Age, 'nothing': object}, '127.0.0.1:0')
        self.channel = grpc.insecure_channel(self.running.address[len('http://'):])

    def tearDown(self):
        self.channel.close()
        self.running.stop()

    def ask(self, method, question, answer):
        call = self.channel.unary_unary(
            '/%s/%s' % (wire.SERVICE, method), request_serializer=type(question).SerializeToString, response_deserializer=answer.FromString)
        return call(question, timeout=20)

    def hosts(self, **more):
        question = wire.WeighRequest(plugin='racks', len=3, **more)
        racks, ages = question.columns.add(), question.columns.add()
        racks.texts.texts.extend(['b', 'a'])
        racks.texts.codes.extend([1, 0, 1])
        ages.groups.offsets.extend([0, 2, 2, 3])
        ages.groups.numbers.extend([0.25, 0.5, 2])
        return question

    def refused(self, method, question):
        with self.assertRaises(grpc.RpcError) as refused:
            self.ask(method, question, wire.Description)
        return refused.exception.code(), refused.exception.details()

    def test_a_weigher_gets_texts_groups_and_settings(self):
        self.assertEqual(list(self.ask('Weigh', self.hosts(), wire.Numbers).numbers), [1.75, 0.0, 3.0])
        other = self.hosts(settings={'rack': 'b'})
        self.assertEqual(list(self.ask('Weigh', other, wire.Numbers).numbers), [0.75, 1.0, 2.0])

    def test_a_description_is_what_the_class_says(self):
        said = self.ask('Describe', wire.DescribeRequest(plugin='racks'), wire.Description)
        self.assertEqual((said.contract, said.weigher.default_multiplier, said.weigher.max), ('1.0', -2.0, 5.0))
        self.assertEqual(list(said.weigher.needs), ['text:rack', 'preemptible_age_seconds'])
        self.assertFalse(said.weigher.HasField('min'))
        said = self.ask('Describe', wire.DescribeRequest(plugin='age'), wire.Description)
        self.assertEqual((said.cost_module.unit, list(said.cost_module.surcharges)), ('seconds', [0.0, 60.0]))

    def test_costs_are_given_for_each_candidate(self):
        question = wire.CostRequest(plugin='age', len=2)
        question.columns.add().numbers.numbers.extend([3700, 10])
        self.assertEqual(list(self.ask('Cost', question, wire.Numbers).numbers), [100.0, 10.0])

    def test_what_goes_wrong_is_said_in_words(self):
        self.assertEqual(
            self.refused('Describe', wire.DescribeRequest(plugin='racks', settings={'colour': 'red'})),
            (grpc.StatusCode.INVALID_ARGUMENT, 'there are no settings; remove colour'))
        broken = self.hosts()
        broken.request.properties['flavor'] = 'broken'
        self.assertEqual(self.refused('Weigh', broken), (grpc.StatusCode.INTERNAL, "KeyError: 'rack'"))
        self.assertEqual(
            self.refused('Describe', wire.DescribeRequest(plugin='nothing')),
            (grpc.StatusCode.FAILED_PRECONDITION, 'object is no Weigher, no CostModule and no Filter'))
        self.assertEqual(self.refused('Cost', wire.CostRequest(plugin='racks')), (grpc.StatusCode.FAILED_PRECONDITION, 'it is no cost module'))

    def test_many_may_ask_at_a_time(self):
        answers = []

        def ask():
            answers.append(list(self.ask('Weigh', self.hosts(), wire.Numbers).numbers))
        threads = [threading.Thread(target=ask) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(answers, [[1.75, 0.0, 3.0]] * 20)


if __name__ == '__main__':
    unittest.main()
