"""Commands about decisions, and how a decision looks."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from typing import Any

from osc_lib.command import command

from ebbtideclient.osc import columns, common
from ebbtideclient.osc.columns import Column, Lines, Names, number

# Hosts of a ranking that tables show; JSON has all.
RANKED = 5

LIST = (
    Column("id", "ID"),
    Column("at", "Time"),
    Column("project_id", "Project ID", long=True),
    Column("request_id", "Request ID", long=True),
    Column("flavor_name", "Flavor"),
    Column("preemptible", "Preemptible", long=True),
    Column("server_ids", "Servers", long=True, shown=Names),
    Column("outcome", "Outcome"),
)


class ListDecision(command.Lister):
    """List decisions of the scheduler, the newest first"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        common.add_scope_options(parser)
        parser.add_argument(
            "--server",
            metavar="<server-id>",
            help="Only about this server (ID)",
        )
        parser.add_argument(
            "--request",
            metavar="<request-id>",
            help="Only of this request (req-…)",
        )
        parser.add_argument(
            "--refused",
            action="store_true",
            help="Only those that found no valid host",
        )
        common.add_time_options(parser, "decisions")
        common.add_long_option(parser)
        common.add_page_options(parser, default=20)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        manager: Any = self.app.client_manager
        found = manager.preemptible.decisions(
            limit=parsed_args.limit,
            marker=parsed_args.marker,
            project_id=common.scope(manager, parsed_args),
            server_id=parsed_args.server,
            request_id=parsed_args.request,
            refused_only=parsed_args.refused,
            before=parsed_args.end,
            **{"from": parsed_args.begin},
        )
        rows = [{**record, "outcome": outcome(record)} for record in found]
        return columns.table(LIST, rows, parsed_args.long)


class ShowDecision(command.ShowOne):
    """Show a decision with its reasons"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "decision",
            metavar="<decision>",
            help="ID of a decision, of a server for the last one about it, or "
            "of a request (req-…)",
        )
        add_as_project(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        manager: Any = self.app.client_manager
        found = manager.preemptible.explain(
            parsed_args.decision, as_project(manager, parsed_args)
        )
        return shown(found)


def add_as_project(parser: argparse.ArgumentParser) -> None:
    """--as-project."""
    parser.add_argument(
        "--as-project",
        metavar="<project>",
        help="As this project may see it: without names of other projects' "
        "servers (name or ID)",
    )


def as_project(manager: Any, parsed_args: argparse.Namespace) -> str | None:
    """The ID of the project that was named."""
    if not parsed_args.as_project:
        return None
    return common.find_project(manager, parsed_args.as_project)


def outcome(record: Mapping[str, Any]) -> str:
    """What was decided, in one line."""
    nowhere = record.get("no_valid_host")
    if nowhere:
        return nowhere["reason"]
    placements = record["placements"]
    text = ", ".join(placement["host"] for placement in placements)
    leaving = sum(len(placement["victims"]) for placement in placements)
    if leaving:
        text += f"; {leaving} to leave"
    return text


def shown(record: Mapping[str, Any]) -> tuple[Any, Any]:
    """Names of fields and values, for a command that shows one."""
    placements = record["placements"]
    nowhere = record.get("no_valid_host") or {}
    victims = [
        {"host": placement["host"], **victim}
        for placement in placements
        for victim in placement["victims"]
    ]
    cells: dict[str, Any] = {
        "id": record["id"],
        "at": record["at"],
        "request_id": record["request_id"],
        "project_id": record["project_id"],
        "flavor_name": record["flavor_name"],
        "preemptible": record["preemptible"],
        "outcome": outcome(record),
        "placements": Lines(placements, _placements(placements)),
        "victims": Lines(victims, map(_victim, victims)),
        "no_valid_host": Lines(nowhere, _dropped(nowhere)),
    }
    # A record of a what-if or an old one may have no reasons.
    explanation = record.get("explanation") or {}
    instances = explanation.get("instances", [])
    filters = [instance["filters"] for instance in instances]
    rankings = [instance["ranking"] for instance in instances]
    cells.update(
        policy=explanation.get("policy", ""),
        filtered_on=explanation.get("filtered_on", ""),
        cost_module=explanation.get("cost_module", ""),
        optimal=explanation.get("optimal", ""),
        filters=Lines(filters, _each(filters, _filter)),
        ranking=Lines(rankings, _each(rankings, _ranked, RANKED)),
        warnings=Lines(
            explanation.get("warnings", []), explanation.get("warnings", [])
        ),
    )
    return tuple(cells), tuple(cells.values())


def _placements(placements: list[Mapping[str, Any]]) -> Iterator[str]:
    for placement in placements:
        wait = ", waits for capacity" if placement["waits_for_room"] else ""
        server = placement["server_id"] or "server"
        yield f"{server}: {placement['host']}{wait}"


def _victim(victim: Mapping[str, Any]) -> str:
    # Another project's server has neither name nor ID.
    name = victim["name"] or victim["server_id"] or "another project's"
    return f"{name} on {victim['host']}, cost {number(victim['cost'])}"


def _dropped(nowhere: Mapping[str, Any]) -> Iterator[str]:
    for count in nowhere.get("dropped", []):
        yield f"{count['filter']}: {count['dropped']} of {nowhere['hosts']}"


def _each(instances: list[Any], line: Any, most: int = 0) -> Iterator[str]:
    """Lines about each instance; a number in front if there are several."""
    for place, rows in enumerate(instances, start=1):
        front = f"{place}: " if len(instances) > 1 else ""
        for row in rows[:most] if most else rows:
            yield front + line(row)
        if most and len(rows) > most:
            yield f"{front}… {len(rows) - most} more"


def _filter(step: Mapping[str, Any]) -> str:
    return f"{step['filter']}: {step['before']} → {step['after']}"


def _ranked(host: Mapping[str, Any]) -> str:
    text = f"{host['host']}: weight {number(host['weight'])}"
    if host["victims"]:
        cost = number(host["eviction_cost"])
        text += f", {len(host['victims'])} to leave at {cost}"
    return text + (" (chosen)" if host["chosen"] else "")
