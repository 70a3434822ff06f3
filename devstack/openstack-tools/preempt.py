"""What the story and the bad days share: a cloud full of preemptible servers, and a record of what
happened to whom."""
import threading
import time

from cloud import Cloud, until
from database import rows, run
from invariants import Broken, check


class Watch(threading.Thread):
    """Looks at the servers several times a second while something happens; remembers their states,
    notices and ends."""

    def __init__(self, uuids):
        super().__init__(daemon=True)
        self.uuids = set(uuids)
        self.told = {}
        self.gone = {}
        self.active = {}
        self.lowest = {}
        self.stop = threading.Event()
        self.start()

    def run(self):
        while not self.stop.is_set():
            try:
                self._look()
            except Exception:  # the database may be down on a bad day; the next look counts
                pass
            self.stop.wait(0.15)

    def _look(self):
        now = time.monotonic()
        found = {r['uuid']: r for r in rows('select uuid, vm_state, deleted, task_state from nova_cell1.instances')}
        for uuid, row in found.items():
            if row['deleted'] or row['vm_state'] in ('deleted', 'shelved_offloaded'):
                if uuid in self.uuids:
                    self.gone.setdefault(uuid, now)
            elif row['vm_state'] == 'active':
                self.active.setdefault(uuid, now)
        for row in rows("select instance_uuid, `key`, value from nova_cell1.instance_metadata where `key` like 'ebbtide%'"):
            self.told.setdefault(row['instance_uuid'], {}).setdefault(row['key'], (row['value'], now))
        for row in rows("select host, free_ram_mb, vcpus - vcpus_used as free_vcpus from nova_cell1.compute_nodes where deleted = 0 and host like 'compute%'"):
            low = self.lowest.setdefault(row['host'], [row['free_ram_mb'], row['free_vcpus']])
            low[0], low[1] = min(low[0], row['free_ram_mb']), min(low[1], row['free_vcpus'])

    def end(self):
        self.stop.set()
        self.join(5)


# Minutes since the launch of the n-th preemptible server: what has run of its current hour, and
# with it the loss of ending it, differs. None comes to a full hour within a test: the least would
# become the most.
AGES = [125, 40, 83, 35, 12, 47]


def started_minutes(age):
    """Minutes of the hour that has begun: what the operator loses, for a flavor without a price the
    only thing that counts."""
    return age % 60


class Stage:
    def __init__(self):
        self.cloud = Cloud()
        self.clear()

    def clear(self):
        servers = [s['id'] for s in self.cloud.servers()]
        if servers:
            self.cloud.delete(*servers, seconds=120)
        check('an empty cloud in order')

    def fill(self, flavor='large.preemptible', count=6, **options):
        """`count` preemptible servers of known ages; {uuid: age in minutes}."""
        return self.fill_with([(flavor, options)] * count)

    def fill_with(self, servers):
        """The same, with a flavor and the options of `create` for each server."""
        asked = [self.cloud.create('pre%d' % n, flavor, **options)
                 for n, (flavor, options) in enumerate(servers)]
        ages = {}
        for n, uuid in enumerate(asked):
            server = self.cloud.settled(uuid)
            if server['status'] != 'ACTIVE':
                raise Broken('preemptible server pre%d is %s: %s' % (n, server['status'], server.get('fault')))
            ages[uuid] = AGES[n % len(AGES)]
        self.grow_old(ages)
        check('a cloud full of preemptible servers in order')
        return ages

    @staticmethod
    def grow_old(ages):
        """Servers seem to have been launched so many minutes ago."""
        for uuid, age in ages.items():
            run("update nova_cell1.instances set launched_at = utc_timestamp() - interval %d minute, updated_at = utc_timestamp() "
                "where uuid = '%s'" % (age, uuid))

    def cheapest(self, ages, count=1):
        return set(sorted(ages, key=lambda uuid: started_minutes(ages[uuid]))[:count])

    def wait_gone(self, uuids, seconds=120):
        until('victims %s to be gone' % ', '.join(sorted(uuids)), seconds,
              lambda: not rows("select 1 from nova_cell1.instances where deleted = 0 and vm_state not in ('shelved_offloaded') and uuid in (%s)"
                               % ', '.join("'%s'" % u for u in uuids)))

    def left(self, ages):
        """Which of the preemptible servers are still there."""
        found = {r['uuid'] for r in rows('select uuid from nova_cell1.instances where deleted = 0')}
        return {uuid: age for uuid, age in ages.items() if uuid in found}


def must(condition, text):
    if not condition:
        raise Broken(text)


def wait_up(computes):
    """Until processes nova-compute-N that were started again have reported."""
    began = rows('select utc_timestamp() as now')[0]['now']
    for name in computes:
        host = name.replace('nova-compute-', 'compute')
        until('%s to report' % host, 90, lambda h=host: rows(
            "select 1 from nova_cell1.services where `binary` = 'nova-compute' and host = %s and last_seen_up > %s", h, began))


def rpc_client(transport, timeout):
    """For pings of a scheduler. Debian's oslo.messaging (14.0) has no `get_rpc_client` yet, and
    newer ones do not want the class called."""
    import oslo_messaging
    make = getattr(oslo_messaging, 'get_rpc_client', oslo_messaging.RPCClient)
    return make(transport, oslo_messaging.Target(exchange='nova', topic='scheduler', version='1.0', namespace='baseapi'), timeout=timeout)


def wait_scheduler(seconds=60):
    """Until a scheduler answers a ping."""
    import os
    import oslo_messaging
    from oslo_config import cfg
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, 'rabbit://nova:nova@127.0.0.1:%s/' % os.environ['STACK_PORT_AMQP'])
    client = rpc_client(transport, 3)

    def answers():
        try:
            return client.call({}, 'ping', arg='x')
        except oslo_messaging.MessagingTimeout:
            return None
    until('a scheduler to answer', seconds, answers)
    transport.cleanup()
