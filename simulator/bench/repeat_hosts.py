#!/usr/bin/env python3
"""Makes a larger input for bench_nova.py out of a smaller one: the same hosts again and again, with
names of their own.

  repeat_hosts.py hosts_10000.jsonl.gz 50000 hosts_50000.jsonl

Host and node names, UUIDs of nodes and instances get the number of the repetition; aggregates have
the hosts of all repetitions.
"""
import gzip
import json
import sys


def renamed(name, turn):
    return name if turn == 0 else '%s-%d' % (name, turn)


def with_number(uuid, turn):
    # The third group of a version 4 UUID is "4000" in these inputs: three digits of it are free.
    return uuid if turn == 0 else uuid.replace('-4000-', '-4%03x-' % turn, 1)


def main():
    source, wanted, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    opened = gzip.open(source, 'rt') if source.endswith('.gz') else open(source)
    with opened as lines:
        head = json.loads(next(lines))
        hosts = [json.loads(line) for line in lines]
    if not hosts or wanted < 1:
        sys.exit('repeat_hosts.py: %s has %d hosts; ask for 1 or more' % (source, len(hosts)))
    every = []
    for number in range(wanted):
        turn, at = divmod(number, len(hosts))
        host = json.loads(json.dumps(hosts[at])) if turn else hosts[at]
        host['host'] = renamed(host['host'], turn)
        host['nodename'] = renamed(host['nodename'], turn)
        host['uuid'] = with_number(host['uuid'], turn)
        for instance in host.get('instances', []):
            instance['uuid'] = with_number(instance['uuid'], turn)
        every.append(host)
    there = {host['host'] for host in every}
    turns = (wanted - 1) // len(hosts) + 1
    for aggregate in head['aggregates']:
        names = [renamed(name, turn) for turn in range(turns) for name in aggregate['hosts']]
        aggregate['hosts'] = [name for name in names if name in there]
    head['n'] = wanted
    with open(target, 'w') as out:
        for line in [head] + every:
            out.write(json.dumps(line, separators=(',', ':')) + '\n')


if __name__ == '__main__':
    main()
