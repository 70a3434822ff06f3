"""What the launch dialogue asks of Horizon."""

from __future__ import annotations

from typing import Any

from django.views import generic
from openstack_dashboard.api.rest import urls
from openstack_dashboard.api.rest import utils as rest_utils

from ebbtide_dashboard import api


def _answer(question: Any) -> Any:
    try:
        return question()
    except api.FAILURES as error:
        raise rest_utils.AjaxError(502, api.described(error)) from error


@urls.register
class Prices(generic.View):
    """The price of an hour of each flavor that has one."""

    url_regex = r"ebbtide/prices/$"

    @rest_utils.ajax()
    def get(self, request: Any) -> Any:
        prices = _answer(lambda: api.client(request).prices())
        return {"items": prices}


@urls.register
class Advice(generic.View):
    """How long servers of a flavor will probably live."""

    url_regex = r"ebbtide/advice/$"

    @rest_utils.ajax()
    def get(self, request: Any) -> Any:
        flavor = request.GET.get("flavor", "")
        return _answer(lambda: api.client(request).advice(flavor))
