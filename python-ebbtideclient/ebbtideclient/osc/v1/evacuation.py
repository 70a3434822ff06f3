"""Commands about evacuations: victims from their notice to their end."""

from __future__ import annotations

import argparse
from typing import Any

from osc_lib.command import command

from ebbtideclient.osc import columns, common
from ebbtideclient.osc.columns import Amount, Column

LIST = (
    Column("id", "ID"),
    Column("victim_name", "Victim"),
    Column("victim_id", "Victim ID", long=True),
    Column("victim_project_id", "Project ID", long=True),
    Column("host", "Host"),
    Column("cause", "Cause"),
    Column("preemptor_id", "For", long=True),
    Column("state", "State"),
    Column("behaviour", "Behaviour"),
    Column("cost", "Cost", long=True, shown=Amount),
    Column("claimed_at", "Claimed"),
    Column("deadline_at", "Deadline"),
    Column("reason", "Reason", long=True),
)
SHOW = (
    Column("id", ""),
    Column("victim_id", ""),
    Column("victim_name", ""),
    Column("victim_project_id", ""),
    Column("host", ""),
    Column("cause", ""),
    Column("preemptor_id", ""),
    Column("reclaim_owner", ""),
    Column("decision_id", ""),
    Column("state", ""),
    Column("reason", ""),
    Column("behaviour", ""),
    Column("grace_seconds", ""),
    Column("cost", "", shown=Amount),
    Column("attempts", ""),
    Column("claimed_at", ""),
    Column("notified_at", ""),
    Column("draining_at", ""),
    Column("deadline_at", ""),
    Column("ended_at", ""),
)


class ListEvacuation(command.Lister):
    """List servers that have or had to leave, the newest first"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        common.add_scope_options(parser)
        parser.add_argument(
            "--host", metavar="<host>", help="Only on this host"
        )
        parser.add_argument(
            "--server",
            metavar="<server-id>",
            help="Only with this server as victim or as the reason (ID)",
        )
        parser.add_argument(
            "--state", metavar="<state>", help="Only in this state"
        )
        parser.add_argument(
            "--active",
            action="store_true",
            help="Only those that have not ended",
        )
        common.add_long_option(parser)
        common.add_page_options(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        manager: Any = self.app.client_manager
        found = manager.preemptible.evacuations(
            limit=parsed_args.limit,
            marker=parsed_args.marker,
            project_id=common.scope(manager, parsed_args),
            host=parsed_args.host,
            server_id=parsed_args.server,
            state=parsed_args.state,
            active_only=parsed_args.active,
        )
        return columns.table(LIST, found, parsed_args.long)


class ShowEvacuation(command.ShowOne):
    """Show an evacuation"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "evacuation", metavar="<evacuation>", help="Its ID"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        client = common.client(self)
        found = client.evacuation(parsed_args.evacuation)
        return columns.fields(SHOW, found)
