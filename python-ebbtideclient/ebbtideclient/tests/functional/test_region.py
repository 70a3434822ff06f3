"""Commands on running regions, which devstack/lib/openstack-client.sh starts.

One has tokens, a market and two hosts of 4 VCPUs. The other one has no
authentication and four hosts; it is one process.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import pathlib
import subprocess
import time
import unittest
import uuid
from collections.abc import Callable
from typing import Any
from unittest import mock

from keystoneauth1 import session, token_endpoint
from openstackclient import shell
from openstackclient.common import clientmanager

from ebbtideclient import exceptions
from ebbtideclient.v1 import client

REGION = pathlib.Path(os.environ["EBBTIDE_TEST_REGION"])
EBBTIDE = pathlib.Path(os.environ["EBBTIDE_BIN_DIR"]) / "ebbtide"
PATIENCE = 60


def endpoint(ready: str) -> str:
    """The address in a file of a region that is ready."""
    return "http://" + json.loads((REGION / ready).read_text())["grpc"]


def until(what: str, condition: Callable[[], Any]) -> Any:
    """Waits until a condition holds; gives what it gives."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError(f"after {PATIENCE} s still waiting for {what}")


class RegionTestCase(unittest.TestCase):
    """Commands of `openstack` and of `ebbtide` on one region."""

    ready = ""

    def setUp(self) -> None:
        own = {k: v for k, v in os.environ.items() if not k.startswith("OS_")}
        patch = mock.patch.dict(os.environ, own, clear=True)
        patch.start()
        self.addCleanup(patch.stop)
        self.endpoint = endpoint(self.ready)

    def openstack(
        self, *words: str, role: str = "operator"
    ) -> tuple[int, str, str]:
        """`openstack preemptible WORDS`: status, output, errors."""
        cache = inspect.getattr_static(
            clientmanager.ClientManager, "preemptible"
        )
        cache._handle = None
        out, err = io.StringIO(), io.StringIO()
        argv = [*self.login(role), "preemptible", *words]
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = shell.main(argv)
        return status, out.getvalue(), err.getvalue()

    def login(self, role: str) -> list[str]:
        """Options that say who calls."""
        raise NotImplementedError

    def data(self, *words: str, role: str = "operator") -> Any:
        """What a command that succeeds says, as data."""
        status, out, err = self.openstack(*words, "-f", "json", role=role)
        self.assertEqual(0, status, f"{words}: {err}")
        return json.loads(out)

    def ebbtide(self, *words: str) -> str:
        """The command `ebbtide`, as the operator."""
        command = [str(EBBTIDE), "--endpoint", self.endpoint, *words]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(0, done.returncode, f"{words}: {done.stderr}")
        return done.stdout


class TestWithoutAuthentication(RegionTestCase):
    """The plugin `none` of keystoneauth."""

    ready = "embedded.json"

    def login(self, role: str) -> list[str]:
        return ["--os-auth-type", "none", "--os-endpoint", self.endpoint]

    def test_a_region_without_authentication_is_asked(self) -> None:
        hosts = until(
            "four hosts",
            lambda: (
                lambda found: (
                    len(found) == 4
                    and {h["Health"] for h in found} == {"up"}
                    and found
                )
            )(self.data("host", "list")),
        )
        self.assertEqual(
            {"VCPU": 8, "MEMORY_MB": 16000, "DISK_GB": 160},
            hosts[0]["Free (normal only)"],
        )
        self.assertEqual([], self.data("server", "list"))
        status, _, err = self.openstack("quota", "show")
        self.assertEqual(1, status)
        self.assertIn("There is no quota without Keystone", err)


class TestWithTokens(RegionTestCase):
    """The plugin `admin_token` of keystoneauth, with tokens of a region."""

    ready = "ready.json"

    def setUp(self) -> None:
        super().setUp()
        self.mark = uuid.uuid4().hex[:6]

    def login(self, role: str) -> list[str]:
        token = (REGION / f"{role}.token").read_text().strip()
        return [
            *("--os-auth-type", "admin_token", "--os-token", token),
            *("--os-endpoint", self.endpoint),
        ]

    def flavor(self, *options: str) -> str:
        """A flavor of its own, of two of a host's four VCPUs."""
        name = f"f{uuid.uuid4().hex[:6]}"
        size = ("--vcpus", "2", "--ram", "4000", "--disk", "40")
        self.ebbtide("flavor", "create", name, *size, *options)
        return name

    def server(self, name: str, flavor: str, project: str) -> str:
        """The name of a server that was asked for."""
        name = f"{name}-{self.mark}"
        place = ("--project", project, "server", "create", "--flavor", flavor)
        self.ebbtide(*place, name)
        self.addCleanup(self.remove, name, project)
        return name

    def remove(self, name: str, project: str) -> None:
        """Deletes a server, unless it has left."""
        if self.state(name) != "gone":
            self.ebbtide("--project", project, "server", "delete", name)
            until(f"the end of {name}", lambda: self.state(name) == "gone")

    def runs(self, name: str) -> None:
        """Waits until a server runs."""
        until(f"{name} to run", lambda: self.state(name) == "active")

    def state(self, name: str) -> str:
        """The state of a server."""
        return self.data("server", "show", name)["state"]

    def test_a_preemption_from_its_what_if_to_its_bill(self) -> None:
        spot = self.flavor("--preemptible", "--grace", "600", "--price", "0.1")
        normal = self.flavor("--price", "0.5")
        names = [self.server(f"v{n}", spot, "lab") for n in range(4)]
        for name in names:
            self.runs(name)
        mine = self.data("server", "list", role="tenant")
        self.assertLessEqual(set(names), {row["Name"] for row in mine})

        answer = self.data("what-if", "--flavor", normal, "--project", "b")
        (planned,) = answer["placements"]
        (victim,) = planned["victims"]
        self.assertIn(victim["name"], names)
        self.assertEqual("normal", answer["filtered_on"])
        # Nothing has happened to it.
        self.assertEqual([], self.data("evacuation", "list", "--active"))

        pet = self.server("pet", normal, "other")
        (leaving,) = until(
            "the notice",
            lambda: [
                row
                for row in self.data("evacuation", "list", role="tenant")
                if row["State"] == "draining" and row["Victim"] in names
            ],
        )
        name = leaving["Victim"]
        shown = self.data("server", "show", name, role="tenant")
        self.assertEqual("draining", shown["state"])
        self.assertEqual(shown["deadline_at"], leaving["Deadline"])

        # The operator sees who displaced whom. A tenant sees its own side.
        why = self.data("server", "explain", pet)
        victims = [
            victim["name"]
            for placement in why["placements"]
            for victim in placement["victims"]
        ]
        self.assertEqual([name], victims)
        status, _, err = self.openstack(
            "server", "explain", pet, role="tenant"
        )
        self.assertEqual(1, status)
        self.assertIn("EB-", err)
        self.assertIn("Request: req-", err)

        self.data("server", "release", name, role="tenant")
        self.runs(pet)
        self.assertEqual("gone", self.state(name))
        ended = self.data("evacuation", "show", leaving["ID"])
        self.assertEqual("evacuated", ended["state"])

        hours = json.loads(
            self.ebbtide("-o", "json", "billing", "hours", "--all-projects")
        )
        bill = self.data("bill", "list", "--all-projects", "--long")
        self.assertEqual(
            [(h["server_id"], h["hour"], h["charge"]) for h in hours],
            [(h["Server ID"], h["Hour"], h["Charge"]) for h in bill],
        )
        self.assertEqual(
            [(h["from"], h["to"], h["price"], h["charged"]) for h in hours],
            [(h["From"], h["To"], h["Price"], h["Charged"]) for h in bill],
        )
        totals = json.loads(
            self.ebbtide("-o", "json", "billing", "total", "--all-projects")
        )
        sums = self.data("bill", "list", "--all-projects", "--total")
        self.assertEqual(
            [(t["project_id"], t["flavor"], t["charged"]) for t in totals],
            [(s["Project ID"], s["Flavor"], s["Charged"]) for s in sums],
        )
        charges = {h["Charge"] for h in bill if h["Name"] == name}
        self.assertEqual({"ended-by-provider"}, charges)

    def test_prices_follow_the_market(self) -> None:
        spot = self.flavor("--preemptible", "--price", "0.04")
        prices = self.data("price", "list", "--long", role="tenant")
        (found,) = [row for row in prices if row["Flavor"] == spot]
        self.assertLessEqual(float(found["Floor"]), float(found["Price"]))
        self.data("price", "history", spot, role="tenant")
        advice = self.data("advice", spot, role="tenant")
        self.assertTrue(advice["too_little"] or advice["chances"])

    def test_a_budget_is_set_and_removed(self) -> None:
        project = f"p{self.mark}"
        terms = ("--max-victims", "1", "--window", "60")
        made = self.data("budget", "set", "--project", project, *terms)
        self.assertIn(
            project, {row["Project ID"] for row in self.data("budget", "list")}
        )
        self.assertEqual(60, made["window_seconds"])
        out = self.openstack("budget", "delete", "--project", project)
        self.assertEqual((0, ""), out[:2])
        self.assertNotIn(
            project, {row["Project ID"] for row in self.data("budget", "list")}
        )

    def test_a_host_is_taken_back_and_returned(self) -> None:
        terms = ("--owner", "slurm:7", "--reason", "job 7")
        self.data("host", "reclaim", "host-b", *terms, "--dry-run")
        self.assertEqual([], self.data("reclaim", "list"))
        self.data("host", "reclaim", "host-b", *terms)
        (row,) = self.data("reclaim", "list")
        self.assertEqual(("host-b", "slurm:7"), (row["Host"], row["Owner"]))
        self.data("reclaim", "show", "host-b")
        self.data("host", "return", "host-b")
        self.assertEqual([], self.data("reclaim", "list"))

    def test_roles_see_and_change_what_they_may(self) -> None:
        terms = ("--project", "lab", "--max-victims", "1", "--window", "9")
        for words, allowed in (
            (("host", "list"), ("operator", "reader")),
            (("plugin", "list"), ("operator", "reader")),
            (("reclaim", "list"), ("operator", "reader")),
            (("budget", "set", *terms), ("operator",)),
            (("budget", "list"), ("operator", "reader", "tenant")),
            (("decision", "list"), ("operator", "reader", "tenant")),
            (("server", "list"), ("operator", "reader", "tenant")),
        ):
            for role in ("operator", "reader", "tenant"):
                with self.subTest(" ".join(words), role=role):
                    status, _, err = self.openstack(*words, role=role)
                    if role in allowed:
                        self.assertEqual(0, status, err)
                    else:
                        self.assertEqual(1, status)
                        self.assertIn("EB-ACCESS-004", err)
                        self.assertIn("HTTP 403", err)
        self.openstack("budget", "delete", "--project", "lab")

    def test_a_wrong_token_is_refused(self) -> None:
        (REGION / "wrong.token").write_text("ebt_wrong_token")
        status, _, err = self.openstack("server", "list", role="wrong")
        self.assertEqual(1, status)
        self.assertIn("HTTP 401", err)

    def test_the_library_alone_raises_problems(self) -> None:
        token = (REGION / "operator.token").read_text().strip()
        auth = token_endpoint.Token(self.endpoint, token)
        region = client.Client(session.Session(auth=auth))
        self.assertEqual(2, len(region.hosts()))
        with self.assertRaises(exceptions.Problem) as caught:
            region.evacuation(str(uuid.uuid4()))
        self.assertEqual(404, caught.exception.status)
        self.assertTrue(caught.exception.code.startswith("EB-"))
