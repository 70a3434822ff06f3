#!/usr/bin/python3
"""Batch work on nodes that are servers of this OpenStack: ebbtide-batch with the rights of a tenant
(slurm_cluster.py).

A bag with a deadline, a sweep that saves its work and a workflow of three stages. The quota is
exhausted at first; normal servers take servers of the tenant; the service is killed. Then Nova's
API is away for two minutes while members run. Every member ends once, in time, and no server stays.
"""
import contextlib
import json
import os
import subprocess
import time
import tomllib

import processes
from cloud import until
from invariants import audit, check
from preempt import must
from slurm_cluster import BIN, CHECKOUT, Cluster, cluster_of

BAG, SWEEP_SECONDS, DEADLINE, MAP = 40, 40, 480, 8
# How long Nova's API is away, and what is in reserve for it before a deadline.
AWAY, MARGIN = 120, 120 + 60

SETTINGS = '''state_dir = "{folder}/state"
listen = "unix:{folder}/socket"
poll_seconds = 0.5

[slurm]
conf = "{folder}/cluster/slurm.conf"
partition = "batch"
ebbtide = "{bin}/ebbtide"

[openstack]
cloud = "tenant"
clouds_file = "{folder}/{clouds}"
image = "{image}"
network = "none"

[[types]]
name = "spot"
nodes = "c[1-{spot}]"
flavor = "{flavor}"
market = "preemptible"
vcpus = 2
memory_mb = 4000
price = "0.10"
model = "uniform:max=24"

[[types]]
name = "normal"
nodes = "c[{normal}-{nodes}]"
flavor = "large"
market = "on-demand"
vcpus = 2
memory_mb = 4000
price = "0.30"

[policy]
spare_seconds = 4
boot_seconds = 15
launch_seconds = 60
launch_again_seconds = 3
checkpoint_seconds = 2
margin_seconds = {margin}
'''


class Batch(Cluster):
    """The cluster with the batch service beside it."""
    template = SETTINGS
    spot = 4

    def __init__(self, folder, environment):
        self.names = {'spot': self.spot, 'normal': self.spot + 1, 'margin': 5}
        self.partitions = ['PartitionName=batch Nodes=c[1-%d] MaxTime=INFINITE State=UP' % self.nodes]
        super().__init__(folder, environment)

    def ebbtide(self, *words):
        """Runs ebbtide batch to its end."""
        command = [BIN + '/ebbtide', 'batch', '--service', 'unix:%s/socket' % self.folder, *words]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=self.environment, timeout=120, check=False)

    def batch(self, *words):
        """The same; its JSON."""
        done = self.ebbtide(*words, '-o', 'json')
        must(done.returncode == 0, '%s says (%d): %s%s' % (' '.join(words), done.returncode, done.stdout, done.stderr))
        return json.loads(done.stdout)

    def work(self, name, **change):
        """A work of devstack/batch-works, changed: the path of its file."""
        with open('%s/devstack/batch-works/%s.toml' % (CHECKOUT, name), encoding='utf-8') as file:
            work = tomllib.loads(file.read().replace('@DIR@', self.folder))
        path = '%s/%s.json' % (self.folder, name)
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(work | change, file)
        return path

    def hand_in(self, name, **change):
        return str(self.batch('submit', self.work(name, **change))['id'])

    def ended(self, name):
        """How often each member wrote its line."""
        counts = {}
        with contextlib.suppress(FileNotFoundError), open('%s/%s-ends' % (self.folder, name), encoding='utf-8') as file:
            for line in file:
                counts[line.strip()] = counts.get(line.strip(), 0) + 1
        return counts

    def each_once(self, name, members):
        ends = self.ended(name)
        must(len(ends) == members and set(ends.values()) == {1}, 'members of %s ended %s' % (name, ends))

    def run(self, config):
        self.service = super().run(config)
        until('the service to answer', 60, self.answers)
        return self.service

    def answers(self):
        self.lives()
        with contextlib.suppress(Exception):
            self.batch('status')
            return True
        return False

    def lives(self):
        must(self.service.poll() is None, 'the service ended: %s' % self.log('controller'))

    def busy(self, least):
        """Whether members run on so many preemptible servers."""
        self.lives()
        servers = self.batch('status')['servers']
        return len([one for one in servers if one['server_type'] == 'spot' and one['members']]) >= least

    def all_done(self):
        return {one['state'] for one in self.batch('list')} == {'done'}


def make_room(stage, tenant, count):
    """Normal servers for which so many of the tenant's have to leave the three hosts, which have
    room for six: their ids."""
    there = len([server for server in tenant.servers() if server['status'] == 'ACTIVE'])
    normal = [stage.cloud.create('urgent%d' % n, 'large') for n in range(6 - there + count)]
    for uuid in normal:
        server = stage.cloud.settled(uuid, seconds=150)
        must(server['status'] == 'ACTIVE', 'a normal server is %s: %s' % (server['status'], server.get('fault')))
    return normal


def a_day(stage, tenant, cluster, config):
    """Servers are taken and the service is killed; all work is done once and in time."""
    service = cluster.run(config)
    steps = {'ALPHA': [1, 2], 'MODE': ['a', 'b'], 'STEPS': [SWEEP_SECONDS]}
    ids = {'sweep': cluster.hand_in('sweep', parameters=steps, length='%ds' % SWEEP_SECONDS)}
    until('the exhausted quota to be said', 90, lambda: 'Quota exceeded' in cluster.log('controller'))
    must(not tenant.servers(), 'beyond the quota there are servers')
    tenant.quota(instances=cluster.nodes, cores=-1, ram=-1)
    until('the sweep on two servers', 240, lambda: cluster.busy(2))
    ids['bag'], ids['flow'] = cluster.hand_in('bag', count=BAG, deadline='%ds' % DEADLINE), cluster.hand_in('flow')
    until('members on all servers', 240, lambda: cluster.busy(cluster.spot))
    normal = make_room(stage, tenant, cluster.spot - 1)
    service.kill()
    service.wait()
    service = cluster.run(config)
    stage.cloud.delete(*normal)
    until('all work to be done', 500, cluster.all_done)
    until('the servers to be given back', 120, lambda: not tenant.servers())
    for name, members in (('sweep', 4), ('bag', BAG), ('flow', MAP + 2)):
        cluster.each_once(name, members)
    report = cluster.batch('report', ids['bag'])
    must(report['deadline_met'], 'the deadline of the bag was missed: %s' % report)
    members = cluster.batch('show', ids['sweep'])['list']
    saved = [one for member in members for one in member['attempts'] if one['end'] == 'put back']
    end(cluster)
    return cluster.log('controller').count('the instance has notice'), len(saved), report


def two_minutes_without_nova(tenant, cluster):
    """Nova's API is away while members run, and a machine dies meanwhile."""
    config = cluster.settings('away', margin=MARGIN)
    cluster.run(config)
    # Another folder than the first bag: members are done once.
    work = {'dir': cluster.folder + '/away', 'command': 'sleep 10; echo $EBBTIDE_MEMBER >>%s/away-ends' % cluster.folder, 'length': '10s'}
    first = cluster.hand_in('bag', **work, count=BAG, deadline='%ds' % (DEADLINE + MARGIN))
    until('members on three servers', 240, lambda: cluster.busy(3))
    processes.kill('nova-api')
    began = time.monotonic()
    try:
        code = until('the fault to be shown', 60, lambda: cluster.batch('status')['faults'].get('look'))
        # The machine of a server dies with its members, which the cloud cannot say.
        taken = next(one['node'] for one in cluster.batch('status')['servers'] if one['members'])
        lines = cluster.folder + '/cluster/instances'
        with open(lines, encoding='utf-8') as file:
            left = [line for line in file if line.split()[1] != taken]
        with open(lines + '.dead', 'w', encoding='utf-8') as file:
            file.writelines(left)
        os.rename(lines + '.dead', lines)
        # Work is taken all the while.
        second = cluster.hand_in('flow', dir=cluster.folder + '/flow-away')
        until('two minutes', AWAY + 5, lambda: cluster.lives() or time.monotonic() - began >= AWAY, pause=1)
        faults = cluster.batch('status')['faults']
        must(faults.get('look'), 'after two minutes without Nova the faults are %s' % faults)
    finally:
        processes.start('nova-api')
        processes.wait_for_port('nova-api', os.environ['STACK_PORT_NOVA'], seconds=120)
    until('the fault to be over', 120, lambda: not cluster.batch('status')['faults'])
    log = cluster.log('controller')
    must('%s is over' % faults['look'] in log, 'that %s is over is not in the log: %s' % (faults['look'], log))
    until('all work to be done', 500, cluster.all_done)
    until('the servers to be given back', 120, lambda: not tenant.servers())
    cluster.each_once('away', BAG)
    report = cluster.batch('report', first)
    must(report['deadline_met'], 'the deadline of the bag was missed: %s' % report)
    lost = [one for member in cluster.batch('show', first)['list'] for one in member['attempts'] if one['end'] != 'done']
    must(lost, 'the members of %s, whose machine died, have lost no attempt' % taken)
    must(cluster.batch('show', second)['state'] == 'done', 'work that was handed in meanwhile is not done')
    end(cluster)
    return code, log.count(code + ': '), len(lost)


def end(cluster):
    cluster.service.terminate()
    must(cluster.service.wait(30) == 0, 'the service ended with %s: %s' % (cluster.service.returncode, cluster.log('controller')))


def main():
    with cluster_of(Batch) as (stage, tenant, cluster, config, machines):
        code, said = cluster.beside(config, 'check')
        must(code == 0 and 'servers: 0' in said, 'check says (%d): %s' % (code, said))
        began = time.monotonic()
        notices, saved, report = a_day(stage, tenant, cluster, config)
        check('after batch work')
        audit()
        print('      batch work on an OpenStack: %d members in %.0f s on up to %d servers; %d had notice, %d attempts saved and made room; '
              'on demand %.2f times as dear' % (BAG + MAP + 6, time.monotonic() - began, machines.most, notices, saved,
                                                report['on_demand']['cost_ratio']), flush=True)
        began = time.monotonic()
        code, said, lost = two_minutes_without_nova(tenant, cluster)
        check('after two minutes without Nova')
        audit()
        print('      %d s without the API of Nova: %s said %d times, %d attempts lost, %d members done once and in time, after %.0f s' % (
            AWAY, code, said, lost, BAG, time.monotonic() - began), flush=True)


if __name__ == '__main__':
    main()
