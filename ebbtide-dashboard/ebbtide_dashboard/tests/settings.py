"""Horizon's settings for tests, with the panels of this plugin."""

from openstack_dashboard import enabled as horizon_enabled

from ebbtide_dashboard import enabled

# As an administrator copies the files there.
horizon_enabled.__path__.extend(enabled.__path__)

from openstack_dashboard.test.settings import *  # noqa: E402,F401,F403
