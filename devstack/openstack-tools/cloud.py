"""The cloud as its administrator sees it: small calls to Keystone, Nova, Glance and Placement with
one token."""
import json
import os
import time

import requests

import judge


class Refused(RuntimeError):
    """An API said no. `status` is the HTTP status."""

    def __init__(self, what, response):
        super().__init__('%s: %s %s' % (what, response.status_code, response.text[:600]))
        self.status = response.status_code


def until(what, seconds, condition, pause=None):
    """Waits until `condition()` gives something true, and gives that; says what was awaited when
    the time runs out.

    `pause`: seconds between two looks. Without it they grow from 0.1 to 0.5: a look through Nova's
    API takes the API some 50 ms of processor time, which the cloud and what runs beside it need
    more."""
    end = time.monotonic() + seconds
    rest = pause or 0.1
    while True:
        got = condition()
        if got:
            return got
        if time.monotonic() > end:
            raise TimeoutError('after %g s still waiting for %s' % (seconds, what))
        time.sleep(rest)
        if pause is None:
            rest = min(rest * 1.25, 0.5)


class Cloud:
    def __init__(self):
        self.auth = os.environ['OS_AUTH_URL']
        self.session = requests.Session()
        self.images = {}
        # The request by which each server was asked for (`req-…`): logs speak of it.
        self.asked = {}
        self.login()

    def login(self):
        response = self.session.post(self.auth + '/auth/tokens', json={'auth': {
            'identity': {'methods': ['password'], 'password': {'user': {
                'name': 'admin', 'domain': {'id': 'default'}, 'password': os.environ['OS_PASSWORD']}}},
            'scope': {'project': {'name': 'admin', 'domain': {'id': 'default'}}}}})
        response.raise_for_status()
        self.token = response.headers['X-Subject-Token']
        body = response.json()['token']
        self.user, self.project = body['user']['id'], body['project']['id']
        self.endpoints = {service['type']: endpoint['url'].rstrip('/') for service in body['catalog']
                          for endpoint in service['endpoints'] if endpoint['interface'] == 'public'}
        self.session.headers['X-Auth-Token'] = self.token

    def request(self, service, method, path, body=None, version=None, check=True):
        headers = {}
        if service == 'compute':
            headers['X-OpenStack-Nova-API-Version'] = version or '2.90'
        elif service == 'placement':
            headers['OpenStack-API-Version'] = 'placement ' + (version or '1.36')
        elif service == 'block-storage':
            headers['OpenStack-API-Version'] = 'volume ' + (version or '3.70')
        response = self.session.request(method, self.endpoints[service] + path, json=body, headers=headers, timeout=180)
        if check and response.status_code >= 400:
            raise Refused('%s %s' % (method, path), response)
        return response

    def nova(self, method, path, body=None, **options):
        return self.request('compute', method, path, body, **options)

    def placement(self, method, path, body=None, **options):
        return self.request('placement', method, path, body, **options)

    # Things that exist once.

    def flavor(self, name, vcpus=None, ram=None, disk=None, specs=None):
        """The id of a flavor; made when it is not there and its size is given."""
        for flavor in self.nova('GET', '/flavors/detail?is_public=None').json()['flavors']:
            if flavor['name'] == name:
                return flavor['id']
        flavor = self.nova('POST', '/flavors', {'flavor': {
            'name': name, 'vcpus': vcpus, 'ram': ram, 'disk': disk, 'id': name}}).json()['flavor']['id']
        if specs:
            self.nova('POST', '/flavors/%s/os-extra_specs' % flavor, {'extra_specs': specs})
        return flavor

    def image(self, name='tiny'):
        """The id of an image of 64 KiB of zeros; made when it is not there."""
        if name in self.images:
            return self.images[name]
        found = self.request('image', 'GET', '/v2/images?name=' + name).json()['images']
        if found:
            image = found[0]['id']
        else:
            image = self.request('image', 'POST', '/v2/images', {
                'name': name, 'disk_format': 'raw', 'container_format': 'bare', 'visibility': 'public'}).json()['id']
            self.session.put(self.endpoints['image'] + '/v2/images/%s/file' % image, data=b'\0' * 65536,
                             headers={'Content-Type': 'application/octet-stream'}).raise_for_status()
        self.images[name] = image
        return image

    # Servers.

    def create(self, name, flavor, hints=None, version=None, image='tiny', **extra):
        """Asks for a server and gives its id without waiting."""
        body = {'server': dict({'name': name, 'imageRef': self.image(image), 'flavorRef': flavor, 'networks': 'none'}, **extra)}
        if hints:
            body['os:scheduler_hints'] = hints
        response = self.nova('POST', '/servers', body, version=version)
        server = response.json()['server']['id']
        self.asked[server] = response.headers.get('x-openstack-request-id', '')
        return server

    def boot(self, name, flavor, **options):
        """A server, when it is ACTIVE or in ERROR."""
        return self.settled(self.create(name, flavor, **options))

    def server(self, server):
        """A server, or None when it is gone."""
        response = self.nova('GET', '/servers/' + server, check=False)
        if response.status_code not in (200, 404):
            raise Refused('GET /servers/' + server, response)
        return response.json()['server'] if response.status_code == 200 else None

    def servers(self, **query):
        query = ''.join('&%s=%s' % item for item in query.items())
        return self.nova('GET', '/servers/detail?all_tenants=1' + query).json()['servers']

    def settled(self, server, states=('ACTIVE', 'ERROR'), seconds=90):
        """Waits until the server is in one of `states` and nothing is under way with it."""
        last = {}

        def look():
            last['server'] = found = self.server(server)
            return found is None or judge.at_rest(found, states)
        try:
            until('server %s to be %s' % (server, ' or '.join(states)), seconds, look)
        except TimeoutError as error:
            found = last['server']
            raise TimeoutError('%s; it is %s, task %s, fault %s' % (
                error, found['status'], found['OS-EXT-STS:task_state'], json.dumps(found.get('fault')))) from None
        return last['server']

    def action(self, server, body):
        return self.nova('POST', '/servers/%s/action' % server, body)

    def delete(self, *servers, seconds=60):
        """Deletes servers and waits until they are gone."""
        for server in servers:
            self.nova('DELETE', '/servers/' + server, check=False)
        until('servers %s to be gone' % ', '.join(servers), seconds, lambda: not any(self.server(server) for server in servers))

    # Placement.

    def providers(self):
        """Resource providers by name."""
        return {p['name']: p for p in self.placement('GET', '/resource_providers').json()['resource_providers']}

    def allocations(self, consumer):
        """What a consumer holds: {provider uuid: {class: amount}}."""
        found = self.placement('GET', '/allocations/' + consumer).json()['allocations']
        return {provider: entry['resources'] for provider, entry in found.items()}
