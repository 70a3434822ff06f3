#!/usr/bin/python3
"""Bad days: what a cloud stands on dies in the middle of boots and preemptions. Nothing may leak, nobody may be dead for nothing.

Usage: bad_days.py [DAY…]

After each day: every server ACTIVE or in ERROR with a reason, the sum of allocations is what servers hold, no consumer without a server, no
phantom, and no more victims gone than normal servers have come in their place.
"""
import os
import signal
import subprocess
import sys
import threading
import time
import traceback

import processes
from cloud import until
from database import rows
from invariants import audit, check
from preempt import Stage, must, wait_scheduler
from race import Race

DAYS = []
OURS = 'ebbtide-scheduler-1'
PORTS = {'rabbit': 'STACK_PORT_AMQP', 'mysql': 'STACK_PORT_MYSQL', 'placement': 'STACK_PORT_PLACEMENT', 'keystone': 'STACK_PORT_KEYSTONE'}
# Where EBBTIDE_CRASH_AT ends our scheduler.
STEPS = ['planned', 'recorded', 'swapped', 'noticed', 'evacuated', 'replied']


def day(function):
    DAYS.append(function)
    return function


def stack(*command):
    subprocess.run(['./devstack/openstack', 'run', *command], cwd=os.environ['STACK_CHECKOUT'], check=True)


def end_second(name):
    """Ends a process that only one day has started, for good."""
    processes.kill(name, signal.SIGTERM)
    if name in processes.names():
        os.unlink('%s/run/%s.pid' % (processes.HOME, name))


def again(what, seconds, action):
    """Repeats an API call until the cloud takes it: on a bad day it says 500 or nothing at all."""
    def attempt():
        try:
            return action() or True
        except Exception as error:
            attempt.last = error
            return None
    attempt.last = None
    try:
        return until(what, seconds, attempt, pause=0.5)
    except TimeoutError as error:
        raise TimeoutError('%s: %s' % (error, attempt.last)) from attempt.last


def outcome(stage, uuids, seconds=150):
    """Waits until servers are ACTIVE or in ERROR. What Nova itself has lost (its casts are not repeated) stays in BUILD: it is deleted, as an
    operator would do, and counted. Those in ERROR are deleted, too: a compute whose build failed because Placement was away cannot give its
    claim back, and Nova does so with the server. Gives the ACTIVE ones and the count of the lost."""
    lost, active, failed = [], [], []
    end = time.monotonic() + seconds
    for uuid in uuids:
        def rests(server=uuid):
            found = again('Nova to answer', 60, lambda: stage.cloud.server(server) or {'status': 'gone', 'OS-EXT-STS:task_state': None})
            return found if found['status'] in ('ACTIVE', 'ERROR', 'gone') and found['OS-EXT-STS:task_state'] is None else None
        try:
            server = until('server %s to rest' % uuid, max(end - time.monotonic(), 1), rests, pause=0.5)
        except TimeoutError:
            lost.append(uuid)
            continue
        if server['status'] == 'ACTIVE':
            active.append(uuid)
        elif server['status'] == 'ERROR':
            must((server.get('fault') or {}).get('message'), 'server %s is in ERROR and nobody says why' % server['name'])
            failed.append(uuid)
    if lost or failed:
        again('Nova to delete what it has lost', 60, lambda: stage.cloud.delete(*lost, *failed) or True)
    return active, len(lost)


def nobody_for_nothing(stage, ages, active, what):
    """No more victims gone than normal servers came."""
    check(what, seconds=180)
    gone = set(ages) - set(stage.left(ages))
    must(len(gone) <= len(active), '%s: %d victims are gone and %d normal servers came' % (what, len(gone), len(active)))
    return gone


def dies(stage, name, down_seconds):
    """`name` is killed while servers are being made room for, and comes back after a while."""
    ages = stage.fill(count=4)
    uuids = [stage.cloud.create('dies-%d' % n, 'large') for n in range(4)]  # two find room, two need victims
    until('the scheduler to be asked', 20, lambda: rows(
        "select 1 from nova_cell1.instances where uuid in (%s) union select 1 from nova_api.build_requests" % ', '.join("'%s'" % u for u in uuids)))
    processes.kill(name, signal.SIGKILL)
    time.sleep(down_seconds)
    processes.start(name)
    processes.wait_for_port(name, os.environ[PORTS[name]], 90)
    active, lost = outcome(stage, uuids)
    gone = nobody_for_nothing(stage, ages, active, '%s died' % name)
    print('      %s died: %d of 4 ACTIVE, %d victims gone, %d lost by Nova itself' % (name, len(active), len(gone), lost), flush=True)
    # Life goes on: a normal server still comes, with a victim if need be.
    server = stage.cloud.settled(again('Nova to take a server', 60, lambda: stage.cloud.create('after-%s' % name, 'small')), seconds=120)
    must(server['status'] == 'ACTIVE', 'after %s came back a server is %s: %s' % (name, server['status'], server.get('fault')))
    check('after %s came back' % name, seconds=120)


@day
def rabbitmq_dies(stage):
    dies(stage, 'rabbit', 3)


@day
def mariadb_dies(stage):
    dies(stage, 'mysql', 3)


@day
def placement_dies(stage):
    dies(stage, 'placement', 5)


@day
def keystone_dies(stage):
    dies(stage, 'keystone', 5)


@day
def the_scheduler_dies_at_every_step(stage):
    """SIGABRT from inside, at each step of a preemption; started again, it goes on where it was."""
    ages = stage.fill()
    for n, step in enumerate(STEPS):
        processes.restart(OURS, signal.SIGTERM, {'EBBTIDE_CRASH_AT': step})
        wait_scheduler()
        uuid = stage.cloud.create('step-%s' % step, 'large')
        processes.ended(OURS, 60)
        processes.start(OURS)
        active, lost = outcome(stage, [uuid], 120)
        gone = nobody_for_nothing(stage, ages, active, 'died when %s' % step)
        must(not lost, 'died when %s: the server was never answered' % step)
        print('      died when %-10s server %s, %d victims gone' % (step + ':', 'ACTIVE' if active else 'ERROR', len(gone)), flush=True)
        must(active, 'died when %s: the request was lost' % step)
        # The next step finds the cloud full again.
        stage.cloud.delete(uuid)
        check('after the death when %s' % step)
        for uuid in gone:
            ages.pop(uuid)
        more = stage.cloud.boot('refill%d' % n, 'large.preemptible')
        must(more['status'] == 'ACTIVE', 'the place of a deleted server is not free: %s' % more.get('fault'))
        ages[more['id']] = 0
    audit()


@day
def the_scheduler_is_killed_at_any_moment(stage):
    """SIGKILL from outside while preemptions are under way; another of ours takes over."""
    stack('stack_scheduler_conf', '2')
    stack('stack_start_scheduler', 'ebbtide', '2')
    try:
        ages = stage.fill()
        uuids = [stage.cloud.create('any-%d' % n, 'large') for n in range(3)]
        for pause in (0.3, 0.7, 1.1):
            time.sleep(pause)
            processes.kill(OURS)
            processes.start(OURS)
        active, lost = outcome(stage, uuids)
        gone = nobody_for_nothing(stage, ages, active, 'killed at any moment')
        must(len(active) == 3 and not lost, 'killed at any moment: %d of 3 requests answered, %d lost' % (len(active), lost))
        print('      killed three times: 3 servers ACTIVE, %d victims gone' % len(gone), flush=True)
    finally:
        end_second('ebbtide-scheduler-2')


@day
def two_schedulers_race_for_the_same_victims(stage):
    """200 rounds of two requests at once, each wanting the cheapest victim, decided by two schedulers of ours that answer at once. The victims
    are really ended, by the agent and Nova's computes, while the next rounds are decided."""
    config = processes.HOME + '/etc/race.conf'
    with open(config, 'w', encoding='utf-8') as file:
        file.write('[ebbtide]\nreply_when = at_once\ndefault_grace = 1\n')
    race = None
    try:
        race = Race(stage, 134)
        processes.kill(OURS, signal.SIGTERM)
        stack('stack_scheduler_conf', '2')
        for n in '12':
            stack('stack_start_scheduler', 'ebbtide', n, config)
        wait_scheduler()
        began = time.monotonic()
        answer = race.run()
        decided = time.monotonic() - began
        race.audit(answer, 240)
        print('      %d requests in 200 rounds, decided in %.0f s (median %.0f ms); as many victims, each ended once, after %.0f s' % (
            answer['n'], decided, answer['median'], time.monotonic() - began), flush=True)
    finally:
        end_second('ebbtide-scheduler-2')
        if race:
            race.clear()
        processes.kill(OURS, signal.SIGTERM)
        stack('stack_start_scheduler', 'ebbtide', '1')
        wait_scheduler()


@day
def the_scheduler_was_down_for_two_minutes(stage):
    """Requests that nobody waits for any more are answered by nobody's death."""
    ages = stage.fill()
    processes.kill(OURS, signal.SIGTERM)
    began = time.monotonic()
    uuids = [stage.cloud.create('stale-%d' % n, 'large') for n in range(3)]
    for uuid in uuids:
        server = stage.cloud.settled(uuid, ('ERROR',), seconds=150)
        must(server['fault']['message'], 'a server that nobody answered has no fault')
    left = 120 - (time.monotonic() - began)
    time.sleep(max(left, 0))
    processes.start(OURS)
    wait_scheduler()
    # It is fresh enough for new requests, so it has seen the old ones: they were first in the queue.
    late = stage.cloud.boot('late', 'small')
    must(late['status'] in ('ERROR', 'ACTIVE'), 'late is %s' % late['status'])
    time.sleep(3)
    stage.cloud.delete(*uuids)
    gone = nobody_for_nothing(stage, ages, [late['id']] if late['status'] == 'ACTIVE' else [], 'down for two minutes')
    must(len(gone) <= 1, 'down for two minutes: %d victims for requests that nobody waited for' % len(gone))
    audit()


@day
def beside_the_original(stage):
    """A rolling switch: ours comes while nova-scheduler still works, nova-scheduler goes, and comes back."""
    stack('stack_scheduler_conf', '2')
    stack('stack_start_scheduler', 'nova-scheduler', '2')
    wait_scheduler()
    stop, made = threading.Event(), []

    def tenant():
        n = 0
        while not stop.is_set() and n < 12:
            made.append(stage.cloud.create('roll-%d' % n, 'small'))
            n += 1
            stop.wait(0.5)
    thread = threading.Thread(target=tenant)
    thread.start()
    time.sleep(2)
    processes.kill(OURS, signal.SIGTERM)
    time.sleep(1)
    processes.start(OURS)
    wait_scheduler()
    processes.kill('nova-scheduler-2', signal.SIGTERM)
    thread.join(60)
    active, lost = outcome(stage, made)
    must(len(active) == len(made) and not lost, 'rolling switch: %d of %d servers ACTIVE, %d lost' % (len(active), len(made), lost))
    os.unlink(processes.HOME + '/run/nova-scheduler-2.pid')
    check('a rolling switch')
    print('      %d servers during a rolling switch, all ACTIVE' % len(made), flush=True)


def main():
    only, failed = sys.argv[1:], []
    stage = Stage()
    for function in DAYS:
        if only and function.__name__ not in only:
            continue
        began = time.monotonic()
        try:
            function(stage)
            status = 'ok'
        except Exception as error:
            failed.append(function.__name__)
            status = 'FAILED'
            if isinstance(error, AssertionError):
                print('   BROKEN %s' % error, flush=True)
            else:
                traceback.print_exc()
        for name in processes.names():
            processes.start(name)
        try:
            again('an empty cloud', 180, stage.clear)
        except Exception as error:
            print('   BROKEN clearing up after %s: %s' % (function.__name__, error), flush=True)
            failed.append(function.__name__ + ' (clearing up)')
        print('   %-44s %5.1f s  %s' % (function.__name__, time.monotonic() - began, status), flush=True)
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
