#!/usr/bin/python3
"""Compares two recordings field by field. Usage: compare.py A B   (folders; A is the original). Exit status 1 when they differ."""
import json
import os
import sys


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


def compare(left, right, limit=25, write=print):
    """The number of scenarios that differ; tells each difference."""
    a, b = load(left), load(right)
    different = 0
    for name in sorted(set(a) | set(b)):
        if name not in a or name not in b:
            different += 1
            write('%-40s only in %s' % (name, left if name in a else right))
            continue
        found = [] if 'uncompared' in a[name] else list(differences(a[name], b[name]))
        if found:
            different += 1
            write('%-40s DIFFERENT in %d places' % (name, len(found)))
            for where, x, y in found[:limit]:
                write('    %s\n        original  %s\n        ours      %s' % (where, json.dumps(x)[:1000], json.dumps(y)[:1000]))
            if len(found) > limit:
                write('    … and %d more' % (len(found) - limit))
        else:
            write('%-40s equal (%d calls, %d notifications, %d claims)' % (
                name, len(a[name].get('calls', [])), len(a[name].get('notifications', [])), len(a[name].get('claims', []))))
    write('%d of %d scenarios equal' % (len(set(a) | set(b)) - different, len(set(a) | set(b))))
    return different


if __name__ == '__main__':
    sys.exit(1 if compare(sys.argv[1], sys.argv[2]) else 0)
