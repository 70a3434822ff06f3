"""The quota of preemptible servers."""

from __future__ import annotations

import argparse
from typing import Any

from osc_lib.command import command

from ebbtideclient.osc import common
from ebbtideclient.v1 import quota


class ShowQuota(command.Lister):
    """Show how many preemptible servers a project may have, and has

    Limits are Keystone's unified limits of the service `preemption`; -1 is no
    limit.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        common.add_project_option(parser, "Of this project, default: yours")
        common.add_domain_option(parser)
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        manager: Any = self.app.client_manager
        project_id = common.project(manager, parsed_args) or ""
        found = quota.quotas(
            manager.preemptible, project_id, manager.interface
        )
        return (
            ("Resource", "Limit", "In Use"),
            [(row.resource, row.limit, row.in_use) for row in found],
        )
