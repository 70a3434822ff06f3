"""What each test of a run of Tempest came to, from stestr's stream. Runs in Tempest's own virtual
environment.

Usage: tempest_results.py TESTS < STREAM > RESULTS
    TESTS: a file with one test a line: each of them gets a result
    RESULTS: JSON, {test: {result, seconds, reason}}; result is passed, failed, skipped or missing
"""
import json
import re
import sys

import subunit
import testtools

import tempest_table

WORDS = {'success': 'passed', 'fail': 'failed', 'skip': 'skipped', 'uxsuccess': 'failed',
         'xfail': 'passed'}


def plain(name):
    """A test's name without its tags."""
    return re.sub(r'\[.*', '', name)


def details(test):
    """What the test said: its reason when it was skipped, else the end of its traceback."""
    kept = {name: text.as_text() for name, text in test['details'].items()
            if text.content_type.type == 'text'}
    if 'reason' in kept:
        return kept['reason'].strip()
    return '\n'.join(text[-6000:] for name, text in sorted(kept.items())
                     if name.startswith('traceback'))


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        wanted = [plain(line.strip()) for line in file if line.strip()]
    seen, classes = {}, {}

    def note(test):
        if test['status'] == 'exists':
            return
        begun, ended = test['timestamps']
        found = {'result': WORDS.get(test['status'], 'failed'),
                 'reason': '' if test['status'] == 'success' else details(test),
                 'seconds': round((ended - begun).total_seconds(), 2) if begun and ended else 0}
        whole = re.fullmatch(r'(setUpClass|tearDownClass) \((.*)\)', test['id'])
        if whole:
            # A tear-down that fails is a failure of the class, whatever its tests came to.
            classes[(whole.group(2), whole.group(1))] = found
        else:
            seen[plain(test['id'])] = found
    result = testtools.StreamToDict(note)
    result.startTestRun()
    subunit.ByteStreamToStreamResult(sys.stdin.buffer, non_subunit_name='stdout').run(result)
    result.stopTestRun()
    results = tempest_table.whole(wanted, seen, classes)
    json.dump(results, sys.stdout, indent=1, sort_keys=True)


if __name__ == '__main__':
    main()
