#!/usr/bin/python3
"""After Tempest on a full cloud: preemptions happened, and the cloud is in order.

Usage: tempest_after.py REPORT     (of filler.py, which has ended)
"""
import json
import sys

import invariants
from cloud import until
from database import one
from judge import must

OPEN = 'select count(*) from ebbtide.nova_preemptions where finished_at is null'
# Of the looks while Tempest ran, at least this share found no room for a further server.
MOSTLY_FULL = 0.5

SAID = """\
The tenant asked for %(asked)d preemptible servers: %(ran)d ran, %(taken)d of them were taken from
it, %(refused)d found no room, %(failed)d failed. %(runs)d run now. %(ended)d preemptions.
In %(full)d of %(looks)d looks the cloud had no room for a further server; on average it had room
for %(free)s."""


def main():
    with open(sys.argv[1], encoding='utf-8') as file:
        report = json.load(file)
    until('preemptions to end', 120, lambda: one(OPEN) == 0)
    ended = one('select count(*) from ebbtide.nova_preemptions where finished_at is not null')
    print(SAID % dict(report, ended=ended))
    must(ended > 0 and report['taken'] > 0, 'nothing was preempted: the cloud was not full')
    must(report['full'] >= MOSTLY_FULL * report['looks'], 'the cloud was not full most of the time')
    must(report['failed'] == 0, 'preemptible servers went to ERROR on their hosts')
    invariants.check('the cloud to be in order after Tempest')
    invariants.audit()


if __name__ == '__main__':
    main()
