#!/usr/bin/python3
"""Two cells: ours learns of the second by SIGHUP, boots into both, makes room in the second, and
leaves it alone while it is disabled."""
import os
import signal
import sys
import time

import processes
from bad_days import OURS, Log
from cloud import until
from database import rows, run
from invariants import check
from preempt import Stage, must
from processes import stack


def reload(log):
    """SIGHUP, and until the scheduler says that it has read the cells."""
    before = len(log.lines('SIGHUP'))
    os.kill(processes.pid(OURS), signal.SIGHUP)
    until('the scheduler to read the cells', 30, lambda: len(log.lines('SIGHUP')) > before)


def on(stage, host, name, flavor, **options):
    server = stage.cloud.boot(name, flavor, **options)
    must(server['status'] == 'ACTIVE', '%s is %s: %s' % (name, server['status'], server.get('fault')))
    found = server['OS-EXT-SRV-ATTR:host']
    must(host is None or found == host, '%s is on %s and not on %s' % (name, found, host))
    return server['id'], found


def both(stage, log):
    """A host that was not there at the start, one of each host in a group that keeps apart, and
    room made in the second cell."""
    on(stage, 'compute4', 'forced', 'small', availability_zone='nova:compute4')
    group = stage.cloud.nova('POST', '/os-server-groups', {'server_group': {'name': 'cells', 'policy': 'anti-affinity'}}).json()['server_group']['id']
    hosts = {on(stage, None, 'apart-%d' % n, 'small', hints={'group': group})[1] for n in range(4)}
    must(len(hosts) == 4, 'four members that must not share a host are on %s' % sorted(hosts))
    late = stage.cloud.boot('apart-4', 'small', hints={'group': group})
    must(late['status'] == 'ERROR', 'a fifth member is %s' % late['status'])
    stage.clear()
    cheap, _ = on(stage, 'compute4', 'cheap', 'large.preemptible', availability_zone='nova:compute4')
    others = [on(stage, None, 'pre%d' % n, 'large.preemptible')[0] for n in range(7)]
    # Seven on the three hosts of the first cell and beside the cheap one; all of them have run most
    # of an hour, the cheap one has not.
    for cell in ('nova_cell1', 'nova_cell2'):
        run("update %s.instances set launched_at = utc_timestamp() - interval if(uuid = '%s', 5, 40) minute, updated_at = utc_timestamp() "
            "where deleted = 0" % (cell, cheap))
    on(stage, 'compute4', 'important', 'large')
    must(not rows("select 1 from nova_cell2.instances where uuid = '%s' and deleted = 0" % cheap), 'the cheapest victim, in the second cell, lives')
    check('room made in the second cell')
    print('      a host of the second cell, a group over both cells, a victim in the second cell: %d others untouched' % len(others), flush=True)
    return others


def disabled(stage, log):
    """The cell takes no boots and loses no server while it is disabled; then it does again."""
    stack('stack_cell2', '--disable')
    reload(log)
    run("update nova_cell2.instances set launched_at = utc_timestamp() - interval 2 minute, updated_at = utc_timestamp() where deleted = 0")
    _, host = on(stage, None, 'elsewhere', 'large')
    must(host != 'compute4', 'a server went into a disabled cell')
    forced = stage.cloud.boot('refused', 'small', availability_zone='nova:compute4')
    must(forced['status'] == 'ERROR', 'a forced server went into a disabled cell')
    stack('stack_cell2', '--enable')
    reload(log)
    stage.cloud.delete(*[s['id'] for s in stage.cloud.servers(name='^important$')])
    on(stage, 'compute4', 'again', 'large', availability_zone='nova:compute4')
    check('a disabled cell')
    print('      disabled, the second cell got no server and lost none; enabled, it got one', flush=True)


def main():
    began = time.monotonic()
    stage = Stage()
    log = Log()
    stack('stack_second_cell')
    try:
        # Nova's API and conductor know the cells that there were when they began.
        for name in ('nova-api', 'nova-conductor'):
            processes.restart(name)
        processes.wait_for_port('nova-api', os.environ['STACK_PORT_NOVA'])
        reload(log)
        both(stage, log)
        disabled(stage, log)
    finally:
        stage.clear()
        stack('stack_second_cell_ends')
        for name in ('nova-api', 'nova-conductor'):
            processes.restart(name)
        processes.wait_for_port('nova-api', os.environ['STACK_PORT_NOVA'])
        reload(log)
    print('   two cells %.1f s  ok' % (time.monotonic() - began))


if __name__ == '__main__':
    sys.exit(main())
