"""The operator's panel."""

from django.utils.translation import gettext_lazy as _
import horizon


class PreemptibleCapacity(horizon.Panel):
    """Capacity in both states, and evacuations."""

    name = _("Preemptible Capacity")
    slug = "preemptible_capacity"
    permissions = ("openstack.services.preemption",)
