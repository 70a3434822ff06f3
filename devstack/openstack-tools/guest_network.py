#!/usr/bin/python3
"""The network of the compute on libvirt: what nova-compute and guests find there, and nothing else.

In the network namespace of the node it listens on the stack's ports, so that nova-compute finds its
broker and APIs on 127.0.0.1 as every other service does, and on 169.254.169.254:80, where it does
for guests what Neutron's metadata agent does: who asks is told by the address (its port in Neutron
names the server), and Nova's metadata service is asked with the server's id, signed.

Usage: guest_network.py NODE_PID METADATA_PORT NEUTRON_PORT PORT…
"""
import asyncio
import ctypes
import hashlib
import hmac
import json
import os
import socket
import sys
import urllib.request

CLONE_NEWNET = 0x40000000
SECRET = b'stack'
METADATA = ('169.254.169.254', 80)
# Of a request of a guest; Neutron's agent takes no larger head either.
HEAD = 16384


def sockets_of(node, addresses):
    """Listening sockets in the network of a process. A socket stays in the namespace in which it
    was made; this process comes back to its own."""
    libc = ctypes.CDLL(None, use_errno=True)

    def enter(path):
        with open(path, 'rb') as file:
            if libc.setns(file.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)

    with open('/proc/self/ns/net', 'rb') as home:
        enter('/proc/%d/ns/net' % node)
        try:
            return [socket.create_server(address, backlog=128) for address in addresses]
        finally:
            if libc.setns(home.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), 'cannot come back')


async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
    except OSError:
        writer.close()


def relay(port):
    """Hands connections on to the same port of this machine."""
    async def connected(reader, writer):
        try:
            far_reader, far_writer = await asyncio.open_connection('127.0.0.1', port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(pump(reader, far_writer), pump(far_reader, writer))
        for end in (writer, far_writer):
            end.close()
    return connected


def ports_at(neutron, address):
    """The ports in Neutron that have a fixed address."""
    with urllib.request.urlopen('http://127.0.0.1:%d/v2.0/ports' % neutron, timeout=10) as answer:
        return [port for port in json.load(answer)['ports']
                if address in [fixed['ip_address'] for fixed in port['fixed_ips']]]


def ask_nova(metadata, neutron, path, address):
    """Status and body of Nova's answer to the guest at an address."""
    found = ports_at(neutron, address)
    if len(found) != 1:
        return 404, b'no server has the address ' + address.encode()
    server, project = found[0]['device_id'], found[0]['tenant_id']
    request = urllib.request.Request('http://127.0.0.1:%d%s' % (metadata, path), headers={
        'X-Forwarded-For': address, 'X-Instance-ID': server, 'X-Tenant-ID': project,
        'X-Instance-ID-Signature': hmac.new(SECRET, server.encode(), hashlib.sha256).hexdigest()})
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def metadata_agent(metadata, neutron):
    """One GET for each connection, as a guest's first tools do it."""
    async def connected(reader, writer):
        address = writer.get_extra_info('peername')[0]
        try:
            head = await asyncio.wait_for(reader.readuntil(b'\r\n\r\n'), 30)
            method, path = head.split(None, 2)[:2]
            if method != b'GET' or not path.startswith(b'/'):
                status, body = 405, b''
            else:
                status, body = await asyncio.to_thread(ask_nova, metadata, neutron, path.decode('ascii'), address)
            print('%s %s %d' % (address, path.decode('ascii'), status), flush=True)
            writer.write(b'HTTP/1.1 %d x\r\nContent-Length: %d\r\nConnection: close\r\n\r\n' % (status, len(body)) + body)
            await writer.drain()
        except (OSError, ValueError, asyncio.TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
            # The guest asks again.
            print('%s: %s' % (address, error), flush=True)
        finally:
            writer.close()
    return connected


async def main():
    node, metadata, neutron, *others = [int(word) for word in sys.argv[1:]]
    ports = [neutron] + others
    sockets = sockets_of(node, [('127.0.0.1', port) for port in ports] + [METADATA])
    for port, listener in zip(ports, sockets):
        await asyncio.start_server(relay(port), sock=listener)
    server = await asyncio.start_server(metadata_agent(metadata, neutron), sock=sockets[-1], limit=HEAD)
    await server.serve_forever()


if __name__ == '__main__':
    asyncio.run(main())
