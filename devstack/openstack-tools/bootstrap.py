#!/usr/bin/python3
"""Keystone's users, services and endpoints, by some 20 HTTP calls instead of as many slow starts of
a client. Safe to repeat.

Usage: bootstrap.py nova=PORT placement=PORT glance=PORT neutron=PORT ebbtide=PORT [cyborg=PORT]
    [cinder=PORT]
"""
import os
import sys

import requests

base = os.environ['OS_AUTH_URL']
ports = dict(argument.split('=') for argument in sys.argv[1:])
session = requests.Session()
response = session.post(base + '/auth/tokens', json={'auth': {
    'identity': {'methods': ['password'], 'password': {'user': {
        'name': 'admin', 'domain': {'id': 'default'}, 'password': os.environ['OS_PASSWORD']}}},
    'scope': {'project': {'name': 'admin', 'domain': {'id': 'default'}}}}})
response.raise_for_status()
session.headers['X-Auth-Token'] = response.headers['X-Subject-Token']


def ensure(kind, query, body):
    found = session.get('%s/%ss' % (base, kind), params=query).json()[kind + 's']
    if found:
        return found[0]['id']
    made = session.post('%s/%ss' % (base, kind), json={kind: body})
    made.raise_for_status()
    return made.json()[kind]['id']


roles = {role['name']: role['id'] for role in session.get(base + '/roles').json()['roles']}
if 'service' not in roles:
    roles['service'] = ensure('role', {'name': 'service'}, {'name': 'service'})
project = ensure('project', {'name': 'service', 'domain_id': 'default'}, {'name': 'service', 'domain_id': 'default'})
services = [('nova', 'compute', '/v2.1'), ('placement', 'placement', ''), ('glance', 'image', ''),
            ('neutron', 'network', '')]
if 'cyborg' in ports:
    services.append(('cyborg', 'accelerator', '/v2'))
if 'cinder' in ports:
    services.append(('cinder', 'block-storage', '/v3/%(project_id)s'))
for name, _kind, _path in services:
    user = ensure('user', {'name': name, 'domain_id': 'default'}, {'name': name, 'domain_id': 'default', 'password': name})
    for role in ('admin', 'service'):
        session.put('%s/projects/%s/users/%s/roles/%s' % (base, project, user, roles[role])).raise_for_status()
for name, kind, path in services + [('ebbtide', 'preemption', '')]:
    service = ensure('service', {'name': name, 'type': kind}, {'name': name, 'type': kind})
    for interface in ('public', 'internal', 'admin'):
        url = 'http://127.0.0.1:%s%s' % (ports[name], path)
        ensure('endpoint', {'service_id': service, 'interface': interface},
               {'service_id': service, 'interface': interface, 'url': url, 'region_id': 'RegionOne'})
