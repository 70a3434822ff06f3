"""Placement's and Nova's databases as comparable text: which rows there are, without what hangs on
time or on row numbers."""
import json

from database import rows
from normalise import normal

# Columns that are left out everywhere, and why.
IGNORED = {
    'id': 'an automatic row number: a retried transaction takes two',
    'created_at': 'a time', 'updated_at': 'a time', 'deleted_at': 'a time', 'launched_at': 'a time', 'terminated_at': 'a time',
    'last_seen_up': 'a time', 'start_time': 'a time', 'finish_time': 'a time', 'expires_at': 'a time',
    'deleted': 'a deleted row holds its own row number here; which rows are deleted is compared as is_deleted',
    'report_count': 'counts heartbeats: hangs on how long the stack has run',
    'instance_id': 'a row number', 'aggregate_id': 'a row number', 'cell_id': 'a row number', 'group_id': 'a row number',
    'resource_provider_id': 'a row number; shown as the name of the provider', 'root_provider_id': 'a row number', 'parent_provider_id': 'a row number',
    'consumer_id_row': 'a row number', 'action_id': 'a row number', 'trait_id': 'a row number; shown by name', 'project_id_row': 'a row number',
    'traceback': 'names files and lines of Nova', 'details': 'a Python traceback in text: names files and lines of Nova',
    'request_id': 'generated for each API call', 'hostname': 'made from the display name', 'reservation_id': 'generated',
    'stats': 'what the compute had under way at its last look', 'current_workload': 'the same as a number',
    'running_vms': 'what the compute counted at its last look; what it has given away is compared',
    'root_device_name': 'no part of scheduling', 'connection_info': 'no part of scheduling', 'network_info': 'holds times',
    'cleaned': 'whether a compute has looked for the deleted server since: hangs on how long the stack has run',
    'system_metadata': 'no part of scheduling', 'keypairs': 'no part of scheduling', 'build_request_id': 'a row number',
}
# Tables and how to read them; joins put names in place of row numbers.
TABLES = {
    'placement.resource_providers': "select name, uuid from placement.resource_providers where name like 'compute%%'",
    'placement.inventories': "select p.name, i.resource_class_id, total, reserved, min_unit, max_unit, step_size, allocation_ratio "
                             "from placement.inventories i join placement.resource_providers p on p.id = i.resource_provider_id",
    'placement.traits': "select p.name, t.name as trait from placement.resource_provider_traits r join placement.resource_providers p "
                        "on p.id = r.resource_provider_id join placement.traits t on t.id = r.trait_id",
    'placement.aggregates': "select p.name, a.uuid from placement.resource_provider_aggregates r join placement.resource_providers p "
                            "on p.id = r.resource_provider_id join placement.placement_aggregates a on a.id = r.aggregate_id",
    'placement.allocations': "select p.name, a.consumer_id, a.resource_class_id, a.used from placement.allocations a "
                             "join placement.resource_providers p on p.id = a.resource_provider_id",
    'placement.consumers': "select c.uuid, c.generation, j.external_id as project, u.external_id as user from placement.consumers c "
                           "join placement.projects j on j.id = c.project_id join placement.users u on u.id = c.user_id",
}
# Read with all their columns.
PLAIN = [
    'nova_api.aggregates', 'nova_api.aggregate_hosts', 'nova_api.aggregate_metadata', 'nova_api.build_requests', 'nova_api.host_mappings',
    'nova_api.instance_mappings', 'nova_api.instance_groups', 'nova_api.instance_group_member', 'nova_api.instance_group_policy',
    'nova_api.request_specs',
    'nova_cell1.instances', 'nova_cell1.instance_faults', 'nova_cell1.instance_actions', 'nova_cell1.instance_actions_events',
    'nova_cell1.instance_metadata', 'nova_cell1.instance_system_metadata', 'nova_cell1.migrations', 'nova_cell1.compute_nodes', 'nova_cell1.services',
    'nova_cell1.block_device_mapping',
    'nova_cell0.instances', 'nova_cell0.instance_faults', 'nova_cell0.services', 'nova_cell0.instance_actions', 'nova_cell0.instance_actions_events',
]


def dump(names):
    """{table: sorted rows as text}"""
    found = {}
    for table in sorted(set(TABLES) | set(PLAIN)):
        kept = []
        for row in rows(TABLES.get(table) or 'select * from %s' % table):
            if row.get('binary') in ('nova-conductor',):
                continue
            # A compute that looks for deleted servers every five minutes counts its attempts.
            if row.get('key') == 'clean_attempts':
                continue
            entry = {k: v if isinstance(v, (int, float, str, type(None))) else str(v) for k, v in row.items() if k not in IGNORED}
            if 'deleted' in row:
                entry['is_deleted'] = bool(row['deleted'])
            kept.append(normal(entry, names))
        found[table] = sorted(kept, key=lambda r: json.dumps(r, sort_keys=True))
    return found
