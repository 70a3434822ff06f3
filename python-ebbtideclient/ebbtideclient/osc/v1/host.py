"""Commands about compute hosts."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from osc_lib.command import command

from ebbtideclient.osc import columns, common
from ebbtideclient.osc.columns import Column, Lines, Names

# Of a host's resource classes, those in the list.
CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")


def _free(resources: list[Mapping[str, Any]], state: str) -> Lines:
    """Free amounts of a state of the host: h_f or h_n."""
    amounts = {
        usage["resource_class"]: int(usage[state]) for usage in resources
    }
    shown = [str(amounts[name]) for name in CLASSES if name in amounts]
    return Lines(amounts, [" / ".join(shown)])


def _usage(resources: list[Mapping[str, Any]]) -> Lines:
    return Lines(
        resources,
        (
            f"{usage['resource_class']}: {usage['capacity']}, "
            f"normal {usage['normal']}, preemptible {usage['preemptible']}, "
            f"free {usage['free_full']}, free for normal "
            f"{usage['free_normal']}"
            for usage in resources
        ),
    )


def _servers(servers: list[Mapping[str, Any]]) -> Lines:
    return Lines(
        servers,
        (f"{s['name']} ({s['flavor_name']}, {s['state']})" for s in servers),
    )


LIST = (
    Column("name", "Host"),
    Column("health", "Health"),
    Column("availability_zone", "Zone"),
    Column("normal_servers", "Normal"),
    Column("preemptible_servers", "Preemptible"),
    Column("free_full", "Free (all)"),
    Column("free_normal", "Free (normal only)"),
    Column("disabled_reason", "Disabled", long=True),
    Column("aggregates", "Aggregates", long=True, shown=Names),
    Column("last_seen", "Last Seen", long=True),
)
# Without its servers.
HOST = (
    Column("name", ""),
    Column("health", ""),
    Column("disabled_reason", ""),
    Column("availability_zone", ""),
    Column("aggregates", "", shown=Names),
    Column("traits", "", shown=Names),
    Column("normal_servers", ""),
    Column("preemptible_servers", ""),
    Column("resources", "", shown=_usage),
    Column("last_seen", ""),
)
SHOW = (*HOST, Column("servers", "", shown=_servers))


class ListHost(common.LongLister):
    """List compute hosts with free capacity, for all and for normal servers

    Free capacity is VCPU / MEMORY_MB / DISK_GB. "Free (normal only)" counts
    what preemptible servers use as free: a normal server may take it.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        client = common.client(self)
        rows = [
            {
                **host,
                "free_full": _free(host["resources"], "free_full"),
                "free_normal": _free(host["resources"], "free_normal"),
            }
            for host in client.hosts()
        ]
        return columns.table(LIST, rows, parsed_args.long)


class ShowHost(command.ShowOne):
    """Show a compute host and its servers"""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("host", metavar="<host>", help="Its name")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        client = common.client(self)
        return columns.fields(SHOW, client.host(parsed_args.host))
