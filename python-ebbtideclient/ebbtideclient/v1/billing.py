"""What each instance-hour was charged.

Sums are the API's. Single hours are made of its lives and prices by its rule,
which is that of scheduler/core/market/src/billing.rs: the price of an hour is
fixed when it begins; the last partial hour is free if the provider ends a
preemptible server, and charged in full if its owner does. The test on a region
compares the two implementations.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

from ebbtideclient.v1.client import Client

HOUR = timedelta(hours=1)
# How a life ends by its owner; all other ends are the provider's.
BY_OWNER = ("deleted", "stopped")
# Servers that run, by the region's word.
RUNNING = ("active", "evacuating", "reserved")


@dataclass(frozen=True)
class Life:
    """A server, or one of its lives, with what a bill needs."""

    server_id: str
    name: str
    project_id: str
    flavor: str
    launched_at: datetime
    # None: it runs.
    ended_at: datetime | None
    end: str
    preemptible: bool
    price_per_hour: Decimal


@dataclass(frozen=True)
class BilledHour:
    """An instance-hour."""

    project_id: str
    server_id: str
    name: str
    flavor: str
    hour: int
    began_at: str
    ended_at: str
    # None: not known any more.
    price: Decimal | None
    charged: Decimal
    charge: str


class PriceLine:
    """The price of a flavor over time."""

    def __init__(self, records: Iterable[Mapping[str, Any]]) -> None:
        # The latest come first; of two of one moment the earlier in the list
        # is the later one.
        points = [(moment(r["at"]), Decimal(r["price"])) for r in records]
        points.reverse()
        points.sort(key=lambda point: point[0])
        self._times = [at for at, _ in points]
        self._prices = [price for _, price in points]

    def at(self, when: datetime) -> Decimal | None:
        """The price at a moment; None before the first known one."""
        after = bisect.bisect_right(self._times, when)
        return self._prices[after - 1] if after else None


def moment(text: str) -> datetime:
    """A time of the API. Python before 3.11 does not read the Z."""
    at = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return at if at.tzinfo else at.replace(tzinfo=timezone.utc)


def written(at: datetime) -> str:
    """A time as the API writes it: without zeros at the end of decimals."""
    text = at.astimezone(timezone.utc).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "").rstrip("0").rstrip(".") + "Z"


def hours(
    life: Life, prices: PriceLine | None, now: datetime
) -> Iterator[BilledHour]:
    """The hours of a life that began before now.

    Of a server that runs, only those that are over: the charge of the last one
    depends on who ends it.
    """
    until = life.ended_at or now
    began, number = life.launched_at, 1
    while began < until:
        over = began + HOUR
        if over <= until:
            charge = "full"
        elif life.ended_at is None:
            return
        elif life.end in BY_OWNER or not life.preemptible:
            charge = "ended-by-owner"
        else:
            charge = "ended-by-provider"
        price: Decimal | None = life.price_per_hour
        if prices is not None and life.preemptible:
            price = prices.at(began)
        charged = Decimal(0)
        if charge != "ended-by-provider":
            if price is None:
                charge = "price-unknown"
            else:
                charged = price
        yield BilledHour(
            project_id=life.project_id,
            server_id=life.server_id,
            name=life.name,
            flavor=life.flavor,
            hour=number,
            began_at=written(began),
            ended_at=written(min(over, until)),
            price=price,
            charged=charged,
            charge=charge,
        )
        began, number = over, number + 1


def lives(
    client: Client,
    project_id: str | None = None,
    begin: str | None = None,
    end: str | None = None,
) -> list[Life]:
    """Servers that run, and lives that are over."""
    bases = {
        price["flavor"]: Decimal(price["price_per_hour"])
        for price in client.prices()
        if price["price_per_hour"]
    }
    found = []
    for server in client.servers(project_id=project_id):
        if server["launched_at"] and server["status"] in RUNNING:
            flavor = server["flavor_name"]
            found.append(
                Life(
                    server_id=server["id"],
                    name=server["name"],
                    project_id=server["project_id"],
                    flavor=flavor,
                    launched_at=moment(server["launched_at"]),
                    ended_at=None,
                    end="",
                    preemptible=server["preemptible"],
                    price_per_hour=bases.get(flavor, Decimal(0)),
                )
            )
    for life in client.lives(
        project_id=project_id, ended_from=begin, launched_before=end
    ):
        found.append(
            Life(
                server_id=life["server_id"],
                name=life["name"],
                project_id=life["project_id"],
                flavor=life["flavor"],
                launched_at=moment(life["launched_at"]),
                ended_at=moment(life["ended_at"]),
                end=life["end"],
                preemptible=life["preemptible"],
                price_per_hour=Decimal(life["price_per_hour"] or 0),
            )
        )
    return found


def bill(
    client: Client,
    project_id: str | None = None,
    begin: str | None = None,
    end: str | None = None,
    now: datetime | None = None,
) -> list[BilledHour]:
    """All hours that began within `begin` and `end`, the earliest first."""
    now = now or datetime.now(timezone.utc)
    records: dict[str, list[Mapping[str, Any]]] = {}
    for record in client.price_history(before=end):
        records.setdefault(record["flavor"], []).append(record)
    lines = {flavor: PriceLine(found) for flavor, found in records.items()}
    first = moment(begin) if begin else None
    last = moment(end) if end else None
    rows = []
    for life in lives(client, project_id, begin, end):
        for row in hours(life, lines.get(life.flavor), now):
            began = moment(row.began_at)
            if (first is None or began >= first) and (
                last is None or began < last
            ):
                rows.append(row)
    return sorted(rows, key=lambda row: (row.began_at, row.server_id))
