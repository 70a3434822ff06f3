"""What really runs on hosts, sampled all the time: Nova's own rows, whatever Placement shows."""
import threading
import time

from database import local_disk, rows

# Amounts of the servers that are on a host and not at rest, with the host's size as Placement has
# it.
RUNS = """
select i.host, sum(i.vcpus) as vcpus, sum(i.memory_mb) as ram, sum({disk}) as disk, count(*) as servers
from nova_cell1.instances i where i.deleted = 0 and i.host is not null and i.vm_state in ('active', 'building', 'paused', 'resized', 'rescued')
group by i.host
""".format(disk=local_disk('nova_cell1'))
SIZES = """
select p.name, v.resource_class_id as class, (v.total - v.reserved) * v.allocation_ratio as size from placement.inventories v
join placement.resource_providers p on p.id = v.resource_provider_id
"""
COLUMNS = {'vcpus': 0, 'ram': 1, 'disk': 2}


class Occupation(threading.Thread):
    """Looks as often as the database answers; remembers every moment at which more ran on a host
    than it has."""

    def __init__(self):
        super().__init__(daemon=True)
        self.sizes = {(row['name'], row['class']): float(row['size']) for row in rows(SIZES)}
        self.samples = 0
        self.most = {}
        self.over = []
        self.bare = {}
        self.failed = None
        self.stop = threading.Event()
        self.start()

    def run(self):
        try:
            while not self.stop.is_set():
                self._look()
                self.stop.wait(0.05)
        except Exception as error:  # told by end(): a watch that looks no more must not pass
            self.failed = error

    def _look(self):
        now = time.monotonic()
        for row in rows(RUNS):
            for name, number in COLUMNS.items():
                amount, size = int(row[name]), self.sizes[(row['host'], number)]
                self.most[(row['host'], name)] = max(self.most.get((row['host'], name), 0), amount)
                if amount > size:
                    self.over.append('%s: %d of %g %s at %.2f s' % (row['host'], amount, size, name, now))
        # Servers that run and hold nothing, with how long each was seen so.
        held = {row['consumer_id'] for row in rows('select distinct consumer_id from placement.allocations')}
        alive = {row['uuid'] for row in rows("select uuid from nova_cell1.instances where deleted = 0 and vm_state = 'active' and task_state is null")}
        for uuid in alive - held:
            first, _ = self.bare.get(uuid, (now, now))
            self.bare[uuid] = (first, now)
        self.samples += 1

    def end(self):
        self.stop.set()
        self.join(10)
        if self.failed:
            raise self.failed
