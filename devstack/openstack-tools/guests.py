#!/usr/bin/python3
"""Real guests: the last compute runs QEMU through libvirt, and its guests say on their consoles
what they have heard from Nova's metadata service, with their own time.

Needs `up --libvirt`. Usage: guests.py [CHAPTER…]
"""
import contextlib
import datetime
import os
import re
import subprocess
import threading
import time

from cloud import until
from database import rows
from invariants import allocations, audit, check
from preempt import Stage, Watch, must
from story import scheduler_with, tell

HOST = 'compute%d' % (len(os.environ['STACK_COMPUTES'].split()) + 1)
LIBVIRT = 'qemu+unix:///system?socket=%s/var/libvirt/s/libvirt-sock' % os.environ['STACK_HOME']
# Seconds from notice to end. A guest boots within a fraction of it also where QEMU emulates the
# processor on a busy machine.
GRACE = 20
PREEMPTIBLE = {'ebbtide:preemptible': 'true', 'ebbtide:grace_seconds': str(GRACE)}
# A guest has one processor, 128 MB, 1 GB of disk.
SIZE = (1, 128, 1)
# A clock of a guest is read from this machine's in whole seconds.
SKEW = 3
BOOT = 150
NOTICE = re.compile(r'^NOTICE metadata at=(\d+) (.*)$', re.MULTILINE)
CHAPTERS = []


def chapter(function):
    CHAPTERS.append(function)
    return function


class Consoles(threading.Thread):
    """What guests have written on their consoles, also those that are gone since; as their owners
    see it, through Nova's API."""

    def __init__(self, cloud):
        super().__init__(daemon=True)
        self.cloud = cloud
        self.servers = []
        self.text = {}
        self.stop = threading.Event()
        self.start()

    def run(self):
        while not self.stop.is_set():
            for server in list(self.servers):
                self._look(server)
            self.stop.wait(0.3)

    def _look(self, server):
        answer = self.cloud.nova('POST', '/servers/%s/action' % server, {'os-getConsoleOutput': {}}, check=False)
        # 404 and 409: the server is gone, or on no host at this moment.
        if answer.status_code == 200:
            text = answer.json()['output'].replace('\r', '')
            # A console begins anew with each boot.
            if text:
                self.text[server] = text

    def of(self, server):
        return self.text.get(server, '')

    def said(self, server, pattern):
        """The last match of a pattern at the beginning of a line, or None."""
        found = list(re.finditer('^' + pattern, self.of(server), re.MULTILINE))
        return found[-1] if found else None

    def hears(self, server, pattern, seconds=BOOT):
        """Waits until a guest has said something."""
        try:
            return until('guest %s to say %s' % (server, pattern), seconds, lambda: self.said(server, pattern))
        except TimeoutError as error:
            raise TimeoutError('%s; its console ends with %r' % (error, self.of(server)[-600:])) from None

    def end(self):
        self.stop.set()
        self.join(5)


@contextlib.contextmanager
def guests(stage, behaviour):
    """Flavors `guest.pre` (preemptible, ends by `behaviour`) and `guest`, and consoles that are
    read. Servers and flavors go with the chapter."""
    cloud = stage.cloud
    made = [cloud.flavor('guest.pre', *SIZE, dict(PREEMPTIBLE, **{'ebbtide:interruption': behaviour})), cloud.flavor('guest', *SIZE)]
    consoles = Consoles(cloud)
    try:
        yield consoles
    finally:
        consoles.end()
        stage.clear()
        for flavor in made:
            cloud.nova('DELETE', '/flavors/' + flavor)


def begin(stage, consoles, name, flavor):
    """Asks for a guest."""
    network = stage.cloud.request('network', 'GET', '/v2.0/networks').json()['networks'][0]['id']
    server = stage.cloud.create(name, flavor, image='guest', networks=[{'uuid': network}])
    consoles.servers.append(server)
    return server


def boots(stage, consoles, server):
    """Until a server is ACTIVE and its guest knows from the metadata service who it is."""
    found = stage.cloud.settled(server, seconds=BOOT)
    must((found['status'], found['OS-EXT-SRV-ATTR:host']) == ('ACTIVE', HOST), '%s is %s on %s: %s' % (
        found['name'], found['status'], found['OS-EXT-SRV-ATTR:host'], found.get('fault')))
    met = consoles.hears(server, r'METADATA ([0-9a-f-]+) at=(\d+)$')
    must(met.group(1) == server, 'the guest of %s was told that it is %s' % (server, met.group(1)))
    ahead = int(met.group(2)) - time.time()
    must(-BOOT < ahead < SKEW, 'the clock of the guest is %.0f s ahead' % ahead)


def fill(stage, consoles):
    """The host full of preemptible guests of known ages: {uuid: age in minutes}."""
    ages = {begin(stage, consoles, 'pre%d' % n, 'guest.pre'): age for n, age in enumerate((125, 40))}
    for server in ages:
        boots(stage, consoles, server)
    stage.grow_old(ages)
    check('a host full of guests in order')
    return ages


def domains():
    """The servers whose domains run, as libvirt says."""
    done = subprocess.run(['virsh', '--quiet', '--connect', LIBVIRT, 'list', '--uuid'], check=True, text=True, capture_output=True)
    return set(done.stdout.split())


def epoch(text):
    return datetime.datetime.fromisoformat(text.replace('Z', '+00:00')).timestamp()


class Notice:
    """What a guest heard of its notice and when, by its own clock."""

    def __init__(self, consoles, server):
        found = NOTICE.search(consoles.of(server))
        must(found, 'the guest heard of no notice; its console ends with %r' % consoles.of(server)[-600:])
        self.at = int(found.group(1))
        self.keys = dict(re.findall(r'"(ebbtide:[a-z_]+)": "([^"]*)"', found.group(2)))
        self.deadline = epoch(self.keys['ebbtide:notice_deadline'])
        # It counts once a second for as long as it lives.
        self.counted = len(re.findall(r'^HB ', consoles.of(server)[found.end():], re.MULTILINE))


def makes_room(stage, consoles, ages, behaviour, left):
    """A normal guest comes, the cheapest of the others leaves. Checks what that one heard inside,
    and gives it, the newcomer, and the notice. `left`: whether Nova shows that it has left."""
    cloud = stage.cloud
    (victim,) = stage.cheapest(ages)
    (other,) = set(ages) - {victim}
    watch = Watch(ages)
    began = time.time()
    try:
        newcomer = begin(stage, consoles, 'newcomer', 'guest')
        consoles.hears(victim, 'NOTICE metadata')
        must(victim in domains(), 'a guest that has just heard of its notice has no domain')
        until('the victim to have left by %s' % behaviour, GRACE + 150, lambda: left(cloud.server(victim)))
        ended = time.time()
        boots(stage, consoles, newcomer)
    finally:
        watch.end()
    heard = Notice(consoles, victim)
    told = {key: value for key, (value, _at) in watch.told[victim].items() if key.startswith('ebbtide:notice')}
    must(heard.keys == told, 'inside the guest the notice is %s, and in Nova %s' % (heard.keys, told))
    must(heard.keys['ebbtide:notice'] == behaviour, 'the notice says %s' % heard.keys['ebbtide:notice'])
    must(began - SKEW < heard.at < heard.deadline, 'the guest heard at %d; the newcomer was asked for at %d, the deadline was %d' % (
        heard.at, began, heard.deadline))
    # The agent, Nova and its metadata service take some of the grace period.
    must(heard.deadline - heard.at >= GRACE / 4,
         'of %d s the guest had %d' % (GRACE, heard.deadline - heard.at))
    must(heard.counted >= GRACE / 4, 'after the notice the guest counted to %d' % heard.counted)
    must(ended > heard.deadline - SKEW, 'the guest ended %.0f s before its deadline' % (heard.deadline - ended))
    told = set(watch.told) & set(ages)
    must(told == {victim} and not NOTICE.search(consoles.of(other)),
         'others heard of a notice: %s' % sorted(told))
    must(domains() == {other, newcomer}, 'libvirt runs %s' % sorted(domains()))
    print('      %s: asked for at 0 s; inside the guest the notice came at %d s, %d s before the deadline; it counted to %d; had left at %d s; '
          'newcomer up at %d s' % (behaviour, heard.at - began, heard.deadline - heard.at, heard.counted, ended - began, time.time() - began), flush=True)
    return victim, newcomer


@chapter
def a_notice_inside_the_guest(stage):
    """`terminate`: the guest of the victim reads its notice at 169.254.169.254 while there is time,
    runs on until the deadline, and is gone."""
    with guests(stage, 'terminate') as consoles:
        ages = fill(stage, consoles)
        victim, _newcomer = makes_room(stage, consoles, ages, 'terminate', lambda server: server is None)
        must(not consoles.said(victim, 'OFF '), 'Nova deletes a server without pressing its power button, and the guest saw it pressed')
        check('a guest that was terminated')
        audit()


@chapter
def a_guest_that_hibernates_and_comes_back(stage):
    """`hibernate`: the guest hears of it, saves what it has on its disk when the power button is
    pressed, and its disk goes to Glance. When the newcomer goes, the return queue has it unshelved,
    and it finds on its disk what it saved."""
    cloud = stage.cloud
    with scheduler_with('guests', 'comeback_first = 2', 'comeback_reserve_percent = 0'), guests(stage, 'hibernate') as consoles:
        ages = fill(stage, consoles)
        (expected,) = stage.cheapest(ages)
        whole = allocations()[expected]
        victim, newcomer = makes_room(stage, consoles, ages, 'shelve', lambda server: server['status'] == 'SHELVED_OFFLOADED')
        pressed = consoles.said(victim, r'OFF power button n=(\d+)$')
        must(pressed, 'the guest was not shut down; its console ends with %r' % consoles.of(victim)[-600:])
        must(len(rows("select 1 from glance.images where name = 'pre%d-shelved' and status = 'active'" % list(ages).index(victim))) == 1,
             'the disk of the shelved guest is not in Glance')
        must(victim not in allocations(), 'a shelved guest holds %s' % allocations().get(victim))
        check('a guest that hibernates')
        consoles.text.pop(victim)
        began = time.time()
        cloud.delete(newcomer)
        until('the return queue to have it unshelved', 120, lambda: cloud.server(victim)['status'] == 'ACTIVE', pause=0.5)
        boots(stage, consoles, victim)
        found = consoles.hears(victim, r'FOUND SAVED n=(\d+)$')
        must(found.group(1) == pressed.group(1), 'the guest saved %s and found %s' % (pressed.group(1), found.group(1)))
        must(not NOTICE.search(consoles.of(victim)), 'the guest that came back heard of its old notice')
        until('its whole claim', 30, lambda: allocations().get(victim) == whole)
        actions = [a['action'] for a in cloud.nova('GET', '/servers/%s/os-instance-actions' % victim).json()['instanceActions']]
        must(actions[0] == 'unshelve', 'Nova has recorded %s' % actions)
        check('a guest that came back')
        audit()
        print('      back inside %d s after the newcomer went; saved and found n=%s' % (time.time() - began, found.group(1)), flush=True)


def main():
    tell(CHAPTERS)


if __name__ == '__main__':
    main()
