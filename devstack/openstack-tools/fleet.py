"""A tenant's account of its servers, and how many further ones fit, apart from the cloud, so that
both can be tried without one."""
# Of the flavor small.preemptible.
NEEDS = {'VCPU': 1, 'MEMORY_MB': 2000, 'DISK_GB': 20}
CLASSES = {0: 'VCPU', 1: 'MEMORY_MB', 2: 'DISK_GB'}


def slots(free):
    """How many servers fit. `free`: rows of name, class and free amount."""
    hosts = {}
    for row in free:
        kind = CLASSES.get(row['class'])
        if kind in NEEDS:
            fits = max(0, int(row['free'] // NEEDS[kind]))
            hosts.setdefault(row['name'], []).append(fits)
    return sum(min(counts) for counts in hosts.values())


class Fleet:
    """What the tenant knows of its servers. It is told of rows and asks for nothing."""

    def __init__(self):
        # Asked for and without a host yet; on a host; in ERROR and not yet removed.
        self.asked, self.runs, self.refused = set(), set(), set()
        self.counts = {'asked': 0, 'ran': 0, 'taken': 0, 'refused': 0, 'failed': 0}

    def ask(self, server):
        self.asked.add(server)
        self.counts['asked'] += 1

    def look(self, found):
        """`found`: rows of all servers that the project ever had. Those that left though the tenant
        did not remove them were taken."""
        for row in found:
            server = row['uuid']
            if row['deleted']:
                if server in self.runs or server in self.asked:
                    self.counts['taken'] += 1
                for known in (self.asked, self.runs, self.refused):
                    known.discard(server)
            elif row['vm_state'] == 'error':
                if server in self.asked or server in self.runs:
                    self.counts['failed' if row['host'] else 'refused'] += 1
                    self.asked.discard(server)
                    self.runs.discard(server)
                    self.refused.add(server)
            elif row['host'] and server in self.asked:
                self.asked.discard(server)
                self.runs.add(server)
                self.counts['ran'] += 1
