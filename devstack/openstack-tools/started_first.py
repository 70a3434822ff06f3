#!/usr/bin/python3
"""A cloud that is being built: ours starts before any service of Nova has a record, says that it
cannot know the release unless nova.conf names it, follows the one that the records show later, and
answers."""
import os
import re
import sys
import time

import processes
from bad_days import OURS
from cloud import until
from database import rows, run
from preempt import Stage, must

RECORDS = 'from nova_cell1.services where deleted = 0'


def versions():
    """The service versions in the records, by program."""
    return {row['binary']: row['version'] for row in rows('select `binary`, version %s' % RECORDS)}


def written(*words):
    with open(processes.log(OURS), encoding='utf-8', errors='replace') as file:
        return [line for line in file if all(word in line for word in words)]


def release_is_named():
    with open(os.path.join(os.environ['STACK_HOME'], 'etc/nova.conf'), encoding='utf-8') as file:
        return any(line.startswith('nova_release') for line in file)


def main():
    began = time.monotonic()
    before = versions()
    cloud = before['nova-conductor']
    novas = [name for name in processes.names() if name.startswith('nova-')]
    for name in novas + [OURS]:
        processes.kill(name)
    for cell in ('nova_cell1', 'nova_cell0'):
        run('delete from %s.services' % cell)
    told = len(written('EB-DOOR-003'))
    processes.start(OURS)
    until('our record', 60, lambda: 'nova-scheduler' in versions())
    alone = versions()
    must(set(alone) == {'nova-scheduler'}, 'there are other records: %s' % alone)
    if not release_is_named():
        must(len(written('EB-DOOR-003')) > told, 'it does not say that it cannot know the release')
    for name in novas:
        processes.start(name)
    since = time.monotonic()
    until('the conductor and the computes to have records', 90, lambda: {'nova-conductor', 'nova-compute'} <= set(versions()))
    until('our record to say what the others say', 60, lambda: set(versions().values()) == {cloud})
    took = time.monotonic() - since
    deciding = [int(found[1]) for line in written('as its services show it') for found in [re.search(r'\bis=(\d+)', line)] if found]
    # The other services may have their records before nova-api listens.
    processes.wait_for_port('nova-api', os.environ['STACK_PORT_NOVA'], seconds=90)
    stage = Stage()
    server = stage.cloud.boot('first', 'small')
    must(server['status'] == 'ACTIVE', 'the first server is %s: %s' % (server['status'], server.get('fault')))
    stage.clear()
    print('      our record alone said version %d; %.1f s after Nova was started it said %d, as all do, and we decide as Nova %s'
          % (alone['nova-scheduler'], took, cloud, deciding[-1] if deciding else 'before'))
    print('   started first %.1f s  ok' % (time.monotonic() - began))


if __name__ == '__main__':
    sys.exit(main())
