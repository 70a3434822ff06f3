"""The project's panel."""

from django.utils.translation import gettext_lazy as _
import horizon

# Its import registers the calls of the launch dialogue.
from ebbtide_dashboard import rest  # noqa: F401


class PreemptibleServers(horizon.Panel):
    """Preemptible servers of the project."""

    name = _("Preemptible Servers")
    slug = "preemptible_servers"
    permissions = ("openstack.services.preemption",)
