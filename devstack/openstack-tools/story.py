#!/usr/bin/python3
"""The story: three full hosts, six preemptible servers, and normal requests that need their room.
Each chapter ends with the books in order.

Usage: story.py [CHAPTER…|short]   short: without those of LONG
"""
import base64
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

import devices
import interruptions
import probes
import processes
import restored
from cloud import Refused, until
from database import rows, run
from feature_tour import every_feature_by_command
from invariants import allocations, audit, check, our_audit, upgrade_check
from occupation import Occupation
from preempt import Stage, Watch, must, wait_scheduler, wait_up
from preemptible_commands import as_administrator, every_preemptible_command
from processes import stack
from reclaims import a_host_that_is_taken_back
from run_beside import a_command_beside_its_servers

# The first component that was ever made: it prefers hosts with free VCPUs and memory.
COMPONENTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../weighers/wasm/tests/fixtures')
FIRST_WEIGHER = os.path.join(COMPONENTS, 'weigher-1.0.wasm')
# The first cost module: a server costs its processors, and each further one of a project 4 more.
FIRST_COST_MODULE = os.path.join(COMPONENTS, 'cost-1.0.wasm')
CHAPTERS = []
# Not in the short story, for the time that they take.
LONG = ['every_policy_of_a_group', 'slow_hypervisors', 'lives_that_end', 'advice_from_history', 'a_quota_of_unified_limits',
        'a_budget_protects_a_project', 'deleted_while_room_is_made', 'a_compute_that_no_cell_maps',
        'a_weigher_of_the_operator', 'a_ledger_that_comes_later', 'servers_that_come_back', 'a_command_beside_its_servers',
        'a_host_that_is_taken_back', 'every_preemptible_command', 'every_feature_by_command',
        *(also.__name__ for also in interruptions.CHAPTERS + devices.CHAPTERS + restored.CHAPTERS)]


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
    test_delete_server_while_in_building_state, on a full cloud), and others ask for room at the
    same moment: the victim lives on with its allocations, and no host ever runs more than it
    has."""
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
def the_api_with_a_token(stage):
    """Status, hosts, servers and decisions over REST with a token, at the catalog's address."""
    ages = stage.fill()
    cloud = stage.cloud

    def asked(path, **options):
        return cloud.request('preemption', 'GET', '/v1' + path, **options).json()

    region = asked('/region')
    must(region['hosts_up'] == 3 and region['bus_connected'], 'the region is %s' % region)
    hosts = asked('/hosts')['hosts']
    for host in hosts:
        used = {one['resource_class']: one for one in host['resources']}['VCPU']
        must(int(used['free_full']) == 0 and int(used['free_normal']) > 0, 'a host full of preemptible servers is %s' % host)
    known = {server['id'] for server in asked('/servers')['servers']}
    must(set(ages) <= known, 'servers are missing: %s' % sorted(set(ages) - known))
    arrived = []
    arrives(stage, ages, stage.cheapest(ages), lambda: arrived.append(cloud.create('by the API', 'large')) or arrived, 'the API with a token')
    gone = set(ages) - set(stage.left(ages))
    ended = [e for e in asked('/evacuations')['evacuations'] if e['state'] == 'evacuated' and e['victim_id'] in ages]
    must(len(ended) == len(gone), 'evacuations are %s' % ended)
    # The record is made after the answer.
    found = until('the decision', 20, lambda: asked('/decisions?server_id=' + arrived[0])['decisions'])
    request = cloud.asked[arrived[0]]
    must([one['request_id'] for one in found] == [request], 'for %s there are decisions %s' % (request, found))
    decision = asked('/decisions/' + request)['decision']
    victims = {victim['server_id'] for placement in decision['placements'] for victim in placement['victims']}
    must(decision['id'] == found[0]['id'] and victims == gone, 'the decision is %s' % decision)
    must({'rows', 'plan', 'room', 'whole'} <= {time['part'] for time in decision['times']}, 'times are %s' % decision['times'])
    with contextlib.suppress(Refused):
        cloud.request('preemption', 'POST', '/v1/servers', {'name': 'a', 'request': {'flavor': 'large'}})
        must(False, 'a server was created by our API')
    record = cloud.request('preemption', 'GET', '/v1/region/record').json()
    recorded = {server['id'] for server in record['state']['servers']}
    must(arrived[0] in recorded and gone.isdisjoint(recorded), 'servers of the record are %s' % sorted(recorded))
    wrong = cloud.session.get(cloud.endpoints['preemption'] + '/v1/servers', headers={'X-Auth-Token': 'gAAAAAwrong'}, timeout=30)
    must(wrong.status_code == 401 and 'Keystone uri=' in wrong.headers['WWW-Authenticate'], 'a wrong token gets %s' % wrong.status_code)
    # The same by the catalog and the openstack client.
    servers, explained = as_administrator('server list --all-projects', 'decision show ' + request)
    must({server['ID'] for server in servers} == set(ages) - gone, 'openstack preemptible lists %s' % servers)
    must(explained['id'] == decision['id'], 'openstack preemptible explains %s' % explained)
    print('      the API: %d hosts, %d servers, %d evacuations of today' % (len(hosts), len(known), len(ended)), flush=True)


@chapter
def lives_that_end(stage):
    """A maximum lifetime ends a server with notice, without a newcomer; within its guaranteed
    minutes a server is no victim."""
    cloud = stage.cloud
    mortal = {'ebbtide:preemptible': 'true', 'ebbtide:max_lifetime_seconds': '3600', 'ebbtide:grace_seconds': '10'}
    guarded = {'ebbtide:preemptible': 'true', 'ebbtide:protected_seconds': '7200'}
    made = [cloud.flavor('large.' + name, 4, 8000, 80, specs) for name, specs in (('mortal', mortal), ('guarded', guarded))]
    try:
        old, young = (cloud.boot(name, 'large.mortal')['id'] for name in ('old', 'young'))
        watch = Watch({old, young})
        try:
            # An hour less five seconds: its grace period has begun.
            run("update nova_cell1.instances set launched_at = utc_timestamp() - interval 3595 second, updated_at = utc_timestamp() where uuid = '%s'" % old)
            stage.wait_gone({old})
        finally:
            watch.end()
        must(old in watch.told, 'the server at the end of its lifetime went without a notice')
        must(young not in watch.told, 'a young server was warned: %s' % watch.told.get(young))
        must(stage.left({old: 60, young: 0}) == {young: 0}, 'after the lifetime there are %s' % stage.left({old: 60, young: 0}))
        # The row is closed after the agent's report, which comes after Nova's deletion.
        ended = until('the end in the ledger', 60, lambda: rows(
            "select document from ebbtide.nova_preemptions where finished_at is not null and request_id = %s", 'max-lifetime ' + old))
        must(len(ended) == 1 and '"newcomers":[]' in ended[0]['document'].replace(' ', ''), 'the ledger has %s' % ended)
        audit()
        cloud.delete(young)
        # Guaranteed minutes: 20 and 40 minutes old, of 120; nothing can leave for a normal request.
        ages = stage.fill('large.guarded', 6)
        stage.grow_old({uuid: 20 + n for n, uuid in enumerate(ages)})
        late = cloud.create('refused', 'large')
        server = cloud.settled(late, ('ACTIVE', 'ERROR'), seconds=150)
        must(server['status'] == 'ERROR', 'a guaranteed server made room: %s' % server)
        must(set(stage.left(ages)) == set(ages), 'guaranteed servers are gone')
        request = cloud.asked[late]
        decision = until('the decision', 20, lambda: cloud.request('preemption', 'GET', '/v1/decisions/' + request, check=False).json().get('decision'))
        must('in protected time' in str(decision), 'the explanation does not name the guaranteed minutes: %s' % decision)
        cloud.delete(late)
        # One of them gets older than its guarantee.
        (free, *_) = sorted(ages)
        stage.grow_old({free: 130})
        arrives(stage, {uuid: 130 if uuid == free else 20 for uuid in ages}, {free}, lambda: [cloud.create('placed', 'large')], 'guaranteed minutes that are over')
    finally:
        stage.clear()
        for flavor in made:
            cloud.nova('DELETE', '/flavors/' + flavor)


@chapter
def advice_from_history(stage):
    """Past lives and advice: what the scheduler ended, what owners ended, and what was there before
    anything was asked."""
    cloud = stage.cloud
    specs = {'ebbtide:preemptible': 'true', 'ebbtide:grace_seconds': '5'}
    flavor = cloud.flavor('large.advised', 4, 8000, 80, specs)

    def asked(path):
        return cloud.request('preemption', 'GET', '/v1' + path).json()

    def lives():
        return {(life['server_id'], life['end']) for life in asked('/lives?flavor=large.advised')['lives']}
    try:
        # Lives stay: those of an earlier run of the story, too.
        before = lives()
        ages = stage.fill('large.advised')
        must(lives() == before, 'servers that run have past lives: %s' % (lives() - before))
        # One is stopped and started by its owner, and goes on: the last in the order of victims.
        (*_, paused) = sorted(ages, key=lambda uuid: ages[uuid] % 60)
        cloud.action(paused, {'os-stop': None})
        must(cloud.settled(paused, ('SHUTOFF', 'ERROR'))['status'] == 'SHUTOFF', 'a server did not stop')
        cloud.action(paused, {'os-start': None})
        must(cloud.settled(paused)['status'] == 'ACTIVE', 'a server did not start')
        (victim,) = stage.cheapest(ages)
        arrives(stage, ages, {victim}, lambda: [cloud.create('advised', 'large')], 'a victim to learn from')
        (deleted, *_) = sorted(set(stage.left(ages)) - {paused})
        cloud.delete(deleted)
        # The agent's report comes after Nova's deletion.
        expected = {(victim, 'preempted'), (deleted, 'deleted')}
        until('the ends in the ledger and in Nova', 60, lambda: lives() - before == expected, pause=1)
        # The whole history has lives of servers that earlier chapters created and deleted.
        kinds = collections.Counter(life['end'] for life in asked('/lives')['lives'])
        told = asked('/advice?flavor=large.advised&job_hours=4')
        must((told['whose'], told['scope']) == ('everybody', 'all-preemptible'), 'the advice is %s' % told)
        must(told['interruptions'] >= 1 and told['lives'] >= len(ages), 'the advice is of %d lives, %d of them interrupted' % (told['lives'], told['interruptions']))
        must(bool(told['model']) != bool(told['too_little']), 'the advice has a model and says that too little is known, or neither: %s' % told)
        # Two lives of one server: until its owner stopped it, and from its start on.
        cloud.delete(paused)
        expected |= {(paused, 'stopped'), (paused, 'deleted')}
        until('the lives of a server that was started again', 60, lambda: lives() - before == expected, pause=1)
        normal = cloud.request('preemption', 'GET', '/v1/advice?flavor=large', check=False)
        must(normal.status_code == 400 and 'not preemptible' in normal.text, 'advice on a normal flavor is %s' % normal.text)
        print('      lives: %s; advice: %s' % (dict(kinds), told['model'] or told['too_little']), flush=True)
    finally:
        stage.clear()
        cloud.nova('DELETE', '/flavors/' + flavor)


@contextlib.contextmanager
def scheduler_with(name, *lines):
    """The scheduler with these lines of [ebbtide] and what follows, and afterwards without them."""
    config = processes.HOME + '/etc/%s.conf' % name
    with open(config, 'w', encoding='utf-8') as file:
        file.write('[ebbtide]\n%s\n' % '\n'.join(lines))
    processes.kill('ebbtide-scheduler-1', signal.SIGTERM)
    stack('stack_start_scheduler', 'ebbtide', '1', config)
    try:
        wait_scheduler()
        yield
    finally:
        processes.kill('ebbtide-scheduler-1', signal.SIGTERM)
        stack('stack_start_scheduler', 'ebbtide', '1')
        wait_scheduler()


@chapter
def a_quota_of_unified_limits(stage):
    """[ebbtide] quota: a project gets as many preemptible servers as Keystone says, and normal ones
    beside them."""
    cloud = stage.cloud

    def keystone(method, path, body=None):
        response = cloud.session.request(method, cloud.auth + path, json=body, timeout=60)
        response.raise_for_status()
        return response.json() if response.content else None
    service = keystone('GET', '/services?type=preemption')['services'][0]['id']
    user = keystone('GET', '/users?name=nova')['users'][0]['id']
    reader = keystone('GET', '/roles?name=reader')['roles'][0]['id']
    # Keystone shows the limits of all projects to roles on the whole system only.
    keystone('PUT', '/system/users/%s/roles/%s' % (user, reader))
    limits = (('preemptible_servers', 2), ('preemptible_vcpus', -1), ('preemptible_memory_mb', -1))
    made = keystone('POST', '/registered_limits', {'registered_limits': [
        {'service_id': service, 'region_id': 'RegionOne', 'resource_name': name, 'default_limit': most} for name, most in limits]})
    made = {one['resource_name']: one['id'] for one in made['registered_limits']}
    try:
        with scheduler_with('quota', 'quota = true', '[keystone_authtoken]', 'token_cache_time = 1'):
            for n in range(2):
                server = cloud.boot('within%d' % n, 'large.preemptible')
                must(server['status'] == 'ACTIVE', 'within the quota a server is %s: %s' % (server['status'], server.get('fault')))
            over = cloud.boot('over', 'large.preemptible')
            fault = (over.get('fault') or {}).get('message', '')
            must(over['status'] == 'ERROR' and 'EB-DOOR-063' in fault and 'preemptible_servers: 2 of 2 in use, 1 more asked for' in fault,
                 'over the quota a server is %s: %s' % (over['status'], fault))
            request = cloud.asked[over['id']]
            decision = until('the decision', 20, lambda: cloud.request('preemption', 'GET', '/v1/decisions/' + request, check=False).json().get('decision'))
            must('EB-DOOR-063' in decision['no_valid_host']['reason'], 'the decision says %s' % decision['no_valid_host'])
            cloud.delete(over['id'])
            normal = cloud.boot('normal', 'large')
            must(normal['status'] == 'ACTIVE', 'a normal server beside the quota is %s: %s' % (normal['status'], normal.get('fault')))
            keystone('PATCH', '/registered_limits/' + made['preemptible_servers'], {'registered_limit': {'default_limit': 3}})

            def third():
                server = cloud.boot('third', 'large.preemptible')
                if server['status'] == 'ACTIVE':
                    return server
                cloud.delete(server['id'])
                return None
            until('the higher limit to be seen', 30, third, pause=0.5)
            print('      quota: %s' % fault, flush=True)
    finally:
        stage.clear()
        for one in made.values():
            keystone('DELETE', '/registered_limits/' + one)


@chapter
def a_budget_protects_a_project(stage):
    """Disruption budgets: no server of a project that may lose none leaves, and a server group
    loses as many as its budget allows; the decision says why a request got no host."""
    cloud = stage.cloud
    path = '/v1/budgets'

    def put(**budget):
        return cloud.request('preemption', 'PUT', path, dict(budget, window_seconds=3600)).json()['budget']

    def refused(name, ages):
        uuid = cloud.create(name, 'large')
        server = cloud.settled(uuid, ('ACTIVE', 'ERROR'), seconds=150)
        must(server['status'] == 'ERROR', 'beyond a budget a server is %s' % server['status'])
        must(stage.left(ages) == ages, 'beyond a budget servers have left: %s' % sorted(set(ages) - set(stage.left(ages))))
        request = cloud.asked[uuid]
        decision = until('the decision', 20, lambda: cloud.request('preemption', 'GET', '/v1/decisions/' + request, check=False).json().get('decision'))
        must('beyond a disruption budget' in str(decision), 'the decision does not name the budget: %s' % decision)
        cloud.delete(uuid)

    group = cloud.nova('POST', '/os-server-groups', {'server_group': {'name': 'quorum', 'policy': 'soft-anti-affinity'}}).json()['server_group']['id']
    scopes = ('project_id=' + cloud.project, 'group_id=' + group)
    try:
        ages = stage.fill(hints={'group': group})
        # Earlier chapters count against a budget of the project, unless it allows none at all.
        made = put(project_id=cloud.project, max_victims=0)
        must((made['project_id'], made['max_victims'], made['window_seconds']) == (cloud.project, 0, 3600), 'the budget is %s' % made)
        refused('protected', ages)
        cloud.request('preemption', 'DELETE', path + '?' + scopes[0])
        put(group_id=group, max_victims=1)
        listed = cloud.request('preemption', 'GET', path).json()['budgets']
        must([one['group_id'] for one in listed] == [group], 'budgets are %s' % listed)
        arrives(stage, ages, stage.cheapest(ages), lambda: [cloud.create('within', 'large')], 'within the budget of a group')
        ages = stage.left(ages)
        refused('beyond', ages)
        put(group_id=group, max_victims=2)
        arrives(stage, ages, stage.cheapest(ages), lambda: [cloud.create('larger', 'large')], 'within a larger budget')
        audit()
    finally:
        stage.clear()
        for scope in scopes:
            cloud.request('preemption', 'DELETE', path + '?' + scope, check=False)
        cloud.nova('DELETE', '/os-server-groups/' + group)


@chapter
def room_before_it_is_asked_for(stage):
    """[ebbtide] headroom: a preemptible server leaves before a normal one needs its capacity, and
    no more than one; its owner releases it before its grace period is over; the next one is
    warned."""
    cloud = stage.cloud
    specs = {'ebbtide:preemptible': 'true', 'ebbtide:grace_seconds': '300'}
    flavor = cloud.flavor('large.patient', 4, 8000, 80, specs)

    def asked(path):
        return cloud.request('preemption', 'GET', '/v1' + path).json()

    def leaving():
        return [one for one in asked('/evacuations')['evacuations'] if one['cause'] == 'headroom' and one['victim_id'] in ages and one['state'] == 'draining']
    try:
        ages = stage.fill('large.patient')
        with scheduler_with('headroom', 'headroom = large:1', 'headroom_interval = 1'):
            (evacuation,) = until('a server to leave ahead of demand', 60, leaving)
            victim = evacuation['victim_id']
            must(victim in stage.cheapest(ages), 'not the cheapest server leaves: %s' % evacuation)
            stays = next(uuid for uuid in ages if uuid != victim)
            refused = cloud.request('preemption', 'POST', '/v1/servers/%s/release' % stays, {}, check=False)
            must(refused.status_code == 409, 'the release of a server that stays gets %s: %s' % (refused.status_code, refused.text))
            began = time.monotonic()
            cloud.request('preemption', 'POST', '/v1/servers/%s/release' % victim, {})
            stage.wait_gone({victim})
            seconds = time.monotonic() - began
            must(seconds < 100, 'a released server went after %.0f s' % seconds)
            free = 'ebbtide_headroom_is_free{flavor="large",aggregate=""} 1'
            until('the room to be known', 60, lambda: free in told('/metrics').splitlines())
            must(set(stage.left(ages)) == set(ages) - {victim}, 'more servers have left than were needed')
            warned = "select instance_uuid from nova_cell1.instance_metadata where `key` = 'ebbtide:rebalance' and deleted = 0"
            early = until('a server to be warned early', 60, lambda: {row['instance_uuid'] for row in rows(warned)} & set(stage.left(ages)))
            must(len(early) == 1, 'more than the next server is warned: %s' % early)
            began = time.monotonic()
            server = cloud.boot('at once', 'large')
            took = time.monotonic() - began
            must(server['status'] == 'ACTIVE', 'the server is %s: %s' % (server['status'], server.get('fault')))
            until('room for the next one to be made', 60, leaving)
            print('      headroom: released in %.1f s of 300, then a normal server in %.1f s' % (seconds, took), flush=True)
            audit()
    finally:
        stage.clear()
        cloud.nova('DELETE', '/flavors/' + flavor)


@chapter
def servers_that_come_back(stage):
    """[ebbtide] comeback: servers that were stopped and shelved for a normal one come back when
    there is room, with what they held; one that its owner starts gets its claim, too."""
    cloud = stage.cloud
    keys = {'ebbtide:preemptible': 'true', 'ebbtide:grace_seconds': '2'}
    made = [cloud.flavor('slim.' + name, 4, 8000, 1, specs) for name, specs in (
        ('stopping', dict(keys, **{'ebbtide:interruption': 'stop'})),
        ('shelving', dict(keys, **{'ebbtide:interruption': 'hibernate'})),
        ('normal', {}))]
    kept = {'slim.stopping': 'SHUTOFF', 'slim.shelving': 'SHELVED_OFFLOADED'}

    def leaves(flavor):
        """One of the flavor has had to leave a full cloud for a normal server; both."""
        one = cloud.boot('kept', flavor)['id']
        others = [cloud.boot('other-%d' % n, 'slim.normal')['id'] for n in range(5)]
        large = cloud.boot('large', 'slim.normal')
        must(large['status'] == 'ACTIVE', 'no room was made: %s' % large.get('fault'))
        left = cloud.settled(one, (kept[flavor], 'ERROR'))
        must(left['status'] == kept[flavor], 'the victim is %s' % left['status'])
        return one, large['id'], others

    def runs_again(one, whole):
        began = time.monotonic()
        until('the server to run again', 120, lambda: cloud.server(one)['status'] == 'ACTIVE', pause=0.5)
        seconds = time.monotonic() - began
        until('its whole claim', 30, lambda: allocations().get(one) == whole)
        return seconds
    try:
        with scheduler_with('comeback', 'comeback_first = 2', 'comeback_reserve_percent = 0'):
            times = {}
            for flavor in kept:
                one, large, others = leaves(flavor)
                whole = allocations()[large]
                must(allocations().get(one, {}) != whole, 'a server that left holds all')
                cloud.delete(large)
                times[flavor] = runs_again(one, whole)
                actions = [a['action'] for a in cloud.nova('GET', '/servers/%s/os-instance-actions' % one).json()['instanceActions']]
                must(actions[0] == {'slim.stopping': 'start', 'slim.shelving': 'unshelve'}[flavor], 'the server has %s' % actions)
                # The scheduler counts it at its next look, and only while it is there.
                counted = 'ebbtide_comebacks_total{kind="resumed"} %d' % len(times)
                until('the scheduler to see that it runs', 30, lambda: counted in told('/metrics').splitlines())
                audit()
                cloud.delete(one, *others)
            # Its owner starts it. The lock keeps the scheduler from doing so first.
            one, large, others = leaves('slim.stopping')
            cloud.action(one, {'lock': None})
            cloud.delete(large)
            waiting = 'ebbtide_servers_waiting 1'
            until('the queue to be known', 30, lambda: waiting in told('/metrics').splitlines())
            # An administrator may start what a tenant has locked.
            cloud.action(one, {'os-start': None})
            runs_again(one, whole)
            lines = {'ebbtide_comebacks_total{kind="resumed"} 2', 'ebbtide_comebacks_total{kind="started_by_owner"} 1'}
            until('the figures', 30, lambda: lines <= set(told('/metrics').splitlines()))
            print('      came back %s' % ', '.join('%s in %.1f s' % item for item in times.items()), flush=True)
            audit()
    finally:
        stage.clear()
        for flavor in made:
            cloud.nova('DELETE', '/flavors/' + flavor)


@chapter
def prices_and_bids(stage):
    """[ebbtide] market: the price rises as the cloud fills; below it a request is refused, and a
    server whose owner pays less leaves with notice."""
    cloud = stage.cloud
    specs = {'ebbtide:preemptible': 'true', 'ebbtide:grace_seconds': '5', 'ebbtide:price_per_hour': '0.1'}
    flavor = cloud.flavor('large.priced', 4, 8000, 80, specs)

    def price():
        prices = cloud.request('preemption', 'GET', '/v1/prices').json()
        must(prices['market'], 'there is no market: %s' % prices)
        return next(float(one['price']) for one in prices['prices'] if one['flavor'] == 'large.priced')
    try:
        with scheduler_with('market', 'market = true', 'market_interval = 1', 'market_step_percent = 100'):
            until('the price of an empty cloud', 60, lambda: price() < 0.02)
            poor = cloud.boot('poor', 'large.priced', hints={'ebbtide:max_price': '0.001'})
            fault = (poor.get('fault') or {}).get('message', '')
            must(poor['status'] == 'ERROR' and 'EB-DOOR-066' in fault and 'above your maximum of 0.001' in fault,
                 'below the price a server is %s: %s' % (poor['status'], fault))
            cloud.delete(poor['id'])
            thrifty = cloud.boot('thrifty', 'large.priced', hints={'ebbtide:max_price': '0.05'})
            must(thrifty['status'] == 'ACTIVE', 'above the price a server is %s: %s' % (thrifty['status'], thrifty.get('fault')))
            others = stage.fill('large.priced', 5)
            stage.wait_gone({thrifty['id']})
            must(stage.left(others) == others, 'servers left whose owners name no maximum price')
            # The agent's report comes after Nova's deletion.
            ended = until('the end in the ledger', 60, lambda: rows(
                "select document from ebbtide.nova_preemptions where finished_at is not null and request_id = %s", 'out-of-bid ' + thrifty['id']))
            must(len(ended) == 1, 'the ledger has %s' % ended)
            history = cloud.request('preemption', 'GET', '/v1/price-history?flavor=large.priced').json()['prices']
            must(len(history) >= 3 and max(float(one['price']) for one in history[:-1]) > 0.05, 'the price was %s' % history)
            life = until('the past life', 60, lambda: cloud.request('preemption', 'GET', '/v1/lives?flavor=large.priced').json()['lives'])
            must([one['end'] for one in life] == ['out-of-bid'] and float(life[0]['price_per_hour']) == 0.1, 'the past life is %s' % life)
            print('      prices: %s; %s' % (' '.join(one['price'] for one in reversed(history)), fault), flush=True)
            audit()
    finally:
        stage.clear()
        cloud.nova('DELETE', '/flavors/' + flavor)


chapter(a_command_beside_its_servers)


@chapter
def a_compute_that_no_cell_maps(stage):
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


def emptied(stage):
    """No server is there, and no compute reports one: weighers see the reports."""
    stage.clear()
    used = 'select 1 from nova_cell1.compute_nodes where deleted = 0 and vcpus_used > 0'
    until('the computes to report that they are empty', 60, lambda: not rows(used))


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
        emptied(stage)
        say(packs % (component, '-1e6'))
        hangup('plugins=1')
        must(spread_of(stage, 'packed') == 1, 'three servers are not on one host although the plugin weighs most')
        emptied(stage)
        # Half a file: what is in use stays.
        with open(component, 'r+b') as file:
            file.truncate(1000)
        hangup('stay as they are')
        must(spread_of(stage, 'still-packed') == 1, 'a file that was cut in half has changed how the scheduler decides')
        emptied(stage)
        say('')
        hangup('plugins=0')
        must(spread_of(stage, 'after') == 3, 'a plugin that was taken out still counts')
        check('a weigher of the operator')
    finally:
        stage.clear()
        processes.kill('ebbtide-scheduler-1', signal.SIGTERM)
        stack('stack_start_scheduler', 'ebbtide', '1')
        wait_scheduler()


@chapter
def plugins_for_all_schedulers(stage):
    """A weigher that is added through the API is compared while it is in shadow, counts from the
    next request on and after a restart, and a cost module is chosen there; until they are taken
    away."""
    def asked(method, path, body=None):
        return stage.cloud.request('preemption', method, '/v1' + path, body)
    with open(FIRST_WEIGHER, 'rb') as file:
        component = base64.b64encode(file.read()).decode()
    stage.clear()
    try:
        must(spread_of(stage, 'before') == 3, "Nova's weighers do not put three servers on three hosts")
        emptied(stage)
        asked('POST', '/plugins', {'name': 'pack', 'component': component, 'multiplier': -1e6, 'shadow': True})
        must(spread_of(stage, 'shadow') == 3, 'a plugin in shadow decides')
        # Decisions are compared when they are recorded.
        report = until('three comparisons', 30, lambda: (lambda told: told if int(told['decisions']) >= 3 else None)(asked('GET', '/shadow').json()))
        must(int(report['different']) >= 2 and int(report['failed']) == 0 and report['what'] == 'weigher pack', 'the report is %s' % report)
        emptied(stage)
        asked('DELETE', '/plugins/pack')
        added = asked('POST', '/plugins', {'name': 'pack', 'component': component, 'multiplier': -1e6}).json()['plugin']
        must((added['kind'], added['in_use'], added['added']) == ('weigher', True, True), 'the plugin is %s' % added)
        must(spread_of(stage, 'packed') == 1, 'three servers are not on one host although the plugin weighs most')
        emptied(stage)
        processes.kill('ebbtide-scheduler-1', signal.SIGTERM)
        stack('stack_start_scheduler', 'ebbtide', '1')
        wait_scheduler()
        must(spread_of(stage, 'restarted') == 1, 'after a restart the plugin does not count')
        emptied(stage)
        calls = asked('GET', '/plugins').json()['plugins'][0]['calls']
        must(int(calls) >= 3, 'after three servers the plugin was called %s times' % calls)
        asked('PATCH', '/plugins/pack', {'enabled': False})
        must(spread_of(stage, 'disabled') == 3, 'a plugin that is disabled counts')
        used = asked('PUT', '/cost-module', {'name': 'newest_first'}).json()['name']
        must(asked('GET', '/region').json()['cost_module'] == used == 'newest_first', 'the cost module is %s' % used)
        print('      plugins: in shadow %s of %s decisions differ; called %s times by the scheduler that started later; then %s decides' % (
            report['different'], report['decisions'], calls, used), flush=True)
    finally:
        stage.clear()
        asked('PUT', '/cost-module', {'name': ''})
        for left in asked('GET', '/plugins').json()['plugins']:
            asked('DELETE', '/plugins/' + left['name'])
    must(asked('GET', '/plugins').json()['plugins'] == [], 'a plugin that was removed is there')


@chapter
def a_cost_module_in_shadow(stage):
    """To a cost module all servers are alike, so that it would take the youngest; in shadow it says
    so, and the cheapest goes."""
    def asked(method, path, body=None):
        return stage.cloud.request('preemption', method, '/v1' + path, body)
    with open(FIRST_COST_MODULE, 'rb') as file:
        component = base64.b64encode(file.read()).decode()
    ages = stage.fill()
    try:
        added = asked('POST', '/plugins', {'name': 'owners', 'component': component, 'shadow': True}).json()['plugin']
        must(not added['in_use'], 'in shadow the plugin is %s' % added)
        arrives(stage, ages, stage.cheapest(ages), lambda: [stage.cloud.create('compared', 'large')], 'a cost module in shadow')
        report = until('a comparison', 30, lambda: (lambda told: told if int(told['decisions']) >= 1 else None)(asked('GET', '/shadow').json()))
        decided, shadow = report['decided'], report['in_shadow']
        must(int(report['failed']) == 0 and int(decided['victims']) == int(shadow['victims']) == 1, 'the report is %s' % report)
        # Another victim, maybe on the same host: dearer by the cost module in use, alike by the one
        # in shadow.
        must(decided['cost'] < shadow['cost'] and decided['shadow_cost'] == shadow['shadow_cost'] > 0, 'the report is %s' % report)
        print('      %s in shadow: its victim would cost %.0f instead of %.0f %s' % (
            report['what'], shadow['cost'], decided['cost'], report['cost_unit']), flush=True)
    finally:
        for left in asked('GET', '/plugins').json()['plugins']:
            asked('DELETE', '/plugins/' + left['name'])


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


chapter(a_host_that_is_taken_back)
chapter(every_preemptible_command)
chapter(every_feature_by_command)
for also in interruptions.CHAPTERS + devices.CHAPTERS + restored.CHAPTERS:
    chapter(also)


def tell(chapters, long=()):
    """Tells the chapters that the command line names, or all; `short` names those not in `long`."""
    names = [f.__name__ for f in chapters]
    groups = {'short': [name for name in names if name not in long]}
    only, failed = [name for word in sys.argv[1:] for name in groups.get(word, [word])], []
    unknown = (set(only) | set(long)) - set(names)
    if unknown:
        sys.exit('there is no chapter %s; there are %s' % (', '.join(sorted(unknown)), ', '.join(names)))
    stage = Stage()
    for function in chapters:
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
    tell(CHAPTERS, LONG)
