"""Commands about disruption budgets."""

from __future__ import annotations

import argparse
import uuid
from typing import Any

from osc_lib import exceptions
from osc_lib.command import command

from ebbtideclient.osc import columns, common
from ebbtideclient.osc.columns import Column

COLUMNS = (
    Column("project_id", "Project ID"),
    Column("group_id", "Server Group ID"),
    Column("max_victims", "Max Victims"),
    Column("window_seconds", "Window Seconds"),
)


class ListBudget(command.Lister):
    """List disruption budgets: how many servers may have to leave, and when"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        client = common.client(self)
        return columns.table(COLUMNS, client.budgets())


class SetBudget(command.ShowOne):
    """Create or replace the budget of a project or server group"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_owner(parser)
        parser.add_argument(
            "--max-victims",
            metavar="<num>",
            type=int,
            required=True,
            help="The most servers that may have to leave within the window",
        )
        parser.add_argument(
            "--window",
            metavar="<seconds>",
            type=common.count,
            required=True,
            help="Length of the window",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        manager: Any = self.app.client_manager
        budget = manager.preemptible.set_budget(
            {
                **owner(manager, parsed_args),
                "max_victims": parsed_args.max_victims,
                "window_seconds": parsed_args.window,
            }
        )
        return columns.fields(COLUMNS, budget)


class DeleteBudget(command.Command):
    """Remove the budget of a project or server group"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_owner(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        manager: Any = self.app.client_manager
        manager.preemptible.delete_budget(**owner(manager, parsed_args))


def add_owner(parser: argparse.ArgumentParser) -> None:
    """Whose budget: of one of the two."""
    whose = parser.add_mutually_exclusive_group(required=True)
    common.add_project_option(whose, "Of all servers of this project")
    whose.add_argument(
        "--server-group",
        metavar="<group>",
        help="Of the servers of this server group (name or ID)",
    )
    common.add_domain_option(parser)


def owner(manager: Any, parsed_args: argparse.Namespace) -> dict[str, str]:
    """The owner as the API names it."""
    if parsed_args.project:
        return {"project_id": common.project(manager, parsed_args) or ""}
    return {"group_id": find_group(manager, parsed_args.server_group)}


def find_group(manager: Any, name: str) -> str:
    """The ID of a server group."""
    if _is_id(name):
        return name
    groups = manager.preemptible.server_groups()
    found = [group["id"] for group in groups if group["name"] == name]
    if len(found) == 1:
        return found[0]
    raise exceptions.CommandError(
        f"{len(found)} server groups are called {name!r}: give the ID"
        if found
        else f"No server group is called {name!r}"
    )


def _is_id(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True
