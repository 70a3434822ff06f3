"""The filler's account of its servers, and the table of Tempest's results. Run by ./devstack/test;
needs nothing but Python."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import fleet  # noqa: E402
import tempest_table  # noqa: E402


def row(server, state='active', host='compute1', deleted=0):
    return {'uuid': server, 'vm_state': state, 'host': host, 'deleted': deleted}


def host(name, *free):
    return [{'name': name, 'class': kind, 'free': amount} for kind, amount in enumerate(free)]


class Slots(unittest.TestCase):
    def test_the_scarcest_class_of_each_host_counts(self):
        self.assertEqual(fleet.slots(host('a', 8, 5999, 160) + host('b', 1, 9000, 160)), 3)

    def test_an_overfull_host_takes_nothing_from_another(self):
        self.assertEqual(fleet.slots(host('a', -8, -16000, -160) + host('b', 2, 4000, 40)), 2)

    def test_other_classes_do_not_matter(self):
        free = [{'name': 'a', 'class': 99, 'free': 0}] + host('a', 2, 4000, 40)
        self.assertEqual(fleet.slots(free), 2)


class Account(unittest.TestCase):
    def setUp(self):
        self.fleet = fleet.Fleet()
        for server in ('one', 'two'):
            self.fleet.ask(server)

    def test_a_server_that_left_by_itself_was_taken(self):
        self.fleet.look([row('one'), row('two', 'building', None)])
        self.fleet.look([row('one', deleted=7), row('two', 'building', None)])
        self.assertEqual(self.fleet.counts, {
            'asked': 2, 'ran': 1, 'taken': 1, 'refused': 0, 'failed': 0})
        self.assertEqual(self.fleet.asked, {'two'})
        self.fleet.look([row('one', deleted=7), row('two', 'building', None)])
        self.assertEqual(self.fleet.counts['taken'], 1)

    def test_a_server_without_a_host_was_refused_and_not_taken(self):
        self.fleet.look([row('one', 'error', None)])
        self.fleet.look([row('one', 'error', None, deleted=3)])
        self.assertEqual((self.fleet.counts['refused'], self.fleet.counts['taken']), (1, 0))

    def test_an_error_on_a_host_is_a_failure(self):
        self.fleet.look([row('one')])
        self.fleet.look([row('one', 'error')])
        self.assertEqual((self.fleet.counts['failed'], self.fleet.counts['refused']), (1, 0))
        self.assertEqual(self.fleet.refused, {'one'})


class Whole(unittest.TestCase):
    PASSED = {'result': 'passed', 'reason': ''}
    SKIPPED = {'result': 'skipped', 'reason': 'no volumes'}
    FAILED = {'result': 'failed', 'reason': 'x'}

    def test_a_skipped_class_is_the_result_of_its_tests(self):
        found = tempest_table.whole(['m.A.x', 'm.A.y', 'm.B.x'], {'m.B.x': self.PASSED},
                                    {('m.A', 'setUpClass'): self.SKIPPED})
        self.assertEqual(found, {'m.A.x': self.SKIPPED, 'm.A.y': self.SKIPPED,
                                 'm.B.x': self.PASSED})

    def test_a_test_without_a_result_is_missing(self):
        self.assertEqual(tempest_table.whole(['m.A.x'], {}, {})['m.A.x']['result'], 'missing')

    def test_a_class_that_cannot_end_is_a_failure_of_its_own(self):
        found = tempest_table.whole(['m.A.x'], {'m.A.x': self.PASSED},
                                    {('m.A', 'tearDownClass'): self.FAILED})
        self.assertEqual(found, {'m.A.x': self.PASSED, 'm.A.tearDownClass': self.FAILED})


class Table(unittest.TestCase):
    EMPTY = {'a': {'result': 'passed', 'reason': ''},
             'b': {'result': 'failed', 'reason': 'Traceback\nBadRequest: x\n'},
             'c': {'result': 'skipped', 'reason': 'no volumes'}}

    def test_equal_results_have_no_difference(self):
        self.assertEqual(tempest_table.differences(self.EMPTY, dict(self.EMPTY)), [])
        text = '\n'.join(tempest_table.table(self.EMPTY, self.EMPTY))
        self.assertIn('differs: none', text)
        self.assertIn('- `b`: BadRequest: x', text)
        self.assertIn('- 1: no volumes', text)

    def test_each_other_result_is_a_difference(self):
        for result in ('failed', 'skipped', 'missing'):
            full = dict(self.EMPTY, a={'result': result, 'reason': 'Traceback\nTimeout: y'})
            found = tempest_table.differences(self.EMPTY, full)
            self.assertEqual(found, [('a', 'passed', result)])
            text = '\n'.join(tempest_table.table(self.EMPTY, full))
            self.assertIn('`a`: passed on the empty cloud, %s on the full one' % result, text)

    def test_a_test_without_a_result_on_both_clouds_is_named(self):
        lost = dict(self.EMPTY, a={'result': 'missing', 'reason': ''})
        self.assertEqual(tempest_table.unfinished(lost, lost), ['a'])
        self.assertEqual(tempest_table.unfinished(lost, self.EMPTY), [])
        text = '\n'.join(tempest_table.table(lost, lost))
        self.assertIn('Without a result on both clouds: 1\n- `a`', text)

    def test_a_test_of_one_run_only_is_a_difference(self):
        full = {name: one for name, one in self.EMPTY.items() if name != 'c'}
        for before, after, change in ((self.EMPTY, full, ('c', 'skipped', 'missing')),
                                      (full, self.EMPTY, ('c', 'missing', 'skipped'))):
            self.assertEqual(tempest_table.differences(before, after), [change])


if __name__ == '__main__':
    unittest.main()
