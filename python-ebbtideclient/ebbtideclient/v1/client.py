"""The API, one method a call. Answers are dictionaries with its names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

from keystoneauth1 import adapter

from ebbtideclient import __version__, exceptions
from ebbtideclient.v1 import calls

SERVICE_TYPE = "preemption"
# The most records of one page.
PAGE = 1000

Record = dict[str, Any]


class Client:
    """Calls the API through a session of keystoneauth.

    Other arguments are those of `keystoneauth1.adapter.Adapter`: `interface`,
    `region_name`, `endpoint_override`, `global_request_id` and so on.
    """

    def __init__(self, session: Any, **options: Any) -> None:
        options.setdefault("service_type", SERVICE_TYPE)
        options.setdefault("client_name", "python-ebbtideclient")
        options.setdefault("client_version", __version__)
        self.session = session
        self.http = adapter.Adapter(session, **options)
        self._prefix: str | None = None

    # Servers and evacuations.

    def servers(
        self,
        limit: int | None = None,
        marker: str | None = None,
        **filters: Any,
    ) -> list[Record]:
        """Servers; all pages, or at most `limit`."""
        return self._pages(calls.LIST_SERVERS, limit, marker, filters)

    def each_server(self, **filters: Any) -> Iterator[Record]:
        """Servers, page by page as they are asked for."""
        marker = filters.pop("marker", None)
        return self._records(calls.LIST_SERVERS, None, marker, filters)

    def server(self, name_or_id: str) -> Record:
        """A server by its id, or by a name that only one server has."""
        answer = self._call(calls.GET_SERVER, {"id": name_or_id})
        return answer["server"]

    def find_server(self, name_or_id: str) -> Record:
        """The same; else the last one of this name that is gone."""
        try:
            return self.server(name_or_id)
        except exceptions.Problem as problem:
            if problem.status != 404:
                raise
            gone = self.servers(name=name_or_id, include_gone=True)
            if not gone:
                raise
            return max(gone, key=lambda server: server["created_at"])

    def release(self, server_id: str) -> Record:
        """Ends the grace period of a victim now; gives its evacuation."""
        answer = self._call(calls.RELEASE_SERVER, {"id": server_id}, body={})
        return answer["evacuation"]

    def evacuations(
        self,
        limit: int | None = None,
        marker: str | None = None,
        **filters: Any,
    ) -> list[Record]:
        """Evacuations, the newest first; all pages, or at most `limit`."""
        return self._pages(calls.LIST_EVACUATIONS, limit, marker, filters)

    def evacuation(self, evacuation_id: str) -> Record:
        """One evacuation."""
        answer = self._call(calls.GET_EVACUATION, {"id": evacuation_id})
        return answer["evacuation"]

    # Decisions.

    def decisions(
        self,
        limit: int | None = 20,
        marker: str | None = None,
        **filters: Any,
    ) -> list[Record]:
        """Decisions, the newest first: at most `limit`, None for all."""
        return self._pages(calls.LIST_DECISIONS, limit, marker, filters)

    def explain(self, any_id: str, as_project: str | None = None) -> Record:
        """The decision with this id, or the last of a server or request."""
        query = {"as_project": as_project}
        return self._call(calls.EXPLAIN, {"id": any_id}, query)["decision"]

    def what_if(self, question: Mapping[str, Any]) -> Record:
        """Decides as for new servers and changes nothing."""
        return self._call(calls.WHAT_IF, body=dict(question))

    # Prices, lives, advice.

    def advice(self, flavor: str, **options: Any) -> Record:
        """How long servers of a flavor will probably live."""
        query = {"flavor": flavor, **options}
        return self._call(calls.GET_ADVICE, query=query)

    def prices(self) -> list[Record]:
        """The price of an hour of each flavor that has one."""
        return self._call(calls.LIST_PRICES)["prices"]

    def price_history(
        self,
        limit: int | None = None,
        marker: str | None = None,
        **filters: Any,
    ) -> list[Record]:
        """Changes of prices, the latest first."""
        return self._pages(calls.LIST_PRICE_HISTORY, limit, marker, filters)

    def bills(self, **filters: Any) -> list[Record]:
        """Sums by project and flavor."""
        return self._call(calls.LIST_BILLS, query=filters)["bills"]

    def billed_hours(
        self,
        limit: int | None = None,
        marker: str | None = None,
        **filters: Any,
    ) -> list[Record]:
        """What each instance-hour was charged, the earliest first."""
        return self._pages(calls.LIST_BILLED_HOURS, limit, marker, filters)

    def lives(
        self,
        limit: int | None = None,
        marker: str | None = None,
        **filters: Any,
    ) -> list[Record]:
        """Lives of servers that are over, the latest launch first."""
        return self._pages(calls.LIST_LIVES, limit, marker, filters)

    # Budgets.

    def budgets(self) -> list[Record]:
        """Disruption budgets."""
        return self._call(calls.LIST_BUDGETS)["budgets"]

    def set_budget(self, budget: Mapping[str, Any]) -> Record:
        """Makes or replaces the budget of a project or server group."""
        return self._call(calls.PUT_BUDGET, body=dict(budget))["budget"]

    def delete_budget(self, **owner: Any) -> None:
        """Removes the budget of `project_id` or `group_id`."""
        self._call(calls.DELETE_BUDGET, query=owner)

    def server_groups(self, project_id: str | None = None) -> list[Record]:
        """Server groups."""
        query = {"project_id": project_id}
        return self._call(calls.LIST_SERVER_GROUPS, query=query)["groups"]

    # Operators.

    def hosts(self) -> list[Record]:
        """Compute hosts with both of their states."""
        return self._call(calls.LIST_HOSTS)["hosts"]

    def host(self, name: str) -> Record:
        """A host, and its servers as `servers`."""
        answer = self._call(calls.GET_HOST, {"name": name})
        return {**answer["host"], "servers": answer.get("servers", [])}

    def plugins(self) -> list[Record]:
        """Filters, weighers and cost modules."""
        return self._call(calls.LIST_PLUGINS)["plugins"]

    def reclaims(self) -> list[Record]:
        """Hosts that their owners have taken back, or are about to."""
        return self._call(calls.LIST_RECLAIMS)["reclaims"]

    def reclaim(self, host: str) -> Record:
        """The reclaim of a host."""
        return self._call(calls.GET_RECLAIM, {"name": host})["reclaim"]

    def reclaim_host(self, host: str, **terms: Any) -> Record:
        """Takes a host back: its preemptible servers leave."""
        answer = self._call(calls.RECLAIM_HOST, {"name": host}, body=terms)
        return answer["reclaim"]

    def return_host(self, host: str, **terms: Any) -> Record:
        """Gives a reclaimed host to the scheduler again."""
        answer = self._call(calls.RETURN_HOST, {"name": host}, body=terms)
        return answer["host"]

    # The way there.

    def _url(self, call: calls.Call, path: Mapping[str, str]) -> str:
        if self._prefix is None:
            # A catalog may name the version or not.
            endpoint = (self.http.get_endpoint() or "").rstrip("/")
            self._prefix = "" if endpoint.endswith("/v1") else "/v1"
        quoted = {name: quote(text, safe="") for name, text in path.items()}
        return self._prefix + call.path.format(**quoted)

    def _call(
        self,
        call: calls.Call,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Any] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Record:
        query = query or {}
        unknown = sorted(set(query) - set(call.query))
        if unknown:
            raise TypeError(f"{call.operation} has no {', '.join(unknown)}")
        response = self.http.request(
            self._url(call, path or {}),
            call.method,
            params=_written(query),
            raise_exc=False,
            headers={"Accept": "application/json"},
            **({} if body is None else {"json": body}),
        )
        return self._answer(response)

    def _answer(self, response: Any) -> Record:
        try:
            answer = response.json() if response.content else {}
        except ValueError:
            answer = None
        if response.status_code >= 400 or not isinstance(answer, dict):
            request_id = response.headers.get("X-Openstack-Request-Id", "")
            raise exceptions.Problem.of(
                response.status_code, answer, request_id
            )
        return answer

    def _pages(
        self,
        call: calls.Call,
        limit: int | None,
        marker: str | None,
        filters: Mapping[str, Any],
    ) -> list[Record]:
        return list(self._records(call, limit, marker, filters))

    def _records(
        self,
        call: calls.Call,
        limit: int | None,
        marker: str | None,
        filters: Mapping[str, Any],
    ) -> Iterator[Record]:
        left = limit
        while left is None or left > 0:
            size = PAGE if left is None else min(left, PAGE)
            query = {**filters, "limit": size, "marker": marker}
            answer = self._call(call, query=query)
            records = answer[call.pages]
            yield from records if left is None else records[:left]
            if left is not None:
                left -= len(records)
            marker = _next(answer)
            if marker is None:
                return


def _next(answer: Mapping[str, Any]) -> str | None:
    """The marker in the link to the next page."""
    for link in answer.get("links", []):
        if link.get("rel") == "next":
            query = parse_qs(urlsplit(link.get("href", "")).query)
            return query.get("marker", [None])[0]
    return None


def _written(query: Mapping[str, Any]) -> dict[str, Any]:
    """Query parameters as text. What is not set is left out."""
    written = {}
    for name, value in query.items():
        if value is None or value == "" or value is False:
            continue
        written[name] = "true" if value is True else value
    return written
