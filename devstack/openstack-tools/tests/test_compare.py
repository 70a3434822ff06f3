"""The comparison of recordings finds what it exists for. Run by ./devstack/test; needs nothing but
Python."""
import json
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import compare  # noqa: E402

BOOT = {'calls': [{'method': 'select_destinations'}], 'notifications': [], 'claims': [{'path': '/allocations/x'}], 'outcome': 'ACTIVE'}
COMPLETE = {'01-boot-one': BOOT, compare.LAST: {'instances': []}}


class Recordings(unittest.TestCase):
    def compare(self, left, right, **options):
        """How much is wrong, and what was said about it."""
        said = []
        with tempfile.TemporaryDirectory() as home:
            folders = []
            for name, recording in (('original', left), ('ours', right)):
                folders.append(os.path.join(home, name))
                os.mkdir(folders[-1])
                for scenario, record in recording.items():
                    with open(os.path.join(folders[-1], scenario + '.json'), 'w', encoding='utf-8') as file:
                        json.dump(record, file)
            return compare.compare(*folders, write=said.append, **options), '\n'.join(said)

    def test_equal_recordings_are_equal(self):
        wrong, said = self.compare(COMPLETE, COMPLETE)
        self.assertEqual(wrong, 0, said)
        self.assertIn('01-boot-one                              equal (1 calls, 0 notifications, 1 claims)', said)

    def test_two_empty_recordings_are_no_success(self):
        for partial in (False, True):
            wrong, said = self.compare({}, {}, partial=partial)
            self.assertEqual(wrong, 2)
            self.assertIn('holds no recording', said)

    def test_recordings_that_were_both_cut_short_are_no_success(self):
        wrong, said = self.compare({'01-boot-one': BOOT}, {'01-boot-one': BOOT})
        self.assertEqual(wrong, 2)
        self.assertIn('was cut short', said)
        self.assertEqual(self.compare({'01-boot-one': BOOT}, {'01-boot-one': BOOT}, partial=True)[0], 0)

    def test_recordings_without_a_listener_are_no_success(self):
        deaf = {'01-boot-one': dict(BOOT, calls=[], claims=[]), compare.LAST: {}}
        wrong, said = self.compare(deaf, deaf)
        self.assertEqual(wrong, 4)
        self.assertIn('has no calls', said)
        self.assertIn('has no claims', said)

    def test_a_record_cannot_ask_not_to_be_compared(self):
        left = dict(COMPLETE, **{'01-boot-one': dict(BOOT, uncompared='because')})
        wrong, said = self.compare(left, COMPLETE)
        self.assertEqual(wrong, 1)
        self.assertIn('01-boot-one                              DIFFERENT in 1 places', said)

    def test_a_scenario_of_one_side_only_is_a_difference(self):
        wrong, said = self.compare(COMPLETE, {compare.LAST: COMPLETE[compare.LAST], '02-other': BOOT})
        self.assertEqual(wrong, 2)
        self.assertIn('only in', said)

    def test_values_types_and_lengths_differ(self):
        for changed in ({'outcome': 'ERROR'}, {'outcome': None}, {'claims': BOOT['claims'] * 2}, {'calls': [{'method': 1}]}):
            ours = dict(COMPLETE, **{'01-boot-one': dict(BOOT, **changed)})
            self.assertGreaterEqual(self.compare(COMPLETE, ours)[0], 1, changed)


if __name__ == '__main__':
    unittest.main()
