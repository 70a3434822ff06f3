"""What deployments ask of a scheduler that they take for nova-scheduler.

Kolla's healthcheck_port finds the processes with `nova-scheduler` in their command lines and wants
one of them connected to the broker. openstack-helm's health-probe.py wants a process of that very
name connected to broker and database, and an answer to `ping` (namespace baseapi, version 1.1).
"""
import os
import re
import subprocess

import oslo_messaging
from oslo_config import cfg

NAME = 'nova-scheduler'


def _connected(port):
    """Process ids with an established connection to a port."""
    said = subprocess.run(['ss', '-Htnp', 'state', 'established', 'dport', '= :%d' % port], text=True, capture_output=True, check=True)
    return {int(pid) for pid in re.findall(r'pid=(\d+)', said.stdout)}


def _processes(matches):
    """Ids of processes whose command line and name fulfil a condition."""
    found = set()
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            with open('/proc/%s/comm' % pid, encoding='utf-8') as file:
                comm = file.read().strip()
            with open('/proc/%s/cmdline' % pid, encoding='utf-8', errors='replace') as file:
                line = file.read().replace('\0', ' ')
        except (FileNotFoundError, ProcessLookupError):
            continue
        if matches(comm, line):
            found.add(int(pid))
    return found


def _ping(transport_url, server):
    """The answer to openstack-helm's question."""
    oslo_messaging.set_transport_defaults(control_exchange='nova')
    transport = oslo_messaging.get_rpc_transport(cfg.CONF, transport_url)
    target = oslo_messaging.Target(topic='scheduler', server=server, namespace='baseapi', version='1.1')
    # Debian's 14.0 has only the class.
    make = getattr(oslo_messaging, 'get_rpc_client', oslo_messaging.RPCClient)
    try:
        return make(transport, target, timeout=30, retry=2).call({}, 'ping', arg=None)
    finally:
        transport.cleanup()


def problems():
    """What the probes of Kolla and openstack-helm would complain of; nothing where all is well."""
    amqp, mysql = int(os.environ['STACK_PORT_AMQP']), int(os.environ['STACK_PORT_MYSQL'])
    wrong = []
    if not _processes(lambda comm, line: NAME in line) & _connected(amqp):
        wrong.append('no process with %s in its command line is connected to the broker (Kolla)' % NAME)
    named = _processes(lambda comm, line: comm == NAME)
    for what, port in (('broker', amqp), ('database', mysql)):
        if not named & _connected(port):
            wrong.append('no process named %s is connected to the %s (openstack-helm)' % (NAME, what))
    server = 'scheduler1'
    answer = _ping('rabbit://nova:nova@127.0.0.1:%d/' % amqp, server)
    if answer != {'service': 'scheduler', 'arg': None}:
        wrong.append('ping of %s is answered with %r (openstack-helm)' % (server, answer))
    return wrong
