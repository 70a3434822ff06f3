"""Pages of the project's panel."""

from __future__ import annotations

import hashlib
from typing import Any

from django.http import Http404, JsonResponse
from django.utils.translation import gettext_lazy as _
from django.views import generic
from horizon import tables, views

from ebbtide_dashboard import api, texts
from ebbtide_dashboard.project.tables import ServersTable


def digest(servers: list[dict[str, Any]]) -> str:
    """Changes with what the table shows."""
    shown = [
        (s["id"], s["state"], s["state_until"], s["price"]) for s in servers
    ]
    return hashlib.sha256(repr(shown).encode()).hexdigest()


class IndexView(tables.DataTableView):
    """The servers."""

    table_class = ServersTable
    template_name = "ebbtide/servers.html"
    page_title = _("Preemptible Servers")

    def get_data(self) -> list[dict[str, Any]]:
        self.servers = api.preemptible_servers(self.request)
        return self.servers

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        context["digest"] = digest(self.servers)
        return context


class StatesView(generic.View):
    """Whether the table has changed, for the page that shows it."""

    def get(self, request: Any) -> JsonResponse:
        try:
            client = api.client(request)
            prices = {p["flavor"]: p["price"] for p in client.prices()}
            servers = [
                {**s, "price": prices.get(s["flavor_name"], "")}
                for s in client.each_server(project_id=request.user.project_id)
                if s["preemptible"]
            ]
        except api.FAILURES as error:
            return JsonResponse({"problem": api.described(error)}, status=502)
        servers.sort(
            key=lambda s: (s["state"] not in api.NOTICED, s["name"], s["id"])
        )
        return JsonResponse({"digest": digest(servers)})


class DetailView(views.HorizonTemplateView):
    """A server: who displaced it and why, and why it is where it is."""

    template_name = "ebbtide/server.html"
    page_title = "{{ server.name }}"

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        server_id = self.kwargs["server_id"]
        ask = self.request
        server = api.ask(ask, lambda c: c.find_server(server_id), None)
        context["server"] = server
        if server is None:
            return context
        if server["project_id"] != self.request.user.project_id:
            raise Http404
        found = api.ask(
            ask,
            lambda c: c.evacuations(limit=1, server_id=server["id"]),
            [],
        )
        evacuation = found[0] if found else None
        context["state"] = texts.state(server["state"])
        context["interruption"] = texts.interruption(server["interruption"])
        context["noticed"] = server["state"] in api.NOTICED
        context["evacuation"] = evacuation
        if evacuation:
            context["cause"] = texts.cause(evacuation["cause"])
            if evacuation["decision_id"]:
                context["displacement"] = api.ask(
                    ask, api.explained(evacuation["decision_id"]), None
                )
        context["decision"] = api.ask(ask, api.explained(server_id), None)
        return context


class AdviceView(views.HorizonTemplateView):
    """The risk of a preemptible flavor."""

    template_name = "ebbtide/advice.html"
    page_title = _("Advice")

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        context = super().get_context_data(**kwargs)
        flavor = self.request.GET.get("flavor", "")
        context["flavors"] = api.preemptible_flavors(self.request)
        context["flavor"] = flavor
        if flavor:
            advice = api.ask(self.request, lambda c: c.advice(flavor), None)
            context["advice"] = advice
            context["chances"] = [
                (c["within_hours"], round(c["chance"] * 100, 1))
                for c in (advice or {}).get("chances", [])
            ]
        return context
