#!/usr/bin/python3
"""Runs commands of the openstack client in one process: each start of the client takes a second.

Reads one JSON object a line: `env`, variables of this command (null: not set), and `argv`. Writes
one for each: `status`, `out`, `err`.
"""
import contextlib
import inspect
import io
import json
import os
import sys

from openstackclient import shell
from openstackclient.common import clientmanager

for line in sys.stdin:
    request = json.loads(line)
    for name, value in request['env'].items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
    # The manager's class keeps clients for the life of a process.
    for name in ('preemptible', 'identity'):
        inspect.getattr_static(clientmanager.ClientManager, name)._handle = None
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = shell.main(request['argv'])
        except SystemExit as end:
            # What argparse refuses.
            status = int(end.code or 0)
    print(json.dumps({'status': status, 'out': out.getvalue(), 'err': err.getvalue()}), flush=True)
