"""A chapter of the story: every command of `openstack preemptible`, as administrator, as member
and as reader of a project."""
import contextlib
import json
import os
import subprocess
import tempfile
import time

from cloud import Cloud, until
from preempt import must

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = os.path.realpath(os.path.join(HERE, '../../python-ebbtideclient'))
# Debian's, also where the rest of the cloud is of PyPI.
PYTHON = '/usr/bin/python3'
# Its grace is 20 s.
FLAVOR = 'large.patient.preemptible'
PROJECT = 'osc-lab'
ROLES = ('admin', 'member', 'reader')
OWNER = '--owner slurm:osc --reason job-7'
LIMITS = {'preemptible_servers': 6, 'preemptible_vcpus': 40, 'preemptible_memory_mb': -1}


class Tenant(Cloud):
    """The cloud as the member of the project sees it."""

    def __init__(self, name, password):
        self.name, self.password = name, password
        super().__init__()

    def login(self):
        response = self.session.post(self.auth + '/auth/tokens', json={'auth': {
            'identity': {'methods': ['password'], 'password': {'user': {
                'name': self.name, 'domain': {'id': 'default'}, 'password': self.password}}},
            'scope': {'project': {'name': PROJECT, 'domain': {'id': 'default'}}}}})
        response.raise_for_status()
        body = response.json()['token']
        self.project = body['project']['id']
        self.endpoints = {service['type']: endpoint['url'].rstrip('/') for service in body['catalog']
                          for endpoint in service['endpoints'] if endpoint['interface'] == 'public'}
        self.session.headers['X-Auth-Token'] = response.headers['X-Subject-Token']


class Commands:
    """`openstack preemptible …` for each role."""

    def __init__(self, entry_points):
        # pyproject.toml's entry points, where the client looks for them.
        subprocess.run([PYTHON, '-W', 'ignore', '-c', 'from setuptools import setup; setup()', '--quiet',
                        'egg_info', '--egg-base', entry_points], cwd=PACKAGE, check=True)
        path = '%s:%s' % (PACKAGE, entry_points)
        self.process = subprocess.Popen(
            [PYTHON, os.path.join(HERE, 'osc_runner.py')], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, PYTHONPATH=path, PYTHONDONTWRITEBYTECODE='1'))
        admin = {'OS_USERNAME': 'admin', 'OS_PROJECT_NAME': 'admin', 'OS_PASSWORD': os.environ['OS_PASSWORD']}
        # Keystone shows the limits of all projects to roles on the whole system only.
        system = dict(admin, OS_PROJECT_NAME=None, OS_PROJECT_DOMAIN_NAME=None, OS_SYSTEM_SCOPE='all')
        self.logins = {'admin': admin, 'system': system}
        for role in ('member', 'reader'):
            self.logins[role] = {'OS_USERNAME': 'osc-' + role, 'OS_PROJECT_NAME': PROJECT, 'OS_PASSWORD': 'osc-' + role}
        self.count = 0

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)

    def run(self, role, line):
        """The answer of a command, `status`, `out` and `err`."""
        self.count += 1
        common = {'OS_AUTH_URL': os.environ['OS_AUTH_URL'], 'OS_IDENTITY_API_VERSION': '3', 'OS_REGION_NAME': 'RegionOne',
                  'OS_USER_DOMAIN_NAME': 'Default', 'OS_PROJECT_DOMAIN_NAME': 'Default', 'OS_SYSTEM_SCOPE': None}
        argv = ['preemptible', *line.split(), '-f', 'json']
        if line.startswith('budget delete'):
            argv = argv[:-2]
        self.process.stdin.write(json.dumps({'env': dict(common, **self.logins[role]), 'argv': argv}) + '\n')
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def works(self, role, line):
        """What a command that must succeed says, as data."""
        said = self.run(role, line)
        must(said['status'] == 0, '%s as %s: %s' % (line, role, said['err']))
        return json.loads(said['out']) if said['out'].strip() else None

    def refused(self, role, line, status, code):
        """A command that must be refused with this code and HTTP status, and the request's id."""
        said = self.run(role, line)
        fits = code in said['err'] and 'HTTP %d' % status in said['err'] and 'Request: req-' in said['err']
        must(said['status'] == 1 and fits, '%s as %s: status %s, %s' % (line, role, said['status'], said['err']))

    def judge(self, line, allowed):
        """One command as each role; gives the administrator's answer."""
        for role in ROLES:
            if role in allowed:
                answer = self.works(role, line)
                if role == 'admin':
                    found = answer
            else:
                self.refused(role, line, 403, 'EB-ACCESS-')
        return found


@contextlib.contextmanager
def project_with_roles(cloud):
    """A project with a member and a reader, and limits for preemptible servers."""
    def keystone(method, path, body=None):
        response = cloud.session.request(method, cloud.auth + path, json=body, timeout=60)
        response.raise_for_status()
        return response.json() if response.content else None
    roles = {role['name']: role['id'] for role in keystone('GET', '/roles')['roles']}
    project = keystone('POST', '/projects', {'project': {'name': PROJECT, 'domain_id': 'default'}})['project']['id']
    users, limits, own = [], [], []
    try:
        for role in ('member', 'reader'):
            name = 'osc-' + role
            users.append(keystone('POST', '/users', {'user': {'name': name, 'password': name, 'domain_id': 'default'}})['user']['id'])
            keystone('PUT', '/projects/%s/users/%s/roles/%s' % (project, users[-1], roles[role]))
        service = keystone('GET', '/services?type=preemption')['services'][0]['id']
        made = keystone('POST', '/registered_limits', {'registered_limits': [
            {'service_id': service, 'region_id': 'RegionOne', 'resource_name': name, 'default_limit': most} for name, most in LIMITS.items()]})
        limits = [one['id'] for one in made['registered_limits']]
        made = keystone('POST', '/limits', {'limits': [{
            'service_id': service, 'region_id': 'RegionOne', 'project_id': project, 'resource_name': 'preemptible_vcpus', 'resource_limit': 24}]})
        own = [one['id'] for one in made['limits']]
        yield project
    finally:
        # Keystone keeps a registered limit while a project has one of its own.
        for one in own:
            keystone('DELETE', '/limits/' + one)
        for one in limits:
            keystone('DELETE', '/registered_limits/' + one)
        for user in users:
            keystone('DELETE', '/users/' + user)
        keystone('DELETE', '/projects/' + project)


def as_administrator(*lines):
    """What commands say to the administrator, as data."""
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Commands(folder)) as commands:
        return [commands.works('admin', line) for line in lines]


def every_preemptible_command(stage):
    """`openstack preemptible`: a preemption as the administrator, the victim's member and a reader
    see it; who may do what; quota, budgets, hosts that are taken back."""
    cloud = stage.cloud
    began = time.monotonic()
    with project_with_roles(cloud) as project, tempfile.TemporaryDirectory() as folder, contextlib.closing(Commands(folder)) as commands:
        try:
            _told(cloud, Tenant('osc-member', 'osc-member'), project, commands)
        finally:
            stage.clear()
    print('      openstack preemptible: %d commands, %.1f s' % (commands.count, time.monotonic() - began), flush=True)


def _told(cloud, member, project, commands):
    for n in range(6):
        member.create('spot%d' % n, FLAVOR)
    spots = {server['name']: server['id'] for server in cloud.servers()}
    for server in spots.values():
        must(cloud.settled(server)['status'] == 'ACTIVE', 'a server of the project is not active')
    planned = commands.judge('what-if --flavor large', ROLES)
    must(len(planned['placements'][0]['victims']) == 1, 'a what-if says %s' % planned)
    pet = cloud.create('pet', 'large')

    # The victim has its notice.
    def leaving():
        return [row for row in commands.works('member', 'evacuation list --active --long') if row['State'] == 'draining']
    (row,) = until('the notice', 60, leaving)
    victim = row['Victim ID']
    must(spots[row['Victim']] == victim, 'the victim is %s' % row)
    shown = commands.works('member', 'server show ' + victim)
    must(shown['state'] == 'draining' and shown['deadline_at'] == row['Deadline'], 'the victim is %s' % shown)
    commands.refused('reader', 'server release ' + victim, 403, 'EB-ACCESS-')
    commands.works('member', 'server release ' + victim)
    must(cloud.settled(pet, seconds=60)['status'] == 'ACTIVE', 'the new server is not active')
    del spots[row['Victim']]

    # Who sees what. The project's servers are not the administrator's.
    must(commands.works('admin', 'server list') == [], "the administrator's own project has preemptible servers")
    for role in ROLES:
        listed = commands.works(role, 'server list --project %s --long' % project)
        must({one['ID'] for one in listed} == set(spots.values()), '%s sees %s' % (role, listed))
        named = commands.works(role, 'evacuation show ' + row['ID'])
        must(named['state'] == 'evacuated', 'the evacuation is %s' % named)
    must({one['ID'] for one in commands.works('admin', 'server list --project ' + PROJECT)} == set(spots.values()), 'a project is not found by its name')
    for line in ('server list --all-projects --sort-column Name', 'evacuation list --all-projects', 'server show ' + next(iter(spots)),
                 'server explain ' + next(iter(spots.values())), 'decision list --limit 5 --long', 'price list --long', 'price history --limit 5',
                 'advice %s --job 10' % FLAVOR, 'bill list --from 2026-01-01', 'bill list --total', 'budget list'):
        commands.judge(line, ROLES)
    decision = until('the decision', 20, lambda: commands.run('admin', 'decision show ' + pet)['status'] == 0 and commands.works('admin', 'decision show ' + pet))
    must([one['server_id'] for one in decision['placements'][0]['victims']] == [victim], 'the decision is %s' % decision)
    commands.refused('member', 'decision show ' + pet, 404, 'EB-')
    commands.refused('member', 'server show ' + pet, 404, 'EB-')
    said = commands.run('admin', 'quota show --project ' + project)
    must(said['status'] == 1 and '--os-system-scope all' in said['err'], "another project's quota is %s" % said)
    for role in ('system', 'member', 'reader'):
        quota = {one['Resource']: (one['Limit'], one['In Use']) for one in commands.works(role, 'quota show --project ' + project)}
        expected = {'preemptible_servers': (6, 5), 'preemptible_vcpus': (24, 20), 'preemptible_memory_mb': (-1, 40000)}
        must(quota == expected, 'the quota is %s' % quota)

    # Who changes what.
    commands.judge('budget set --project %s --max-victims 5 --window 60' % project, ('admin',))
    must([one['Max Victims'] for one in commands.works('member', 'budget list')] == [5], 'a member does not see its budget')
    commands.judge('budget delete --project ' + project, ('admin',))
    hosts = commands.judge('host list --long', ('admin',))
    host = next(one['Host'] for one in hosts if one['Preemptible'] == 2)
    commands.judge('host show ' + host, ('admin',))
    commands.judge('plugin list --long', ('admin',))
    commands.judge('host reclaim %s %s --dry-run' % (host, OWNER), ('admin',))
    commands.works('admin', 'host reclaim %s %s' % (host, OWNER))
    must([one['Host'] for one in commands.judge('reclaim list', ('admin',))] == [host], 'the reclaim is not listed')
    commands.works('admin', 'reclaim show ' + host)
    commands.works('admin', 'host return ' + host)
    commands.refused('member', 'host return ' + host, 403, 'EB-ACCESS-')
