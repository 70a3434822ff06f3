"""A chapter of the story: what each feature says through the `ebbtide` command on an OpenStack.

What the commands print is written to features.txt in the stack's folder, from where
docs/openstack/features.md has it.
"""
import os
import subprocess

from cloud import until
from invariants import audit
from preempt import must

BIN = os.path.dirname(os.environ.get('STACK_EBBTIDE', ''))
FLAVOR = 'large.patient.preemptible'


class Tour:
    """Runs commands as the administrator and keeps what they print."""

    def __init__(self):
        self.file = open(os.environ['STACK_HOME'] + '/features.txt', 'w', encoding='utf-8')

    def run(self, *arguments, program='ebbtide'):
        """What a command prints, which must work."""
        quiet = ['--quiet'] if program == 'ebbtide' else []
        done = subprocess.run([BIN + '/' + program, *arguments, *quiet], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False)
        must(done.returncode == 0, '%s %s: %d %s' % (program, ' '.join(arguments), done.returncode, done.stderr))
        # The summary of an audit is a message, not data.
        return done.stdout + (done.stderr if program != 'ebbtide' else '')

    def show(self, *arguments, program='ebbtide', says=()):
        """The same, kept for the page; its words must be among what it says."""
        said = self.run(*arguments, program=program)
        for words in says:
            must(words in said, '%s %s does not say %r: %s' % (program, ' '.join(arguments), words, said))
        self.file.write('$ %s %s\n%s\n' % (program, ' '.join(arguments), said))
        self.file.flush()
        return said

    def explained(self, cloud, server, says=()):
        """The explanation of the request for a server; its record is made after the answer."""
        request = cloud.asked[server]
        until('the decision', 20, lambda: cloud.request('preemption', 'GET', '/v1/decisions/' + request, check=False).status_code == 200)
        return self.show('explain', request, says=says)


def what_if_and_request(stage, tour, ages):
    """A what-if names the victim and the host that the request gets a moment later, and those who
    ask meanwhile see it leave."""
    cloud = stage.cloud
    tour.show('status')
    tour.show('host', 'list')
    (victim,) = stage.cheapest(ages)
    name = cloud.server(victim)['name']
    tour.show('what-if', '--flavor', 'large', says=[name])
    watching = subprocess.Popen([BIN + '/ebbtide', 'watch', '--all-projects', '--limit', '3', '--quiet'],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        newcomer = cloud.create('important', 'large')

        def leaving():
            evacuations = cloud.request('preemption', 'GET', '/v1/evacuations').json()['evacuations']
            return (victim, 'draining') in [(one['victim_id'], one['state']) for one in evacuations]
        until('the victim to leave', 60, leaving)
        tour.show('evacuation', 'list', '--all-projects', '--active', says=[name, newcomer])
        seen, _ = watching.communicate(timeout=60)
    finally:
        if watching.poll() is None:
            watching.kill()
    must(name in seen or victim in seen, 'a watcher saw %s' % seen)
    tour.file.write('$ ebbtide watch --all-projects --limit 3\n%s\n' % seen)
    server = cloud.settled(newcomer, seconds=150)
    must(server['status'] == 'ACTIVE', 'the newcomer is %s: %s' % (server['status'], server.get('fault')))
    stage.wait_gone({victim})
    tour.show('decision', 'list', '--limit', '2', says=[name + ' has to leave'])
    tour.explained(cloud, newcomer, says=[name, server['OS-EXT-SRV-ATTR:host']])


def budget(stage, tour, ages):
    """A project that may lose no server: the next request is refused, and the explanation says
    why."""
    cloud = stage.cloud
    whose = ('--of-project', cloud.project)
    tour.show('budget', 'set', *whose, '--max-victims', '0', '--window', '3600')
    try:
        tour.show('budget', 'list', says=[cloud.project])
        refused = cloud.boot('refused', 'large')
        must(refused['status'] == 'ERROR', 'beyond a budget a server is %s' % refused['status'])
        must(stage.left(ages) == ages, 'servers have left beyond a budget')
        tour.explained(cloud, refused['id'], says=['beyond a disruption budget'])
        cloud.delete(refused['id'])
    finally:
        tour.run('budget', 'delete', *whose)


def every_feature_by_command(stage):
    """Status, hosts, what-if, watch, evacuations, decisions, explanations, budgets, prices, bills,
    advice and the audit, as an administrator reads them."""
    tour = Tour()
    ages = stage.fill(FLAVOR)
    what_if_and_request(stage, tour, ages)
    budget(stage, tour, stage.left(ages))
    tour.show('price', 'list')
    tour.show('billing', 'total', says=[FLAVOR])
    tour.show('advice', FLAVOR, says=['interrupted'])
    tour.show('plugin', 'list')
    audit()
    tour.show('audit', '--config-file', os.environ['STACK_HOME'] + '/etc/nova.conf', program='ebbtide-manage', says=['All agree.'])
    print('      each feature by command: %s/features.txt' % os.environ['STACK_HOME'], flush=True)
