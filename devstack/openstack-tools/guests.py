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
LOG = '%s/var/nova/instances-%s/%%s/console.log' % (os.environ['STACK_HOME'], HOST[len('compute'):])
# Seconds from notice to end. A guest boots within a fraction of it also where QEMU emulates the
# processor on a busy machine.
GRACE = 20
PREEMPTIBLE = {'ebbtide:preemptible': 'true', 'ebbtide:grace_seconds': str(GRACE)}
# A guest has one processor, 128 MB, 1 GB of disk.
SIZE = (1, 128, 1)
# A clock of a guest is read from this machine's in whole seconds.
SKEW = 3
# A guest that waits for its processor while it boots loses some 5 s for each turn of its timer.
AHEAD = 60
BOOT = 300
MET = r'^METADATA ([0-9a-f-]+) at=(\d+)$'
NOTICE = re.compile(r'^NOTICE metadata at=(\d+) (.*)$', re.MULTILINE)
CHAPTERS = []


def chapter(function):
    CHAPTERS.append(function)
    return function


class Consoles(threading.Thread):
    """What guests have written on their consoles, also those that are gone since.

    Read where QEMU logs it. Nova's API tells of a console only while the domain runs, so it loses
    what a guest says as its last: that its power button was pressed."""

    def __init__(self, cloud):
        super().__init__(daemon=True)
        self.cloud = cloud
        self.servers = []
        self.text = {}
        # By how many seconds the clock of a guest is ahead of this machine's, for each time that it
        # said, and for each guest since its last boot.
        self.ahead, self.skew = {}, {}
        self.stop = threading.Event()
        self.start()

    def run(self):
        while not self.stop.is_set():
            for server in list(self.servers):
                self._look(server)
            self.stop.wait(0.1)

    def _look(self, server):
        try:
            with open(LOG % server, encoding='utf-8', errors='replace') as file:
                text = file.read().replace('\r', '')
        except FileNotFoundError:
            # Not built yet, or gone from the host.
            return
        met = re.search(MET, text, re.MULTILINE)
        if met and (server, met.group(2)) not in self.ahead:
            self.ahead[server, met.group(2)] = int(met.group(2)) - time.time()
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
    met = consoles.hears(server, MET[1:])
    must(met.group(1) == server, 'the guest of %s was told that it is %s' % (server, met.group(1)))
    # As its owner sees it.
    shown = stage.cloud.action(server, {'os-getConsoleOutput': {}}).json()['output']
    must(met.group(0) in shown.replace('\r', ''), 'the console that Nova shows ends with %r' % shown[-600:])
    ahead = consoles.ahead[server, met.group(2)]
    must(abs(ahead) < AHEAD, 'the clock of the guest is %.0f s ahead' % ahead)
    consoles.skew[server] = ahead


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
    """What a guest heard of its notice and when, by its own clock without what that was ahead when
    it booted."""

    def __init__(self, consoles, server):
        found = NOTICE.search(consoles.of(server))
        must(found, 'the guest heard of no notice; its console ends with %r' % consoles.of(server)[-600:])
        # By this machine's clock.
        self.at = int(found.group(1)) - consoles.skew[server]
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


def comes_back(stage, behaviour, told, status, away):
    """A guest leaves by `behaviour`, which its notice calls `told`, and saves what it has on its
    disk when the power button is pressed; then Nova shows `status`, and `away(victim, whole)`
    checks what it still holds of its claim. When the newcomer goes, the return queue brings it
    back, and it finds on its disk what it saved."""
    cloud = stage.cloud
    with scheduler_with('guests', 'comeback_first = 2', 'comeback_reserve_percent = 0'), guests(stage, behaviour) as consoles:
        ages = fill(stage, consoles)
        (expected,) = stage.cheapest(ages)
        whole = allocations()[expected]
        victim, newcomer = makes_room(stage, consoles, ages, told, lambda server: server['status'] == status)
        pressed = consoles.said(victim, r'OFF power button n=(\d+)$')
        must(pressed, 'the guest was not shut down; its console ends with %r' % consoles.of(victim)[-600:])
        away(victim, whole)
        began = time.time()
        cloud.delete(newcomer)
        until('the return queue to bring it back', BOOT, lambda: cloud.server(victim)['status'] == 'ACTIVE', pause=0.5)
        active = time.time() - began
        # Only its new console says this: the old one stays readable until the guest boots.
        found = consoles.hears(victim, r'FOUND SAVED n=(\d+)$')
        must(found.group(1) == pressed.group(1), 'the guest saved %s and found %s' % (pressed.group(1), found.group(1)))
        boots(stage, consoles, victim)
        must(not NOTICE.search(consoles.of(victim)), 'the guest that came back heard of its old notice')
        until('its whole claim', 30, lambda: allocations().get(victim) == whole)
        done = [a['action'] for a in cloud.nova('GET', '/servers/%s/os-instance-actions' % victim).json()['instanceActions']]
        must(done[0] == BACK_BY[status], 'Nova has recorded %s' % done)
        check('a guest that came back')
        audit()
        print('      %s: ACTIVE %d s after the newcomer went, its guest up at %d s; saved and found n=%s' % (
            BACK_BY[status], active, time.time() - began, found.group(1)), flush=True)


# What Nova records when a server comes back, by the status in which it was away.
BACK_BY = {'SHUTOFF': 'start', 'SHELVED_OFFLOADED': 'unshelve'}


@chapter
def a_guest_that_stops_and_comes_back(stage):
    """`stop`: the guest is shut down and keeps its disk on the host, and nothing else."""
    def away(victim, whole):
        check('a guest that stops', stopped={victim})
        disk = {key: amount for key, amount in whole.items() if key[1] == 'DISK_GB'}
        must(allocations()[victim] == disk, 'a stopped guest holds %s' % allocations()[victim])
    comes_back(stage, 'stop', 'stop', 'SHUTOFF', away)


@chapter
def a_guest_that_hibernates_and_comes_back(stage):
    """`hibernate`: the guest is shut down, its disk goes to Glance, and it holds nothing."""
    def away(victim, _whole):
        name = stage.cloud.server(victim)['name']
        must(len(rows("select 1 from glance.images where name = %s and status = 'active'", name + '-shelved')) == 1,
             'the disk of the shelved guest is not in Glance')
        must(victim not in allocations(), 'a shelved guest holds %s' % allocations().get(victim))
        check('a guest that hibernates')
    comes_back(stage, 'hibernate', 'shelve', 'SHELVED_OFFLOADED', away)


def main():
    tell(CHAPTERS)


if __name__ == '__main__':
    main()
