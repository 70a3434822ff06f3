"""The table of preemptible servers."""

from __future__ import annotations

from typing import Any

from django.urls import reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy
from horizon import exceptions as horizon_exceptions
from horizon import messages, tables

from ebbtide_dashboard import api, texts
from ebbtide_dashboard.columns import Column


class Release(tables.BatchAction):
    """Ends the grace period of a server that has to leave."""

    name = "release"
    help_text = _("The server ends now, before its grace period is over.")

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # Horizon asks for confirmation.
        self.action_type = "danger"

    @staticmethod
    def action_present(count: int) -> Any:
        return ngettext_lazy("Release Early", "Release Early", count)

    @staticmethod
    def action_past(count: int) -> Any:
        return ngettext_lazy("Released Early", "Released Early", count)

    def allowed(self, request: Any, server: Any = None) -> bool:
        return server is None or server["state"] in api.NOTICED

    def action(self, request: Any, server_id: str) -> None:
        try:
            api.client(request).release(server_id)
        except api.FAILURES as error:
            messages.error(request, api.described(error))
            raise horizon_exceptions.HandledException(
                (type(error), error, error.__traceback__)
            ) from error


def _notice(server: Any) -> Any:
    if server["state"] not in api.NOTICED:
        return "-"
    return format_html(
        '<span class="ebbtide-countdown" data-ebbtide-deadline="{}"></span> {}',
        server["state_until"],
        server["state_reason"],
    )


def _detail(server: Any) -> str:
    return reverse(
        "horizon:project:preemptible_servers:detail", args=[server["id"]]
    )


class ServersTable(tables.DataTable):
    """A row a server."""

    name = Column(
        lambda s: s["name"], link=_detail, verbose_name=_("Name")
    )
    flavor = Column(
        lambda s: s["flavor_name"], verbose_name=_("Flavor")
    )
    state = Column(
        lambda s: texts.state(s["state"]), verbose_name=_("Status")
    )
    notice = Column(_notice, verbose_name=_("Notice"))
    price = Column(
        lambda s: s["price"] or "-", verbose_name=_("Price per Hour")
    )
    interruption = Column(
        lambda s: texts.interruption(s["interruption"]),
        verbose_name=_("If Displaced"),
    )

    def get_object_id(self, datum: Any) -> str:
        return datum["id"]

    def get_object_display(self, datum: Any) -> str:
        return datum["name"]

    class Meta:
        name = "preemptible_servers"
        verbose_name = _("Preemptible Servers")
        row_actions = (Release,)
        multi_select = False
