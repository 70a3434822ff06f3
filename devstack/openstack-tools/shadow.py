#!/usr/bin/python3
"""What a shadow beside nova-scheduler has recorded, judged: the same answers, but for what only
preemption can serve.

Usage: shadow.py REPORT.json DECISIONS.jsonl
The files: what `ebbtide-manage shadow report -o json` printed, and the decisions in its database.
"""
import json
import sys

from judge import Fault, shadow_faults


def show_difference(decision):
    """How a decision came about that was not nova-scheduler's."""
    compared = decision['trace'].get('comparison', {})
    if compared.get('verdict') not in ('different', 'equal_weight', 'nova_only'):
        return
    print('%s at %s: nova-scheduler chose %s: %s' % (
        decision['trace']['request_id'], decision['at'], compared['hosts'], compared['reason']))
    for instance in decision['explanation']['instances']:
        for host in instance['ranking']:
            print('   %s %s %s' % (host['host'], host['weight'], ', '.join(
                '%s %s' % (weight['weigher'], weight['raw']) for weight in host['weights'])))


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        report = json.load(file)
    for reason in report['reasons']:
        print('%-13s %3d  %s (%s)' % (reason['verdict'], reason['count'], reason['example_reason'], reason['example']))
    print('%d requests: %s; decisions took %s µs' % (
        report['requests'], ', '.join('%d %s' % (count, verdict) for verdict, count in report['verdicts'].items() if count),
        report['decision_micros']))
    with open(sys.argv[2], encoding='utf-8') as file:
        for line in file:
            show_difference(json.loads(line))
    faults = shadow_faults(report)
    if faults:
        raise Fault('; '.join(faults))


if __name__ == '__main__':
    main()
