"""What instance-hours were charged."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from osc_lib.command import command

from ebbtideclient.osc import columns, common
from ebbtideclient.osc.columns import Column
from ebbtideclient.v1 import billing

HOURS = (
    Column("project_id", "Project ID"),
    Column("name", "Name"),
    Column("server_id", "Server ID", long=True),
    Column("flavor", "Flavor"),
    Column("hour", "Hour"),
    Column("began_at", "From"),
    Column("ended_at", "To", long=True),
    Column("price", "Price", shown=columns.money),
    Column("charged", "Charged", shown=columns.money),
    Column("charge", "Charge"),
)
TOTALS = (
    Column("project_id", "Project ID"),
    Column("flavor", "Flavor"),
    Column("hours", "Hours Charged"),
    Column("free", "Hours Free"),
    Column("charged", "Charged", shown=columns.money),
)


class ListBill(command.Lister):
    """List instance-hours with their price and charge

    The price of an hour is fixed when it begins. The last partial hour is free
    if the provider ends a preemptible server, and charged in full if its owner
    does. Of servers that run, hours that are over are listed.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        common.add_scope_options(parser)
        common.add_time_options(parser, "hours that began")
        parser.add_argument(
            "--total",
            action="store_true",
            help="One row for each project and flavor",
        )
        common.add_long_option(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        manager: Any = self.app.client_manager
        rows = billing.bill(
            manager.preemptible,
            common.scope(manager, parsed_args),
            parsed_args.begin,
            parsed_args.end,
        )
        unknown = sum(row.charge == "price-unknown" for row in rows)
        if unknown:
            self.log.warning(
                "%d hours began before the prices that are kept: nothing is "
                "charged for them",
                unknown,
            )
        if parsed_args.total:
            return columns.table(TOTALS, totals(rows))
        records = (vars(row) for row in rows)
        return columns.table(HOURS, records, parsed_args.long)


def totals(rows: Iterable[billing.BilledHour]) -> list[dict[str, Any]]:
    """Sums by project and flavor."""
    sums: dict[tuple[str, str], dict[str, Any]] = {}
    for row in rows:
        total = sums.setdefault(
            (row.project_id, row.flavor),
            {
                "project_id": row.project_id,
                "flavor": row.flavor,
                "hours": 0,
                "free": 0,
                "charged": Decimal(0),
            },
        )
        paid = row.charge in ("full", "ended-by-owner")
        total["hours" if paid else "free"] += 1
        total["charged"] += row.charged
    return [sums[key] for key in sorted(sums)]
