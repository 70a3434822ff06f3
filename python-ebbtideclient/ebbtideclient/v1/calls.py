"""The calls of the API that this library makes.

A test compares each with docs/reference/openapi.json.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Call:
    """One operation of the OpenAPI document."""

    operation: str
    method: str
    # Below /v1, with the names of its parameters in braces.
    path: str
    # Query parameters.
    query: tuple[str, ...] = ()
    # Fields of the body; the inner ones of a field as `request.flavor`.
    body: tuple[str, ...] = ()
    # The list in the answer, where it comes in pages.
    pages: str = ""


LIST_SERVERS = Call(
    "listServers",
    "GET",
    "/servers",
    query=(
        "project_id",
        "status",
        "host",
        "name",
        "include_gone",
        "limit",
        "marker",
    ),
    pages="servers",
)
GET_SERVER = Call("getServer", "GET", "/servers/{id}")
RELEASE_SERVER = Call("releaseServer", "POST", "/servers/{id}/release")
LIST_EVACUATIONS = Call(
    "listEvacuations",
    "GET",
    "/evacuations",
    query=(
        "host",
        "project_id",
        "state",
        "server_id",
        "active_only",
        "limit",
        "marker",
    ),
    pages="evacuations",
)
GET_EVACUATION = Call("getEvacuation", "GET", "/evacuations/{id}")
LIST_DECISIONS = Call(
    "listDecisions",
    "GET",
    "/decisions",
    query=(
        "project_id",
        "server_id",
        "request_id",
        "from",
        "before",
        "refused_only",
        "limit",
        "marker",
    ),
    pages="decisions",
)
EXPLAIN = Call("explain", "GET", "/decisions/{id}", query=("as_project",))
WHAT_IF = Call(
    "whatIf",
    "POST",
    "/what-if",
    body=(
        "request.alternates",
        "request.availability_zone",
        "request.count",
        "request.flavor",
        "request.force_hosts",
        "request.group",
        "request.ignore_hosts",
        "request.project_id",
        "image.id",
        "image.disk_format",
        "image.properties",
        "boot_from_volume",
        "scheduler_hints",
    ),
)
GET_ADVICE = Call(
    "getAdvice",
    "GET",
    "/advice",
    query=(
        "flavor",
        "age_hours",
        "job_hours",
        "checkpoint_hours",
        "restart_hours",
    ),
)
LIST_PRICES = Call("listPrices", "GET", "/prices")
LIST_PRICE_HISTORY = Call(
    "listPriceHistory",
    "GET",
    "/price-history",
    query=("flavor", "from", "before", "limit", "marker"),
    pages="prices",
)
LIST_BILLS = Call(
    "listBills", "GET", "/bills", query=("project_id", "from", "before")
)
LIST_BILLED_HOURS = Call(
    "listBilledHours",
    "GET",
    "/bills/hours",
    query=("project_id", "from", "before", "limit", "marker"),
    pages="hours",
)
LIST_LIVES = Call(
    "listLives",
    "GET",
    "/lives",
    query=(
        "project_id",
        "flavor",
        "ended_from",
        "launched_before",
        "limit",
        "marker",
    ),
    pages="lives",
)
LIST_BUDGETS = Call("listBudgets", "GET", "/budgets")
PUT_BUDGET = Call(
    "putBudget",
    "PUT",
    "/budgets",
    body=("project_id", "group_id", "max_victims", "window_seconds"),
)
DELETE_BUDGET = Call(
    "deleteBudget", "DELETE", "/budgets", query=("project_id", "group_id")
)
LIST_SERVER_GROUPS = Call(
    "listServerGroups", "GET", "/server-groups", query=("project_id",)
)
LIST_HOSTS = Call("listHosts", "GET", "/hosts")
GET_HOST = Call("getHost", "GET", "/hosts/{name}")
LIST_PLUGINS = Call("listPlugins", "GET", "/plugins")
LIST_RECLAIMS = Call("listReclaims", "GET", "/reclaims")
GET_RECLAIM = Call("getReclaim", "GET", "/hosts/{name}/reclaim")
RECLAIM_HOST = Call(
    "reclaimHost",
    "POST",
    "/hosts/{name}/reclaim",
    body=(
        "owner",
        "reason",
        "deadline",
        "deadline_seconds",
        "max_cost",
        "dry_run",
    ),
)
RETURN_HOST = Call(
    "returnHost", "POST", "/hosts/{name}/return", body=("keep_disabled",)
)

ALL: tuple[Call, ...] = tuple(
    value for value in list(globals().values()) if isinstance(value, Call)
)
