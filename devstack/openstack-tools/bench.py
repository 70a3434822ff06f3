#!/usr/bin/python3
"""Measures nova-scheduler and ebbtide-scheduler one after the other on the same running stack, with
the same client.

Usage: bench.py OUT.json [--hosts 3,100,1000,5000] [--runs N] [--total N] [--only
nova-scheduler|ebbtide] [--no-full] [--page OUT.md]

The stack runs without a scheduler (devstack/bench-openstack sees to that). For each number of
hosts: rows are made, then for each scheduler it is started and asked at once (start-up), told about
every host (warm), asked one at a time, and with 4 and 16 requests in flight. At 1,000 hosts that
are full of preemptible servers, ours is asked for room that only a victim can give. In the same run
Placement alone is asked, without a scheduler, what ours asks it for a request: no scheduler that
claims in this way can be faster.
"""
import argparse
import json
import os
import subprocess
import sys
import time

import bench_page
import judge
import processes
from cloud import Cloud, until
from database import one, rows
from processes import stack

HOME, TOOLS = os.environ['STACK_HOME'], os.environ['STACK_TOOLS']
# Whose processor time is told apart.
WATCHED = ['placement', 'keystone', 'mysql', 'rabbit', 'memcached']
ORDINARY = {'vcpus': 1, 'memory_mb': 2000, 'root_gb': 20}
# As large as one victim, so that each request needs one.
PREEMPTING = {'vcpus': 16, 'memory_mb': 64000, 'root_gb': 1000, 'wanted': True}


class Client:
    def __init__(self):
        self.process = subprocess.Popen([os.environ['STACK_NOVA_PYTHON'], TOOLS + '/bench_client.py'], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=open(HOME + '/log/bench-client.out', 'a', encoding='utf-8'), text=True)
        self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError('the client of the benchmark has ended; see %s/log/bench-client.out' % HOME)
        answer = json.loads(line)
        if answer.get('error'):
            raise RuntimeError('the client of the benchmark: ' + answer['error'])
        return answer

    def send(self, **command):
        self.process.stdin.write(json.dumps(command) + '\n')
        self.process.stdin.flush()

    def ask(self, **command):
        self.send(**command)
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)


def scheduler_name(which):
    return 'nova-scheduler-1' if which == 'nova-scheduler' else 'ebbtide-scheduler-1'


def fake_hosts(column):
    return [r[column] for r in rows("select host, uuid from nova_cell1.compute_nodes where host like 'fake%' and deleted = 0 order by id")]


def at_rest(name):
    """Until a process has had next to nothing to do for a second and a half."""
    calm = {'since': None, 'cpu': processes.cpu_seconds(name), 'at': time.monotonic()}

    def look():
        cpu, now = processes.cpu_seconds(name), time.monotonic()
        busy = (cpu - calm['cpu']) / max(now - calm['at'], 1e-3) > 0.1
        calm['cpu'], calm['at'] = cpu, now
        calm['since'] = None if busy else (calm['since'] or now)
        return calm['since'] and now - calm['since'] >= 1.5
    until('%s to come to rest' % name, 600, look, pause=0.5)


def measured(client, name, **command):
    """One command with the processor time of everybody, in ms for each request."""
    watched = [name] + WATCHED

    def cpu(process):
        return (processes.exact_cpu_seconds if process == name else processes.cpu_seconds)(process)
    before = {n: cpu(n) for n in watched}
    answer = client.ask(**command)
    count = command.get('runs', 0) + command.get('warm_up', 2) if command['do'] == 'seq' else command['total']
    answer['cpu_ms_per_request'] = {('scheduler' if n == name else n): round((cpu(n) - before[n]) * 1000 / count, 3) for n in watched}
    if answer.get('failed'):
        print('      %d of %d requests failed: %s' % (answer['failed'], count, answer['errors']), flush=True)
    return answer


def one_scheduler(client, which, count, options, config):
    """Everything about one scheduler at one size."""
    name = scheduler_name(which)
    result = {}
    began = time.time()
    stack('stack_start_scheduler', which, '1', *config)
    first = client.ask(do='first', flavor=ORDINARY)
    with open('/proc/%d/stat' % processes.pid(name), encoding='utf-8') as file:
        born = int(file.read().rpartition(')')[2].split()[19]) / os.sysconf('SC_CLK_TCK')
    with open('/proc/uptime', encoding='utf-8') as file:
        born += time.time() - float(file.read().split()[0])
    result['start_to_first_answer_s'] = round(first['at'] - born, 2)
    result['script_to_first_answer_s'] = round(first['at'] - began, 2)
    at_rest(name)
    result['rss_mib_started'] = round(processes.memory_mib(name), 1)
    client.ask(do='sync', hosts=fake_hosts('host'))
    at_rest(name)
    result['ping'] = client.ask(do='ping', runs=20)
    result['seq'] = measured(client, name, do='seq', runs=options.runs if count < 5000 else max(options.runs // 2, 8), flavor=ORDINARY)
    for k in (4, 16):
        total = options.total if which == 'ebbtide' or count < 1000 else max(options.total // (2 if count < 5000 else 4), 16)
        result['conc%d' % k] = measured(client, name, do='conc', in_flight=k, total=total, flavor=ORDINARY)
    result['rss_mib'] = round(processes.memory_mib(name), 1)
    result['load1'] = os.getloadavg()[0]
    stack('stack_stop_schedulers')
    print('   %-15s %6d hosts: median %.1f ms, p90 %.1f, scheduler CPU %.1f ms, %.1f and %.1f requests/s, %.0f MiB, start %.1f s, load %.1f' % (
        which, count, result['seq'].get('median', -1), result['seq'].get('p90', -1), result['seq']['cpu_ms_per_request']['scheduler'],
        result['conc4']['per_second'], result['conc16']['per_second'], result['rss_mib'], result['start_to_first_answer_s'], result['load1']), flush=True)
    return result


def placement_alone(client, do, beside, **command):
    """What requests of one kind need without a scheduler: milliseconds, and the processor time of
    Placement and MariaDB for each."""
    watched = ['placement', 'mysql']
    before = {n: processes.cpu_seconds(n) for n in watched}
    answer = client.ask(do=do, beside=beside, **command)
    answer['cpu_ms_per_request'] = {n: round((processes.cpu_seconds(n) - before[n]) * 1000 / answer['n'], 1) for n in watched}
    client.ask(do='forget', uuids=answer.pop('kept', []))
    return answer


def full_cloud(client, count, options, config):
    """Preempting requests: `count` hosts full of preemptible servers."""
    cloud = Cloud()
    server = cloud.boot('template', cloud.flavor('small.preemptible'))
    assert server['status'] == 'ACTIVE', server
    stack('stack_stop_schedulers')
    subprocess.run(['/usr/bin/python3', TOOLS + '/fake_hosts.py', str(count), '--full'], check=True)
    name = scheduler_name('ebbtide')
    # A host with preemptible servers has an agent, which has declared its queue.
    client.ask(do='agents', hosts=fake_hosts('host'))
    stack('stack_start_scheduler', 'ebbtide', '1', *config)
    # What it takes it keeps: else the next request would find its room free, and need no victim.
    client.ask(do='first', flavor=dict(PREEMPTING), keep=True)
    at_rest(name)
    before = one("select count(distinct consumer_id) from placement.allocations")
    result = {'seq': measured(client, name, do='seq', runs=options.runs, flavor=PREEMPTING, keep=True)}
    result['conc16'] = measured(client, name, do='conc', in_flight=16, total=options.total, flavor=PREEMPTING, keep=True)
    # Each request has taken one victim's place, and holds it still: as many consumers as before,
    # and no host over its capacity.
    result['consumers_more'] = one("select count(distinct consumer_id) from placement.allocations") - before
    result['over_capacity'] = one(
        "select count(*) from (select i.id from placement.inventories i join placement.allocations a on a.resource_provider_id = i.resource_provider_id "
        "and a.resource_class_id = i.resource_class_id group by i.id, i.total having sum(a.used) > i.total) t")
    result['load1'] = os.getloadavg()[0]
    stack('stack_stop_schedulers')
    victims = rows(
        "select p.uuid as provider, c.uuid as consumer, c.generation, j.external_id as project, u.external_id as owner from placement.allocations a "
        "join placement.resource_providers p on p.id = a.resource_provider_id join placement.consumers c on c.uuid = a.consumer_id "
        "join placement.projects j on j.id = c.project_id join placement.users u on u.id = c.user_id "
        "join nova_cell1.instances i on i.uuid = c.uuid where a.resource_class_id = 0 and p.name like 'fake%%' group by p.id limit %s", 2 * options.runs)
    result['swap'] = placement_alone(client, 'swaps', False, flavor=PREEMPTING, victims=victims[::2])
    result['floor'] = placement_alone(client, 'swaps', True, flavor=PREEMPTING, victims=victims[1::2])
    print('   %-15s %6d full hosts, a victim for each request: median %.1f ms, p90 %.1f, %.1f requests/s; Placement alone %.1f ms' % (
        'ebbtide', count, result['seq'].get('median', -1), result['seq'].get('p90', -1), result['conc16']['per_second'],
        result['floor']['median']), flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    parser.add_argument('out')
    parser.add_argument('--hosts', default='3,100,1000,5000')
    parser.add_argument('--runs', type=int, default=30)
    parser.add_argument('--total', type=int, default=64)
    parser.add_argument('--only')
    parser.add_argument('--no-full', action='store_true')
    parser.add_argument('--full-hosts', type=int, default=1000)
    parser.add_argument('--page')
    options = parser.parse_args()
    which = [options.only] if options.only else ['nova-scheduler', 'ebbtide']
    client = Client()
    found = {'began': time.strftime('%Y-%m-%d %H:%M:%S'), 'cores': os.cpu_count(), 'load1': os.getloadavg()[0], 'sizes': {}}
    etc = HOME + '/etc/'
    for count in [int(n) for n in options.hosts.split(',')]:
        subprocess.run(['/usr/bin/python3', TOOLS + '/fake_hosts.py', str(max(count - 3, 0))], check=True)
        found['sizes'][count] = {w: one_scheduler(client, w, count, options, [etc + 'bench.conf']) for w in which}
        if count > 3:
            hosts = fake_hosts('uuid')[:options.runs]
            found['sizes'][count]['claim'] = placement_alone(client, 'claims', False, flavor=ORDINARY, hosts=hosts)
            found['sizes'][count]['floor'] = placement_alone(client, 'claims', True, flavor=ORDINARY, hosts=hosts)
            print('   Placement alone %6d hosts: median %.1f ms' % (count, found['sizes'][count]['floor']['median']), flush=True)
        save(options, found)
    if 'ebbtide' in which and not options.no_full:
        subprocess.run(['/usr/bin/python3', TOOLS + '/fake_hosts.py', '0'], check=True)
        stack('stack_start_scheduler', 'nova-scheduler', '1')
        found['full'] = dict(full_cloud(client, options.full_hosts, options, [etc + 'bench.conf', etc + 'bench-full.conf']), hosts=options.full_hosts)
    subprocess.run(['/usr/bin/python3', TOOLS + '/fake_hosts.py', '0'], check=True)
    client.close()
    save(options, found)
    faults = judge.full_cloud_faults(found['full']) if 'full' in found else []
    for fault in faults:
        print('WRONG on full hosts: ' + fault, file=sys.stderr, flush=True)
    sys.exit(1 if faults else 0)


def save(options, found):
    with open(options.out, 'w', encoding='utf-8') as file:
        json.dump(found, file, indent=1)
    if options.page:
        with open(options.page, 'w', encoding='utf-8') as file:
            file.write(bench_page.page(found))


if __name__ == '__main__':
    main()
