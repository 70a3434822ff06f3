#!/usr/bin/python3
"""A Slurm cluster whose cloud nodes are servers of this OpenStack, made and given back by
ebbtide-burst with the rights of a tenant. Computes have Nova's fake driver, so that a slurmd is started for
each server that Nova shows ACTIVE and killed when it goes. Slurm, slurmctld, the controller, Nova,
the scheduler and the agents are real.

A quota that is exhausted is said and got over; then a burst of short jobs, of whose servers normal
ones take two; every job ends once, and no server stays.
"""
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

import requests

from cloud import until
from invariants import audit, check
from preempt import Stage, must

STAYING, NODES = 2, 6
SHORT_SECONDS, SHORT_JOBS = 8, 16
CHECKOUT = os.environ['STACK_CHECKOUT']
BIN = os.path.dirname(os.environ['STACK_EBBTIDE'])
PROGRAM = BIN + '/ebbtide-burst'

# It says on one line when it began, that it saved its work, and when it has ended. A long one
# works until a file is there: servers are wanted for as long as it works, and how long they take
# depends on the machine.
JOB = r'''#!/bin/bash
saved=
trap 'saved=1; echo "saved $1 $SLURM_JOB_ID" >>$3' USR1
echo "start $1 $SLURM_JOB_ID $SLURMD_NODENAME ${SLURM_RESTART_COUNT:-0}" >>$3
if [ "$2" = until ]; then while [ ! -e "$4" ]; do sleep 0.5; done & else sleep "$2" & fi
child=$!
wait $child; code=$?
[ -z "$saved" ] || { kill $child; exec sleep 300; }
[ $code = 0 ] || exit $code
echo "end $1 $SLURM_JOB_ID $SLURMD_NODENAME" >>$3
'''

SETTINGS = '''state_dir = "{folder}/state"
poll_seconds = 0.5

[slurm]
nodes = "c[1-{nodes}]"
conf = "{folder}/cluster/slurm.conf"
long_partitions = ["long"]

[openstack]
cloud = "tenant"
clouds_file = "{folder}/{clouds}"
flavor = "{flavor}"
image = "{image}"
network = "none"

[policy]
short_servers = 2
on_demand_price = "0.30"
preemptible_price = "0.10"
threshold = 0.25
release_seconds = 2
launch_seconds = 60
launch_again_seconds = 3
checkpoint_seconds = 0.5
margin_seconds = 0.5

[age]
features = ["cloud"]
'''

CLOUDS = '''clouds:
  tenant:
    auth_type: v3applicationcredential
    auth:
      auth_url: {auth}
      application_credential_id: {id}
      application_credential_secret: {secret}
    region_name: RegionOne
'''


class Tenant:
    """A project with a user, and an application credential of that user."""

    def __init__(self, cloud):
        self.cloud = cloud
        self.project = self.keystone('POST', '/projects', {'project': {'name': 'batch', 'domain_id': 'default'}})['project']['id']
        self.user = self.keystone('POST', '/users', {'user': {'name': 'batch', 'password': 'secret', 'domain_id': 'default'}})['user']['id']
        member = self.keystone('GET', '/roles?name=member')['roles'][0]['id']
        self.keystone('PUT', '/projects/%s/users/%s/roles/%s' % (self.project, self.user, member))
        answer = requests.post(cloud.auth + '/auth/tokens', timeout=60, json={'auth': {
            'identity': {'methods': ['password'], 'password': {'user': {'id': self.user, 'password': 'secret'}}},
            'scope': {'project': {'id': self.project}}}})
        answer.raise_for_status()
        made = requests.post('%s/users/%s/application_credentials' % (cloud.auth, self.user), timeout=60,
                             headers={'X-Auth-Token': answer.headers['X-Subject-Token']},
                             json={'application_credential': {'name': 'slurm'}})
        made.raise_for_status()
        self.credential = made.json()['application_credential']

    def keystone(self, method, path, body=None):
        answer = self.cloud.session.request(method, self.cloud.auth + path, json=body, timeout=60)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def quota(self, **most):
        self.cloud.nova('PUT', '/os-quota-sets/' + self.project, {'quota_set': dict(most, force=True)}, version='2.35')

    def servers(self):
        """The servers of the cluster's nodes."""
        found = self.cloud.nova('GET', '/servers/detail?all_tenants=1&project_id=' + self.project).json()['servers']
        return [server for server in found if 'ebbtide:node' in server['metadata']]

    def remove(self):
        self.keystone('DELETE', '/users/' + self.user)
        self.keystone('DELETE', '/projects/' + self.project)


class Machines(threading.Thread):
    """Tells the cluster which servers there are: what a data centre does, and no part of the product."""

    def __init__(self, tenant, folder):
        super().__init__(daemon=True)
        self.tenant, self.path = tenant, folder + '/cluster/instances'
        self.most = 0
        self.stop = threading.Event()
        self.start()

    def run(self):
        while not self.stop.is_set():
            with contextlib.suppress(Exception):  # An API that is busy answers the next look.
                here = [server for server in self.tenant.servers() if server['status'] == 'ACTIVE']
                self.most = max(self.most, len(here))
                with open(self.path + '.next', 'w', encoding='utf-8') as file:
                    file.writelines('%s %s\n' % (server['id'], server['name']) for server in here)
                os.rename(self.path + '.next', self.path)
            self.stop.wait(0.3)


class Cluster:
    """Slurm with nodes that stay and nodes of the cloud, and the controller beside it."""
    program = 'ebbtide-burst'
    template = SETTINGS
    partitions = []

    def __init__(self, folder, environment):
        self.folder, self.environment = folder, environment
        self.children = []
        os.makedirs(folder + '/cluster')
        self.conf = folder + '/cluster/slurm.conf'
        with open(folder + '/job.sh', 'w', encoding='utf-8') as file:
            file.write(JOB)

    def start(self, what, command, **options):
        with open('%s/%s.log' % (self.folder, what), 'a', encoding='utf-8') as log:
            child = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder, env=self.environment, **options)
        self.children.append(child)
        return child

    def log(self, what):
        with open('%s/%s.log' % (self.folder, what), encoding='utf-8', errors='replace') as file:
            return file.read()

    def settings(self, name, **change):
        path = '%s/%s.toml' % (self.folder, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(self.template.format(**dict({'folder': self.folder, 'nodes': NODES, 'flavor': 'large.preemptible', 'image': 'tiny', 'clouds': 'clouds.yaml'}, **change)))
        return path

    def burst(self, config, *words):
        """Runs the program beside slurmctld to its end: exit code and output."""
        done = subprocess.run(['%s/%s' % (BIN, self.program), '--config', config, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              cwd=CHECKOUT, env=self.environment, timeout=120, check=False)
        return done.returncode, done.stdout + done.stderr

    def serve(self, port):
        programs = {name: '%s/bin/%s-%s' % (self.folder, self.program, task) for name, task in (
            ('ResumeProgram', 'resume'), ('SuspendProgram', 'suspend'), ('ResumeFailProgram', 'resume-failed'))}
        lines = ['%s=%s' % item for item in programs.items()] + [
            'ResumeTimeout=30', 'SuspendTime=3600\nSuspendTimeout=2\nResumeRate=0\nSuspendRate=0\nReturnToService=2\nJobRequeue=1\nTreeWidth=65533',
            'SlurmctldParameters=cloud_reg_addrs,cloud_dns,idle_on_node_suspend,power_save_interval=1,power_save_min_interval=0', *self.partitions]
        serving = self.start('cluster', ['bash', CHECKOUT + '/devstack/lib/slurm.sh', 'serve', self.folder + '/cluster', str(port), str(STAYING), str(NODES), *lines])

        def ready():
            must(serving.poll() is None, 'the cluster ended: %s' % self.log('cluster'))
            return os.path.exists(self.folder + '/cluster/ready')
        until('the cluster', 120, ready)

    def slurm(self, *command):
        return subprocess.run(command, env=dict(self.environment, SLURM_CONF=self.conf), capture_output=True, text=True, timeout=60, check=True).stdout

    def submit(self, partition, name, seconds):
        self.slurm('sbatch', '--parsable', '-p', partition, '-c', '2', '-J', name, '-o', '/dev/null',
                   self.folder + '/job.sh', name, str(seconds), self.folder + '/out', self.folder + '/enough')

    def said(self, word):
        """How often each job said a word."""
        counts = {}
        with contextlib.suppress(FileNotFoundError), open(self.folder + '/out', encoding='utf-8') as file:
            for line in file:
                words = line.split()
                if words and words[0] == word:
                    counts[words[1]] = counts.get(words[1], 0) + 1
        return counts

    def end(self):
        for child in reversed(self.children):
            child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(20)
            child.kill()
            child.wait()


def free_ports(count):
    """The first of so many free ports behind one another."""
    for first in range(23000, 32000, count):
        sockets = []
        try:
            for port in range(first, first + count):
                sockets.append(socket.socket())
                sockets[-1].bind(('127.0.0.1', port))
            return first
        except OSError:
            pass
        finally:
            for one in sockets:
                one.close()
    raise RuntimeError('no %d free ports behind one another' % count)


def bad_settings(cluster):
    """What is wrong is said before a node is asked for."""
    for change, words in (({'flavor': 'missing'}, 'there is no flavor "missing"'), ({'image': 'missing'}, 'there is no image "missing"')):
        code, said = cluster.burst(cluster.settings('wrong', **change), 'check')
        must(code != 0 and 'EB-BURST-004' in said and words in said, 'with %s check says (%d): %s' % (change, code, said))


def a_burst(stage, tenant, cluster, controller):
    """Short jobs on servers of the cloud, two of which make room for normal servers."""
    for n in range(STAYING):
        cluster.submit('long', 'long%d' % n, 'until')
    for n in range(SHORT_JOBS):
        cluster.submit('short', 'short%d' % n, SHORT_SECONDS)
    until('the exhausted quota to be said', 90, lambda: 'Quota exceeded' in cluster.log('controller'))
    must(not tenant.servers(), 'beyond the quota there are servers')
    tenant.quota(instances=NODES, cores=-1, ram=-1)

    def on_cloud():
        must(controller.poll() is None, 'the controller ended: %s' % cluster.log('controller'))
        lines = cluster.slurm('squeue', '-h', '-t', 'running', '-o', '%N').split()
        return len([node for node in lines if node.startswith('c')]) >= 3
    until('three jobs on servers of the cloud', 240, on_cloud)
    there = [server for server in tenant.servers() if server['status'] == 'ACTIVE']
    # Six fill the three hosts; what is still free is taken, too.
    wanted = 6 - len(there) + 2
    normal = [stage.cloud.create('urgent%d' % n, 'large') for n in range(wanted)]
    for uuid in normal:
        server = stage.cloud.settled(uuid, seconds=150)
        must(server['status'] == 'ACTIVE', 'a normal server is %s: %s' % (server['status'], server.get('fault')))
    with open(cluster.folder + '/enough', 'w', encoding='utf-8'):
        pass
    until('every job to end', 300, lambda: len(cluster.said('end')) == SHORT_JOBS + STAYING)
    # With nothing to do, all servers are given back.
    until('the servers to be given back', 120, lambda: not tenant.servers())
    ends = cluster.said('end')
    must(set(ends.values()) == {1}, 'jobs ended %s' % ends)
    notices = cluster.log('controller').count('the instance has notice')
    must(notices >= 1, 'no node was drained for a notice: %s' % cluster.log('controller'))
    stage.cloud.delete(*normal)
    return notices, ends


def main():
    must(os.path.exists(PROGRAM), '%s is missing: cargo build -p ebbtide-batch-service' % PROGRAM)
    stage = Stage()
    stage.cloud.image()
    folder = tempfile.mkdtemp(prefix='slurm-nodes-')
    tenant = Tenant(stage.cloud)
    cluster = machines = None
    try:
        os.chmod(folder, 0o755)
        with open(folder + '/clouds.yaml', 'w', encoding='utf-8') as file:
            file.write(CLOUDS.format(auth=stage.cloud.auth, **tenant.credential))
        kept = {key: value for key, value in os.environ.items() if not key.startswith('OS_')}
        cluster = Cluster(folder, kept)
        config = cluster.settings('burst')
        code, said = cluster.burst(config, 'setup', '--programs', folder + '/bin')
        must(code == 0, 'setup says (%d): %s' % (code, said))
        cluster.serve(free_ports(1 + STAYING + NODES))
        tenant.quota(instances=0)
        bad_settings(cluster)
        code, said = cluster.burst(config, 'check')
        must(code == 0 and 'instances:  0' in said, 'check says (%d): %s' % (code, said))
        machines = Machines(tenant, folder)
        controller = cluster.start('controller', [PROGRAM, '--config', config, 'run'])
        began = time.monotonic()
        notices, ends = a_burst(stage, tenant, cluster, controller)
        controller.terminate()
        must(controller.wait(30) == 0, 'the controller ended with %s: %s' % (controller.returncode, cluster.log('controller')))
        check('after a burst')
        audit()
        saved = len(cluster.said('saved'))
        print('      a burst on an OpenStack: %d jobs in %.0f s on up to %d servers; %d had notice, %d jobs saved their work and went on' % (
            len(ends), time.monotonic() - began, machines.most, notices, saved), flush=True)
    except Exception:
        for what in ('controller', 'cluster'):
            with contextlib.suppress(Exception):
                print('--- %s\n%s' % (what, cluster.log(what)[-4000:]), file=sys.stderr)
        with contextlib.suppress(Exception):
            print('--- errors of slurmd\n%s' % subprocess.run(['grep', '-rh', '-A1', 'batch\\] error\\|return code', folder + '/cluster/log'],
                                                                   capture_output=True, text=True, check=False).stdout, file=sys.stderr)
        with contextlib.suppress(Exception):
            print('--- jobs\n%s' % cluster.slurm('squeue', '-a', '-t', 'all', '-o', '%i %j %T %r %N %S'), file=sys.stderr)
        with contextlib.suppress(Exception), open(folder + '/out', encoding='utf-8') as file:
            print('--- what jobs said\n%s' % file.read(), file=sys.stderr)
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
