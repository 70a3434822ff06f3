#!/usr/bin/python3
"""Compares two recordings field by field.

Usage: compare.py [--partial] A B   (folders; A is the original)
Exit status 1 when they differ or are not complete.
  --partial   recordings of some scenarios only: what both lack is not missed
"""
import json
import os
import sys

# What record.py writes last: a recording without it was cut short.
LAST = 'databases-at-the-end'


def differences(a, b, where=''):
    """All places at which two JSON values differ, as (place, in A, in B)."""
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted(set(a) | set(b)):
            yield from differences(a.get(key, '(absent)'), b.get(key, '(absent)'), '%s.%s' % (where, key) if where else key)
    elif isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            yield where + ' (how many)', len(a), len(b)
        for n, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, '%s[%d]' % (where, n))
    elif a != b or type(a) is not type(b):
        yield where, a, b


def load(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        if name.endswith('.json'):
            with open(os.path.join(folder, name), encoding='utf-8') as file:
                found[name[:-5]] = json.load(file)
    return found


def counts(record):
    return tuple(len(record.get(kind, [])) for kind in ('calls', 'notifications', 'claims'))


def gaps(recording, folder, partial):
    """Why a recording proves nothing, or less than it should."""
    if not recording:
        yield '%s holds no recording' % folder
    elif not partial and LAST not in recording:
        yield '%s was cut short: it has no %s.json' % (folder, LAST)
    elif not partial:
        for kind in ('calls', 'claims'):
            if not any(record.get(kind) for record in recording.values()):
                yield '%s has no %s in any scenario: nothing listened to the scheduler' % (folder, kind)


def compare(left, right, limit=25, write=print, partial=False):
    """The number of scenarios that differ, and of reasons why the recordings prove too little;
    tells each."""
    a, b = load(left), load(right)
    wrong = [gap for recording, folder in ((a, left), (b, right)) for gap in gaps(recording, folder, partial)]
    for gap in wrong:
        write('INCOMPLETE %s' % gap)
    different = 0
    for name in sorted(set(a) | set(b)):
        if name not in a or name not in b:
            different += 1
            write('%-40s only in %s' % (name, left if name in a else right))
            continue
        found = list(differences(a[name], b[name]))
        if found:
            different += 1
            write('%-40s DIFFERENT in %d places' % (name, len(found)))
            for where, x, y in found[:limit]:
                write('    %s\n        original  %s\n        ours      %s' % (where, json.dumps(x)[:1000], json.dumps(y)[:1000]))
            if len(found) > limit:
                write('    … and %d more' % (len(found) - limit))
        else:
            write('%-40s equal (%d calls, %d notifications, %d claims)' % ((name,) + counts(a[name])))
    write('%d of %d scenarios equal' % (len(set(a) | set(b)) - different, len(set(a) | set(b))))
    return different + len(wrong)


if __name__ == '__main__':
    folders = [argument for argument in sys.argv[1:] if argument != '--partial']
    sys.exit(1 if compare(*folders, partial='--partial' in sys.argv) else 0)
