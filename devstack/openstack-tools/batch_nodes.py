#!/usr/bin/python3
"""Batch work on a Slurm cluster whose nodes are servers of this OpenStack: ebbtide-batch with the
rights of a tenant. As in slurm_nodes.py, computes have Nova's fake driver, so that a slurmd is
started for each server that Nova shows ACTIVE and killed when it goes. Slurm, slurmctld, the
service, Nova, the scheduler and the agents are real.

A bag with a deadline, a sweep that saves its work and a workflow of three stages. The quota is
exhausted at first; normal servers take servers of the tenant; the service is killed. Every member
ends once, in time, and no server stays.
"""
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from cloud import until
from invariants import audit, check
from preempt import Stage, must
from slurm_nodes import CLOUDS, NODES, STAYING, Cluster, Machines, Tenant, free_ports

BAG, SWEEP_SECONDS, DEADLINE = 40, 40, 480
BIN = os.path.dirname(os.environ['STACK_EBBTIDE'])

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
nodes = "c[{first}-{nodes}]"
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
margin_seconds = 5
'''


class Batch(Cluster):
    """The cluster with the batch service beside it."""
    program = 'ebbtide-batch'
    template = SETTINGS
    partitions = ['PartitionName=batch Nodes=c[1-%d] MaxTime=INFINITE State=UP' % NODES]

    def settings(self, name, **change):
        return super().settings(name, **dict({'bin': BIN, 'spot': NODES - 2, 'first': NODES - 1}, **change))

    def batch(self, *words):
        """Runs ebbtide batch; its JSON."""
        command = [BIN + '/ebbtide', 'batch', '--service', 'unix:%s/socket' % self.folder, *words, '-o', 'json']
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=self.environment, timeout=120, check=False)
        must(done.returncode == 0, '%s says (%d): %s%s' % (' '.join(words), done.returncode, done.stdout, done.stderr))
        return json.loads(done.stdout)

    def hand_in(self, work):
        path = '%s/%s.json' % (self.folder, work['name'])
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(dict(work, dir='%s/%s' % (self.folder, work['name'])), file)
        return str(self.batch('submit', path)['id'])

    def ended(self, name):
        """How often each member wrote its line."""
        counts = {}
        with contextlib.suppress(FileNotFoundError), open('%s/%s-ends' % (self.folder, name), encoding='utf-8') as file:
            for line in file:
                counts[line.strip()] = counts.get(line.strip(), 0) + 1
        return counts

    def run(self, config):
        service = self.start('controller', [BIN + '/ebbtide-batch', '--config', config, 'run'])
        until('the service to answer', 60, lambda: self.answers(service))
        return service

    def answers(self, service):
        must(service.poll() is None, 'the service ended: %s' % self.log('controller'))
        with contextlib.suppress(Exception):
            self.batch('status')
            return True
        return False


def works(folder):
    """A sweep, a bag and a workflow."""
    ends = lambda name: 'echo "$EBBTIDE_STAGE $EBBTIDE_MEMBER" >>%s/%s-ends' % (folder, name)
    steps = 'i=$(cat "$EBBTIDE_RESTORE_DIR/i" 2>/dev/null || echo 0); while [ $i -lt %d ]; do i=$((i+1)); echo $i >i; sleep 1; done; %s'
    sweep = {'name': 'sweep', 'parameters': {'ALPHA': [1, 2], 'MODE': ['a', 'b']}, 'length': '%ds' % SWEEP_SECONDS,
             'command': steps % (SWEEP_SECONDS, ends('sweep')), 'checkpoint': {'command': 'cp i "$EBBTIDE_CHECKPOINT_DIR/i"', 'cost': '1s'}}
    bag = {'name': 'bag', 'count': BAG, 'length': '4s', 'deadline': '%ds' % DEADLINE, 'command': 'sleep 4; ' + ends('bag')}
    stage = lambda name, after, count: {'name': name, 'after': after, 'count': count, 'length': '3s', 'command': 'sleep 3; ' + ends('flow')}
    flow = {'name': 'flow', 'stages': [stage('split', [], 1), stage('map', ['split'], 6), stage('join', ['map'], 1)]}
    return sweep, bag, flow


def a_day(stage, tenant, cluster, config):
    """Servers are taken and the service is killed; all work is done once and in time."""
    service = cluster.run(config)
    sweep, bag, flow = works(cluster.folder)
    ids = {'sweep': cluster.hand_in(sweep)}
    until('the exhausted quota to be said', 90, lambda: 'Quota exceeded' in cluster.log('controller'))
    must(not tenant.servers(), 'beyond the quota there are servers')
    tenant.quota(instances=NODES, cores=-1, ram=-1)

    def busy(least):
        must(service.poll() is None, 'the service ended: %s' % cluster.log('controller'))
        servers = cluster.batch('status')['servers']
        return len([one for one in servers if one['server_type'] == 'spot' and one['members']]) >= least
    until('the sweep on two servers', 240, lambda: busy(2))
    ids['bag'], ids['flow'] = cluster.hand_in(bag), cluster.hand_in(flow)
    until('members on all servers', 240, lambda: busy(NODES - 2))
    there = len([server for server in tenant.servers() if server['status'] == 'ACTIVE'])
    # Six fill the three hosts; all but one of the tenant's leave.
    normal = [stage.cloud.create('urgent%d' % n, 'large') for n in range(6 - there + NODES - 3)]
    for uuid in normal:
        server = stage.cloud.settled(uuid, seconds=150)
        must(server['status'] == 'ACTIVE', 'a normal server is %s: %s' % (server['status'], server.get('fault')))
    service.kill()
    service.wait()
    service = cluster.run(config)
    stage.cloud.delete(*normal)
    until('all work to be done', 500, lambda: {one['state'] for one in cluster.batch('list')} == {'done'})
    until('the servers to be given back', 120, lambda: not tenant.servers())
    for name, members in (('sweep', 4), ('bag', BAG), ('flow', 8)):
        ends = cluster.ended(name)
        must(len(ends) == members and set(ends.values()) == {1}, 'members of %s ended %s' % (name, ends))
    report = cluster.batch('report', ids['bag'])
    must(report['deadline_met'], 'the deadline of the bag was missed: %s' % report)
    members = cluster.batch('show', ids['sweep'])['list']
    saved = [one for member in members for one in member['attempts'] if one['end'] == 'put back']
    service.terminate()
    must(service.wait(30) == 0, 'the service ended with %s: %s' % (service.returncode, cluster.log('controller')))
    return cluster.log('controller').count('the instance has notice'), len(saved), report


def main():
    for program in ('ebbtide', 'ebbtide-batch'):
        must(os.path.exists('%s/%s' % (BIN, program)), '%s is missing: cargo build -p ebbtide-batch-service -p ebbtide-cli' % program)
    stage = Stage()
    stage.cloud.image()
    folder = tempfile.mkdtemp(prefix='batch-nodes-')
    tenant = Tenant(stage.cloud)
    cluster = machines = None
    try:
        os.chmod(folder, 0o755)
        with open(folder + '/clouds.yaml', 'w', encoding='utf-8') as file:
            file.write(CLOUDS.format(auth=stage.cloud.auth, **tenant.credential))
        kept = {key: value for key, value in os.environ.items() if not key.startswith('OS_')}
        cluster = Batch(folder, kept)
        config = cluster.settings('batch')
        code, said = cluster.burst(config, 'setup', '--programs', folder + '/bin')
        must(code == 0, 'setup says (%d): %s' % (code, said))
        cluster.serve(free_ports(1 + STAYING + NODES))
        tenant.quota(instances=0)
        code, said = cluster.burst(config, 'check')
        must(code == 0 and 'servers: 0' in said, 'check says (%d): %s' % (code, said))
        machines = Machines(tenant, folder)
        began = time.monotonic()
        notices, saved, report = a_day(stage, tenant, cluster, config)
        check('after batch work')
        audit()
        print('      batch work on an OpenStack: %d members in %.0f s on up to %d servers; %d had notice, %d attempts saved and made room; '
              'on demand %.2f times as dear' % (BAG + 12, time.monotonic() - began, machines.most, notices, saved,
                                                report['on_demand']['cost_ratio']), flush=True)
    except Exception:
        for what in ('controller', 'cluster'):
            with contextlib.suppress(Exception):
                print('--- %s\n%s' % (what, cluster.log(what)[-6000:]), file=sys.stderr)
        with contextlib.suppress(Exception):
            print('--- jobs\n%s' % cluster.slurm('squeue', '-a', '-t', 'all', '-o', '%i %j %T %r %N %S'), file=sys.stderr)
        raise
    finally:
        if machines:
            machines.stop.set()
            machines.join(5)
        if cluster:
            cluster.end()
        stage.clear()
        tenant.remove()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == '__main__':
    main()
