"""New certificates of the scheduler's API on an OpenStack, for rotation.py: files that are replaced
while a client is connected."""
import http.client
import os
import ssl
import subprocess

import processes
from cloud import until
from preempt import must

FOLDER = processes.HOME + '/etc/'
CERTIFICATE, KEY, CONF = FOLDER + 'rotation-api.crt', FOLDER + 'rotation-api.key', FOLDER + 'rotation-api.conf'
ADDRESS = '127.0.0.1'
PORT = int(os.environ['STACK_PORT_SCHED_API'])
READ_AGAIN = 'the certificates were read again'


def make(name):
    """The texts of a certificate for the API's address, its own authority, and of its key."""
    certificate, key = FOLDER + name + '.new.crt', FOLDER + name + '.new.key'
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-subj', '/CN=' + name,
                    '-addext', 'subjectAltName=IP:' + ADDRESS, '-keyout', key, '-out', certificate], check=True, capture_output=True)
    texts = []
    for path in (certificate, key):
        with open(path, encoding='utf-8') as file:
            texts.append(file.read())
        os.unlink(path)
    return texts


def write(certificate, key):
    """Both files, the one after the other, as an operator's tool does it."""
    for path, text in ((KEY, key), (CERTIFICATE, certificate)):
        with open(os.open(path + '.draft', os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 'w', encoding='utf-8') as file:
            file.write(text)
        os.rename(path + '.draft', path)


def conf():
    """The configuration file of an API with TLS, and the certificate that it begins with."""
    first = make('first')
    write(*first)
    with open(CONF, 'w', encoding='utf-8') as file:
        file.write('[ebbtide]\napi_certificate = %s\napi_private_key = %s\n' % (CERTIFICATE, KEY))
    return first[0]


def shown():
    """The certificate that a new connection gets."""
    return ssl.get_server_certificate((ADDRESS, PORT), timeout=10).replace('\r', '').strip()


class Client:
    """A connection of an administrator that trusts one certificate."""

    def __init__(self, cloud, certificate):
        self.token = cloud.token
        trusted = ssl.create_default_context(cadata=certificate)
        self.connection = http.client.HTTPSConnection(ADDRESS, PORT, timeout=30, context=trusted)
        self.connection.connect()
        self.socket = self.connection.sock

    def asks(self):
        self.connection.request('GET', '/v1/hosts', headers={'X-Auth-Token': self.token})
        answer = self.connection.getresponse()
        answer.read()
        must(answer.status == 200, 'the API answers %d' % answer.status)
        # The client would open another connection by itself.
        must(self.connection.sock is self.socket, 'the connection was closed')


def replaced(cloud, log, first):
    """New files are used for new connections, open ones go on, and files that are no certificate
    change nothing."""
    must(shown() == first.strip(), 'the API shows another certificate than that of its files')
    old = Client(cloud, first)
    old.asks()
    second = make('second')
    write(*second)
    until('the new certificate to be shown', 10, lambda: shown() == second[0].strip(), pause=0.1)
    must(len(log.lines(READ_AGAIN)) == 1, 'the log does not say once that the certificates were read')
    old.asks()
    Client(cloud, second[0]).asks()
    try:
        Client(cloud, first).asks()
        must(False, 'a client that trusts the first certificate only takes the second')
    except ssl.SSLCertVerificationError:
        pass
    # A key of another certificate.
    write(second[0], make('third')[1])
    until('the refusal in the log', 10, lambda: log.lines('the new certificates cannot be used yet', 'the old ones stay'), pause=0.1)
    must(shown() == second[0].strip(), 'files that do not match have changed the certificate')
    Client(cloud, second[0]).asks()
    write(*second)
    until('the correction', 10, lambda: len(log.lines(READ_AGAIN)) == 2, pause=0.1)
    old.asks()
