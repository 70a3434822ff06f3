#!/usr/bin/python3
"""A network endpoint in Neutron's place. Without a bridge it is for servers without networks: every
collection is empty, and Nova is content with that. With a bridge it has one network, whose ports
Nova makes, binds and removes, and which are kept in memory.

A port has the MAC address fa:16:3e:00:A:B and the address 169.254.A.B: a guest that has no DHCP
tells one from the other.

Usage: fake_neutron.py PORT [BRIDGE]   (127.0.0.1 only; one line a request on standard output)
"""
import json
import re
import sys
import threading
import urllib.parse
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

NETWORK, SUBNET, GROUP = (str(uuid.uuid5(uuid.NAMESPACE_DNS, name + '.ebbtide.example')) for name in ('network', 'subnet', 'group'))


class Ports:
    """The network of the guests, and who is on it."""

    def __init__(self, bridge):
        self.bridge = bridge
        self.lock = threading.Lock()
        self.ports = {}
        # The next address; the node's own is 169.254.169.254.
        self.next = 0

    def collection(self, name):
        common = {'tenant_id': 'shared', 'project_id': 'shared', 'admin_state_up': True}
        if not self.bridge:
            return []
        with self.lock:
            return {
                'networks': [dict(common, id=NETWORK, name='guests', subnets=[SUBNET], shared=True, status='ACTIVE', mtu=1500,
                                  port_security_enabled=True, **{'router:external': False})],
                'subnets': [dict(common, id=SUBNET, name='guests', network_id=NETWORK, cidr='169.254.0.0/16', ip_version=4,
                                 gateway_ip=None, enable_dhcp=False, dns_nameservers=[], host_routes=[], allocation_pools=[])],
                'security_groups': [dict(common, id=GROUP, name='default', description='', security_group_rules=[])],
                'ports': list(self.ports.values()),
            }.get(name, [])

    def make(self, asked):
        with self.lock:
            self.next += 1
            high, low = 1 + self.next // 250 % 160, 1 + self.next % 250
            port = {'id': str(uuid.uuid4()), 'name': '', 'network_id': NETWORK, 'status': 'ACTIVE', 'admin_state_up': True,
                    'mac_address': 'fa:16:3e:00:%02x:%02x' % (high, low), 'device_id': '', 'device_owner': '', 'security_groups': [GROUP],
                    'fixed_ips': [{'subnet_id': SUBNET, 'ip_address': '169.254.%d.%d' % (high, low)}], 'allowed_address_pairs': [],
                    'binding:vnic_type': 'normal', 'binding:profile': {}, 'binding:host_id': '', 'binding:vif_type': 'unbound',
                    'binding:vif_details': {}, 'port_security_enabled': True}
            return self._change(port, asked)

    def change(self, name, asked):
        with self.lock:
            return self._change(self.ports[name], asked) if name in self.ports else None

    def _change(self, port, asked):
        port = dict(port, **{key: value for key, value in asked.items() if key not in ('fixed_ips', 'mac_address')})
        if port['binding:host_id']:
            port.update({'binding:vif_type': 'bridge', 'binding:vif_details': {'bridge_name': self.bridge, 'port_filter': True}})
        else:
            port.update({'binding:vif_type': 'unbound', 'binding:vif_details': {}})
        # Nova's client writes the one name and reads the other.
        port['tenant_id'] = port['project_id'] = port.get('tenant_id') or port.get('project_id') or ''
        self.ports[port['id']] = port
        return port

    def remove(self, name):
        with self.lock:
            return self.ports.pop(name, None)


def fits(item, query):
    """Whether a filter of a list lets an item pass; what an item does not have is not asked of it.
    A shared network is anyone's."""
    for key, wanted in query.items():
        if key in item and str(item[key]).lower() not in [value.lower() for value in wanted]:
            if not (key in ('tenant_id', 'project_id') and item[key] == 'shared'):
                return False
    return True


# Nova moves a server to another cell only where Neutron has it, also a server without ports.
EXTENSIONS = [{'name': 'Port Bindings Extended', 'alias': 'binding-extended', 'description': '', 'updated': '2017-07-17T10:00:00-00:00', 'links': []}]


class Handler(BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def reply(self, status, body=None):
        raw = b'' if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def refuse(self, status, kind):
        self.reply(status, {'NeutronError': {'type': kind, 'message': self.path, 'detail': ''}})

    def asked(self):
        body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
        return json.loads(body).get('port', {}) if body else {}

    def do_GET(self):
        path, _, query = self.path.partition('?')
        path = path.rstrip('/')
        collection = re.fullmatch(r'/v2\.0/([a-z-]+)', path)
        single = re.fullmatch(r'/v2\.0/([a-z-]+)s/([^/]+)', path)
        if path in ('', '/v2.0'):
            me = 'http://127.0.0.1:%d/v2.0/' % self.server.server_port
            self.reply(200, {'versions': [{'id': 'v2.0', 'status': 'CURRENT', 'links': [{'rel': 'self', 'href': me}]}]})
        elif collection and collection.group(1) == 'extensions':
            self.reply(200, {'extensions': EXTENSIONS})
        elif collection:
            name = collection.group(1).replace('-', '_')
            query = urllib.parse.parse_qs(query)
            self.reply(200, {name: [item for item in PORTS.collection(name) if fits(item, query)]})
        elif single and single.group(1) == 'quota' and PORTS.bridge:
            self.reply(200, {'quota': {'port': -1, 'network': -1}})
        elif single:
            name = single.group(1).replace('-', '_')
            found = [item for item in PORTS.collection(name + 's') if item['id'] == single.group(2)]
            self.reply(200, {name: found[0]}) if found else self.refuse(404, 'PortNotFound' if name == 'port' else 'NotFound')
        else:
            self.refuse(404, 'NotFound')

    def do_DELETE(self):
        PORTS.remove(self.path.rpartition('/')[2])
        self.reply(204)

    def do_POST(self):
        asked = self.asked()
        if self.path.startswith('/v2.0/ports') and PORTS.bridge:
            self.reply(201, {'port': PORTS.make(asked)})
        else:
            self.refuse(501, 'NotImplemented')

    def do_PUT(self):
        asked = self.asked()
        found = PORTS.change(self.path.rpartition('/')[2].partition('?')[0], asked)
        self.reply(200, {'port': found}) if found else self.refuse(501, 'NotImplemented')

    def log_message(self, line, *arguments):
        print(line % arguments, flush=True)


PORTS = Ports(sys.argv[2] if len(sys.argv) > 2 else '')
ThreadingHTTPServer(('127.0.0.1', int(sys.argv[1])), Handler).serve_forever()
