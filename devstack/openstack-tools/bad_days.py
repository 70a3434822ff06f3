#!/usr/bin/python3
"""Bad days: what a cloud stands on dies in the middle of boots and preemptions. Nothing may leak,
and no server may be evicted for nothing.

Usage: bad_days.py [DAY…|busy|waiting|short]
  busy      those that keep the machine at work
  waiting   those that mostly wait
  short     a broker, an API and a scheduler die

After each day: every server ACTIVE or in ERROR with a reason, the sum of allocations is what
servers hold, no consumer without a server, no phantom, and no more victims gone than normal servers
have come in their place.
"""
import os
import signal
import sys
import time
import traceback

import judge
import processes
from cloud import until
from database import rows
from invariants import audit, check
from preempt import Stage, must, wait_scheduler
from processes import stack
from race import Race

DAYS = []
# Days in which Nova's own time limits take most of the time.
WAITING = ['mariadb_dies', 'placement_dies', 'the_scheduler_was_down_for_two_minutes', 'beside_the_original', 'rolled_back_in_haste']
# A broker, an API and a scheduler die.
SHORT = ['rabbitmq_dies', 'placement_dies', 'the_scheduler_is_killed_at_any_moment']
OURS = 'ebbtide-scheduler-1'
PORTS = {'rabbit': 'STACK_PORT_AMQP', 'mysql': 'STACK_PORT_MYSQL', 'placement': 'STACK_PORT_PLACEMENT', 'keystone': 'STACK_PORT_KEYSTONE'}
# [ebbtide] placement_patience, whose default the stack leaves.
PATIENCE_SECONDS = 30
# Where our scheduler ends itself: `nova-STEP` of integration/fail-points.
STEPS = ['planned', 'recorded', 'swapped', 'noticed', 'evacuated', 'replied']


def day(function):
    DAYS.append(function)
    return function


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
    """Waits until servers are ACTIVE or in ERROR. What Nova itself has lost (its casts are not
    repeated) stays in BUILD: it is deleted, as an operator would do, and counted. Those in ERROR
    are deleted, too: a compute whose build failed because Placement was away cannot give its claim
    back, and Nova does so with the server. Gives the ACTIVE ones and the lost; who was in ERROR
    stands in stage.failed, with its fault."""
    lost, active, failed = [], [], {}
    stage.failed = failed
    end = time.monotonic() + seconds
    for uuid in uuids:
        def rests(server=uuid):
            found = again('Nova to answer', 60, lambda: stage.cloud.server(server) or {'status': 'gone', 'OS-EXT-STS:task_state': None})
            return found if judge.at_rest(found, ('ACTIVE', 'ERROR', 'gone')) else None
        try:
            server = until('server %s to rest' % uuid, max(end - time.monotonic(), 1), rests, pause=0.5)
        except TimeoutError:
            server = stage.cloud.server(uuid)
            must(not server or server['status'] != 'ERROR' or server.get('fault'), 'server %s is in ERROR without a reason' % uuid)
            lost.append(uuid)
            continue
        if server['status'] == 'ACTIVE':
            active.append(uuid)
        elif server['status'] == 'ERROR':
            failed[uuid] = server['fault']['message']
    if lost or failed:
        again('Nova to delete what it has lost', 60, lambda: stage.cloud.delete(*lost, *failed) or True)
    return active, lost


def no_victim_for_nothing(stage, ages, active, what):
    """No more victims gone than normal servers came."""
    check(what, seconds=180)
    gone = set(ages) - set(stage.left(ages))
    must(len(gone) <= len(active), '%s: %d victims are gone and %d normal servers came' % (what, len(gone), len(active)))
    return gone


class Log:
    """What a process has logged since now."""

    def __init__(self, path='%s/log/%s.out' % (processes.HOME, OURS)):
        self.path = path
        self.begin = os.path.getsize(self.path)

    def lines(self, *words):
        with open(self.path, encoding='utf-8', errors='replace') as file:
            file.seek(self.begin)
            return [line for line in file if all(word in line for word in words)]


def novas_logs():
    """The logs of Nova's own services, from now on."""
    folder = processes.HOME + '/log/'
    return [Log(folder + name) for name in sorted(os.listdir(folder)) if name.startswith('nova-') and name.endswith(('.log', '.out'))
            and not name.startswith('nova-scheduler')]


def dies(stage, name, down_seconds, least, may_refuse=False):
    """`name` is killed while servers are being made room for, and comes back after a while that is
    shorter than our patience. At least
    `least` of four servers come; each other one is lost for a reason that the logs prove."""
    must(down_seconds < PATIENCE_SECONDS, 'this day promises nothing: %d s are longer than our patience' % down_seconds)
    ages = stage.fill(count=4)
    log, novas = Log(), novas_logs()
    # Two find room, two need victims.
    uuids = [stage.cloud.create('dies-%d' % n, 'large') for n in range(4)]
    until('room to be made', 60, lambda: log.lines('making room'), pause=0.02)
    processes.kill(name, signal.SIGKILL)
    time.sleep(down_seconds)
    processes.start(name)
    processes.wait_for_port(name, os.environ[PORTS[name]], 90)
    active, lost = outcome(stage, uuids, 75)
    losses = []
    for uuid in lost + list(stage.failed):
        request = stage.cloud.asked[uuid]
        theirs = [line for nova in novas for line in nova.lines(request)]
        losses.append(judge.whose_loss(log.lines(request), theirs, stage.failed.get(uuid, ''), broker_died=name == 'rabbit', may_refuse=may_refuse))
    judge.verdict(name, losses, len(active), len(uuids), least)
    # Room was made for these, we answered, and Nova could not build them: Placement was away when
    # their compute asked it.
    failed = [uuid for uuid in stage.failed if log.lines(stage.cloud.asked[uuid], '-> done')]
    gone = no_victim_for_nothing(stage, ages, active + failed, '%s died' % name)
    print('      %s died: %d of 4 ACTIVE, %d victims gone, %d not built: %s' % (
        name, len(active), len(gone), len(losses), ', '.join(sorted(losses)) or 'none'), flush=True)
    # Life goes on: a normal server still comes, with a victim if need be.
    server = stage.cloud.settled(again('Nova to take a server', 60, lambda: stage.cloud.create('after-%s' % name, 'small')), seconds=120)
    must(server['status'] == 'ACTIVE', 'after %s came back a server is %s: %s' % (name, server['status'], server.get('fault')))
    check('after %s came back' % name, seconds=120)


@day
def rabbitmq_dies(stage):
    dies(stage, 'rabbit', 3, least=1)


@day
def mariadb_dies(stage):
    # The ledger is away with it: who needs a victim may be refused meanwhile.
    dies(stage, 'mysql', 3, least=1, may_refuse=True)


@day
def placement_dies(stage):
    dies(stage, 'placement', 5, least=1)


@day
def keystone_dies(stage):
    dies(stage, 'keystone', 5, least=4)


@day
def the_scheduler_dies_at_every_step(stage):
    """SIGABRT from inside, at each step of a preemption; started again, it goes on where it was."""
    ages = stage.fill()
    for n, step in enumerate(STEPS):
        processes.restart(OURS, signal.SIGTERM, {'EBBTIDE_DIE_AT': 'nova-' + step})
        wait_scheduler()
        uuid = stage.cloud.create('step-%s' % step, 'large')
        processes.ended(OURS, 60)
        processes.start(OURS)
        active, lost = outcome(stage, [uuid], 120)
        gone = no_victim_for_nothing(stage, ages, active, 'died when %s' % step)
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
        gone = no_victim_for_nothing(stage, ages, active, 'killed at any moment')
        must(len(active) == 3 and not lost, 'killed at any moment: %d of 3 requests answered, %d lost' % (len(active), len(lost)))
        print('      killed three times: 3 servers ACTIVE, %d victims gone' % len(gone), flush=True)
    finally:
        end_second('ebbtide-scheduler-2')


@day
def two_schedulers_race_for_the_same_victims(stage):
    """200 rounds of two requests at once, each wanting the cheapest victim, decided by two
    schedulers of ours that answer at once: one of them gets it, the other takes the next. The
    victims are really ended, by the agent and Nova's computes, while the next rounds are decided.
    In heats, because each end costs Nova's compute a question to Placement for every server of its
    host."""
    config = processes.HOME + '/etc/race.conf'
    with open(config, 'w', encoding='utf-8') as file:
        file.write('[ebbtide]\nreply_when = at_once\ndefault_grace = 1\n')
    race, decided, slowest = None, 0.0, 0.0
    began = time.monotonic()
    try:
        race = Race(stage, heats=5, rounds=40)
        processes.kill(OURS, signal.SIGTERM)
        stack('stack_scheduler_conf', '2')
        for heat in range(race.heats):
            race.deal(heat)
            for n in '12':
                stack('stack_start_scheduler', 'ebbtide', n, config)
            wait_scheduler()
            start = time.monotonic()
            answer = race.run(heat)
            decided += time.monotonic() - start
            slowest = max(slowest, answer['median'])
            race.audit(heat, answer, 180)
            for n in '12':
                processes.kill('ebbtide-scheduler-' + n, signal.SIGTERM)
        print('      %d requests in %d rounds, decided in %.0f s (median of the slowest heat %.0f ms); %d victims, each ended once; %.0f s in all' % (
            2 * race.rounds * race.heats, race.rounds * race.heats, decided, slowest, race.ended, time.monotonic() - began), flush=True)
    finally:
        end_second('ebbtide-scheduler-2')
        if race:
            race.clear()
        processes.kill(OURS, signal.SIGTERM)
        stack('stack_start_scheduler', 'ebbtide', '1')
        wait_scheduler()


@day
def the_scheduler_was_down_for_two_minutes(stage):
    """Requests whose caller has left are answered without an eviction."""
    ages = stage.fill()
    processes.kill(OURS, signal.SIGTERM)
    began = time.monotonic()
    uuids = [stage.cloud.create('stale-%d' % n, 'large') for n in range(3)]
    for uuid in uuids:
        server = stage.cloud.settled(uuid, ('ERROR',), seconds=150)
        must(server['fault']['message'], 'a server without an answer has no fault')
    left = 120 - (time.monotonic() - began)
    time.sleep(max(left, 0))
    processes.start(OURS)
    wait_scheduler()
    # It is fresh enough for new requests, so it has seen the old ones: they were first in the
    # queue.
    late = stage.cloud.boot('late', 'small')
    must(late['status'] in ('ERROR', 'ACTIVE'), 'late is %s' % late['status'])
    time.sleep(3)
    stage.cloud.delete(*uuids)
    gone = no_victim_for_nothing(stage, ages, [late['id']] if late['status'] == 'ACTIVE' else [], 'down for two minutes')
    must(len(gone) <= 1, 'down for two minutes: %d victims for requests without a caller' % len(gone))
    audit()


@day
def beside_the_original(stage):
    """A rolling switch on a full cloud: ours works beside a nova-scheduler on the same queue, is
    ended and comes back, nova-scheduler goes."""
    other = 'nova-scheduler-2'
    ages = stage.fill()
    stack('stack_scheduler_conf', '2')
    began = rows('select utc_timestamp() as now')[0]['now']
    stack('stack_start_scheduler', 'nova-scheduler', '2')
    try:
        until('nova-scheduler to report', 60, lambda: rows("select 1 from nova_cell1.services where host = 'scheduler2' and `binary` = 'nova-scheduler' "
                                                           "and coalesce(updated_at, created_at) >= %s", began))
        both = [stage.cloud.create('both-%d' % n, 'large') for n in range(3)]
        # Ours is ended in the middle of that: what it has begun it finishes when it is back, what
        # it has not the other one takes.
        processes.kill(OURS, signal.SIGTERM)
        alone = stage.cloud.boot('alone', 'large')
        must(alone['status'] == 'ERROR' and 'No valid host' in alone['fault']['message'], 'nova-scheduler alone found room on a full cloud: %s' % alone)
        processes.start(OURS)
        wait_scheduler()
        processes.kill(other, signal.SIGTERM)
    finally:
        end_second(other)
    ours = [stage.cloud.create('ours-%d' % n, 'large') for n in range(2)]
    answered, lost = outcome(stage, both + ours)
    must(not lost, 'beside the original: %d requests were never answered' % len(lost))
    must(set(ours) <= set(answered), 'ours alone did not make room for %d of 2 servers' % len(set(ours) - set(answered)))
    stage.cloud.delete(alone['id'])
    gone = no_victim_for_nothing(stage, ages, answered, 'a rolling switch')
    must(len(gone) == len(answered), 'a rolling switch: %d servers came and %d victims are gone' % (len(answered), len(gone)))
    audit()
    print('      beside the original %d of 3 servers ACTIVE (the others asked nova-scheduler), after it 2 of 2, %d victims gone' % (
        len(answered) - 2, len(gone)), flush=True)


@day
def rolled_back_in_haste(stage):
    """The operator ends ours in the middle of a preemption and starts nova-scheduler, without
    waiting as the documents ask. What is under way ends as they say: warned victims leave,
    newcomers without an answer get NoValidHost, and nothing is leaked when those are deleted."""
    other = 'nova-scheduler-2'
    ages = stage.fill()
    log = Log()
    stack('stack_scheduler_conf', '2')
    uuid = stage.cloud.create('hasty', 'large')
    until('a victim to be warned', 60, lambda: log.lines('claimed -> evacuating'), pause=0.02)
    processes.kill(OURS, signal.SIGTERM)
    stack('stack_start_scheduler', 'nova-scheduler', '2')
    try:
        server = stage.cloud.settled(uuid, ('ACTIVE', 'ERROR'), seconds=150)
        until('the warned victim to leave', 60, lambda: len(stage.left(ages)) < len(ages))
        stage.cloud.delete(uuid)
        check('rolled back', seconds=180)
        # What the victim had is room like any other.
        after = stage.cloud.boot('after', 'large')
        must(after['status'] == 'ACTIVE', 'nova-scheduler finds no room where the victim was: %s' % after.get('fault'))
    finally:
        processes.start(OURS)
        wait_scheduler()
        end_second(other)
    gone = set(ages) - set(stage.left(ages))
    must(len(gone) == 1, 'rolled back: %d victims are gone' % len(gone))
    until('the preemption to end', 60, lambda: not rows('select id from ebbtide.nova_preemptions where finished_at is null'), pause=0.5)
    check('ours again', seconds=60)
    audit()
    print('      the newcomer was %s (%s); 1 victim gone, its room free, nothing leaked' % (
        server['status'], (server.get('fault') or {}).get('message', 'no fault')), flush=True)


def main():
    groups = {'waiting': WAITING, 'short': SHORT, 'busy': [f.__name__ for f in DAYS if f.__name__ not in WAITING]}
    only = [day for word in sys.argv[1:] for day in groups.get(word, [word])]
    unknown = set(only) - {f.__name__ for f in DAYS}
    if unknown:
        sys.exit('bad_days.py: there is no day %s; there are %s' % (', '.join(sorted(unknown)), ', '.join(f.__name__ for f in DAYS)))
    failed = []
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
