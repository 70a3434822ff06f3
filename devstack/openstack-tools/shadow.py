#!/usr/bin/python3
"""What a shadow beside nova-scheduler has recorded, judged: the same answers, but for what only preemption can serve.

Usage: shadow.py REPORT.json   (what `ebbtide-manage shadow report -o json` printed)
"""
import json
import sys

from judge import Fault, shadow_faults


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        report = json.load(file)
    for reason in report['reasons']:
        print('%-13s %3d  %s (%s)' % (reason['verdict'], reason['count'], reason['example_reason'], reason['example']))
    print('%d requests: %s; decisions took %s µs' % (
        report['requests'], ', '.join('%d %s' % (count, verdict) for verdict, count in report['verdicts'].items() if count),
        report['decision_micros']))
    faults = shadow_faults(report)
    if faults:
        raise Fault('; '.join(faults))


if __name__ == '__main__':
    main()
