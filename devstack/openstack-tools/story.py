#!/usr/bin/python3
"""The story: three full hosts, six preemptible servers, and normal requests that need their room.
Each chapter ends with the books in order.

Usage: story.py [CHAPTER…]
"""
import collections
import contextlib
import os
import shutil
import signal
import socket
import sys
import threading
import time
import traceback
import urllib.request

import probes
import processes
from cloud import until
from database import rows, run
from invariants import allocations, audit, check, our_audit, upgrade_check
from occupation import Occupation
from preempt import Stage, Watch, must, wait_scheduler, wait_up
from processes import stack

# The first component that was ever made: it prefers hosts with free VCPUs and memory.
FIRST_WEIGHER = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../weighers/wasm/tests/fixtures/weigher-1.0.wasm')
CHAPTERS = []


def chapter(function):
    CHAPTERS.append(function)
    return function


def arrives(stage, ages, expected, begin, what, states=('ACTIVE', 'ERROR')):
    """Runs `begin`, which gives server ids; they must become ACTIVE, exactly `expected` must be
    warned and go, everything must add up."""
    watch = Watch(ages)
    began = time.monotonic()
    try:
        arrived = begin()
        for uuid in arrived:
            server = stage.cloud.settled(uuid, states, seconds=150)
            must(server['status'] == states[0], '%s: %s is %s: %s' % (what, server['name'], server['status'], server.get('fault')))
        seconds = time.monotonic() - began
        stage.wait_gone(expected)
        check(what)
    finally:
        watch.end()
    gone = set(ages) - set(stage.left(ages))
    must(gone == expected, '%s: gone are %s, and the cheapest were %s' % (what, *(sorted((ages[u] % 60, u) for u in s) for s in (gone, expected))))
    for uuid in gone:
        must(uuid in watch.told, '%s: victim %s went without a notice in its metadata' % (what, uuid))
        first = min(at for _value, at in watch.told[uuid].values())
        must(first <= watch.gone.get(uuid, first), '%s: victim %s was warned after it had gone' % (what, uuid))
    for uuid in set(ages) - gone:
        must(uuid not in watch.told, '%s: server %s was warned and stays: %s' % (what, uuid, watch.told.get(uuid)))
    keys = sorted({k for told in watch.told.values() for k in told})
    print('      %s: %d arrived in %.1f s, %d victims (started minutes %s), notice in metadata %s' % (
        what, len(arrived), seconds, len(gone), sorted(ages[u] % 60 for u in gone), keys), flush=True)
    return watch


@chapter
def one_normal_server(stage):
    """A normal boot on a full cloud: the server whose begun hour is youngest makes room."""
    ages = stage.fill()
    arrives(stage, ages, stage.cheapest(ages), lambda: [stage.cloud.create('important', 'large')], 'one normal server')
    audit()
    return ages


@chapter
def a_small_server(stage):
    """A newcomer that needs a quarter of its victim: the victim holds the rest until it is gone, so
    that no other server is placed over it."""
    ages = stage.fill()
    (victim,) = stage.cheapest(ages)
    had = allocations()[victim]

    def begin():
        uuid = stage.cloud.create('little', 'small')
        held = until('the claim of the small server', 60, lambda: (lambda all_: all_ if uuid in all_ else None)(allocations()))
        # What was free on the host before is used, too, so the two may hold more than the victim
        # had, and never less.
        both = {key: held.get(victim, {}).get(key, 0) + held[uuid].get(key, 0) for key in had}
        must(all(both[key] >= had[key] for key in had), 'while the victim runs, it holds %s and the newcomer %s, of %s' % (held.get(victim), held[uuid], had))
        return [uuid]
    arrives(stage, ages, {victim}, begin, 'a small server')
    audit()
    return ages


@chapter
def a_server_group(stage):
    """Two members that must not share a host: two victims on two hosts."""
    ages = stage.fill()
    group = stage.cloud.nova('POST', '/os-server-groups', {'server_group': {'name': 'apart', 'policy': 'anti-affinity'}}).json()['server_group']['id']
    hosts = {r['uuid']: r['host'] for r in rows('select uuid, host from nova_cell1.instances where deleted = 0')}
    order = sorted(ages, key=lambda u: ages[u] % 60)
    first = order[0]
    arrives(stage, ages, {first}, lambda: [stage.cloud.create('apart-1', 'large', hints={'group': group})], 'first of a group')
    ages = stage.left(ages)
    second = [u for u in order[1:] if hosts[u] != hosts[first]][0]
    arrives(stage, ages, {second}, lambda: [stage.cloud.create('apart-2', 'large', hints={'group': group})], 'second of a group')
    stage.cloud.nova('DELETE', '/os-server-groups/' + group)


# Hosts for three members on a full cloud of three hosts, by policy.
POLICIES = {'affinity': 1, 'soft-affinity': 1, 'anti-affinity': 3, 'soft-anti-affinity': 3}


def members(stage, group, manner):
    """Asks for three members of a group and gives their ids."""
    hints = {'group': group}
    if manner == 'in one request':
        stage.cloud.create('member', 'medium', hints=hints, min_count=3, max_count=3)
        return [s['id'] for s in stage.cloud.nova('GET', '/servers?name=^member').json()['servers']]
    asked = []
    for n in range(3):
        asked.append(stage.cloud.create('member-%d' % n, 'medium', hints=hints))
        if manner == 'one after another':
            stage.cloud.settled(asked[-1], seconds=150)
    return asked


@chapter
def every_policy_of_a_group(stage):
    """Three members on a full cloud, in one request, in three at the same time, and one after
    another: each policy is kept, and only three servers end for it."""
    ages = stage.fill('medium.preemptible', 12)
    for policy, expected in POLICIES.items():
        for manner in ('in one request', 'at the same time', 'one after another'):
            what = '%s, %s' % (policy, manner)
            group = stage.cloud.nova('POST', '/os-server-groups', {'server_group': {'name': 'g', 'policy': policy}}).json()['server_group']['id']
            asked = members(stage, group, manner)
            servers = [stage.cloud.settled(uuid, seconds=150) for uuid in asked]
            for server in servers:
                must(server['status'] == 'ACTIVE', '%s: %s is %s: %s' % (what, server['name'], server['status'], server.get('fault')))
            must(len(servers) == 3, '%s: %d servers came' % (what, len(servers)))
            hosts = [server['OS-EXT-SRV-ATTR:host'] for server in servers]
            until('%s: the victims to be gone' % what, 60, lambda: len(stage.left(ages)) <= 9)
            check(what)
            left = stage.left(ages)
            must(len(set(hosts)) == expected, '%s: the members are on %s' % (what, hosts))
            must(len(left) == 9, '%s: %d victims, and three were needed' % (what, 12 - len(left)))
            print('      %s: on %s, 3 victims' % (what, ', '.join(sorted(hosts))), flush=True)
            stage.cloud.delete(*asked)
            stage.cloud.nova('DELETE', '/os-server-groups/' + group)
            # Three others in place of those that left.
            missing = list((collections.Counter(ages.values()) - collections.Counter(left.values())).elements())
            fresh = [stage.cloud.create('again-%d' % n, 'medium.preemptible') for n in range(3)]
            ages = dict(left)
            for uuid, age in zip(fresh, missing):
                must(stage.cloud.settled(uuid)['status'] == 'ACTIVE', '%s: no room for servers in place of its victims' % what)
                ages[uuid] = age
            stage.grow_old({uuid: ages[uuid] for uuid in fresh})
    audit()


@chapter
def three_at_once(stage):
    """--min 3 --max 3: all or nothing, the three cheapest together."""
    ages = stage.fill()

    def begin():
        stage.cloud.create('trio', 'large', min_count=3, max_count=3)
        return [s['id'] for s in stage.cloud.nova('GET', '/servers?name=^trio').json()['servers']]
    arrives(stage, ages, stage.cheapest(ages, 3), begin, 'three at once')
    audit()


@chapter
def a_resize_that_needs_room(stage):
    """A normal server grows: its new host is made free, and after the confirmation the books hold
    its new size only."""
    grower = stage.cloud.boot('grower', 'medium')
    must(grower['status'] == 'ACTIVE', 'grower is %s' % grower['status'])
    ages = stage.fill(count=5)
    # The room beside the grower, so that nothing fits without a victim.
    filler = stage.cloud.boot('filler', 'medium')
    must(filler['status'] == 'ACTIVE', 'filler is %s' % filler['status'])
    home = grower['OS-EXT-SRV-ATTR:host']
    hosts = {r['uuid']: r['host'] for r in rows('select uuid, host from nova_cell1.instances where deleted = 0')}
    possible = {u: a for u, a in ages.items() if hosts[u] != home}
    expected = stage.cheapest(possible)

    def begin():
        stage.cloud.action(grower['id'], {'resize': {'flavorRef': stage.cloud.flavor('large')}})
        stage.cloud.settled(grower['id'], ('VERIFY_RESIZE', 'ERROR', 'ACTIVE'), seconds=150)
        stage.cloud.action(grower['id'], {'confirmResize': None})
        return [grower['id']]
    arrives(stage, ages, expected, begin, 'a resize that needs room')
    audit()


@chapter
def slow_hypervisors(stage):
    """Ending a server takes ten seconds: the normal one starts when the room is really free, never
    before."""
    computes = [n for n in processes.names() if n.startswith('nova-compute-')]
    for name in computes:
        processes.restart(name, environment={'TEST_FAKE_DESTROY_S': '10'})
    wait_up(computes)
    try:
        ages = stage.fill()
        expected = stage.cheapest(ages)
        watch = arrives(stage, ages, expected, lambda: [stage.cloud.create('patient', 'large')], 'slow hypervisors')
        must(all(low[0] >= 0 and low[1] >= 0 for low in watch.lowest.values()),
             'slow hypervisors: a host was booked over what it has: free memory and VCPUs went down to %s' % watch.lowest)
    finally:
        stage.clear()
        for name in computes:
            processes.restart(name)
        wait_up(computes)


@chapter
def deleted_while_room_is_made(stage):
    """The tenant deletes a server while its victim drains (Tempest's
    test_delete_server_while_in_building_state, on a full cloud), and others
    ask for room at the same moment: the victim lives on with its allocations, and no host ever runs more than it has."""
    ages = stage.fill('large.patient.preemptible')
    had = {uuid: held for uuid, held in allocations().items() if uuid in ages}
    lost, came = set(), 0
    for turn in range(3):
        (victim,) = stage.cheapest({uuid: age for uuid, age in ages.items() if uuid not in lost})
        watch, occupation = Watch(ages), Occupation()
        try:
            newcomer = stage.cloud.create('deleted-%d' % turn, 'large')
            until('a victim to be warned', 60, lambda: set(watch.told) & set(ages), pause=0.02)
            (warned,) = set(watch.told) & set(ages)
            must(warned == victim, 'the victim is %s, and the cheapest was %s' % (warned, victim))
            others = []

            def fire(number, turn=turn, others=others):
                others.append(stage.cloud.create('meanwhile-%d-%d' % (turn, number), 'small.preemptible'))
            firing = [threading.Thread(target=fire, args=(n,)) for n in range(4)]
            stage.cloud.nova('DELETE', '/servers/' + newcomer)
            deleted = time.monotonic()
            for thread in firing:
                thread.start()
            our_audit()
            until('the victim to have its allocations again', 15, lambda: allocations().get(victim) == had[victim], pause=0.02)
            back = time.monotonic() - deleted
            for thread in firing:
                thread.join()
            our_audit()
            for uuid in others:
                # A full cloud has no room for them: a server that comes has taken what is a
                # victim's.
                server = stage.cloud.settled(uuid, seconds=150)
                came += server['status'] == 'ACTIVE'
            until('the preemption to end', 120, lambda: not rows('select id from ebbtide.nova_preemptions where finished_at is null'), pause=0.2)
            stage.cloud.delete(*others)
        finally:
            watch.end()
            occupation.end()
        must(occupation.samples >= 10, 'real occupation was looked at %d times only' % occupation.samples)
        must(not occupation.over, 'hosts ran more than they have: %s' % occupation.over[:5])
        must(set(stage.left(ages)) == set(ages), 'a victim is gone for a server that was deleted')
        must(not rows("select id from ebbtide.nova_preemptions where finished_at is null"), 'a preemption is still open')
        check('a server deleted while room was made for it')
        audit()
        print('      deleted while room was made: allocations back after %.2f s, %d samples of real occupation, never over' % (
            back, occupation.samples), flush=True)
    must(came == 0, '%d servers were placed on a full cloud' % came)


def told(path):
    """What our scheduler says on its own HTTP port."""
    port = os.environ['STACK_PORT_SCHED_HTTP']
    with urllib.request.urlopen('http://127.0.0.1:%s%s' % (port, path), timeout=10) as answer:
        return answer.read().decode()


def metric(page, name):
    found = [line.rpartition(' ')[2] for line in page.splitlines() if line.startswith(name + ' ')]
    must(len(found) == 1, 'the page of metrics has %d lines %s' % (len(found), name))
    return float(found[0])


@chapter
def what_an_operator_sees(stage):
    """Ready, the figures of a preemption, and the books of hosts and instances."""
    status, checks = upgrade_check()
    for name, said in (('Release of Nova', 'services of version'), ('Agents', '3 compute hosts, each with an agent'),
                       ('Message broker', '1 scheduler'), ('Ledger', 'current'), ('Flavors', 'preemptible')):
        must(checks[name]['result'] == 'success' and said in checks[name]['details'], 'upgrade check says %s' % checks[name])
    must(status == 0, 'upgrade check ends with %d: %s' % (status, [c for c in checks.values() if c['result'] != 'success']))
    wrong = probes.problems()
    must(not wrong, 'health checks of deployments fail: %s' % wrong)
    must('' != told('/readyz') and '' != told('/healthz'), 'the pages of health are empty')
    ages = stage.fill()
    counted = ['ebbtide_preemptions_total{kind="done"}', 'ebbtide_victims_total{kind="gone"}', 'ebbtide_requests_total{kind="answered"}']
    before = {name: metric(told('/metrics'), name) for name in counted}
    arrives(stage, ages, stage.cheapest(ages), lambda: [stage.cloud.create('watched', 'large')], 'what an operator sees')
    page = until('the preemption to be counted', 10, lambda: (lambda p: p if metric(p, counted[0]) > before[counted[0]] else None)(told('/metrics')))
    for name in counted:
        must(metric(page, name) == before[name] + 1, '%s went from %s to %s' % (name, before[name], metric(page, name)))
    must(metric(page, 'ebbtide_preemptions_under_way') == 0 and metric(page, 'ebbtide_hosts') == 3,
         'the page of metrics does not know the cloud: %s' % [line for line in page.splitlines() if line.startswith('ebbtide_')])


@chapter
def a_compute_that_nobody_mapped(stage):
    """With discover_hosts_in_cells_interval a compute comes into its cell by itself, as with
    nova-scheduler."""
    config = processes.HOME + '/etc/discover.conf'
    with open(config, 'w', encoding='utf-8') as file:
        file.write('[scheduler]\ndiscover_hosts_in_cells_interval = 2\n')
    run("delete from nova_api.host_mappings where host = 'compute3'", 'update nova_cell1.compute_nodes set mapped = 0 where host = \'compute3\'')
    processes.kill('ebbtide-scheduler-1', signal.SIGTERM)
    stack('stack_start_scheduler', 'ebbtide', '1', config)
    try:
        until('compute3 to be mapped', 60, lambda: rows("select 1 from nova_api.host_mappings where host = 'compute3'"))
        wait_scheduler()
        hosts = set()
        for n in range(3):
            server = stage.cloud.boot('mapped-%d' % n, 'large')
            must(server['status'] == 'ACTIVE', 'mapped-%d is %s' % (n, server['status']))
            hosts.add(server['OS-EXT-SRV-ATTR:host'])
        must('compute3' in hosts, 'no server came to compute3, only to %s' % hosts)
        check('a compute without a mapping')
    finally:
        processes.kill('ebbtide-scheduler-1', signal.SIGTERM)
        stack('stack_start_scheduler', 'ebbtide', '1')
        wait_scheduler()


def spread_of(stage, name, count=3):
    """On how many hosts so many small servers come, one after another."""
    hosts = set()
    for n in range(count):
        server = stage.cloud.boot('%s-%d' % (name, n), 'small')
        must(server['status'] == 'ACTIVE', '%s-%d is %s: %s' % (name, n, server['status'], server.get('fault')))
        hosts.add(server['OS-EXT-SRV-ATTR:host'])
    return len(hosts)


@chapter
def a_weigher_of_the_operator(stage):
    """[ebbtide] plugins: a component behind Nova's weighers, taken into use, changed and refused on
    SIGHUP while the scheduler answers."""
    config, plugins = processes.HOME + '/etc/plugins.conf', processes.HOME + '/etc/plugins.toml'
    component = processes.HOME + '/etc/weigher.wasm'
    shutil.copyfile(FIRST_WEIGHER, component)

    def say(text):
        with open(plugins, 'w', encoding='utf-8') as file:
            file.write(text)

    def hangup(expected):
        """What the scheduler says of its plugins once it has read them again."""
        def said():
            with open(log, encoding='utf-8') as file:
                return [line for line in file.read()[before:].splitlines() if 'SIGHUP: the plugins' in line]
        with open(log, encoding='utf-8') as file:
            before = len(file.read())
        processes.hang_up('ebbtide-scheduler-1')
        lines = until('the plugins to be read again', 30, said)
        must(expected in lines[0], 'after SIGHUP the scheduler said %s' % lines)
    packs = '[[plugins]]\nname = "pack"\nfile = "%s"\nmultiplier = %s\n'
    log = processes.log('ebbtide-scheduler-1')
    say('')
    with open(config, 'w', encoding='utf-8') as file:
        file.write('[ebbtide]\nplugins = %s\n' % plugins)
    processes.kill('ebbtide-scheduler-1', signal.SIGTERM)
    stack('stack_start_scheduler', 'ebbtide', '1', config)
    try:
        wait_scheduler()
        hosts = spread_of(stage, 'before')
        must(hosts == 3, "Nova's weighers put three servers on %d hosts of three" % hosts)
        stage.clear()
        say(packs % (component, '-1e6'))
        hangup('plugins=1')
        must(spread_of(stage, 'packed') == 1, 'three servers are not on one host although the plugin weighs most')
        stage.clear()
        # Half a file: what is in use stays.
        with open(component, 'r+b') as file:
            file.truncate(1000)
        hangup('stay as they are')
        must(spread_of(stage, 'still-packed') == 1, 'a file that was cut in half has changed how the scheduler decides')
        stage.clear()
        say('')
        hangup('plugins=0')
        must(spread_of(stage, 'after') == 3, 'a plugin that was taken out still counts')
        check('a weigher of the operator')
    finally:
        stage.clear()
        processes.kill('ebbtide-scheduler-1', signal.SIGTERM)
        stack('stack_start_scheduler', 'ebbtide', '1')
        wait_scheduler()


def relay(port, to):
    """Connects what comes to `port` with `to` on loopback: a database that comes later."""
    listener = socket.create_server(('127.0.0.1', port))

    def copy(source, sink):
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def serve():
        while True:
            try:
                ours, _ = listener.accept()
            except OSError:
                return
            theirs = socket.create_connection(('127.0.0.1', to))
            for pair in ((ours, theirs), (theirs, ours)):
                threading.Thread(target=copy, args=pair, daemon=True).start()
    threading.Thread(target=serve, daemon=True).start()
    return listener


@chapter
def a_ledger_that_comes_later(stage):
    """The ledger's database is away when the scheduler starts: requests that find room are
    answered, and servers leave once it is there."""
    with socket.create_server(('127.0.0.1', 0)) as free:
        port = free.getsockname()[1]
    config = processes.HOME + '/etc/late-ledger.conf'
    with open(config, 'w', encoding='utf-8') as file:
        file.write('[ebbtide]\nconnection = mysql+pymysql://stack:stack@127.0.0.1:%d/ebbtide\n' % port)
    processes.kill('ebbtide-scheduler-1', signal.SIGTERM)
    stack('stack_start_scheduler', 'ebbtide', '1', config)
    listener = None
    try:
        wait_scheduler()
        server = stage.cloud.boot('without-ledger', 'large')
        must(server['status'] == 'ACTIVE', 'without a ledger a server that has room is %s: %s' % (server['status'], server.get('fault')))
        stage.cloud.delete(server['id'])
        ages = stage.fill()
        server = stage.cloud.boot('no-room', 'large')
        must(server['status'] == 'ERROR', 'without a ledger a server that has no room is %s' % server['status'])
        must(len(stage.left(ages)) == 6, 'a server was evicted without a ledger')
        stage.cloud.delete(server['id'])
        listener = relay(port, int(os.environ['STACK_PORT_MYSQL']))

        def opened():
            with open(processes.log('ebbtide-scheduler-1'), encoding='utf-8') as file:
                return 'the ledger of preemptions: open' in file.read()
        until('the ledger to be opened', 30, opened)
        arrives(stage, ages, stage.cheapest(ages), lambda: [stage.cloud.create('with-ledger', 'large')], 'once the ledger is there')
    finally:
        stage.clear()
        processes.kill('ebbtide-scheduler-1', signal.SIGTERM)
        if listener:
            listener.close()
        stack('stack_start_scheduler', 'ebbtide', '1')
        wait_scheduler()


def main():
    only, failed = sys.argv[1:], []
    stage = Stage()
    for function in CHAPTERS:
        if only and function.__name__ not in only:
            continue
        began = time.monotonic()
        try:
            function(stage)
        except Exception as error:
            failed.append(function.__name__)
            if isinstance(error, AssertionError):
                print('   BROKEN %s' % error, flush=True)
            else:
                traceback.print_exc()
        print('   %-28s %5.1f s  %s' % (function.__name__, time.monotonic() - began, 'FAILED' if failed[-1:] == [function.__name__] else 'ok'), flush=True)
        try:
            stage.clear()
        except Exception as error:
            print('   BROKEN clearing up after %s: %s' % (function.__name__, error), flush=True)
            failed.append(function.__name__ + ' (clearing up)')
    sys.exit(1 if failed else 0)


if __name__ == '__main__':
    main()
