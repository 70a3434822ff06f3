#!/usr/bin/python3
"""Keeps a cloud full of preemptible servers: whatever room there is, a tenant asks for it at once.

Usage: filler.py REPORT   (until SIGTERM; writes REPORT, and prints `full` when the cloud first is)

The servers are asked for and removed through Nova's API, by a user of a project of its own without
any rights beside `member`. How much room there is is read from Placement's tables, so that the
tenant need not guess every second: it asks for what is free and for nothing else.
"""
import json
import signal
import sys
import threading
import time

import requests

from cloud import Cloud, Refused
from database import rows
from fleet import Fleet, slots

FLAVOR = 'small.preemptible'
LOOK_S = 0.3
PAUSE_AFTER_REFUSAL_S = 2
LOGIN_S = 1200
ROOM = """
select p.name, v.resource_class_id as class, (v.total - v.reserved) * v.allocation_ratio
    - coalesce((select sum(used) from placement.allocations a
        where a.resource_provider_id = p.id and a.resource_class_id = v.resource_class_id), 0)
    as free
from placement.inventories v
join placement.resource_providers p on v.resource_provider_id = p.id
"""
OURS = 'select uuid, vm_state, deleted, host from nova_cell%d.instances where project_id = %%s'


class Tenant:
    """A project with one member, and that member's view of the cloud."""

    def __init__(self):
        self.admin = Cloud()
        self.project = self.made('project', {'name': 'filler', 'domain_id': 'default'})
        self.user = self.made('user', {
            'name': 'filler', 'password': 'filler', 'domain_id': 'default'})
        member = self.keystone('GET', '/roles?name=member')['roles'][0]['id']
        self.keystone('PUT', '/projects/%s/users/%s/roles/%s' % (self.project, self.user, member))
        self.image = self.admin.image('tiny')
        self.flavor = self.admin.flavor(FLAVOR)
        self.compute = self.admin.endpoints['compute']
        self.login()

    def keystone(self, method, path, body=None):
        answer = self.admin.session.request(method, self.admin.auth + path, json=body, timeout=60)
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def made(self, kind, body):
        return self.keystone('POST', '/%ss' % kind, {kind: body})[kind]['id']

    def login(self):
        answer = requests.post(self.admin.auth + '/auth/tokens', timeout=60, json={'auth': {
            'identity': {'methods': ['password'], 'password': {
                'user': {'id': self.user, 'password': 'filler'}}},
            'scope': {'project': {'id': self.project}}}})
        answer.raise_for_status()
        self.session = requests.Session()
        self.session.headers.update({'X-Auth-Token': answer.headers['X-Subject-Token'],
                                     'X-OpenStack-Nova-API-Version': '2.90'})
        self.since = time.monotonic()

    def create(self, name):
        if time.monotonic() > self.since + LOGIN_S:
            self.login()
        answer = self.session.post(self.compute + '/servers', timeout=180, json={'server': {
            'name': name, 'imageRef': self.image, 'flavorRef': self.flavor, 'networks': 'none'}})
        if answer.status_code != 202:
            raise Refused('POST /servers', answer)
        return answer.json()['server']['id']

    def delete(self, server):
        self.session.delete(self.compute + '/servers/' + server, timeout=180)

    def servers(self):
        return [row for cell in (1, 0) for row in rows(OURS % cell, self.project)]


class Filler:
    """Looks, asks for what is free, removes what went to ERROR; and counts how full it was."""

    def __init__(self, tenant):
        self.tenant, self.fleet = tenant, Fleet()
        self.number = self.patience = 0
        self.was_full = False
        self.looks = self.full = self.free = 0

    def round(self):
        self.fleet.look(self.tenant.servers())
        room = slots(rows(ROOM))
        if self.was_full:
            self.looks += 1
            self.full += room == 0
            self.free += room
        elif room == 0 and not self.fleet.asked:
            self.was_full = True
            print('full', flush=True)
        for server in list(self.fleet.refused):
            self.tenant.delete(server)
            self.patience = time.monotonic() + PAUSE_AFTER_REFUSAL_S
            self.fleet.refused.discard(server)
        if time.monotonic() >= self.patience:
            for _ in range(room - len(self.fleet.asked)):
                self.number += 1
                self.fleet.ask(self.tenant.create('filler-%d' % self.number))

    def report(self):
        self.fleet.look(self.tenant.servers())
        return dict(self.fleet.counts, looks=self.looks, full=self.full, runs=len(self.fleet.runs),
                    free=round(self.free / self.looks, 3) if self.looks else None)


def main():
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    filler = Filler(Tenant())
    while not stop.is_set():
        filler.round()
        stop.wait(LOOK_S)
    with open(sys.argv[1], 'w', encoding='utf-8') as file:
        json.dump(filler.report(), file)


if __name__ == '__main__':
    main()
