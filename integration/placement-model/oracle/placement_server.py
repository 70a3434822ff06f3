#!/usr/bin/python3
"""The real Placement, in this process, on SQLite in memory.

Reads one request a line, {"method", "path", "version", "body"}, and writes one answer a line,
{"status", "body"}. `{"reset": true}` empties the database. Needs Debian's python3-placement.
"""

import json
import logging
import sys
import tempfile

from oslo_config import cfg
from placement import conf as placement_conf
from placement import db_api, deploy
from placement.db.sqlalchemy import models
from oslo_db.sqlalchemy import enginefacade
import webob


def application(folder):
    config = cfg.ConfigOpts()
    placement_conf.register_opts(config)
    config.set_override("connection", "sqlite:///%s/placement.db" % folder, group="placement_database")
    config.set_override("auth_strategy", "noauth2", group="api")
    config.set_override("sync_on_startup", True, group="placement_database")
    config([], default_config_files=[], default_config_dirs=[])
    logging.disable(logging.CRITICAL)
    db_api.configure(config)
    return deploy.loadapp(config)


def empty():
    """Removes everything but the standard classes and traits."""
    engine = db_api.placement_context_manager.writer.get_engine()
    keep = {"resource_classes", "traits"}
    with engine.begin() as connection:
        for table in reversed(models.BASE.metadata.sorted_tables):
            if table.name not in keep:
                connection.execute(table.delete())


def ask(app, request):
    environ = {"HTTP_X_AUTH_TOKEN": "admin"}
    asked = webob.Request.blank(request["path"], environ=environ, method=request["method"])
    asked.headers["OpenStack-API-Version"] = "placement " + request["version"]
    asked.headers["Accept"] = "application/json"
    asked.headers["X-Auth-Token"] = "admin"
    if request.get("body") is not None:
        asked.headers["Content-Type"] = "application/json"
        asked.body = json.dumps(request["body"]).encode()
    answer = asked.get_response(app)
    return {"status": answer.status_int, "body": json.loads(answer.body) if answer.body else None}


def main():
    with tempfile.TemporaryDirectory() as folder:
        app = application(folder)
        for line in sys.stdin:
            request = json.loads(line)
            answer = empty() if request.get("reset") else ask(app, request)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


main()
