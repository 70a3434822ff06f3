#!/usr/bin/python3
"""Every password that ours have is changed while servers are booted without a pause: at the broker,
in the databases, at Keystone. SIGHUP to the scheduler, a shadow beside it and the agent; nothing is
started again, no request is lost, and a wrong password leaves the old one in use. The same for the
certificate of the API, which needs no SIGHUP.

Ours get logins of their own for this (`ebbtide`), with one account each, which is the hard way:
from the change at the server to the reload the old password opens nothing.
"""
import os
import signal
import sys
import threading
import time
import urllib.request

import certificates
import processes
from bad_days import OURS, Log
from cloud import Cloud, until
from database import one, run
from invariants import audit, check
from preempt import Stage, must, wait_scheduler
from processes import stack

SHADOW, AGENT = 'ebbtide-shadow', 'ebbtide-agent'
USER = 'ebbtide'
ETC = processes.HOME + '/etc/'
CONF, AGENT_CONF, AGENT_NOVA_CONF = ETC + 'rotation.conf', ETC + 'ebbtide-agent.toml', ETC + 'rotation-agent.conf'
BUS = ('[DEFAULT] transport_url', '[ebbtide] bus_url')
DATABASES = ('[api_database] connection', '[database] connection', '[ebbtide] connection')
KEYSTONE = ('[placement]', '[keystone_authtoken]')
# Nova's cells name a login of their own; as templates they follow [database] and [DEFAULT].
TEMPLATE = '{scheme}://{username}:{password}@{hostname}:{port}/'
ACCEPTED, REFUSED = 'the new login is accepted', 'the new login is refused, and the old one stays'
# The host of the boots that go on, and the one where room is made.
BUSY, FULL = 'nova:compute3', 'nova:compute1'


class Load(threading.Thread):
    """Boots and deletes a small server again and again; remembers each that did not become
    ACTIVE."""

    def __init__(self, name):
        super().__init__(daemon=True)
        self.title, self.cloud = name, Cloud()
        self.came, self.lost, self.longest = 0, [], 0.0
        self.stop = threading.Event()
        self.start()

    def run(self):
        while not self.stop.is_set():
            began = time.monotonic()
            try:
                server = self.cloud.boot('%s-%d' % (self.title, self.came), 'small', availability_zone=BUSY)
                if server['status'] == 'ACTIVE':
                    self.came += 1
                else:
                    self.lost.append('%s: %s' % (server['status'], server.get('fault')))
                self.longest = max(self.longest, time.monotonic() - began)
                self.cloud.delete(server['id'])
            except Exception as error:
                self.lost.append(repr(error))

    def end(self):
        self.stop.set()
        self.join(200)


class Logins:
    """The passwords in the files of ours, and at the servers."""

    def __init__(self, cloud):
        self.cloud = cloud
        self.said = {'bus': 'first', 'databases': 'first', 'keystone': 'first'}
        self.user = None

    def make(self):
        """Accounts of ours at all servers."""
        stack('stack_rabbitctl', 'add_user', USER, self.said['bus'])
        stack('stack_rabbitctl', 'set_permissions', USER, '.*', '.*', '.*')
        run("create or replace user %s@'127.0.0.1' identified by '%s'" % (USER, self.said['databases']), "grant all on *.* to %s@'127.0.0.1'" % USER)
        self.user = self.keystone('POST', '/users', {'user': {'name': USER, 'domain_id': 'default', 'password': self.said['keystone']}})['user']['id']
        project = self.keystone('GET', '/projects?name=service')['projects'][0]['id']
        role = self.keystone('GET', '/roles?name=admin')['roles'][0]['id']
        self.keystone('PUT', '/projects/%s/users/%s/roles/%s' % (project, self.user, role))

    def unmake(self):
        if self.user:
            self.keystone('DELETE', '/users/' + self.user)
        run("drop user if exists %s@'127.0.0.1'" % USER)
        stack('stack_rabbitctl', 'delete_user', USER)

    def keystone(self, method, path, body=None):
        response = self.cloud.session.request(method, self.cloud.auth + path, json=body, timeout=60)
        response.raise_for_status()
        return response.json() if response.content else None

    def write(self, **other):
        """The files, with these passwords instead of those in use."""
        said = self.said | other
        with open(ETC + 'nova.conf', encoding='utf-8') as file:
            text = file.read()
        text = text.replace('nova:nova@', '%s:%s@' % (USER, said['bus'])).replace('stack:stack@', '%s:%s@' % (USER, said['databases']))
        text = text.replace('username = nova\npassword = nova\n', 'username = %s\npassword = %s\n' % (USER, said['keystone']))
        replaced(CONF, text)
        replaced(AGENT_NOVA_CONF, text)
        lines = []
        with open(AGENT_CONF, encoding='utf-8') as file:
            for line in file:
                if line.startswith('urls = '):
                    line = 'urls = ["amqp://%s:%s@127.0.0.1:%s/%%2f"]\n' % (USER, said['bus'], os.environ['STACK_PORT_AMQP'])
                elif line.startswith('nova_conf = '):
                    line = 'nova_conf = "%s"\n' % AGENT_NOVA_CONF
                lines.append(line)
        replaced(AGENT_CONF, ''.join(lines))

    def change(self, what, password):
        """At the server. Open connections go on, except those of Keystone's tokens."""
        if what == 'bus':
            stack('stack_rabbitctl', 'change_password', USER, password)
        elif what == 'databases':
            run("alter user %s@'127.0.0.1' identified by '%s'" % (USER, password))
        else:
            self.keystone('PATCH', '/users/' + self.user, {'user': {'password': password}})
        self.said[what] = password

    @staticmethod
    def end_old_connections(what):
        """Step 4 of the documents: what the old password has opened."""
        if what == 'bus':
            stack('stack_rabbitctl', 'close_all_user_connections', USER, 'rotated')
        elif what == 'databases':
            run('kill user %s' % USER)


def replaced(path, text):
    with open(path + '.draft', 'w', encoding='utf-8') as file:
        file.write(text)
    os.rename(path + '.draft', path)


def shadow_conf():
    """Where the shadow differs from the scheduler beside it."""
    path = ETC + 'rotation-shadow.conf'
    replaced(path, '[DEFAULT]\nhost = shadow\n[ebbtide]\nmetrics_listen = 127.0.0.1:%d\n' % (int(os.environ['STACK_PORT_SCHED_HTTP']) + 5))
    return path


def metrics(name):
    port = int(os.environ['STACK_PORT_SCHED_HTTP']) + (5 if name == SHADOW else 0)
    with urllib.request.urlopen('http://127.0.0.1:%d/metrics' % port, timeout=10) as page:
        lines = page.read().decode().splitlines()
    return {line.split('"')[1]: int(float(line.rpartition(' ')[2])) for line in lines if line.startswith('ebbtide_last_reload_successful{')}


def keys_of(name, what):
    """The keys whose logins a process has."""
    if name == AGENT:
        return {'bus': ('bus.urls',), 'databases': (), 'keystone': ('driver.nova.auth',)}[what]
    of_scheduler = {'bus': BUS, 'databases': DATABASES, 'keystone': KEYSTONE}[what]
    # A shadow speaks to no agents, and has no API.
    return of_scheduler if name == OURS else tuple(key for key in of_scheduler if key not in ('[ebbtide] bus_url', '[keystone_authtoken]'))


def reload(what, words):
    """SIGHUP to ours: each key of `what` says `words`. Gives the seconds that it took."""
    began = time.monotonic()
    logs = {name: Log(processes.log(name)) for name in (OURS, SHADOW, AGENT) if keys_of(name, what)}
    for name in logs:
        processes.hang_up(name)
    for name, log in logs.items():
        for key in keys_of(name, what):
            until('%s to say of %s: %s' % (name, key, words), 90, lambda l=log, k=key: l.lines('SIGHUP', words, k))
    return time.monotonic() - began


class Rotation:
    def __init__(self, stage):
        self.stage, self.cloud = stage, stage.cloud
        self.logins = Logins(stage.cloud)
        self.cells = one("select group_concat(concat_ws(' ', uuid, database_connection, transport_url) separator '\n') from nova_api.cell_mappings")

    def begin(self):
        self.logins.make()
        for cell in self.cells.splitlines():
            uuid, database, transport = cell.split(' ')
            name = database.rpartition('/')[2].partition('?')[0]
            run("update nova_api.cell_mappings set database_connection = '%s%s?{query}'%s where uuid = '%s'" % (
                TEMPLATE, name, '' if transport.startswith('none') else ", transport_url = '%s'" % TEMPLATE, uuid))
        self.logins.write()
        for name in (OURS, AGENT):
            processes.kill(name, signal.SIGTERM)
        self.certificate = certificates.conf()
        stack('stack_start_scheduler', 'ebbtide', '1', CONF, certificates.CONF)
        processes.start(AGENT)
        wait_scheduler()
        program = os.path.join(os.path.dirname(os.environ['STACK_EBBTIDE']), 'ebbtide-scheduler')
        ready = processes.HOME + '/run/rotation-shadow.ready'
        stack('stack_start', SHADOW, program, '--config-file', ETC + 'nova.conf', '--config-file', CONF, '--config-file', shadow_conf(),
              '--shadow', '--ready-file', ready)
        until('the shadow', 90, lambda: os.path.exists(ready))
        self.pids = {name: processes.pid(name) for name in (OURS, SHADOW, AGENT)}
        for n in range(2):
            self.preemptible('cheap-%d' % n)

    def preemptible(self, name):
        server = self.cloud.boot(name, 'large.preemptible', availability_zone=FULL)
        must(server['status'] == 'ACTIVE', '%s is %s: %s' % (name, server['status'], server.get('fault')))

    def room_is_made(self, what):
        """Over bus, ledger, Placement and agent: a victim leaves for a normal server."""
        server = self.cloud.boot('after-' + what, 'large', availability_zone=FULL)
        must(server['status'] == 'ACTIVE', 'after the rotation of %s a server is %s: %s' % (what, server['status'], server.get('fault')))
        until('the evacuation to end', 60, lambda: not one('select count(*) from ebbtide.nova_preemptions where finished_at is null'), pause=0.3)
        self.cloud.delete(server['id'])
        self.preemptible('again-' + what)

    def rotated(self, what):
        """What changes one kind of credentials, while servers are booted and deleted."""
        loads = [Load('%s-%d' % (what, n)) for n in range(2)]
        try:
            until('the boots before it', 90, lambda: all(load.came for load in loads))
            began = time.monotonic()
            if what == 'certificates':
                certificates.replaced(self.cloud, Log(processes.log(OURS)), self.certificate)
                said = 'replaced, refused and corrected in %.1f s' % (time.monotonic() - began)
            else:
                said = 'accepted %.1f s after SIGHUP' % self.password(what, loads)
        finally:
            for load in loads:
                load.end()
        lost = [text for load in loads for text in load.lost]
        must(not lost, 'the rotation of %s has lost %d requests: %s' % (what, len(lost), lost[:3]))
        print('      %-12s %3d boots, none lost, the longest %.1f s; %s' % (
            what, sum(load.came for load in loads), max(load.longest for load in loads), said), flush=True)

    def password(self, what, loads):
        """The documents' four steps, then a wrong password. Gives the seconds that the reload
        took."""
        password = 'second-' + what
        self.logins.change(what, password)
        self.logins.write()
        took = reload(what, ACCEPTED)
        self.logins.end_old_connections(what)
        wait_scheduler()
        self.room_is_made(what)
        # Wrong in the files, and right at the server.
        self.logins.write(**{what: 'wrong'})
        reload(what, REFUSED)
        for name in (OURS, SHADOW):
            states = metrics(name)
            must(all(states[key] == 0 for key in keys_of(name, what)), '%s: refused logins are told as %s' % (name, states))
        # New connections, with the password of before.
        self.logins.end_old_connections(what)
        wait_scheduler()
        self.room_is_made(what + '-in-spite')
        before = [load.came for load in loads]
        until('boots with the password that stayed', 90, lambda: all(load.came > was for load, was in zip(loads, before)))
        self.logins.write()
        reload(what, 'the login is the same')
        for name in (OURS, SHADOW):
            must(set(metrics(name).values()) == {1}, '%s: after the correction the page says %s' % (name, metrics(name)))
        return took

    def end(self):
        processes.kill(SHADOW, signal.SIGTERM)
        if SHADOW in processes.names():
            os.unlink('%s/run/%s.pid' % (processes.HOME, SHADOW))
        for name in (OURS, AGENT):
            processes.kill(name, signal.SIGTERM)
        for cell in self.cells.splitlines():
            uuid, database, transport = cell.split(' ')
            run("update nova_api.cell_mappings set database_connection = '%s', transport_url = '%s' where uuid = '%s'" % (database, transport, uuid))
        stack('stack_start_scheduler', 'ebbtide', '1')
        stack('stack_start_agent')
        wait_scheduler()
        self.logins.unmake()


def main():
    began = time.monotonic()
    stage = Stage()
    rotation = Rotation(stage)
    try:
        rotation.begin()
        for what in sys.argv[1:] or ('bus', 'databases', 'keystone', 'certificates'):
            rotation.rotated(what)
        pids = {name: processes.pid(name) for name in rotation.pids}
        must(pids == rotation.pids, 'processes were started again: %s, %s' % (rotation.pids, pids))
        check('after the rotations', seconds=120)
        audit()
        stage.clear()
    finally:
        rotation.end()
    print('   rotation %.1f s  ok' % (time.monotonic() - began))


if __name__ == '__main__':
    sys.exit(main())
