"""A Slurm cluster whose cloud nodes are servers of this OpenStack, and a program beside slurmctld
that makes them and gives them back with the rights of a tenant. Computes have Nova's fake driver,
so that a slurmd is started for each server that Nova shows ACTIVE and killed when it goes. Slurm,
slurmctld, the program, Nova, the scheduler and the agents are real.
"""
import contextlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

import requests

from cloud import until
from preempt import Stage, must

STAYING = 2
CHECKOUT = os.environ['STACK_CHECKOUT']
BIN = os.path.dirname(os.environ['STACK_EBBTIDE'])

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
    """Tells the cluster which servers there are: what a data centre does, and no part of the
    product."""

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
    """Slurm with nodes that stay and nodes of the cloud, and the service beside it."""
    program = 'ebbtide-batch'
    # What a kind says: its configuration, further lines of slurm.conf, how many nodes of the cloud
    # there are, and what its configuration has beside the common names.
    template = None
    partitions = []
    nodes = 6
    names = {}

    def __init__(self, folder, environment):
        self.folder, self.environment = folder, environment
        self.children = []
        os.makedirs(folder + '/cluster')
        self.conf = folder + '/cluster/slurm.conf'

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
        known = {'folder': self.folder, 'bin': BIN, 'nodes': self.nodes, 'flavor': 'large.preemptible', 'image': 'tiny', 'clouds': 'clouds.yaml'}
        with open(path, 'w', encoding='utf-8') as file:
            file.write(self.template.format(**known | self.names | change))
        return path

    def beside(self, config, *words):
        """Runs the program beside slurmctld to its end: exit code and output."""
        done = subprocess.run(['%s/%s' % (BIN, self.program), '--config', config, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              cwd=CHECKOUT, env=self.environment, timeout=120, check=False)
        return done.returncode, done.stdout + done.stderr

    def run(self, config):
        """Starts the program beside slurmctld."""
        return self.start('controller', ['%s/%s' % (BIN, self.program), '--config', config, 'run'])

    def serve(self, port):
        programs = {name: '%s/bin/%s-%s' % (self.folder, self.program, task) for name, task in (
            ('ResumeProgram', 'resume'), ('SuspendProgram', 'suspend'), ('ResumeFailProgram', 'resume-failed'))}
        lines = ['%s=%s' % item for item in programs.items()] + [
            'ResumeTimeout=30', 'SuspendTime=3600\nSuspendTimeout=2\nResumeRate=0\nSuspendRate=0\nReturnToService=2\nJobRequeue=1\nTreeWidth=65533',
            'SlurmctldParameters=cloud_reg_addrs,cloud_dns,idle_on_node_suspend,power_save_interval=1,power_save_min_interval=0', *self.partitions]
        serving = self.start('cluster', ['bash', CHECKOUT + '/devstack/lib/slurm.sh', 'serve', self.folder + '/cluster', str(port), str(STAYING), str(self.nodes), *lines])

        def ready():
            must(serving.poll() is None, 'the cluster ended: %s' % self.log('cluster'))
            return os.path.exists(self.folder + '/cluster/ready')
        until('the cluster', 120, ready)

    def slurm(self, *command):
        return subprocess.run(command, env=dict(self.environment, SLURM_CONF=self.conf), capture_output=True, text=True, timeout=60, check=True).stdout

    def show(self):
        """What there is to know after a failure."""
        for what in ('controller', 'cluster'):
            with contextlib.suppress(Exception):
                print('--- %s\n%s' % (what, self.log(what)[-6000:]), file=sys.stderr)
        with contextlib.suppress(Exception):
            print('--- errors of slurmd\n%s' % subprocess.run(['grep', '-rh', '-A1', 'batch\\] error\\|return code', self.folder + '/cluster/log'],
                                                              capture_output=True, text=True, check=False).stdout, file=sys.stderr)
        with contextlib.suppress(Exception):
            print('--- jobs\n%s' % self.slurm('squeue', '-a', '-t', 'all', '-o', '%i %j %T %r %N %S'), file=sys.stderr)

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


@contextlib.contextmanager
def cluster_of(kind):
    """A cluster that serves, with a tenant who may have no server yet; the stage, the tenant, the
    cluster, its configuration and its machines. Nothing of it is left afterwards."""
    for program in ('ebbtide', kind.program):
        must(os.path.exists('%s/%s' % (BIN, program)), '%s is missing: cargo build -p ebbtide-batch-service -p ebbtide-cli' % program)
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
        cluster = kind(folder, kept)
        config = cluster.settings('own')
        code, said = cluster.beside(config, 'setup', '--programs', folder + '/bin')
        must(code == 0, 'setup says (%d): %s' % (code, said))
        cluster.serve(free_ports(1 + STAYING + kind.nodes))
        tenant.quota(instances=0)
        machines = Machines(tenant, folder)
        yield stage, tenant, cluster, config, machines
    except Exception:
        if cluster:
            cluster.show()
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
