#!/usr/bin/python3
"""Two cells: ours learns of the second by SIGHUP, boots into both, makes room in the second, leaves
it alone while it is disabled or its database is away, and makes room in it for a server of the
first that grows.

Usage: cells.py [PART…]   (both, disabled, away, moved; `disabled` goes on from `both`)
"""
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


# The host of the second cell: the one after those of the first.
FAR = 'compute%d' % (len(os.environ['STACK_COMPUTES'].split()) + (1 if os.environ.get('STACK_LIBVIRT') else 0) + 1)


def reload(log):
    """SIGHUP, and until the scheduler says that it has read the cells."""
    before = len(log.lines('SIGHUP'))
    os.kill(processes.pid(OURS), signal.SIGHUP)
    until('the scheduler to read the cells', 90, lambda: len(log.lines('SIGHUP')) > before)


def on(stage, host, name, flavor, **options):
    server = stage.cloud.boot(name, flavor, **options)
    must(server['status'] == 'ACTIVE', '%s is %s: %s' % (name, server['status'], server.get('fault')))
    found = server['OS-EXT-SRV-ATTR:host']
    must(host is None or found == host, '%s is on %s and not on %s' % (name, found, host))
    return server['id'], found


def both(stage, log):
    """A host that was not there at the start, one of each host in a group that keeps apart, and
    room made in the second cell."""
    on(stage, FAR, 'forced', 'small', availability_zone='nova:' + FAR)
    group = stage.cloud.nova('POST', '/os-server-groups', {'server_group': {'name': 'cells', 'policy': 'anti-affinity'}}).json()['server_group']['id']
    hosts = {on(stage, None, 'apart-%d' % n, 'small', hints={'group': group})[1] for n in range(4)}
    must(len(hosts) == 4, 'four members that must not share a host are on %s' % sorted(hosts))
    late = stage.cloud.boot('apart-4', 'small', hints={'group': group})
    must(late['status'] == 'ERROR', 'a fifth member is %s' % late['status'])
    stage.clear()
    cheap, _ = on(stage, FAR, 'cheap', 'large.preemptible', availability_zone='nova:' + FAR)
    others = [on(stage, None, 'pre%d' % n, 'large.preemptible')[0] for n in range(7)]
    # Seven on the three hosts of the first cell and beside the cheap one; all of them have run most
    # of an hour, the cheap one has not.
    for cell in ('nova_cell1', 'nova_cell2'):
        run("update %s.instances set launched_at = utc_timestamp() - interval if(uuid = '%s', 5, 40) minute, updated_at = utc_timestamp() "
            "where deleted = 0" % (cell, cheap))
    on(stage, FAR, 'important', 'large')
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
    must(host != FAR, 'a server went into a disabled cell')
    forced = stage.cloud.boot('refused', 'small', availability_zone='nova:' + FAR)
    must(forced['status'] == 'ERROR', 'a forced server went into a disabled cell')
    stack('stack_cell2', '--enable')
    reload(log)
    stage.cloud.delete(*[s['id'] for s in stage.cloud.servers(name='^important$')])
    on(stage, FAR, 'again', 'large', availability_zone='nova:' + FAR)
    check('a disabled cell')
    print('      disabled, the second cell got no server and lost none; enabled, it got one', flush=True)


def away(stage, log):
    """The database of the cell does not answer: its servers stay, and the first cell goes on."""
    stage.clear()
    far = [on(stage, FAR, 'far%d' % n, 'large.preemptible', availability_zone='nova:' + FAR)[0] for n in range(2)]
    near = [on(stage, None, 'near%d' % n, 'large.preemptible')[0] for n in range(6)]

    def health():
        hosts = stage.cloud.request('preemption', 'GET', '/v1/hosts').json()['hosts']
        return {host['name']: host['health'] for host in hosts}[FAR]

    def ids():
        return {row['uuid'] for row in rows('select uuid from nova_cell1.instances where deleted = 0')}

    stack('stack_cell2_database', 'away')
    try:
        until('the scheduler to take the host for down', 120, lambda: health() == 'down')
        on(stage, None, 'meanwhile', 'large')
        must(len(ids() & set(near)) == 5, 'of the six near servers %d live, and one had to leave' % len(ids() & set(near)))
    finally:
        # Without it nothing can be cleared up, and the first fault is not the one that is seen.
        stack('stack_cell2_database', 'back')
    until('the scheduler to take the host for up', 120, lambda: health() == 'up')
    alive = {row['uuid'] for row in rows('select uuid from nova_cell2.instances where deleted = 0')}
    must(alive == set(far), 'in the second cell live %s and not %s' % (sorted(alive), sorted(far)))
    stage.cloud.delete(far[0])
    on(stage, FAR, 'afterwards', 'medium', availability_zone='nova:' + FAR)
    check('a cell that was away')
    print('      without its database the second cell kept its servers, and one of the first left for a boot', flush=True)


def moved(stage, log):
    """Nova allows a move to another cell only by a policy of the operator. A server of the full
    first cell is resized, and a preemptible one of the second leaves for it."""
    stage.clear()
    mover, _ = on(stage, 'compute1', 'mover', 'small', availability_zone='nova:compute1')
    for n, host in enumerate(('compute1', 'compute2', 'compute2', 'compute3', 'compute3')):
        on(stage, host, 'full%d' % n, 'large', availability_zone='nova:' + host)
    far = [on(stage, FAR, 'far%d' % n, 'large.preemptible', availability_zone='nova:' + FAR)[0] for n in range(2)]
    stage.cloud.action(mover, {'resize': {'flavorRef': 'large'}})
    server = stage.cloud.settled(mover, ('VERIFY_RESIZE', 'ERROR'), seconds=180)
    must(server['status'] == 'VERIFY_RESIZE', 'the move ended in %s: %s' % (server['status'], server.get('fault')))
    must(server['OS-EXT-SRV-ATTR:host'] == FAR, 'the server is on %s' % server['OS-EXT-SRV-ATTR:host'])
    stage.cloud.action(mover, {'confirmResize': None})
    server = stage.cloud.settled(mover, seconds=180)
    must(server['status'] == 'ACTIVE', 'after the confirmation: %s' % server['status'])
    alive = {row['uuid'] for row in rows('select uuid from nova_cell2.instances where deleted = 0')}
    must(mover in alive and len(alive & set(far)) == 1, 'in the second cell live %s' % sorted(alive))
    check('a move to another cell')
    print('      a server of the full first cell grew into the second, where one of two left for it', flush=True)


PARTS = [both, disabled, away, moved]
NAMES = [part.__name__ for part in PARTS]


def main():
    unknown = sorted(set(sys.argv[1:]) - set(NAMES))
    if unknown:
        sys.exit('there is no part %s; there are %s' % (', '.join(unknown), ', '.join(NAMES)))
    began = time.monotonic()
    stage = Stage()
    log = Log()
    policy = os.path.join(os.environ['STACK_HOME'], 'etc', 'policy.yaml')
    with open(policy, 'w') as file:
        file.write('"compute:servers:resize:cross_cell": "rule:admin_api"\n')
    stack('stack_second_cell')
    try:
        # Nova's API and conductor know the cells that there were when they began.
        for name in ('nova-api', 'nova-conductor'):
            processes.restart(name)
        processes.wait_for_port('nova-api', os.environ['STACK_PORT_NOVA'], seconds=150)
        reload(log)
        for part in PARTS:
            if part.__name__ in (sys.argv[1:] or NAMES):
                part(stage, log)
    finally:
        stage.clear()
        os.remove(policy)
        stack('stack_second_cell_ends')
        for name in ('nova-api', 'nova-conductor'):
            processes.restart(name)
        processes.wait_for_port('nova-api', os.environ['STACK_PORT_NOVA'], seconds=150)
        reload(log)
    print('   two cells %.1f s  ok' % (time.monotonic() - began))


if __name__ == '__main__':
    sys.exit(main())
