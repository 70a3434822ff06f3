"""What instance-hours were charged."""

from __future__ import annotations

import argparse
from typing import Any

from osc_lib.command import command

from ebbtideclient.osc import columns, common
from ebbtideclient.osc.columns import Column

HOURS = (
    Column("project_id", "Project ID"),
    Column("name", "Name"),
    Column("server_id", "Server ID", long=True),
    Column("flavor", "Flavor"),
    Column("hour", "Hour"),
    Column("from", "From"),
    Column("to", "To", long=True),
    Column("price", "Price"),
    Column("charged", "Charged"),
    Column("charge", "Charge"),
)
TOTALS = (
    Column("project_id", "Project ID"),
    Column("flavor", "Flavor"),
    Column("charged_hours", "Hours Charged", shown=int),
    Column("free_hours", "Hours Free", shown=int),
    Column("unknown_hours", "Hours Without Price", shown=int),
    Column("charged", "Charged"),
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
        project_id = common.scope(manager, parsed_args)
        which = {
            "project_id": project_id,
            "from": parsed_args.begin,
            "before": parsed_args.end,
        }
        if parsed_args.total:
            bills = manager.preemptible.bills(**which)
            self._warn(sum(int(bill["unknown_hours"]) for bill in bills))
            return columns.table(TOTALS, bills)
        hours = manager.preemptible.billed_hours(**which)
        self._warn(sum(hour["charge"] == "price-unknown" for hour in hours))
        return columns.table(HOURS, hours, parsed_args.long)

    def _warn(self, unknown: int) -> None:
        if unknown:
            self.log.warning(
                "%d hours began before the prices that are kept: nothing is "
                "charged for them",
                unknown,
            )
