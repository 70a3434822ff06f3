"""Commands about hosts that an outside owner takes back."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from osc_lib.command import command

from ebbtideclient.osc import columns, common
from ebbtideclient.osc.columns import Amount, Column, Lines
from ebbtideclient.osc.v1 import host


def _planned(planned: list[Mapping[str, Any]]) -> Lines:
    return Lines(
        planned,
        (
            f"{p['name'] or p['server_id']}: grace {p['grace_seconds']} s"
            for p in planned
        ),
    )


def _staying(staying: list[Mapping[str, Any]]) -> Lines:
    return Lines(
        staying,
        (f"{s['name'] or s['server_id']}: {s['detail']}" for s in staying),
    )


def _evacuations(evacuations: list[Mapping[str, Any]]) -> Lines:
    return Lines(
        evacuations,
        (f"{e['victim_name']}: {e['state']}" for e in evacuations),
    )


LIST = (
    Column("host", "Host"),
    Column("owner", "Owner"),
    Column("reason", "Reason"),
    Column("state", "State"),
    Column("since", "Since"),
    Column("deadline", "Deadline"),
    Column("leaving", "Leaving"),
    Column("overdue", "Overdue", long=True),
    Column("cost", "Cost", long=True, shown=Amount),
)
SHOW = (
    Column("host", ""),
    Column("owner", ""),
    Column("reason", ""),
    Column("state", ""),
    Column("since", ""),
    Column("deadline", ""),
    Column("overdue", ""),
    Column("leaving", ""),
    Column("planned", "", shown=_planned),
    Column("evacuations", "", shown=_evacuations),
    Column("staying", "", shown=_staying),
    Column("cost", "", shown=Amount),
    Column("max_cost", "", shown=Amount),
    Column("cost_unit", ""),
)


class ListReclaim(common.LongLister):
    """List hosts that their owners have taken back, or are about to"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        client = common.client(self)
        return columns.table(LIST, client.reclaims(), parsed_args.long)


class ShowReclaim(command.ShowOne):
    """Show the reclaim of a host: which servers leave, and which stay"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="<host>", help="Its name")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        client = common.client(self)
        return columns.fields(SHOW, client.reclaim(parsed_args.host))


class ReclaimHost(command.ShowOne):
    """Take a host back: its preemptible servers leave, normal ones stay

    The host takes no new servers until `host return`. Repeating the command
    changes nothing.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="<host>", help="Its name")
        parser.add_argument(
            "--owner",
            metavar="<owner>",
            required=True,
            help="Who takes it, such as slurm:1234; only this owner can "
            "change the terms",
        )
        parser.add_argument(
            "--reason", metavar="<reason>", required=True, help="Why"
        )
        deadline = parser.add_mutually_exclusive_group()
        deadline.add_argument(
            "--deadline",
            metavar="<time>",
            type=common.time,
            help="When grace periods end at the latest",
        )
        deadline.add_argument(
            "--deadline-seconds",
            metavar="<seconds>",
            type=common.count,
            help="The same, from now",
        )
        parser.add_argument(
            "--max-cost",
            metavar="<cost>",
            type=float,
            help="The most that the loss of all servers may cost, in the "
            "unit of the cost module",
        )
        parser.add_argument(
            "--dry-run",
            action="store_true",
            help="Say what would happen, and change nothing",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        client = common.client(self)
        terms = {
            "owner": parsed_args.owner,
            "reason": parsed_args.reason,
            "deadline": parsed_args.deadline,
            "deadline_seconds": parsed_args.deadline_seconds,
            "max_cost": parsed_args.max_cost,
            "dry_run": parsed_args.dry_run,
        }
        given = {name: value for name, value in terms.items() if value}
        found = client.reclaim_host(parsed_args.host, **given)
        return columns.fields(SHOW, found)


class ReturnHost(command.ShowOne):
    """Give a reclaimed host to the scheduler again

    Victims that have not been acted upon are spared.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="<host>", help="Its name")
        parser.add_argument(
            "--keep-disabled",
            action="store_true",
            help="Leave it disabled, for an operator to enable it",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        client = common.client(self)
        found = client.return_host(
            parsed_args.host, keep_disabled=parsed_args.keep_disabled
        )
        return columns.fields(host.HOST, found)
