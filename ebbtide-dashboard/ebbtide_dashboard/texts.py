"""Words of the API in the user's language."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

STATES = {
    "waiting": _("Waiting"),
    "starting": _("Starting"),
    "returning": _("Returning"),
    "reserved": _("Reserved"),
    "active": _("Active"),
    "warned": _("Has to leave"),
    "draining": _("Has to leave"),
    "stopped": _("Stopped"),
    "hibernated": _("Hibernated"),
    "deleting": _("Being deleted"),
    "gone": _("Gone"),
    "error": _("Error"),
}
INTERRUPTIONS = {
    "terminate": _("Terminate"),
    "stop": _("Stop"),
    "hibernate": _("Hibernate"),
    "live-migrate": _("Live-migrate"),
}
CAUSES = {
    "preemption": _("A normal server needs the capacity"),
    "max-lifetime": _("Its lifetime is over"),
    "out-of-bid": _("The price is above its maximum"),
    "headroom": _("Capacity is kept free for normal servers"),
    "reclaim": _("The owner takes the host back"),
}


def state(word: str) -> Any:
    return STATES.get(word, word)


def interruption(word: str) -> Any:
    return INTERRUPTIONS.get(word, word)


def cause(word: str) -> Any:
    return CAUSES.get(word, word)
