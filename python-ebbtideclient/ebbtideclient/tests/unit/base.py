"""What the tests of commands share."""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import unittest
from typing import Any
from unittest import mock

import yaml
from keystoneauth1 import noauth, session
from openstackclient import shell
from openstackclient.common import clientmanager

from ebbtideclient.tests.unit.region import Region
from ebbtideclient.v1 import client


class Watched(dict):
    """An answer of which only fields may be read that the document has."""

    def get(self, key: Any, default: Any = None) -> Any:
        self._check(key)
        return super().get(key, default)

    def __missing__(self, key: Any) -> Any:
        self._check(key)

    def _check(self, key: Any) -> None:
        if key not in self:
            raise AssertionError(
                f"the answer has no field {key!r}, only {sorted(self)}"
            )


yaml.SafeDumper.add_multi_representer(
    Watched, yaml.representer.SafeRepresenter.represent_dict
)


def watched(value: Any) -> Any:
    """The same value, watched. Maps have the keys that they have."""
    if isinstance(value, dict):
        inner = {key: watched(item) for key, item in value.items()}
        if "VCPU" in value:
            return inner
        return Watched(inner)
    if isinstance(value, list):
        return [watched(item) for item in value]
    return value


class TestCase(unittest.TestCase):
    """A test with a region."""

    def setUp(self) -> None:
        self.region = Region()
        self.addCleanup(self.region.close)
        # What the tester's own cloud is does not matter.
        own = {k: v for k, v in os.environ.items() if not k.startswith("OS_")}
        patch = mock.patch.dict(os.environ, own, clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        known = client.Client._answer

        def answer(self: client.Client, response: Any) -> Any:
            found = known(self, response)
            # Only pages of lists have links, and a 204 has nothing.
            found.setdefault("links", [])
            return watched(found)

        watch = mock.patch.object(client.Client, "_answer", answer)
        watch.start()
        self.addCleanup(watch.stop)
        self.client = client.Client(
            session.Session(auth=noauth.NoAuth(endpoint=self.region.url))
        )

    def openstack(self, *words: str) -> tuple[int, str, str]:
        """`openstack preemptible WORDS`: status, output, errors."""
        # The manager's class keeps a client for the life of a process.
        cache = inspect.getattr_static(
            clientmanager.ClientManager, "preemptible"
        )
        cache._handle = None
        out, err = io.StringIO(), io.StringIO()
        login = ["--os-auth-type", "none", "--os-endpoint", self.region.url]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = shell.main([*login, "preemptible", *words])
            except SystemExit as end:
                # What argparse refuses.
                status = int(end.code or 0)
        return status, out.getvalue(), err.getvalue()

    def works(self, *words: str) -> str:
        """The output of a command that succeeds."""
        status, out, err = self.openstack(*words)
        self.assertEqual(0, status, err)
        return out

    def rows(self, *words: str) -> Any:
        """The same as data."""
        return json.loads(self.works(*words, "-f", "json"))
