#!/usr/bin/python3
"""Compute services, hosts with what Nova and Placement say is used, and servers."""
from cloud import Cloud
from database import rows

cloud = Cloud()
print('\n%-18s %-14s %-10s %-6s' % ('service', 'host', 'status', 'state'))
for service in cloud.nova('GET', '/os-services').json()['services']:
    print('%-18s %-14s %-10s %-6s' % (service['binary'], service['host'], service['status'], service['state']))
print('\n%-12s %24s %32s' % ('host', 'Nova: VCPUs used of', 'Placement: VCPU, MB, GB used'))
used = {}
for row in rows("select p.name, a.resource_class_id as class, sum(a.used) as used from placement.allocations a "
                "join placement.resource_providers p on a.resource_provider_id = p.id group by p.name, class"):
    used.setdefault(row['name'], {})[row['class']] = int(row['used'])
for node in rows("select host, vcpus_used, vcpus from nova_cell1.compute_nodes where deleted = 0 and host like 'compute%' order by host"):
    classes = used.get(node['host'], {})
    print('%-12s %20s of %-4s %28s' % (node['host'], node['vcpus_used'], node['vcpus'], ', '.join(str(classes.get(k, 0)) for k in (0, 1, 2))))
servers = cloud.nova('GET', '/servers/detail?all_tenants=1').json()['servers']
if servers:
    print()
for server in servers:
    print('%-24s %-12s %-12s %s' % (server['name'], server['status'], server['OS-EXT-SRV-ATTR:host'], server['flavor']['original_name']))
