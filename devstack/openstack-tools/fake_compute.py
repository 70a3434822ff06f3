#!/usr/bin/python3
"""nova-compute on Nova's own fake driver.

Debian's package nova-compute brings libvirt and QEMU; the program itself is in python3-nova. The
host's size comes from FAKE_VCPUS, FAKE_MEMORY_MB and FAKE_LOCAL_GB, its name and folder from
FAKE_HOST and FAKE_STATE_PATH; while that folder has a file `size` with three numbers, the host is
that large instead. The driver is FakeDriverWithPciResources: three PFs with a VF each, which are
GPUs here (see `four_digits`). FAKE_SPAWN_S and FAKE_DESTROY_S are seconds that starting and ending
a server take; a test overrides them with TEST_FAKE_SPAWN_S and TEST_FAKE_DESTROY_S.
"""
import os
import sys
import time
import uuid

# First of all: it makes Python's threads what this release of Nova wants them to be.
from nova.cmd.compute import main
from nova.virt import fake

driver = fake.FakeDriverWithPciResources
SIZE = [int(os.environ[name]) for name in ('FAKE_VCPUS', 'FAKE_MEMORY_MB', 'FAKE_LOCAL_GB')]
driver.vcpus, driver.memory_mb, driver.local_gb = SIZE


def resizable(name):
    """Before the driver tells its size, the file `size` is looked at: a test needs no restart for
    larger hosts."""
    real = getattr(fake.FakeDriver, name)

    def looked_up(self, *arguments, **options):
        try:
            with open(os.path.join(os.environ['FAKE_STATE_PATH'], 'size'), encoding='utf-8') as file:
                size = [int(number) for number in file.read().split()]
        except FileNotFoundError:
            size = SIZE
        self.vcpus, self.memory_mb, self.local_gb = size
        self.resources.vcpus, self.resources.memory_mb, self.resources.local_gb = size
        return real(self, *arguments, **options)
    setattr(fake.FakeDriver, name, looked_up)


def four_digits():
    """The driver's vendor and product are longer than the columns of Nova's own tables, and MariaDB
    refuses them."""
    real = driver.get_available_resource

    def shortened(self, nodename):
        status = real(self, nodename)
        devices = status['pci_passthrough_devices']
        devices = devices.replace('fake-vendor_id', '10de').replace('fake-product_id', '1eb8')
        status['pci_passthrough_devices'] = devices
        return status
    driver.get_available_resource = shortened


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
    """Newer computes refuse a second start without the identity of the first; the fake driver makes
    a new one each time."""
    if not hasattr(fake, 'uuids'):
        return
    identity = str(uuid.uuid5(uuid.NAMESPACE_DNS, host))
    setattr(fake.uuids, 'node_' + host, identity)
    with open(os.path.join(state_path, 'compute_id'), 'w', encoding='utf-8') as file:
        file.write(identity)


keep_identity(os.environ['FAKE_HOST'], os.environ['FAKE_STATE_PATH'])
resizable('get_available_resource')
resizable('update_provider_tree')
four_digits()
slow('spawn', 'FAKE_SPAWN_S')
slow('destroy', 'FAKE_DESTROY_S')

if __name__ == '__main__':
    sys.argv[0] = 'nova-compute'
    sys.exit(main())
