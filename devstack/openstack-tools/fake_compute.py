#!/usr/bin/python3
"""nova-compute on Nova's own fake driver.

Debian's package nova-compute brings libvirt and QEMU; the program itself is in python3-nova. The host's size comes from FAKE_VCPUS,
FAKE_MEMORY_MB and FAKE_LOCAL_GB, its name and folder from FAKE_HOST and FAKE_STATE_PATH. FAKE_SPAWN_S and FAKE_DESTROY_S are seconds that starting and ending a server take; a test overrides
them with TEST_FAKE_SPAWN_S and TEST_FAKE_DESTROY_S.
"""
import os
import sys
import time
import uuid

# First of all: it makes Python's threads what this release of Nova wants them to be.
from nova.cmd.compute import main
from nova.virt import fake

driver = fake.MediumFakeDriver
driver.vcpus = int(os.environ['FAKE_VCPUS'])
driver.memory_mb = int(os.environ['FAKE_MEMORY_MB'])
driver.local_gb = int(os.environ['FAKE_LOCAL_GB'])


def slow(name, variable):
    delay = float(os.environ.get('TEST_' + variable) or os.environ.get(variable) or 0)
    if not delay:
        return
    real = getattr(fake.FakeDriver, name)

    def slowly(self, *arguments, **options):
        time.sleep(delay)
        return real(self, *arguments, **options)
    setattr(fake.FakeDriver, name, slowly)


def keep_identity(host, state_path):
    """Newer computes refuse a second start without the identity of the first; the fake driver makes a new one each time."""
    if not hasattr(fake, 'uuids'):
        return
    identity = str(uuid.uuid5(uuid.NAMESPACE_DNS, host))
    setattr(fake.uuids, 'node_' + host, identity)
    with open(os.path.join(state_path, 'compute_id'), 'w', encoding='utf-8') as file:
        file.write(identity)


keep_identity(os.environ['FAKE_HOST'], os.environ['FAKE_STATE_PATH'])
slow('spawn', 'FAKE_SPAWN_S')
slow('destroy', 'FAKE_DESTROY_S')

if __name__ == '__main__':
    sys.argv[0] = 'nova-compute'
    sys.exit(main())
