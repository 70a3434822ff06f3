"""The judgements of bad days and benchmark find what they exist for. Run by ./devstack/test; needs
nothing but Python."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import judge  # noqa: E402

CAME = 'INFO request{id=req-1}: making room\n'
ANSWERED = 'INFO request{id=req-1}: waiting -> done\n'
DELETED = 'INFO request{id=req-1}: what room is made for was deleted\n'
REFUSED = 'INFO request{id=req-1}: outcome="no_valid_host" class="NoValidHost" No valid host was found\n'
TIMEOUT = '2026-11-24 10:00:00.000 1 ERROR nova.conductor.manager [req-1] Failed to schedule: MessagingTimeout: Timed out waiting\n'
DATABASE = '2026-11-24 10:00:00.000 1 ERROR nova.api.openstack [req-1] DBConnectionError: Lost connection\n'


class AtRest(unittest.TestCase):
    def test_a_server_in_error_is_under_way_until_its_fault_is_written(self):
        failed = {'status': 'ERROR', 'OS-EXT-STS:task_state': None}
        self.assertFalse(judge.at_rest(failed))
        self.assertTrue(judge.at_rest(dict(failed, fault={'message': 'No valid host was found. '})))

    def test_a_server_with_a_task_is_under_way(self):
        server = {'status': 'ACTIVE', 'OS-EXT-STS:task_state': 'deleting'}
        self.assertFalse(judge.at_rest(server))
        self.assertTrue(judge.at_rest(dict(server, **{'OS-EXT-STS:task_state': None})))
        self.assertFalse(judge.at_rest({'status': 'BUILD', 'OS-EXT-STS:task_state': None}))


class Shadow(unittest.TestCase):
    GOOD = {'requests': 45, 'served_by_preemption': 2, 'idle': [{'most': 3}], 'verdicts': {
        'same': 41, 'equal_weight': 0, 'different': 0, 'ebbtide_only': 2, 'nova_only': 0, 'not_compared': 2}}

    def test_the_same_answers_and_those_of_preemption_are_no_fault(self):
        self.assertEqual(judge.shadow_faults(self.GOOD), [])

    def test_each_other_answer_is_a_fault(self):
        for verdict, count in (('equal_weight', 7), ('different', 7), ('nova_only', 1), ('ebbtide_only', 3)):
            counts = dict(self.GOOD['verdicts'], **{verdict: count})
            self.assertEqual(len(judge.shadow_faults(dict(self.GOOD, verdicts=counts))), 1, verdict)

    def test_a_few_other_hosts_are_races(self):
        counts = dict(self.GOOD['verdicts'], equal_weight=2, different=4)
        self.assertEqual(judge.shadow_faults(dict(self.GOOD, verdicts=counts)), [])

    def test_a_shadow_that_saw_little_is_a_fault(self):
        for change in ({'requests': 3}, {'idle': []}, {'verdicts': dict(self.GOOD['verdicts'], same=9)}):
            self.assertEqual(len(judge.shadow_faults(dict(self.GOOD, **change))), 1, change)


class WhoseLoss(unittest.TestCase):
    def test_an_answered_request_is_novas_loss(self):
        self.assertIn('answered', judge.whose_loss([CAME, ANSWERED], []))

    def test_a_request_that_came_and_was_not_answered_is_ours(self):
        with self.assertRaisesRegex(judge.Fault, 'never answered'):
            judge.whose_loss([CAME], [TIMEOUT], broker_died=True)

    def test_a_request_that_no_log_knows_is_excused_by_a_dead_broker_only(self):
        self.assertEqual(judge.whose_loss([], [], broker_died=True), 'lost with the broker')
        with self.assertRaisesRegex(judge.Fault, 'no trace'):
            judge.whose_loss([], [])

    def test_a_conductor_that_waited_in_vain_beside_a_living_broker_is_our_fault(self):
        with self.assertRaisesRegex(judge.Fault, 'waited in vain'):
            judge.whose_loss([], [TIMEOUT])
        with self.assertRaisesRegex(judge.Fault, 'waited in vain'):
            judge.whose_loss([], [], fault='MessagingTimeout: no reply')
        self.assertEqual(judge.whose_loss([], [TIMEOUT], broker_died=True), 'lost with the broker')

    def test_what_failed_in_nova_before_it_came_to_us_is_novas_loss(self):
        self.assertIn('failed in Nova', judge.whose_loss([], [DATABASE]))

    def test_a_line_without_trouble_proves_nothing(self):
        with self.assertRaises(judge.Fault):
            judge.whose_loss([], ['2026-11-24 10:00:00.000 1 INFO nova.api [req-1] POST /servers 202\n'])

    def test_patience_is_owed(self):
        with self.assertRaisesRegex(judge.Fault, 'patience'):
            judge.whose_loss([CAME, REFUSED], [], fault='No valid host was found.')
        self.assertEqual(judge.whose_loss([CAME, REFUSED], [], may_refuse=True), 'refused')

    def test_what_nova_gave_up_while_the_broker_was_away_may_be_refused_then(self):
        ours = [CAME, DELETED, REFUSED]
        self.assertIn('given up by Nova', judge.whose_loss(ours, [TIMEOUT], broker_died=True))
        for ours, novas, died in ((ours, [], True), (ours, [TIMEOUT], False), ([CAME, REFUSED], [TIMEOUT], True)):
            with self.assertRaisesRegex(judge.Fault, 'patience'):
                judge.whose_loss(ours, novas, broker_died=died)

    def test_a_refusal_that_our_log_does_not_know_is_no_excuse(self):
        with self.assertRaisesRegex(judge.Fault, 'does not know'):
            judge.whose_loss([], [DATABASE], fault='No valid host was found.', broker_died=True)


class Verdict(unittest.TestCase):
    def test_none_of_four_is_a_fault_whatever_excused_each(self):
        with self.assertRaisesRegex(judge.Fault, '0 of 4 servers came, at least 1'):
            judge.verdict('rabbit', ['lost with the broker'] * 4, active=0, wanted=4, least=1)

    def test_a_server_that_was_not_looked_into_is_a_fault(self):
        with self.assertRaisesRegex(judge.Fault, '2 are ACTIVE and 1 were looked into'):
            judge.verdict('rabbit', ['lost with the broker'], active=2, wanted=4, least=1)

    def test_enough_is_enough(self):
        judge.verdict('rabbit', ['lost with the broker'], active=3, wanted=4, least=1)


class FullCloud(unittest.TestCase):
    GOOD = {'over_capacity': 0, 'consumers_more': 0, 'seq': {'failed': 0}, 'conc16': {'failed': 0}}

    def test_a_good_run_has_no_faults(self):
        self.assertEqual(judge.full_cloud_faults(self.GOOD), [])

    def test_each_count_that_must_be_nought_is_looked_at(self):
        for change in ({'over_capacity': 1}, {'consumers_more': 1}, {'consumers_more': -2},
                       {'seq': {'failed': 1, 'errors': ['x']}}, {'conc16': {'failed': 3, 'errors': ['x']}}):
            self.assertEqual(len(judge.full_cloud_faults(dict(self.GOOD, **change))), 1, change)


if __name__ == '__main__':
    unittest.main()
