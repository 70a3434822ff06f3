#!/usr/bin/python3
"""The real Keystone in this process: SQLite, Fernet tokens, plain HTTP on loopback.

Usage: server.py DIRECTORY PORT. Reads `keystone.conf` and, if it exists, `extra.conf` of the
directory, makes keys and database there at the first start, and prints "Keystone is ready". Needs
Debian's python3-keystone.
"""

import base64
import glob
import importlib
import os
import socketserver
import sys
import wsgiref.simple_server

CONF = """[DEFAULT]
debug = false
use_stderr = true
[database]
connection = sqlite:///{folder}/keystone.db
# Committed data survive the death of the process, not that of the machine.
sqlite_synchronous = false
[identity]
# The work of a login; 12 rounds by default, which are 0.3 s.
password_hash_rounds = 4
[fernet_tokens]
key_repository = {folder}/keys
[fernet_receipts]
key_repository = {folder}/keys
[credential]
key_repository = {folder}/keys
[cache]
enabled = false
[oslo_policy]
policy_file = {folder}/policy.yaml
policy_dirs = {folder}/policy.d
"""


def files(folder):
    main = os.path.join(folder, "keystone.conf")
    with open(main, "w") as out:
        out.write(CONF.format(folder=folder))
    extra = os.path.join(folder, "extra.conf")
    return [main] + ([extra] if os.path.exists(extra) else [])


def make_keys(folder):
    keys = os.path.join(folder, "keys")
    os.makedirs(keys, mode=0o700, exist_ok=True)
    for number in "01":
        path = os.path.join(keys, number)
        if not os.path.exists(path):
            with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "wb") as out:
                out.write(base64.urlsafe_b64encode(os.urandom(32)))


def make_tables(folder):
    """All tables, without migrations. Before the application is loaded, which reads some of them,
    and without its configuration, which can be read once."""
    import keystone
    import sqlalchemy
    from keystone.common import sql

    base = os.path.dirname(keystone.__file__)
    for model in glob.glob(base + "/**/*backends/sql*.py", recursive=True):
        name = os.path.relpath(model, os.path.dirname(base))[: -len(".py")]
        importlib.import_module(name.replace(os.sep, "."))
    engine = sqlalchemy.create_engine("sqlite:///%s/keystone.db" % folder)
    sql.ModelBase.metadata.create_all(engine)
    # Keystone leaves readers open; in this mode they do not lock out the writer. The file keeps it.
    with engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA journal_mode=WAL")
    engine.dispose()


def make_data(url):
    """What `keystone-manage bootstrap` creates: user, project and role admin, the roles of secure
    RBAC, the catalog with Keystone itself."""
    from keystone.cmd import bootstrap

    # The application has loaded them already, and a second time is refused.
    bootstrap.backends.load_backends = lambda: None
    first = bootstrap.Bootstrapper()
    first.admin_username = first.admin_password = "admin"
    first.project_name = first.admin_role_name = "admin"
    first.service_name = "keystone"
    first.region_id = "RegionOne"
    first.public_url = first.internal_url = first.admin_url = url + "/v3"
    first.bootstrap()


class Server(wsgiref.simple_server.WSGIServer):
    """One request after the other: connections to SQLite belong to a thread."""

    # A restart on the same port must not wait for connections of the former life.
    allow_reuse_address = True

    def server_bind(self):
        # The base class asks the name service for a name of the address.
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]
        self.setup_environ()


class Quiet(wsgiref.simple_server.WSGIRequestHandler):
    # Seconds. A client that says nothing must not keep the others waiting for ever.
    timeout = 5

    def address_string(self):
        return self.client_address[0]


def main():
    folder, port = sys.argv[1], int(sys.argv[2])
    # Keystone would take them for its own.
    del sys.argv[1:]
    url = "http://127.0.0.1:%d" % port
    fresh = not os.path.exists(os.path.join(folder, "keystone.db"))
    # Before the work: a taken port is noticed at once.
    server = Server(("127.0.0.1", port), Quiet)
    make_keys(folder)
    config = files(folder)
    if fresh:
        make_tables(folder)
    from keystone.server import wsgi

    os.environ["OS_KEYSTONE_CONFIG_FILES"] = ";".join(config)
    application = wsgi.initialize_public_application()
    if fresh:
        make_data(url)
    server.set_app(application)
    print("Keystone is ready", flush=True)
    server.serve_forever()


main()
