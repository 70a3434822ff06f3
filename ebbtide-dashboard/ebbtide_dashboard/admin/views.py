"""The operator's page."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _
from horizon import tables

from ebbtide_dashboard import api, texts
from ebbtide_dashboard.columns import Column

# Resource classes in the table, as `openstack preemptible host list` has.
CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
# Evacuations that the page shows.
MOST = 100


def _free(state: str) -> Any:
    def cell(host: Any) -> str:
        free = {r["resource_class"]: r[state] for r in host["resources"]}
        return " / ".join(str(free[name]) for name in CLASSES if name in free)

    return cell


class HostsTable(tables.DataTable):
    """A row a host."""

    name = Column(lambda h: h["name"], verbose_name=_("Host"))
    health = Column(lambda h: h["health"], verbose_name=_("Health"))
    zone = Column(
        lambda h: h["availability_zone"], verbose_name=_("Availability Zone")
    )
    normal = Column(
        lambda h: h["normal_servers"], verbose_name=_("Normal Servers")
    )
    preemptible = Column(
        lambda h: h["preemptible_servers"],
        verbose_name=_("Preemptible Servers"),
    )
    free_full = Column(
        _free("free_full"), verbose_name=_("Free (all)")
    )
    free_normal = Column(
        _free("free_normal"), verbose_name=_("Free (normal only)")
    )

    def get_object_id(self, datum: Any) -> str:
        return datum["name"]

    class Meta:
        name = "hosts"
        verbose_name = _("Capacity: VCPU / MEMORY_MB / DISK_GB")


class EvacuationsTable(tables.DataTable):
    """A row an evacuation, failed ones first."""

    victim = Column(
        lambda e: e["victim_name"] or e["victim_id"], verbose_name=_("Victim")
    )
    host = Column(lambda e: e["host"], verbose_name=_("Host"))
    state = Column(lambda e: e["state"], verbose_name=_("Status"))
    cause = Column(
        lambda e: texts.cause(e["cause"]), verbose_name=_("Cause")
    )
    preemptor = Column(
        lambda e: e["preemptor_id"] or "-", verbose_name=_("For")
    )
    deadline = Column(
        lambda e: e["deadline_at"] or "-", verbose_name=_("Deadline")
    )
    reason = Column(lambda e: e["reason"], verbose_name=_("Reason"))

    def get_object_id(self, datum: Any) -> str:
        return datum["id"]

    class Meta:
        name = "evacuations"
        verbose_name = _("Evacuations")


class IndexView(tables.MultiTableView):
    """Capacity and evacuations."""

    table_classes = (EvacuationsTable, HostsTable)
    template_name = "ebbtide/capacity.html"
    page_title = _("Preemptible Capacity")

    def get_hosts_data(self) -> Any:
        return api.ask(self.request, lambda c: c.hosts(), [])

    def get_evacuations_data(self) -> Any:
        def question(client: Any) -> Any:
            # An old failure is not among the newest evacuations.
            failed = client.evacuations(limit=MOST, state="failed")
            newest = client.evacuations(limit=MOST)
            return failed + [e for e in newest if e["state"] != "failed"]

        return api.ask(self.request, question, [])
