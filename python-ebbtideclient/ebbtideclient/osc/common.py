"""Options that several commands have, and what they mean."""

from __future__ import annotations

import argparse
import re
from typing import Any

from keystoneauth1 import adapter
from osc_lib.command import command

from ebbtideclient.v1.client import Client

TIME = re.compile(
    r"\d{4}-\d\d-\d\d"
    r"(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?"
)


def time(text: str) -> str:
    """A point in time as the API reads it; a day begins at 00:00 UTC."""
    if not TIME.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time such as 2026-11-01 or "
            "2026-11-01T10:00:00Z"
        )
    day, clock, zone = text[:10], text[11:], ""
    found = re.search(r"(Z|[+-]\d\d:\d\d)$", clock)
    if found:
        clock, zone = clock[: found.start()], found.group()
    if not clock:
        clock = "00:00:00"
    elif clock.count(":") == 1:
        clock += ":00"
    return f"{day}T{clock}{zone or 'Z'}"


def count(text: str) -> int:
    """A number that is at least 1."""
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number above 0")
    return int(text)


def pair(text: str) -> tuple[str, str]:
    """`KEY=VALUE`."""
    key, sign, value = text.partition("=")
    if not key or not sign:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


def add_page_options(
    parser: argparse.ArgumentParser, default: int | None = None
) -> None:
    """--limit and --marker."""
    shown = f"default: {default}" if default else "default: all"
    parser.add_argument(
        "--limit",
        metavar="<num>",
        type=count,
        default=default,
        help=f"Show at most this many ({shown})",
    )
    parser.add_argument(
        "--marker",
        metavar="<id>",
        help="Begin after the one with this ID, the last of the page before",
    )


def add_long_option(parser: argparse.ArgumentParser) -> None:
    """--long."""
    parser.add_argument(
        "--long", action="store_true", help="List additional fields"
    )


def add_time_options(parser: argparse.ArgumentParser, what: str) -> None:
    """--from and --before."""
    parser.add_argument(
        "--from",
        dest="begin",
        metavar="<time>",
        type=time,
        help=f"Only {what} from this time on, such as 2026-11-01 or "
        "2026-11-01T10:00:00Z",
    )
    parser.add_argument(
        "--before",
        dest="end",
        metavar="<time>",
        type=time,
        help=f"Only {what} before this time",
    )


def add_scope_options(parser: argparse.ArgumentParser) -> None:
    """--project, --project-domain, --all-projects."""
    scope = parser.add_mutually_exclusive_group()
    add_project_option(scope, "Only of this project, default: yours")
    scope.add_argument(
        "--all-projects",
        action="store_true",
        help="Of all projects that you may see",
    )
    add_domain_option(parser)


def add_project_option(parser: Any, text: str) -> None:
    """--project alone."""
    parser.add_argument(
        "--project", metavar="<project>", help=f"{text} (name or ID)"
    )


def add_domain_option(parser: Any) -> None:
    """--project-domain."""
    parser.add_argument(
        "--project-domain",
        metavar="<project-domain>",
        help="ID of the domain of <project>, where names are not unique",
    )


def client(command: Any) -> Client:
    """The client of a command's cloud, which the plugin makes."""
    return command.app.client_manager.preemptible


def scope(manager: Any, arguments: argparse.Namespace) -> str | None:
    """Whose records: the ID of a project, or None for all."""
    if getattr(arguments, "all_projects", False):
        return None
    return project(manager, arguments)


def project(manager: Any, arguments: argparse.Namespace) -> str | None:
    """The project that was named, or that of the credentials.

    None where credentials have no project: with a token of a region, which
    knows the token's projects, or without authentication.
    """
    if arguments.project:
        return find_project(
            manager, arguments.project, arguments.project_domain
        )
    if not has_keystone(manager.session):
        return None
    return manager.session.get_project_id()


def has_keystone(session: Any) -> bool:
    """Whether the credentials are Keystone's."""
    return hasattr(session.auth, "get_access")


def find_project(manager: Any, name: str, domain: str | None = None) -> str:
    """The ID of a project of Keystone.

    What the caller may not look up counts as an ID, as in other commands of
    the openstack client; the API refuses it if it is none.
    """
    if not has_keystone(manager.session):
        return name
    keystone = adapter.Adapter(
        manager.session,
        service_type="identity",
        interface=manager.interface,
        region_name=manager.region_name,
        min_version="3",
        max_version="3.latest",
    )
    if name == manager.session.get_project_id():
        return name
    if keystone.get(f"/projects/{name}", raise_exc=False).status_code == 200:
        return name
    query = {"name": name, **({"domain_id": domain} if domain else {})}
    found = keystone.get("/projects", params=query, raise_exc=False)
    projects = found.json()["projects"] if found.status_code == 200 else []
    return projects[0]["id"] if len(projects) == 1 else name


class LongLister(command.Lister):
    """A list whose only option is --long."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        add_long_option(parser)
        return parser
