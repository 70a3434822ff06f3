#!/usr/bin/python3
"""What Tempest needs of the cloud: a role, a network to the outside, two images, two flavors;
and its configuration file. Safe to repeat.

Usage: tempest_cloud.py FOLDER   (writes FOLDER/tempest.conf)
"""
import os
import sys

from cloud import Cloud

# Flavors of prepare.py; the second is twice the first.
FLAVOR, LARGER = 'small', 'medium'

CONF = """\
[DEFAULT]
log_file = {folder}/tempest.log
[oslo_concurrency]
lock_path = {folder}/lock
[auth]
use_dynamic_credentials = true
admin_username = admin
admin_password = {password}
admin_project_name = admin
admin_domain_name = Default
create_isolated_networks = true
[identity]
auth_version = v3
uri_v3 = {auth}
region = RegionOne
v3_endpoint_type = public
[compute]
image_ref = {image}
image_ref_alt = {other_image}
flavor_ref = {flavor}
flavor_ref_alt = {larger}
min_compute_nodes = {computes}
max_microversion = 2.93
hypervisor_type = fake
build_interval = 1
build_timeout = 180
[compute-feature-enabled]
resize = true
cold_migration = true
live_migration = true
# Tests name no host, and do not migrate back to a named one. For these Nova asks no scheduler
# before microversion 2.30, and checks the host's memory itself
# (_check_destination_has_enough_memory in nova/conductor/tasks/live_migrate.py): on a full host it
# fails, whichever scheduler runs.
can_migrate_between_any_hosts = false
live_migrate_back_and_forth = false
block_migration_for_live_migration = true
volume_backed_live_migration = true
volume_multiattach = true
change_password = true
interface_attach = true
shelve_migrate = true
console_output = true
# As nova.conf of these clouds has them.
scheduler_enabled_filters = all
# No console proxy, no metadata service, no virtual TPM, no encryption of volumes.
vnc_console = false
metadata_service = false
attach_encrypted_volume = false
# The image format that a rescue on the same device needs is not told by the fake driver.
stable_rescue = false
[network]
public_network_id = {public}
floating_network_name = public
project_network_cidr = 10.100.0.0/16
project_network_mask_bits = 28
[network-feature-enabled]
ipv6 = false
floating_ips = true
[volume]
storage_protocol = file
# Of prepare.py.
volume_type_multiattach = multiattach
max_microversion = 3.70
build_interval = 1
build_timeout = 180
[volume-feature-enabled]
backup = false
[validation]
# Servers of the fake driver run nothing that could be reached.
run_validation = false
[service_available]
nova = true
glance = true
neutron = true
cinder = true
swift = false
horizon = false
"""


def outside(cloud):
    """The id of the network `public` with its subnet, for floating addresses."""
    found = cloud.request('network', 'GET', '/v2.0/networks?name=public').json()['networks']
    if found:
        return found[0]['id']
    made = cloud.request('network', 'POST', '/v2.0/networks', {
        'network': {'name': 'public', 'router:external': True, 'shared': False}})
    network = made.json()['network']['id']
    cloud.request('network', 'POST', '/v2.0/subnets', {'subnet': {
        'name': 'public', 'network_id': network, 'ip_version': 4, 'cidr': '172.24.0.0/20',
        'enable_dhcp': False}})
    return network


def role(cloud, name):
    """A role that Keystone has since 2023 by itself."""
    roles = cloud.auth + '/roles'
    if not cloud.session.get(roles, params={'name': name}, timeout=60).json()['roles']:
        cloud.session.post(roles, json={'role': {'name': name}}, timeout=60).raise_for_status()


def main():
    folder = os.path.abspath(sys.argv[1])
    cloud = Cloud()
    role(cloud, 'manager')
    text = CONF.format(
        folder=folder, auth=cloud.auth, password=os.environ['OS_PASSWORD'],
        public=outside(cloud), image=cloud.image('tiny'), other_image=cloud.image('tiny2'),
        flavor=cloud.flavor(FLAVOR), larger=cloud.flavor(LARGER),
        computes=len(os.environ['STACK_COMPUTES'].split()))
    os.makedirs(folder + '/lock', exist_ok=True)
    with open(folder + '/tempest.conf', 'w', encoding='utf-8') as file:
        file.write(text)


if __name__ == '__main__':
    main()
