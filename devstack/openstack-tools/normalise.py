"""Makes two recordings comparable: names for what was generated, and nothing that only says
when."""
import json
import re

from database import rows

UUID = re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}')
HEX = re.compile(r'\b[0-9a-f]{32}\b')
PORT = re.compile(r'127\.0\.0\.1:\d+')
REQUEST = re.compile(r'req-' + UUID.pattern)
TIME = re.compile(r'\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:\d{2}(\.\d+)?(Z|\+00:00)?')

# Fields that are left out of every comparison, and why.
IGNORED = {
    'tb': 'a Python traceback names the files and lines of Nova itself',
    '_context': 'the caller\'s context, printed into legacy notifications by a side effect of Python\'s serialisation',
    '_obj_instance_uuid': 'a private attribute of a Python object, printed by the same side effect',
    '_changed_fields': 'which Python attributes were assigned; printed by the same side effect',
    'id': 'an automatic row number: a retried transaction takes two',
    'instance_id': 'an automatic row number',
}
# Lists whose order comes from a Python set.
UNORDERED = {'nova_object.changes', 'hosts'}
# Texts that are JSON themselves: a list of fields in the object of pools is a set, too.
NESTED = {'allocation_request', 'spec', 'pci_stats'}


class Names:
    """Names for generated ids: servers, hosts, groups, images and so on, read from the
    databases."""

    SOURCES = [
        ('server', 'select uuid, display_name as name from nova_cell1.instances order by id'),
        ('server', 'select uuid, display_name as name from nova_cell0.instances order by id'),
        ('node', 'select uuid, host as name from nova_cell1.compute_nodes order by id'),
        ('service', 'select uuid, concat(`binary`, " of ", host) as name from nova_cell1.services order by id'),
        ('cell', 'select uuid, name from nova_api.cell_mappings order by id'),
        ('aggregate', 'select uuid, name from nova_api.aggregates order by id'),
        ('group', 'select uuid, name from nova_api.instance_groups order by id'),
        ('image', 'select id as uuid, name from glance.images order by created_at'),
        ('project', 'select id as uuid, name from keystone.project'),
        ('user', 'select user_id as uuid, name from keystone.local_user'),
        ('migration', 'select uuid, concat(migration_type, " of ", (select display_name from nova_cell1.instances i where i.uuid = m.instance_uuid)) '
                      'as name from nova_cell1.migrations m order by id'),
    ]

    def __init__(self):
        self.names = {}
        self.taken = {}

    def refresh(self):
        for kind, statement in self.SOURCES:
            for row in rows(statement):
                if row['uuid'] and row['uuid'] not in self.names:
                    name = '%s:%s' % (kind, row['name'])
                    self.taken[name] = count = self.taken.get(name, 0) + 1
                    self.names[row['uuid']] = name if count == 1 else '%s#%d' % (name, count)

    def of(self, text, others):
        """A text with every generated part replaced; what has no name is counted in `others`, in
        order of appearance."""
        def name(match):
            found = match.group(0)
            return self.names.get(found) or others.setdefault(found, 'id-%d' % (len(others) + 1))
        text = REQUEST.sub('REQUEST', text)
        text = TIME.sub('TIME', text)
        text = PORT.sub('127.0.0.1:PORT', text)
        return HEX.sub(name, UUID.sub(name, text))


def normal(value, names, others=None, key=None):
    """The value with names for ids; dicts in the order of their keys, so that the count of unnamed
    ids is the same on both sides."""
    others = {} if others is None else others
    if isinstance(value, dict):
        return {names.of(k, others): normal(value[k], names, others, k) for k in sorted(value) if k not in IGNORED}
    if isinstance(value, (list, tuple)):
        value = [normal(v, names, others) for v in value]
        return sorted(value, key=json.dumps) if key in UNORDERED else value
    if isinstance(value, str):
        if key in NESTED and value[:1] in '{[':
            return normal(json.loads(value), names, others)
        return names.of(value, others)
    return value
