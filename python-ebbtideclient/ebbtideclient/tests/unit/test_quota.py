"""Quotas: Keystone's rows, and what is in use."""

from __future__ import annotations

import unittest

from ebbtideclient.tests.unit import base, region
from ebbtideclient.v1 import quota


def row(amount: str, value: int, where: str | None = None) -> dict:
    """A row of Keystone about VCPUs."""
    return {
        "resource_name": "preemptible_vcpus",
        "region_id": where,
        amount: value,
    }


class TestLimits(unittest.TestCase):
    def _limit(self, registered: list, own: list, where: str | None) -> int:
        levels = [(registered, "default_limit"), (own, "resource_limit")]
        return quota._limit(levels, "preemptible_vcpus", where)

    def test_the_projects_own_wins_over_the_default(self) -> None:
        default, own = [row("default_limit", 4)], [row("resource_limit", 9)]
        self.assertEqual(9, self._limit(default, own, "one"))
        self.assertEqual(4, self._limit(default, [], "one"))

    def test_that_of_the_region_wins_over_that_of_all(self) -> None:
        rows = [row("default_limit", 4), row("default_limit", 5, "one")]
        self.assertEqual(5, self._limit(rows, [], "one"))
        self.assertEqual(4, self._limit(rows, [], "two"))

    def test_the_only_region_needs_no_name(self) -> None:
        self.assertEqual(
            5, self._limit([row("default_limit", 5, "one")], [], None)
        )

    def test_what_is_not_registered_allows_nothing(self) -> None:
        self.assertEqual(0, self._limit([], [], None))


class TestInUse(base.TestCase):
    def test_servers_count_until_they_are_gone_or_offloaded(self) -> None:
        one = {
            **region.example("listServers")["servers"][0],
            "resources": {"VCPU": "2", "MEMORY_MB": "1024"},
            "status": "active",
        }
        servers = [
            one,
            {**one, "status": "hibernated"},
            {**one, "status": "hibernated", "host": ""},
            {**one, "status": "deleted"},
            {**one, "preemptible": False},
        ]
        self.region.will_answer("listServers", {"servers": servers})
        self.assertEqual(
            {
                "preemptible_servers": 2,
                "preemptible_vcpus": 4,
                "preemptible_memory_mb": 2048,
            },
            quota.in_use(self.client.servers()),
        )

    def test_without_keystone_there_is_no_quota(self) -> None:
        status, _, err = self.openstack("quota", "show")
        self.assertEqual(1, status)
        self.assertIn("There is no quota without Keystone", err)
