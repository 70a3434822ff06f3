"""The rule of bills."""

from __future__ import annotations

import unittest
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from decimal import Decimal

from ebbtideclient.osc import columns
from ebbtideclient.v1 import billing

BEGIN = datetime(2026, 11, 29, 10, tzinfo=timezone.utc)
LIFE = billing.Life(
    server_id="s",
    name="n",
    project_id="p",
    flavor="spot",
    launched_at=BEGIN,
    ended_at=BEGIN + timedelta(minutes=90),
    end="preempted",
    preemptible=True,
    price_per_hour=Decimal("0.10"),
)


def line(*points: tuple[int, str]) -> billing.PriceLine:
    """Prices by the minute from which they hold, as the API lists them."""
    records = [
        {"at": billing.written(BEGIN + timedelta(minutes=at)), "price": price}
        for at, price in points
    ]
    return billing.PriceLine(reversed(records))


class TestHours(unittest.TestCase):
    def _charges(
        self,
        life: billing.Life,
        prices: billing.PriceLine | None = None,
        minutes: int = 600,
    ) -> list[tuple[str, str]]:
        now = BEGIN + timedelta(minutes=minutes)
        found = billing.hours(life, prices, now)
        return [(row.charge, columns.money(row.charged)) for row in found]

    def test_the_hour_that_the_provider_ends_is_free(self) -> None:
        self.assertEqual(
            [("full", "0.10"), ("ended-by-provider", "0.00")],
            self._charges(LIFE),
        )

    def test_the_hour_that_its_owner_ends_is_charged(self) -> None:
        for end in billing.BY_OWNER:
            self.assertEqual(
                [("full", "0.10"), ("ended-by-owner", "0.10")],
                self._charges(replace(LIFE, end=end)),
            )

    def test_a_normal_server_pays_its_last_hour(self) -> None:
        life = replace(LIFE, preemptible=False)
        self.assertEqual("ended-by-owner", self._charges(life)[-1][0])

    def test_a_life_of_whole_hours_has_no_further_one(self) -> None:
        life = replace(LIFE, ended_at=BEGIN + timedelta(hours=2))
        self.assertEqual(["full", "full"], [c for c, _ in self._charges(life)])

    def test_of_a_server_that_runs_only_hours_that_are_over_count(
        self,
    ) -> None:
        life = replace(LIFE, ended_at=None)
        self.assertEqual([("full", "0.10")], self._charges(life, None, 119))

    def test_an_hour_has_the_price_of_its_beginning(self) -> None:
        life = replace(LIFE, end="deleted")
        prices = line((0, "0.01"), (30, "0.02"), (60, "0.03"), (60, "0.04"))
        self.assertEqual(
            [("full", "0.01"), ("ended-by-owner", "0.04")],
            self._charges(life, prices),
        )

    def test_without_a_price_nothing_is_charged(self) -> None:
        life = replace(LIFE, end="deleted")
        self.assertEqual(
            [("price-unknown", "0.00"), ("ended-by-owner", "0.02")],
            self._charges(life, line((30, "0.02"))),
        )
