#!/usr/bin/python3
"""The results of Tempest on an empty cloud and on a full one beside each other, as Markdown. Ends
with 1 when a test's result differs or a test has none.

Usage: tempest_table.py EMPTY.json FULL.json     (of tempest_results.py)
"""
import collections
import json
import sys

RESULTS = ('passed', 'failed', 'skipped', 'missing')


NONE = {'result': 'missing', 'reason': 'no result in the stream', 'seconds': 0}


def whole(wanted, seen, classes):
    """The result of each test that was wanted. `seen`: of tests; `classes`: of what was done for
    whole classes, {(class, setUpClass or tearDownClass): result}."""
    results = {}
    for test in wanted:
        # A class that cannot begin says nothing about its tests one by one.
        results[test] = seen.get(test) or classes.get((test.rpartition('.')[0], 'setUpClass'), NONE)
    for (name, phase), found in classes.items():
        # A class that cannot end has failed, whatever its tests came to.
        if phase == 'tearDownClass' and found['result'] == 'failed':
            results['%s.tearDownClass' % name] = found
    return results


def counts(results):
    found = collections.Counter(one['result'] for one in results.values())
    return [found.get(name, 0) for name in RESULTS]


def result(results, test):
    return results[test]['result'] if test in results else 'missing'


def differences(empty, full):
    """(test, result on the empty cloud, result on the full one), for all that are not the same."""
    tests = sorted(set(empty) | set(full))
    found = ((test, result(empty, test), result(full, test)) for test in tests)
    return [one for one in found if one[1] != one[2]]


def unfinished(empty, full):
    """Tests without a result on both clouds. Equal as they are, they say nothing."""
    both = set(empty) & set(full)
    return sorted(one for one in both if result(empty, one) == result(full, one) == 'missing')


def reasons(results):
    """Why tests were skipped, and how many for each reason."""
    skipped = (one for one in results.values() if one['result'] == 'skipped')
    return collections.Counter(one['reason'].split('\n')[0] for one in skipped).most_common()


def last_line(one):
    lines = [line for line in one.get('reason', '').split('\n') if line.strip()]
    return lines[-1][:300] if lines else ''


def table(empty, full):
    """The lines of the report."""
    yield '| cloud | tests | %s |' % ' | '.join(RESULTS)
    yield '|---|---|---|---|---|---|'
    for name, results in (('empty, nova-scheduler', empty),
                          ('full of preemptible servers, ebbtide-scheduler', full)):
        row = [name, len(results)] + counts(results)
        yield '| %s |' % ' | '.join(str(cell) for cell in row)
    yield ''
    differ = differences(empty, full)
    yield 'Tests whose result differs: %s' % (len(differ) or 'none')
    for test, before, after in differ:
        said = last_line((full if after == 'failed' else empty).get(test, {}))
        yield '- `%s`: %s on the empty cloud, %s on the full one: %s' % (test, before, after, said)
    none = unfinished(empty, full)
    if none:
        yield ''
        yield 'Without a result on both clouds: %d' % len(none)
        yield from ('- `%s`' % test for test in none)
    both = [test for test in sorted(empty)
            if result(empty, test) == result(full, test) == 'failed']
    if both:
        yield ''
        yield 'Failed on both clouds: %d' % len(both)
        yield from ('- `%s`: %s' % (test, last_line(empty[test])) for test in both)
    yield ''
    yield 'Why Tempest skipped tests:'
    yield from ('- %d: %s' % (count, reason) for reason, count in reasons(full))


def main():
    both = []
    for path in sys.argv[1:]:
        with open(path, encoding='utf-8') as file:
            both.append(json.load(file))
    empty, full = both
    print('\n'.join(table(empty, full)))
    return 1 if differences(empty, full) or unfinished(empty, full) or not empty else 0


if __name__ == '__main__':
    sys.exit(main())
