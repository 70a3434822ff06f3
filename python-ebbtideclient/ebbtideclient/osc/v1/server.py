"""Commands about preemptible servers."""

from __future__ import annotations

import argparse
import itertools
from typing import Any

from osc_lib.command import command

from ebbtideclient.osc import columns, common
from ebbtideclient.osc.columns import Column
from ebbtideclient.osc.v1 import decision, evacuation

LIST = (
    Column("id", "ID"),
    Column("name", "Name"),
    Column("project_id", "Project ID", long=True),
    Column("state", "State"),
    Column("state_since", "Since", long=True),
    Column("state_until", "Until"),
    Column("host", "Host"),
    Column("flavor_name", "Flavor"),
    Column("interruption", "Interruption", long=True),
    Column("max_price", "Max Price", long=True),
    Column("state_reason", "Reason"),
)
SHOW = (
    Column("id", ""),
    Column("name", ""),
    Column("project_id", ""),
    Column("state", ""),
    Column("state_since", ""),
    Column("state_until", ""),
    Column("state_reason", ""),
    Column("status", ""),
    Column("host", ""),
    Column("availability_zone", ""),
    Column("flavor_name", ""),
    Column("preemptible", ""),
    Column("interruption", ""),
    Column("max_price", ""),
    Column("created_at", ""),
    Column("launched_at", ""),
    Column("ended_at", ""),
    Column("decision_id", ""),
    Column("evacuation_id", ""),
    Column("deadline_at", ""),
    Column("fault_code", ""),
    Column("fault_message", ""),
)


class ListServer(command.Lister):
    """List preemptible servers, with state and reason"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        common.add_scope_options(parser)
        parser.add_argument(
            "--host", metavar="<host>", help="Only on this host"
        )
        parser.add_argument(
            "--name", metavar="<name>", help="Only with this name"
        )
        parser.add_argument(
            "--status", metavar="<status>", help="Only with this status"
        )
        parser.add_argument(
            "--normal",
            action="store_true",
            help="Also servers that are not preemptible",
        )
        parser.add_argument(
            "--gone",
            action="store_true",
            help="Also those that were deleted or have had to leave",
        )
        common.add_long_option(parser)
        common.add_page_options(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        manager: Any = self.app.client_manager
        found = manager.preemptible.each_server(
            marker=parsed_args.marker,
            project_id=common.scope(manager, parsed_args),
            host=parsed_args.host,
            name=parsed_args.name,
            status=parsed_args.status,
            include_gone=parsed_args.gone,
        )
        wanted = (s for s in found if parsed_args.normal or s["preemptible"])
        # The limit counts what is shown.
        shown = itertools.islice(wanted, parsed_args.limit)
        return columns.table(LIST, shown, parsed_args.long)


class ShowServer(command.ShowOne):
    """Show a server, with its notice and deadline"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_server(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        client = common.client(self)
        return columns.fields(SHOW, client.find_server(parsed_args.server))


class ReleaseServer(command.ShowOne):
    """End the grace period of a server that has to leave

    For the owner, who has saved what is needed: the server ends now, and the
    evacuation shows what happens to it.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_server(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        client = common.client(self)
        server = client.server(parsed_args.server)
        return columns.fields(evacuation.SHOW, client.release(server["id"]))


class ExplainServer(command.ShowOne):
    """Say why a server is where it is, or why it has no host

    The last decision about the server: hosts that each filter left, how they
    were ranked, which servers had to leave, and which host was second.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_server(parser)
        decision.add_as_project(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        manager: Any = self.app.client_manager
        server = manager.preemptible.find_server(parsed_args.server)
        found = manager.preemptible.explain(
            server["id"], decision.as_project(manager, parsed_args)
        )
        return decision.shown(found)


def add_server(parser: argparse.ArgumentParser) -> None:
    """The server a command is about."""
    parser.add_argument(
        "server",
        metavar="<server>",
        help="ID, or name if only one server has it",
    )
