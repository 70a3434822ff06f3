"""Calls of Ebbtide's API for a request of Horizon."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from horizon import exceptions as horizon_exceptions
from horizon import messages
from keystoneauth1 import exceptions as keystone_exceptions
from keystoneauth1 import session, token_endpoint
from openstack_dashboard import api
from oslo_utils import strutils

from ebbtideclient.exceptions import ClientError, Problem
from ebbtideclient.v1.client import SERVICE_TYPE, Client

LOG = logging.getLogger(__name__)
# A page waits this long for an answer.
TIMEOUT_SECONDS = 10
FAILURES = (
    ClientError,
    keystone_exceptions.ClientException,
    horizon_exceptions.ServiceCatalogException,
)
# States in which the grace period runs.
NOTICED = ("warned", "draining")


def client(request: Any) -> Client:
    """The API at the address of the catalog, with the user's token."""
    endpoint = api.base.url_for(request, SERVICE_TYPE)
    verify: Any = not getattr(settings, "OPENSTACK_SSL_NO_VERIFY", False)
    if verify:
        verify = getattr(settings, "OPENSTACK_SSL_CACERT", None) or True
    auth = token_endpoint.Token(endpoint, request.user.token.id)
    return Client(
        session.Session(auth=auth, verify=verify, timeout=TIMEOUT_SECONDS)
    )


def described(error: Exception) -> str:
    """What a user reads about a failure."""
    if isinstance(error, Problem) and error.status == 403:
        return _("Your role does not allow this: %s") % error
    if isinstance(error, ClientError):
        return _("Ebbtide refused the request: %s") % error
    return _(
        "Ebbtide's API does not answer. Servers keep running; try again "
        "later, or tell the operator."
    )


def ask(request: Any, question: Callable[[Client], Any], default: Any) -> Any:
    """The answer; after a failure a message and the default."""
    try:
        return question(client(request))
    except FAILURES as error:
        if isinstance(error, Problem) and error.status == 401:
            # Horizon shows the login form.
            raise horizon_exceptions.NotAuthenticated() from error
        LOG.warning("Ebbtide's API: %s", error)
        text = described(error)
        # Several questions of one page fail alike.
        if text not in {str(m) for m in messages_of(request)}:
            messages.error(request, text)
        return default


def explained(any_id: str) -> Callable[[Client], Any]:
    """Asks for a decision; None if it is not kept any more."""

    def question(ebbtide: Client) -> Any:
        try:
            return ebbtide.explain(any_id)
        except Problem as problem:
            if problem.status != 404:
                raise
            return None

    return question


def messages_of(request: Any) -> list[Any]:
    """Messages that this request has added."""
    storage = getattr(request, "_messages", None)
    return list(getattr(storage, "_queued_messages", []))


def preemptible_servers(request: Any) -> list[dict[str, Any]]:
    """The project's preemptible servers, those under notice first."""
    project = request.user.project_id

    def question(ebbtide: Client) -> list[dict[str, Any]]:
        prices = {p["flavor"]: p["price"] for p in ebbtide.prices()}
        return [
            {**server, "price": prices.get(server["flavor_name"], "")}
            for server in ebbtide.each_server(project_id=project)
            if server["preemptible"]
        ]

    found = ask(request, question, [])
    return sorted(
        found,
        key=lambda s: (s["state"] not in NOTICED, s["name"], s["id"]),
    )


def preemptible_flavors(request: Any) -> list[str]:
    """Names of the flavors whose servers are preemptible."""
    try:
        flavors = api.nova.flavor_list(request, None, get_extras=True)
    except Exception:
        horizon_exceptions.handle(request, _("Nova's flavors are missing."))
        return []
    return sorted(
        flavor.name
        for flavor in flavors
        if strutils.bool_from_string(
            extra_specs(flavor).get("ebbtide:preemptible", "")
        )
    )


def extra_specs(flavor: Any) -> Any:
    """A flavor's extra specs, as Debian's Horizon or the newest has them."""
    # The first look-up must not be novaclient's, which asks Nova again.
    found = getattr(flavor, "extras", None)
    return flavor.extra_specs if found is None else found
