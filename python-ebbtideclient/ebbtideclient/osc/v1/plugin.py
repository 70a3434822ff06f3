"""The scheduler's plugins."""

from __future__ import annotations

import argparse
from typing import Any

from ebbtideclient.osc import columns, common
from ebbtideclient.osc.columns import Column

LIST = (
    Column("name", "Name"),
    Column("kind", "Kind"),
    Column("carrier", "Carrier"),
    Column("in_use", "In Use"),
    Column("shadow", "In Shadow"),
    Column("multiplier", "Multiplier"),
    Column("calls", "Calls"),
    Column("failures", "Failures"),
    Column("on_failure", "On Failure", long=True),
    Column("resting", "Resting", long=True),
    Column("skipped", "Skipped", long=True),
    Column("last_failure", "Last Failure", long=True),
    Column("missing", "Missing", long=True),
    Column("file", "File", long=True),
    Column("digest", "Digest", long=True),
)


class ListPlugin(common.LongLister):
    """List the scheduler's plugins: weighers and cost modules"""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        client = common.client(self)
        return columns.table(LIST, client.plugins(), parsed_args.long)
