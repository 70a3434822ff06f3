#!/usr/bin/python3
"""What every cloud has on its first day: flavors and an image. Safe to repeat."""
from cloud import Cloud, until

# Name, VCPUs, memory in MB, disk in GB, extra specs.
FLAVORS = [
    ('small', 1, 2000, 20, None),
    ('medium', 2, 4000, 40, None),
    ('large', 4, 8000, 80, None),
    ('huge', 64, 2000, 20, None),
    ('small.preemptible', 1, 2000, 20, {'ebbtide:preemptible': 'true'}),
    ('medium.preemptible', 2, 4000, 40, {'ebbtide:preemptible': 'true'}),
    ('large.preemptible', 4, 8000, 80, {'ebbtide:preemptible': 'true'}),
    # Long enough to be deleted for while it drains.
    ('large.patient.preemptible', 4, 8000, 80, {'ebbtide:preemptible': 'true', 'ebbtide:grace_seconds': '20'}),
    # Passes Placement, and no host passes Nova's filters.
    ('small.norealfilter', 1, 2000, 20, {'capabilities:hypervisor_type': 'ironic'}),
]

# Backends of Cinder (cinder.sh).
POOLS = 2


def volumes(cloud):
    """Waits for Cinder, and makes a type of volumes that several servers may attach."""
    def asked(method, path, body=None):
        return cloud.request('block-storage', method, path, body).json()
    until('the backends of Cinder', 90, lambda: len(asked('GET', '/scheduler-stats/get_pools')['pools']) == POOLS)
    if not any(one['name'] == 'multiattach' for one in asked('GET', '/types')['volume_types']):
        asked('POST', '/types', {'volume_type': {'name': 'multiattach', 'extra_specs': {'multiattach': '<is> True'}}})


if __name__ == '__main__':
    cloud = Cloud()
    for flavor in FLAVORS:
        cloud.flavor(*flavor)
    cloud.image('tiny')
    cloud.image('tiny2')
    if 'block-storage' in cloud.endpoints:
        volumes(cloud)
