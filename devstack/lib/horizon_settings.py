"""local_settings.py of the Horizon of devstack/lib/horizon.sh."""

import os
from pathlib import Path

_HOME = Path(os.environ["EBBTIDE_HORIZON_HOME"])

DEBUG = False
ALLOWED_HOSTS = ["127.0.0.1"]
SECRET_KEY = (_HOME / "secret").read_text(encoding="ascii")
OPENSTACK_KEYSTONE_URL = os.environ["OS_AUTH_URL"]
WEBROOT = os.environ["EBBTIDE_HORIZON_WEBROOT"]
STATIC_ROOT = str(_HOME / "static")
COMPRESS_OFFLINE = True
# One process, so that a cache of its own is enough for sessions.
CACHES = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
}
