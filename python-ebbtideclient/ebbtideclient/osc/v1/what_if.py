"""What a request for servers would get."""

from __future__ import annotations

import argparse
from typing import Any

from osc_lib.command import command

from ebbtideclient.osc import common
from ebbtideclient.osc.columns import Lines
from ebbtideclient.osc.v1 import decision


class WhatIf(command.ShowOne):
    """Say where servers would go now and which would have to leave

    Nothing is claimed, and no server gets a notice. A moment later the answer
    may be another one. Without a valid host the exit code is 1.
    """

    # Whether there was a place, for the exit code.
    _placed = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--flavor",
            metavar="<flavor>",
            required=True,
            help="Flavor of the servers (name or ID)",
        )
        parser.add_argument(
            "--count",
            metavar="<num>",
            type=common.count,
            default=1,
            help="How many, all or nothing (default: 1)",
        )
        common.add_project_option(parser, "For this project, default: yours")
        common.add_domain_option(parser)
        parser.add_argument(
            "--availability-zone", metavar="<zone>", help="Only in this zone"
        )
        parser.add_argument(
            "--server-group",
            metavar="<group>",
            help="In this server group (name or ID)",
        )
        parser.add_argument(
            "--host",
            metavar="<host>",
            action="append",
            help="Only on this host (repeat option for several)",
        )
        parser.add_argument(
            "--ignore-host",
            metavar="<host>",
            action="append",
            help="Not on this host (repeat option for several)",
        )
        parser.add_argument(
            "--alternates",
            metavar="<num>",
            type=common.count,
            help="How many alternate hosts to name",
        )
        openstack = parser.add_argument_group(
            "on an OpenStack, whose images the scheduler does not ask for"
        )
        openstack.add_argument(
            "--image", metavar="<image-id>", help="ID of the image"
        )
        openstack.add_argument(
            "--image-disk-format",
            metavar="<format>",
            help="Disk format of the image, such as qcow2",
        )
        openstack.add_argument(
            "--image-property",
            metavar="<key=value>",
            action="append",
            type=common.pair,
            help="Property of the image (repeat option for several)",
        )
        openstack.add_argument(
            "--boot-from-volume",
            action="store_true",
            help="The servers boot from a volume",
        )
        openstack.add_argument(
            "--hint",
            metavar="<key=value>",
            action="append",
            type=common.pair,
            help="Scheduler hint (repeat option for several)",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        manager: Any = self.app.client_manager
        question = asked(parsed_args, common.project(manager, parsed_args))
        answer = manager.preemptible.what_if(question)
        found = answer["decision"]
        self._placed = not found.get("no_valid_host")
        names, values = decision.shown(found)
        notices = answer["notices"]
        return (*names, "notices"), (*values, Lines(notices, notices))

    def run(self, parsed_args: argparse.Namespace) -> int:
        status = super().run(parsed_args)
        return status or (0 if self._placed else 1)


def asked(
    parsed_args: argparse.Namespace, project_id: str | None
) -> dict[str, Any]:
    """The body of the request. What is not set is left out."""
    request = {
        "flavor": parsed_args.flavor,
        "count": parsed_args.count,
        "project_id": project_id,
        "availability_zone": parsed_args.availability_zone,
        "group": parsed_args.server_group,
        "force_hosts": parsed_args.host,
        "ignore_hosts": parsed_args.ignore_host,
        "alternates": parsed_args.alternates,
    }
    image = {
        "id": parsed_args.image,
        "disk_format": parsed_args.image_disk_format,
        "properties": dict(parsed_args.image_property or []),
    }
    hints: dict[str, Any] = {}
    for key, value in parsed_args.hint or []:
        hints.setdefault(key, {"values": []})["values"].append(value)
    question = {
        "request": _set(request),
        "image": _set(image),
        "boot_from_volume": parsed_args.boot_from_volume,
        "scheduler_hints": hints,
    }
    return _set(question)


def _set(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
