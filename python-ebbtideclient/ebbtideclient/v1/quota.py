"""Quotas of preemptible servers, which Keystone keeps.

They are unified limits of the service `preemption`, as
docs/openstack/openstack.md says. What is in use is counted from the servers
of the API.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from keystoneauth1 import adapter

from ebbtideclient.exceptions import NoQuota, Problem
from ebbtideclient.v1.client import SERVICE_TYPE, Client

RESOURCES = (
    "preemptible_servers",
    "preemptible_vcpus",
    "preemptible_memory_mb",
)
# Where the API counts it, by resource class.
CLASSES = {"preemptible_vcpus": "VCPU", "preemptible_memory_mb": "MEMORY_MB"}
# Servers that are gone.
GONE = ("preempted", "deleted")


@dataclass(frozen=True)
class Quota:
    """How much of a resource a project may use, and uses."""

    resource: str
    # -1: any amount. A resource that is not registered allows nothing.
    limit: int
    in_use: int


def quotas(
    client: Client, project_id: str, interface: str | None = None
) -> list[Quota]:
    """The quotas of a project.

    `NoQuota` where there is no Keystone or the service has no limits.
    """
    auth = client.session.auth
    if not hasattr(auth, "get_access"):
        raise NoQuota(
            "There is no quota without Keystone. Next step: limit what a "
            "project may displace with `openstack preemptible budget set`"
        )
    access = auth.get_access(client.session)
    if access.project_id and access.project_id != project_id:
        # It would leave the project's own limits out of its answer.
        raise NoQuota(
            "Keystone shows limits of another project to roles on the whole "
            "system only. Next step: the same with `--os-system-scope all` "
            "and without a project in the credentials"
        )
    service = next(
        (
            entry["id"]
            for entry in access.service_catalog.catalog
            if entry.get("type") == SERVICE_TYPE
        ),
        None,
    )
    if service is None:
        raise NoQuota(f"The catalog has no service {SERVICE_TYPE}")
    keystone = adapter.Adapter(
        client.session,
        service_type="identity",
        interface=interface,
        min_version="3",
        max_version="3.latest",
    )
    registered = _rows(keystone, "registered_limits", service_id=service)
    if not registered:
        raise NoQuota(
            "Preemptible servers have no quota here. Next step: an "
            "administrator runs `openstack registered limit create --service "
            "preemption …`"
        )
    own = _rows(keystone, "limits", service_id=service, project_id=project_id)
    # The default first, then what replaces it.
    levels = [(registered, "default_limit")]
    if _two_levels(keystone) and access.project_domain_id:
        domain = access.project_domain_id
        above = _rows(keystone, "limits", service_id=service, domain_id=domain)
        levels.append((above, "resource_limit"))
    levels.append((own, "resource_limit"))
    region = client.http.region_name
    used = in_use(client.servers(project_id=project_id))
    return [
        Quota(name, _limit(levels, name, region), used[name])
        for name in RESOURCES
    ]


def in_use(servers: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """What preemptible servers use, by resource of the quota."""
    used = dict.fromkeys(RESOURCES, 0)
    for server in servers:
        if not server["preemptible"] or server["status"] in GONE:
            continue
        # Shelved and offloaded: Nova has taken its host away.
        if server["status"] == "hibernated" and not server["host"]:
            continue
        used["preemptible_servers"] += 1
        for resource, name in CLASSES.items():
            used[resource] += int(server["resources"].get(name, 0))
    return used


def _limit(
    levels: Iterable[tuple[list[dict[str, Any]], str]],
    resource: str,
    region: str | None,
) -> int:
    """The limit of the last level that has one.

    Within a level that of the region wins over that of all regions.
    """
    limit = 0
    for rows, amount in levels:
        found = {
            row.get("region_id"): row[amount]
            for row in rows
            if row["resource_name"] == resource
        }
        if region is None and len(found) == 1:
            limit = next(iter(found.values()))
        else:
            limit = found.get(region, found.get(None, limit))
    return limit


def _two_levels(keystone: adapter.Adapter) -> bool:
    answer = _get(keystone, "/limits/model", {})
    name = answer.get("model", {}).get("name", "flat")
    return name.replace("-", "_") == "strict_two_level"


def _rows(
    keystone: adapter.Adapter, name: str, **query: str
) -> list[dict[str, Any]]:
    return _get(keystone, "/" + name, query).get(name, [])


def _get(
    keystone: adapter.Adapter, path: str, query: Mapping[str, str]
) -> dict[str, Any]:
    response = keystone.get(path, params=dict(query), raise_exc=False)
    if response.status_code != 200:
        request = response.headers.get("X-Openstack-Request-Id", "")
        raise Problem(
            response.status_code,
            f"Keystone refused GET {path}",
            request_id=request,
        )
    return response.json()
